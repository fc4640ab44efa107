//! Between particles and the cells of one level of a grid, by the kernels M4' (Monaghan 1985) and M6* (van Rees et al. 2011).
//!
//! M4'(s) = 1 − 5/2 s² + 3/2 |s|³ for |s| ≤ 1, (2 − |s|)² (1 − |s|)/2 to 2, in each direction. Sums
//! over the grid conserve the integral and the first and second moments of what particles carry.
//! M6* conserves the moments to the fourth: where M4' shifts waves of few cells by a distance of
//! order h², which depends on the step, the shift of M6* is of order h⁴. Each block sums its own
//! particles into an array with a margin around the block, and then gathers from the arrays of its
//! neighbors in one order. So sums do not depend on the number of threads.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::levels::Levels;
use super::padded::{REACH, WIDE, neighbor, wide_place};
use crate::math::CollectVec;

/// A grid without blocks, and where particles lie in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lattice {
    /// Lower corner.
    pub corner: [f64; 3],
    /// Side of the cube that it fills.
    pub side: f64,
    /// Blocks of level 0 along a side.
    pub base: u32,
}

impl Lattice {
    /// The grid with these blocks of the lattice.
    pub fn grid(&self, blocks: impl IntoIterator<Item = Block>) -> Grid {
        Grid::new(self.corner, self.side, self.base, blocks.into_iter().collect())
    }

    /// h of a level.
    pub fn spacing(&self, level: u8) -> f64 {
        self.side / self.across(level)
    }

    /// Cells of a level along a side.
    fn across(&self, level: u8) -> f64 {
        ((self.base as usize * BLOCK) << level) as f64
    }

    /// The block of a level that holds a place, and the place in cells from the center of its first cell; `None` outside of the lattice, or
    /// so near its faces that the kernel, which reaches `reach` cells, reaches beyond.
    fn place(&self, level: u8, x: [f64; 3], reach: f64) -> Option<(Block, [f64; 3])> {
        let across = self.across(level);
        let h = self.spacing(level);
        let cells: [f64; 3] = std::array::from_fn(|d| (x[d] - self.corner[d]) / h);
        let inside = cells.iter().all(|&c| c >= reach && c < across - reach);
        inside.then(|| {
            let index = cells.map(|c| (c as usize / BLOCK) as u32);
            let within = std::array::from_fn(|d| cells[d] - (index[d] as usize * BLOCK) as f64 - 0.5);
            (Block { level, index }, within)
        })
    }
}

/// The kernel between particles and cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kernel {
    /// M4', of third order, four cells wide.
    #[default]
    M4,
    /// M6*, of fifth order, six cells wide.
    M6,
}

impl Kernel {
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::M4 => "m4",
            Kernel::M6 => "m6",
        }
    }

    /// Cells on either side of a particle that it acts on.
    pub const fn reach(self) -> usize {
        match self {
            Kernel::M4 => 2,
            Kernel::M6 => 3,
        }
    }

    /// Weights of the 2·reach cells around, the first of which is reach − 1 below `at.floor()`; then zeros.
    fn weights(self, at: f64) -> [f64; 6] {
        let s = at - at.floor();
        match self {
            Kernel::M4 => {
                let outer = |s: f64| 0.5 * (2.0 - s) * (2.0 - s) * (1.0 - s);
                let inner = |s: f64| 1.0 - s * s * (2.5 - 1.5 * s);
                [outer(1.0 + s), inner(s), inner(1.0 - s), outer(2.0 - s), 0.0, 0.0]
            }
            Kernel::M6 => {
                let inner = |s: f64| (1.0 - s) * (((25.0 * s - 38.0) * s - 3.0) * s * s + 12.0 * s + 12.0) / 12.0;
                let middle = |s: f64| (s - 1.0) * (s - 2.0) * (((25.0 * s - 114.0) * s + 153.0) * s - 48.0) / 24.0;
                let outer = |s: f64| (2.0 - s) * (s - 3.0) * (s - 3.0) * (s - 3.0) * (5.0 * s - 8.0) / 24.0;
                [outer(2.0 + s), middle(1.0 + s), inner(s), inner(1.0 - s), middle(2.0 - s), outer(3.0 - s)]
            }
        }
    }
}

/// Particles by the block that holds them.
pub struct Placed {
    kernel: Kernel,
    /// Blocks, in order, and where the particles of each begin.
    blocks: Vec<(Block, usize)>,
    /// Particles, block after block, each with its place in the block.
    particles: Vec<(u32, [f64; 3])>,
}

