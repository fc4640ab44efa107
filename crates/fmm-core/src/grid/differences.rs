//! Differences of fourth order, on each level of a grid: (ω·∇)u, ∇²ω, curls, and what takes the part of ω that is no curl away.

use rayon::prelude::*;

use super::blocks::{BLOCK, CELLS, Grid};
use super::levels::Levels;
use super::padded::{REACH, WIDE, Within, wide_place};
use super::transfer::Values;
use crate::math::{CollectVec, zeros};

/// What `of` makes of each row of 16 cells of the blocks that `wanted` names by their numbers; zero
/// elsewhere.
fn each_row<const N: usize, const M: usize>(
    grid: &Grid,
    (field, values): (&[[f64; N]], Values),
    wanted: impl Fn(usize) -> bool + Sync,
    of: impl Fn(Row, &mut [[f64; M]]) + Sync,
) -> Vec<[f64; M]> {
    let mut out: Vec<[f64; M]> = zeros(grid.cells());
    let levels = Levels::of(grid, field, values);
    out.par_chunks_mut(CELLS).zip(grid.blocks()).enumerate().for_each(|(b, (out, block))| {
        if !wanted(b) {
            return;
        }
        let (wide, h) = (levels.padded(*block), grid.spacing(block.level));
        for (r, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            let place = wide_place([0, r % BLOCK, r / BLOCK].map(|i| i + REACH));
            of(Row { wide: wide.as_flattened(), here: N * place, at: b * CELLS + r * BLOCK, h }, out);
        }
    });
    out
}

/// A row of cells along x.
struct Row<'a> {
    /// The numbers of a padded block.
    wide: &'a [f64],
    /// The place of the first number of the row.
    here: usize,
    /// The number of its first cell.
    at: usize,
    /// h.
    h: f64,
}

/// Cells that differences of differences reach.
const TWICE: usize = 4;

/// Steps between neighbors along each axis in a padded block.
const STEPS: [usize; 3] = [1, WIDE, WIDE * WIDE];

/// Numbers of a row of cells with three each.
const ROW: usize = 3 * BLOCK;

/// L numbers at each of five places, `step` from one to the next, the middle of which is `here`.
#[inline(always)]
fn five<const L: usize>(f: &[f64], here: usize, step: usize) -> [&[f64; L]; 5] {
    std::array::from_fn(|n| f[here + n * step - 2 * step..].first_chunk().expect("differences reach two cells"))
}

/// 12 h times the derivatives of the L numbers of `f` from `here` on, `step` from those of one cell
/// to those of the next.
#[inline(always)]
fn along<const L: usize>(f: &[f64], here: usize, step: usize) -> [f64; L] {
    let ([a, b, _, c, d], mut out) = (five::<L>(f, here, step), [0.0; L]);
    for i in 0..L {
        out[i] = 8.0 * (c[i] - b[i]) - (d[i] - a[i]);
    }
    out
}

/// 12 h² times the second derivatives.
#[inline(always)]
fn twice<const L: usize>(f: &[f64], here: usize, step: usize) -> [f64; L] {
    let ([a, b, u, c, d], mut out) = (five::<L>(f, here, step), [0.0; L]);
    for i in 0..L {
        out[i] = 16.0 * (c[i] + b[i]) - (d[i] + a[i]) - 30.0 * u[i];
    }
    out
}

/// How a fluid moves: u_x, u_y and u_z, then the gradient of each.
pub type Motion = [f64; 12];

/// The velocity and its gradients in all cells.
pub fn motion(grid: &Grid, velocity: &[[f64; 3]]) -> Vec<Motion> {
    each_row(
        grid,
        (velocity, Values::Points),
        |_| true,
        |row, out: &mut [Motion]| {
            let scale = 1.0 / (12.0 * row.h);
            let slopes = STEPS.map(|step| along::<ROW>(row.wide, row.here, 3 * step));
            for (i, out) in out.iter_mut().enumerate() {
                out[..3].copy_from_slice(&velocity[row.at + i]);
                for k in 0..3 {
                    (0..3).for_each(|d| out[3 + 3 * k + d] = scale * slopes[d][3 * i + k]);
                }
            }
        },
    )
}

/// (w·∇)u.
pub fn stretched(w: [f64; 3], motion: &Motion) -> [f64; 3] {
    [3, 6, 9].map(|g| w[0] * motion[g] + w[1] * motion[g + 1] + w[2] * motion[g + 2])
}

