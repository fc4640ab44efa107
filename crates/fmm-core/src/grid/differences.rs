//! Differences of fourth order, on each level of a grid: (ω·∇)u, ∇²ω, curls, and what takes the part of ω that is no curl away.

use rayon::prelude::*;

use super::blocks::{Block, CELLS, Grid, split};
use super::levels::Levels;
use super::padded::{REACH, WIDE, is_within, wide_place};
use super::transfer::Values;
use crate::math::CollectVec;

/// What `at` makes of each cell of the blocks that `wanted` names by their numbers, from the block, the number of the cell, the padded
/// `field` of the block and the cell's place in it; nothing elsewhere.
fn each_cell<T: Copy + Default + Send>(
    grid: &Grid,
    (field, values): (&[[f64; 3]], Values),
    wanted: impl Fn(usize) -> bool + Sync,
    at: impl Fn(&Block, usize, &[[f64; 3]], usize) -> T + Sync,
) -> Vec<T> {
    let mut out = vec![T::default(); grid.cells()];
    let levels = Levels::of(grid, field, values);
    out.par_chunks_mut(CELLS).zip(grid.blocks()).enumerate().for_each(|(b, (out, block))| {
        if !wanted(b) {
            return;
        }
        let wide = levels.padded(*block);
        for (c, out) in out.iter_mut().enumerate() {
            *out = at(block, b * CELLS + c, &wide, wide_place(split(c).map(|i| i as usize + REACH)));
        }
    });
    out
}

/// Cells that differences of differences reach.
const TWICE: usize = 4;

/// Steps between neighbors along each axis in a padded block.
const STEPS: [usize; 3] = [1, WIDE, WIDE * WIDE];

/// 12 h times the derivative of `f` at `here`, `step` from one cell to the next.
fn along(f: impl Fn(usize) -> f64, here: usize, step: usize) -> f64 {
    8.0 * (f(here + step) - f(here - step)) - (f(here + 2 * step) - f(here - 2 * step))
}

/// 12 h² times the second derivative.
fn twice(f: impl Fn(usize) -> f64, here: usize, step: usize) -> f64 {
    16.0 * (f(here + step) + f(here - step)) - (f(here + 2 * step) + f(here - 2 * step)) - 30.0 * f(here)
}

/// The gradients of u_x, u_y and u_z in all cells.
pub fn gradients(grid: &Grid, velocity: &[[f64; 3]]) -> Vec<[[f64; 3]; 3]> {
    each_cell(
        grid,
        (velocity, Values::Points),
        |_| true,
        |block, _, wide, here| {
            let scale = 1.0 / (12.0 * grid.spacing(block.level));
            [0, 1, 2].map(|k| STEPS.map(|step| scale * along(|n| wide[n][k], here, step)))
        },
    )
}

/// (w·∇)u.
pub fn stretched(w: [f64; 3], gradients: [[f64; 3]; 3]) -> [f64; 3] {
    gradients.map(|g| w[0] * g[0] + w[1] * g[1] + w[2] * g[2])
}

/// ∇(∇·Ψ) where there is vorticity: as ∇²(∇·Ψ) = −∇·ω, ω with this added is a curl. Both are the differences that [`curl`] takes: so what
/// is a curl already stays as it is. Second differences of each component would smooth it once a solution.
///
/// Nothing is added where these differences reach another level. The error of Ψ there, a multiple
/// of h² ω, is four times larger in the larger cells; divided by h² it would be a part of ω itself,
/// however small the cells are. What is left there is carried on to where it is taken away.
pub fn divergent(grid: &Grid, vorticity: &[[f64; 3]], psi: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let sources = each_cell(
        grid,
        (psi, Values::Points),
        |_| true,
        |block, _, wide, here| [divergence(wide, here) / grid.spacing(block.level), 0.0, 0.0],
    );
    let turning = |b: usize| vorticity[b * CELLS..(b + 1) * CELLS].iter().any(|w| *w != [0.0; 3]);
    let others: Vec<Option<[bool; 27]>> = grid.blocks().par_iter().map(|&b| grid.other_levels(b)).collect_vec();
    let outside = |i: usize| {
        vorticity[i] == [0.0; 3] || others[i / CELLS].is_some_and(|others| is_within(TWICE, &others, i % CELLS))
    };
    each_cell(grid, (&sources, Values::Points), turning, |block, i, wide, here| match outside(i) {
        true => [0.0; 3],
        false => STEPS.map(|step| along(|n| wide[n][0], here, step) / (12.0 * grid.spacing(block.level))),
    })
}