impl Placed {
    /// Places the particles of a level; `None` if one has left the lattice.
    pub fn new(lattice: &Lattice, level: u8, kernel: Kernel, position: &[[f64; 3]]) -> Option<Self> {
        let reach = kernel.reach() as f64;
        let places: Option<Vec<_>> = position.par_iter().map(|&x| lattice.place(level, x, reach)).collect();
        let places = places?;
        let mut order: Vec<u32> = (0..position.len() as u32).collect();
        order.par_sort_by_key(|&i| places[i as usize].0);
        let mut blocks: Vec<(Block, usize)> = vec![];
        for (k, &i) in order.iter().enumerate() {
            let block = places[i as usize].0;
            if blocks.last().is_none_or(|b| b.0 != block) {
                blocks.push((block, k));
            }
        }
        let particles = order.into_iter().map(|i| (i, places[i as usize].1)).collect();
        Some(Placed { kernel, blocks, particles })
    }

    fn of(&self, b: usize) -> &[(u32, [f64; 3])] {
        let end = self.blocks.get(b + 1).map_or(self.particles.len(), |next| next.1);
        &self.particles[self.blocks[b].1..end]
    }

    /// The blocks that particles reach.
    pub fn reached(&self) -> BTreeSet<Block> {
        let reach = self.kernel.reach() as i64;
        let per_block = |b: usize| {
            let mut near = [false; 27];
            for (_, at) in self.of(b) {
                // Along each axis: whether the cells below, within and above the block are reached.
                let along = at.map(|a| {
                    let cell = a.floor() as i64;
                    [cell + 1 < reach, true, cell + reach >= BLOCK as i64]
                });
                for (n, near) in near.iter_mut().enumerate() {
                    *near |= along[0][n % 3] && along[1][n / 3 % 3] && along[2][n / 9];
                }
            }
            let block = self.blocks[b].0;
            (0..27).filter(move |&n| near[n]).map(move |n| neighbor(block, n)).collect::<Vec<Block>>()
        };
        (0..self.blocks.len()).into_par_iter().flat_map_iter(per_block).collect::<Vec<_>>().into_iter().collect()
    }

    /// Adds what particles carry, Σ value times the kernel, to `field` in those cells of `grid` that are of their level.
    pub fn scatter(&self, grid: &Grid, values: &[[f64; 3]], field: &mut [[f64; 3]]) {
        let wide: Vec<Vec<[f64; 3]>> = (0..self.blocks.len())
            .into_par_iter()
            .map(|b| {
                let mut sums = vec![[0.0; 3]; WIDE * WIDE * WIDE];
                for (i, at) in self.of(b) {
                    let value = values[*i as usize];
                    self.each_cell(*at, |place, weight| (0..3).for_each(|k| sums[place][k] += weight * value[k]));
                }
                sums
            })
            .collect_vec();
        field.par_chunks_mut(CELLS).zip(grid.blocks()).for_each(|(cells, &block)| {
            for n in 0..27 {
                let from = neighbor(block, n);
                let Ok(b) = self.blocks.binary_search_by_key(&from, |b| b.0) else { continue };
                for (c, value) in cells.iter_mut().enumerate() {
                    let cell = split(c);
                    // The cell as the neighbor counts.
                    let there: [i64; 3] = std::array::from_fn(|d| {
                        let shift = i64::from(block.index[d]) - i64::from(from.index[d]);
                        cell[d] + shift * BLOCK as i64 + REACH as i64
                    });
                    if there.iter().all(|t| (0..WIDE as i64).contains(t)) {
                        let sum = wide[b][wide_place(there.map(|t| t as usize))];
                        (0..3).for_each(|k| value[k] += sum[k]);
                    }
                }
            }
        });
    }

    /// The fields at the particles: Σ field times the kernel.
    pub fn gather<const N: usize>(&self, fields: [&Levels; N]) -> Vec<[[f64; 3]; N]> {
        let of_block = |b: usize| {
            let wide = fields.map(|f| f.padded(self.blocks[b].0));
            let values = self.of(b).iter().map(move |(i, at)| {
                let mut sums = [[0.0; 3]; N];
                self.each_cell(*at, |place, weight| {
                    for n in 0..N {
                        (0..3).for_each(|k| sums[n][k] += weight * wide[n][place][k]);
                    }
                });
                (*i, sums)
            });
            values.collect::<Vec<_>>()
        };
        let by_block: Vec<_> = (0..self.blocks.len()).into_par_iter().map(of_block).collect_vec();
        let mut all = vec![[[0.0; 3]; N]; self.particles.len()];
        by_block.into_iter().flatten().for_each(|(i, sums)| all[i as usize] = sums);
        all
    }