/// ∇(∇·Ψ) where there is vorticity: as ∇²(∇·Ψ) = −∇·ω, ω with this added is a curl. Both are the differences that [`curl`] takes: so what
/// is a curl already stays as it is. Second differences of each component would smooth it once a solution.
///
/// Nothing is added where these differences reach another level. The error of Ψ there, a multiple
/// of h² ω, is four times larger in the larger cells; divided by h² it would be a part of ω itself,
/// however small the cells are. What is left there is carried on to where it is taken away.
pub fn divergent(grid: &Grid, vorticity: &[[f64; 3]], psi: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let sources: Vec<[f64; 1]> = each_row(
        grid,
        (psi, Values::Points),
        |_| true,
        |row, out| {
            let [x, y, z] = STEPS.map(|step| along::<ROW>(row.wide, row.here, 3 * step));
            for (i, out) in out.iter_mut().enumerate() {
                out[0] = (x[3 * i] + y[3 * i + 1] + z[3 * i + 2]) / 12.0 / row.h;
            }
        },
    );
    let turning = |b: usize| vorticity[b * CELLS..(b + 1) * CELLS].iter().any(|w| *w != [0.0; 3]);
    let others: Vec<u32> = grid.blocks().par_iter().map(|&b| grid.other_levels(b)).collect_vec();
    let within = Within::new(TWICE);
    let outside = |i: usize| vorticity[i] == [0.0; 3] || within.any(others[i / CELLS], i % CELLS);
    each_row(grid, (&sources, Values::Points), turning, |row, out| {
        let slopes = STEPS.map(|step| along::<BLOCK>(row.wide, row.here, step));
        for (i, out) in out.iter_mut().enumerate().filter(|(i, _)| !outside(row.at + i)) {
            *out = slopes.map(|s| s[i] / (12.0 * row.h));
        }
    })
}

/// `factor` ∇²ω in all cells, of blocks without vorticity too, which it enters.
pub fn laplacian(grid: &Grid, vorticity: &[[f64; 3]], factor: f64) -> Vec<[f64; 3]> {
    each_row(
        grid,
        (vorticity, Values::Means),
        |_| true,
        |row, out: &mut [[f64; 3]]| {
            let scale = factor / (12.0 * row.h.powi(2));
            let [x, y, z] = STEPS.map(|step| twice::<ROW>(row.wide, row.here, 3 * step));
            for (i, out) in out.as_flattened_mut().iter_mut().enumerate() {
                *out = scale * (x[i] + y[i] + z[i]);
            }
        },
    )
}

/// ∇ × `field`, values at points, in all cells.
pub fn curl(grid: &Grid, field: &[[f64; 3]]) -> Vec<[f64; 3]> {
    each_row(
        grid,
        (field, Values::Points),
        |_| true,
        |row, out| {
            let scale = 1.0 / (12.0 * row.h);
            let slopes = STEPS.map(|step| along::<ROW>(row.wide, row.here, 3 * step));
            for (i, out) in out.iter_mut().enumerate() {
                let slope = |k: usize, d: usize| scale * slopes[d][3 * i + k];
                *out = [slope(2, 1) - slope(1, 2), slope(0, 2) - slope(2, 0), slope(1, 0) - slope(0, 1)];
            }
        },
    )
}

/// h ∇·ω at a cell of a padded block.
pub fn divergence(wide: &[[f64; 3]], here: usize) -> f64 {
    (0..3).map(|d| along::<1>(wide.as_flattened(), 3 * here + d, 3 * STEPS[d])[0]).sum::<f64>() / 12.0
}

#[cfg(test)]
mod tests {
    use super::super::blocks::{Block, split};
    use super::super::forest::Forest;
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
        let found = motion(&grid, &velocity);
        for c in 0..CELLS {
            let [x, y, z] = grid.center_of(middle, c);
            let exact = [y * z - 2.0 * x * z + 0.5 * x * y, -1.0 - 6.0 * y * y, 2.0 * y - 4.0 * x + z];
            let i = middle * CELLS + c;
            let got = stretched(vorticity[i], &found[i]);
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
        let (slopes, second, none) = (motion(&grid, &field), laplacian(&grid, &field, 1.0), curl(&grid, &field));
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
            let slope = |k: usize| std::array::from_fn(|d| slopes[i][3 + 3 * k + d]);
            assert!((0..3).all(|k| close(slope(k), exact[k], 1e-10)), "{x} {y} {z}: {:?} {exact:?}", slopes[i]);
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
        let wide = Levels::of(&grid, &psi, Values::Points).padded(grid.blocks()[middle]);
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