/// `factor` ∇²ω in all cells, of blocks without vorticity too, which it enters.
pub fn laplacian(grid: &Grid, vorticity: &[[f64; 3]], factor: f64) -> Vec<[f64; 3]> {
    each_cell(
        grid,
        (vorticity, Values::Means),
        |_| true,
        |block, _, wide, here| {
            let scale = factor / (12.0 * grid.spacing(block.level).powi(2));
            [0, 1, 2].map(|k| scale * STEPS.map(|step| twice(|n| wide[n][k], here, step)).iter().sum::<f64>())
        },
    )
}

/// ∇ × `field`, values at points, in all cells.
pub fn curl(grid: &Grid, field: &[[f64; 3]]) -> Vec<[f64; 3]> {
    each_cell(
        grid,
        (field, Values::Points),
        |_| true,
        |block, _, wide, here| {
            let scale = 1.0 / (12.0 * grid.spacing(block.level));
            let slope = |k: usize, d: usize| scale * along(|n| wide[n][k], here, STEPS[d]);
            [slope(2, 1) - slope(1, 2), slope(0, 2) - slope(2, 0), slope(1, 0) - slope(0, 1)]
        },
    )
}

/// h ∇·ω at a cell of a padded block.
pub fn divergence(wide: &[[f64; 3]], here: usize) -> f64 {
    (0..3).map(|d| along(|n| wide[n][d], here, STEPS[d])).sum::<f64>() / 12.0
}

#[cfg(test)]
mod tests {
    use super::super::forest::Forest;
    use super::super::padded::padded;
    use super::super::remesh::Lattice;
    use super::*;

    const LATTICE: Lattice = Lattice { corner: [-1.0, 0.0, 0.5], side: 2.0, base: 3 };

    /// The whole lattice, a field on it and the number of the block in the middle.
    fn sampled(field: impl Fn([f64; 3]) -> [f64; 3]) -> (Grid, Vec<[f64; 3]>, usize) {
        let grid = LATTICE.grid((0..27).map(|n| Block { level: 0, index: [n % 3, n / 3 % 3, n / 9] }));
        let values = (0..grid.cells()).map(|i| field(grid.center_of(i / CELLS, i % CELLS))).collect();
        let middle = grid.number(Block { level: 0, index: [1, 1, 1] }).unwrap();
        (grid, values, middle)
    }

    #[test]
    fn stretching_is_exact_for_polynomials() {
        let (grid, velocity, middle) = sampled(|[x, y, z]| [x * y * z, y * y * y - x, z * z + 2.0 * x * y]);
        let vorticity = vec![[1.0, -2.0, 0.5]; grid.cells()];
        let found = gradients(&grid, &velocity);
        for c in 0..CELLS {
            let [x, y, z] = grid.center_of(middle, c);
            let exact = [y * z - 2.0 * x * z + 0.5 * x * y, -1.0 - 6.0 * y * y, 2.0 * y - 4.0 * x + z];
            let i = middle * CELLS + c;
            let got = stretched(vorticity[i], found[i]);
            assert!((0..3).all(|k| (got[k] - exact[k]).abs() < 1e-11), "{got:?} {exact:?}");
        }
    }

    #[test]
    fn differences_are_exact_for_polynomials_where_levels_meet() {
        let start = Grid::uniform([-1.0, 0.0, 0.5], 2.0, 2);
        let mut forest = Forest::of(&start);
        forest.refine(Block { level: 0, index: [0; 3] });
        forest.refine(Block { level: 1, index: [1, 1, 0] });
        let grid = forest.grid(&start);
        // Means over cells of what is harmonic are its values at centers.
        let at = |i: usize| grid.center_of(i / CELLS, i % CELLS);
        let field: Vec<[f64; 3]> = (0..grid.cells())
            .map(at)
            .map(|[x, y, z]| [x * y * z, x * x * x - 3.0 * x * z * z, 2.0 * y * y - x * x - z * z])
            .collect();
        let (slopes, second, none) = (gradients(&grid, &field), laplacian(&grid, &field, 1.0), curl(&grid, &field));
        let mut near = [0; 3];
        for i in 0..grid.cells() {
            let ([x, y, z], level) = (at(i), grid.blocks()[i / CELLS].level);
            // Up to where predictions have zeros beyond the faces of the domain.
            let margin = 6.0 * grid.spacing(level.max(1) - 1);
            if [x + 1.0, y, z - 0.5].into_iter().any(|from| from < margin || from > 2.0 - margin) {
                continue;
            }
            let exact =
                [[y * z, x * z, x * y], [3.0 * (x * x - z * z), 0.0, -6.0 * x * z], [-2.0 * x, 4.0 * y, -2.0 * z]];
            let close = |a: [f64; 3], b: [f64; 3], by: f64| (0..3).all(|k| (a[k] - b[k]).abs() < by);
            assert!((0..3).all(|k| close(slopes[i][k], exact[k], 1e-10)), "{x} {y} {z}: {:?} {exact:?}", slopes[i]);
            assert!(close(second[i], [0.0; 3], 1e-8), "{x} {y} {z}: {:?}", second[i]);
            let turned = [4.0 * y + 6.0 * x * z, x * y + 2.0 * x, 3.0 * (x * x - z * z) - x * z];
            assert!(close(none[i], turned, 1e-10), "{x} {y} {z}: {:?} {turned:?}", none[i]);
            near[usize::from(level)] += 1;
        }
        assert!(near.iter().all(|&n| n > 1000), "{near:?}");
    }

