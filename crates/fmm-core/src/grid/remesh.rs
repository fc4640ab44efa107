//! Between particles and the cells of one level of a grid, by the kernels M4' (Monaghan 1985) and M6* (van Rees et al. 2011).
//!
//! M4'(s) = 1 − 5/2 s² + 3/2 |s|³ for |s| ≤ 1, (2 − |s|)² (1 − |s|)/2 to 2, in each direction. Sums
//! over the grid conserve the integral and the first and second moments of what particles carry.
//! M6* conserves the moments to the fourth: where M4' shifts waves of few cells by a distance of
//! order h², which depends on the step, the shift of M6* is of order h⁴. Each block sums its own
//! particles into an array with a margin around the block, and then gathers from the arrays of its
//! neighbors in one order. So sums do not depend on the number of threads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use super::blocks::{BLOCK, Block, CELLS, Grid};
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

    /// Weights of the 2·reach cells around, the first of which is reach − 1 below `at.floor()`.
    #[inline(always)]
    fn weights<const W: usize>(self, at: f64) -> [f64; W] {
        let s = at - at.floor();
        let all = match self {
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
        };
        std::array::from_fn(|i| all[i])
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
        let places = position.par_iter().map(|&x| lattice.place(level, x, reach)).collect_vec();
        if places.par_iter().any(Option::is_none) {
            return None;
        }
        let place = |i: u32| places[i as usize].expect("all are in the lattice");
        let mut order: Vec<u32> = (0..position.len() as u32).collect();
        order.par_sort_by_key(|&i| place(i).0);
        let block = |k: usize| place(order[k]).0;
        let first = (0..order.len()).into_par_iter().filter(|&k| k == 0 || block(k - 1) != block(k));
        let blocks = first.map(|k| (block(k), k)).collect();
        let particles = order.par_iter().map(|&i| (i, place(i).1)).collect_vec();
        Some(Placed { kernel, blocks, particles })
    }

    fn of(&self, b: usize) -> &[(u32, [f64; 3])] {
        let end = self.blocks.get(b + 1).map_or(self.particles.len(), |next| next.1);
        &self.particles[self.blocks[b].1..end]
    }

    /// The blocks that particles reach.
    pub fn reached(&self) -> BTreeSet<Block> {
        let reach = self.kernel.reach() as i64;
        // Along each axis a bit for each neighbor whose offset is −1, 0 and 1 there.
        let bits =
            |d: u32| [0, 1, 2].map(|o| (0..27usize).filter(|n| n / 3usize.pow(d) % 3 == o).map(|n| 1u32 << n).sum());
        let bits: [[u32; 3]; 3] = [0, 1, 2].map(bits);
        let per_block = |b: usize| {
            let mut near = 0;
            for (_, at) in self.of(b) {
                // Along each axis: whether the cells below, within and above the block are reached.
                let along = |d: usize| {
                    let (cell, bits) = (at[d].floor() as i64, bits[d]);
                    let below = if cell + 1 < reach { bits[0] } else { 0 };
                    let above = if cell + reach >= BLOCK as i64 { bits[2] } else { 0 };
                    below | bits[1] | above
                };
                near |= along(0) & along(1) & along(2);
            }
            let block = self.blocks[b].0;
            (0..27).filter(move |&n| near >> n & 1 != 0).map(move |n| neighbor(block, n)).collect::<Vec<Block>>()
        };
        (0..self.blocks.len()).into_par_iter().flat_map_iter(per_block).collect::<Vec<_>>().into_iter().collect()
    }

    /// Adds what particles carry, Σ value times the kernel, to `field` in those cells of `grid` that are of their level.
    pub fn scatter(&self, grid: &Grid, values: &[[f64; 3]], field: &mut [[f64; 3]]) {
        let sums = |b: usize| match self.kernel {
            Kernel::M4 => self.scattered::<4>(b, values),
            Kernel::M6 => self.scattered::<6>(b, values),
        };
        let wide: Vec<Vec<[f64; 4]>> = (0..self.blocks.len()).into_par_iter().map(sums).collect_vec();
        // Along an axis: the first cell of a block that the padded one of a neighbor has, the place
        // there, and how many.
        let parts = [(0, WIDE - REACH, REACH), (0, REACH, BLOCK), (BLOCK - REACH, 0, REACH)];
        field.par_chunks_mut(CELLS).zip(grid.blocks()).for_each(|(cells, &block)| {
            for n in 0..27 {
                let Ok(b) = self.blocks.binary_search_by_key(&neighbor(block, n), |b| b.0) else { continue };
                let [x, y, z] = [parts[n % 3], parts[n / 3 % 3], parts[n / 9]];
                for k in 0..z.2 {
                    for j in 0..y.2 {
                        let to = x.0 + BLOCK * (y.0 + j + BLOCK * (z.0 + k));
                        let from = wide_place([x.1, y.1 + j, z.1 + k]);
                        for (value, sum) in cells[to..to + x.2].iter_mut().zip(&wide[b][from..]) {
                            (0..3).for_each(|k| value[k] += sum[k]);
                        }
                    }
                }
            }
        });
    }

    /// What the particles of a block add to it and to [`REACH`] cells around. A fourth number,
    /// always zero, lets a cell fill a vector.
    fn scattered<const W: usize>(&self, b: usize, values: &[[f64; 3]]) -> Vec<[f64; 4]> {
        let mut sums = bytemuck::zeroed_vec(WIDE * WIDE * WIDE);
        for (i, at) in self.of(b) {
            let [x, y, z] = values[*i as usize];
            let value = [x, y, z, 0.0];
            self.each_row::<W>(*at, |place, weights| {
                let cells: &mut [[f64; 4]; W] = sums[place..].first_chunk_mut().expect("kernels stay in padded blocks");
                for (cell, weight) in cells.iter_mut().zip(weights) {
                    (0..4).for_each(|k| cell[k] += weight * value[k]);
                }
            });
        }
        sums
    }

    /// What `of` makes of each particle's number and of the field there: Σ field times the kernel.
    pub fn gather<const N: usize, T: Send + Sync + Copy>(
        &self,
        field: &Levels<N>,
        of: impl Fn(usize, [f64; N]) -> T + Sync,
    ) -> Vec<T> {
        let of_block = |b: usize| match self.kernel {
            Kernel::M4 => self.gathered::<4, N, T>(b, field, &of),
            Kernel::M6 => self.gathered::<6, N, T>(b, field, &of),
        };
        let by_block = (0..self.blocks.len()).into_par_iter().map(of_block).collect_vec();
        // Back to the order of the particles: the block of each and its number there.
        let mut places: Vec<AtomicU64> = vec![];
        places.resize_with(self.particles.len(), AtomicU64::default);
        (0..self.blocks.len()).into_par_iter().for_each(|b| {
            let numbered = self.of(b).iter().enumerate();
            numbered.for_each(|(n, (i, _))| places[*i as usize].store((b as u64) << 32 | n as u64, Relaxed));
        });
        let back = |place: AtomicU64| {
            let place = place.into_inner();
            by_block[(place >> 32) as usize][place as u32 as usize]
        };
        places.into_par_iter().map(back).collect_vec()
    }

    /// [`gather`](Self::gather) at the particles of a block.
    fn gathered<const W: usize, const N: usize, T>(
        &self,
        b: usize,
        field: &Levels<N>,
        of: &impl Fn(usize, [f64; N]) -> T,
    ) -> Vec<T> {
        let wide = field.padded(self.blocks[b].0);
        let value = |(i, at): &(u32, [f64; 3])| {
            let mut sums = [0.0; N];
            self.each_row::<W>(*at, |place, weights| {
                let cells: &[[f64; N]; W] = wide[place..].first_chunk().expect("kernels stay in padded blocks");
                // Sums in registers, not in what the closure borrows.
                let mut own = sums;
                for (cell, weight) in cells.iter().zip(weights) {
                    for n in 0..N {
                        own[n] += weight * cell[n];
                    }
                }
                sums = own;
            });
            of(*i as usize, sums)
        };
        self.of(b).iter().map(value).collect()
    }

    /// Calls `add` with the first of each row of the cells around a place, as a place of a padded
    /// block, and their weights.
    #[inline(always)]
    fn each_row<const W: usize>(&self, at: [f64; 3], mut add: impl FnMut(usize, [f64; W])) {
        let [x, y, z]: [[f64; W]; 3] = at.map(|a| self.kernel.weights(a));
        let first = at.map(|a| (a.floor() as i64 + (REACH - W / 2 + 1) as i64) as usize);
        for (k, wz) in z.iter().enumerate() {
            for (j, wy) in y.iter().enumerate() {
                add(wide_place([first[0], first[1] + j, first[2] + k]), x.map(|wx| wx * wy * wz));
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
        let back = placed.gather(&Levels::of(&grid, &other, Values::Points), |_, f| f);
        let dot = |a: &[[f64; 3]], b: &[[f64; 3]]| {
            a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| a * b).sum::<f64>()
        };
        assert!((dot(&q, &back) - dot(&field, &other)).abs() < 1e-9 * dot(&field, &field));
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