    /// Calls `add` with each of the cells around a place, as places of a padded block, and its weight.
    fn each_cell(&self, at: [f64; 3], mut add: impl FnMut(usize, f64)) {
        let reach = self.kernel.reach();
        let [x, y, z] = at.map(|a| self.kernel.weights(a));
        let first = at.map(|a| (a.floor() as i64 + (REACH - reach + 1) as i64) as usize);
        for (k, wz) in z[..2 * reach].iter().enumerate() {
            for (j, wy) in y[..2 * reach].iter().enumerate() {
                for (i, wx) in x[..2 * reach].iter().enumerate() {
                    add(wide_place([first[0] + i, first[1] + j, first[2] + k]), wx * wy * wz);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::transfer::Values;
    use super::*;

    const LATTICE: Lattice = Lattice { corner: [-1.0, 0.0, 0.5], side: 2.0, base: 3 };

    fn scattered(n: usize) -> Vec<[f64; 3]> {
        let number = |i: usize| (i as f64 * 0.754_877_666_246_692_8 + 0.3).fract();
        (0..n).map(|i| std::array::from_fn(|d| LATTICE.corner[d] + 0.13 + 1.74 * number(3 * i + d))).collect()
    }

    #[test]
    fn moments_are_kept_and_gathering_is_the_transpose() {
        moments(Kernel::M4, &[]);
        // Those of the fourth order too, which M4' keeps none of.
        moments(Kernel::M6, &[&|x| x[0].powi(4), &|x| x[0] * x[1] * x[1] * x[2], &|x| x[2].powi(3)]);
    }

    fn moments(kernel: Kernel, more: &[&dyn Fn([f64; 3]) -> f64]) {
        let (x, q) = (scattered(200), scattered(201)[1..].to_vec());
        let placed = Placed::new(&LATTICE, 0, kernel, &x).unwrap();
        let grid = LATTICE.grid(placed.reached());
        let mut field = vec![[0.0; 3]; grid.cells()];
        placed.scatter(&grid, &q, &mut field);
        let moment = |f: &dyn Fn([f64; 3]) -> f64, k: usize| {
            let cells = (0..field.len()).map(|i| f(grid.center_of(i / CELLS, i % CELLS)) * field[i][k]).sum::<f64>();
            (cells, x.iter().zip(&q).map(|(x, q)| f(*x) * q[k]).sum::<f64>())
        };
        let moments: [&dyn Fn([f64; 3]) -> f64; 5] =
            [&|_| 1.0, &|x| x[0], &|x| x[1] - x[2], &|x| x[0] * x[1], &|x| x[2] * x[2]];
        for (m, f) in moments.iter().chain(more).enumerate() {
            // Fourth powers are larger.
            let limit = if m < moments.len() { 1e-11 } else { 1e-10 };
            for k in 0..3 {
                let (cells, particles) = moment(f, k);
                assert!((cells - particles).abs() < limit, "moment {m}: {cells} {particles}");
            }
        }
        // Σ_p v_p·gather(f)_p = Σ_c scatter(v)_c·f_c.
        let other: Vec<[f64; 3]> = (0..field.len()).map(|i| [0, 1, 2].map(|k| ((i * 3 + k) as f64).sin())).collect();
        let back = placed.gather([&other, &field].map(|f| Levels::of(&grid, f, Values::Points)).each_ref());
        let dot = |a: &[[f64; 3]], b: &[[f64; 3]]| {
            a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| a * b).sum::<f64>()
        };
        let first: Vec<[f64; 3]> = back.iter().map(|b| b[0]).collect();
        assert!((dot(&q, &first) - dot(&field, &other)).abs() < 1e-9 * dot(&field, &field));
    }

    #[test]
    fn particles_at_centers_stay_there_and_those_outside_are_told() {
        let h = LATTICE.spacing(0);
        let x = [[-1.0 + 15.5 * h, 16.5 * h, 0.5 + 20.5 * h]];
        let placed = Placed::new(&LATTICE, 0, Kernel::M4, &x).unwrap();
        let grid = LATTICE.grid(placed.reached());
        let mut field = vec![[0.0; 3]; grid.cells()];
        placed.scatter(&grid, &[[1.0, 2.0, 3.0]], &mut field);
        let filled: Vec<usize> = (0..field.len()).filter(|&i| field[i].iter().any(|w| w.abs() > 1e-12)).collect();
        assert_eq!(filled.len(), 1);
        let center = grid.center_of(filled[0] / CELLS, filled[0] % CELLS);
        assert!((0..3).all(|d| (center[d] - x[0][d]).abs() < 1e-12));
        assert!(Placed::new(&LATTICE, 0, Kernel::M4, &[[-1.0 + 1.9 * h, 0.5, 1.0]]).is_none());
        assert!(Placed::new(&LATTICE, 0, Kernel::M4, &[[0.0, 0.5, f64::NAN]]).is_none());
    }
}