    #[test]
    fn the_laplacian_is_exact_for_polynomials() {
        let (grid, field, middle) = sampled(|[x, y, z]| [x * x * y * z, y * y * y - x * x, z.powi(4) + 2.0 * x * y]);
        let found = laplacian(&grid, &field, 3.0);
        for c in 0..CELLS {
            let [_, y, z] = grid.center_of(middle, c);
            let exact = [2.0 * y * z, 6.0 * y - 2.0, 12.0 * z * z].map(|e| 3.0 * e);
            let got = found[middle * CELLS + c];
            assert!((0..3).all(|k| (got[k] - exact[k]).abs() < 1e-8), "{got:?} {exact:?}");
        }
    }

    #[test]
    fn curls_are_exact_for_polynomials() {
        let (grid, field, middle) = sampled(|[x, y, z]| [y * y * z, x * x * x - z, x * y * z * z]);
        let found = curl(&grid, &field);
        for c in 0..CELLS {
            let [x, y, z] = grid.center_of(middle, c);
            let exact = [x * z * z + 1.0, y * y - y * z * z, 3.0 * x * x - 2.0 * y * z];
            let got = found[middle * CELLS + c];
            assert!((0..3).all(|k| (got[k] - exact[k]).abs() < 1e-10), "{got:?} {exact:?}");
        }
    }

    #[test]
    fn what_is_a_curl_stays_as_it_is() {
        // Waves of some cells, which second differences see otherwise than first ones of first ones do.
        let wave = |a: f64, b: f64, c: f64| move |[x, y, z]: [f64; 3]| (a * x + b * y + c * z).sin();
        let (grid, field, middle) =
            sampled(|x| [wave(60.0, 30.0, 20.0)(x), wave(-20.0, 50.0, 10.0)(x), wave(40.0, -10.0, 60.0)(x)]);
        let psi = curl(&grid, &field);
        let found = divergent(&grid, &vec![[1.0; 3]; grid.cells()], &psi);
        let h = grid.spacing(0);
        for i in middle * CELLS..(middle + 1) * CELLS {
            // Of |Ψ|/h² nothing is left but rounding.
            assert!(found[i].iter().all(|f| f.abs() < 1e-11 / (h * h * h)), "{:?}", found[i]);
        }
    }

    #[test]
    fn what_is_no_curl_is_found() {
        // Ψ = (x² y, x y z, z³ − y): ∇·Ψ = 2xy + xz + 3z².
        let (grid, psi, middle) = sampled(|[x, y, z]| [x * x * y, x * y * z, z * z * z - y]);
        let mut vorticity = vec![[1.0, 0.0, 0.0]; grid.cells()];
        vorticity[middle * CELLS + 7] = [0.0; 3];
        let found = divergent(&grid, &vorticity, &psi);
        let wide = padded(&grid, &psi, grid.blocks()[middle]);
        for c in 0..CELLS {
            let i = middle * CELLS + c;
            let [x, y, z] = grid.center_of(middle, c);
            let exact = if c == 7 { [0.0; 3] } else { [2.0 * y + z, 2.0 * x, x + 6.0 * z] };
            assert!((0..3).all(|k| (found[i][k] - exact[k]).abs() < 1e-9), "{:?} {exact:?}", found[i]);
            let own = divergence(&wide, wide_place(split(c).map(|i| i as usize + REACH))) / grid.spacing(0);
            assert!((own - (2.0 * x * y + x * z + 3.0 * z * z)).abs() < 1e-10);
        }
    }
}
