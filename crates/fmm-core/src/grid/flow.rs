//! Inviscid flow in free space by the remeshed vortex method (Koumoutsakos 1997; Cottet & Koumoutsakos 2000).
//!
//! Particles are the cells with vorticity of a grid of one level. dx/dt = u(x), dω/dt = (ω·∇)u: at each stage of Runge & Kutta's scheme
//! particles give their vorticity to the cells around by M4' or M6*, u follows from the Poisson solver and ∇u by differences of
//! it, and both come back to the particles by the same kernel. A particle is stretched by ∇u as its own ω asks: so ω_θ/r of rings stays
//! what it was, which (ω·∇)u made in the cells would not keep. At the end of a step the cells become the particles of the next, and what
//! of ω is no curl is taken away. There are blocks only where there is vorticity, and around it as far as differences reach.

mod integrals;

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::differences::{divergent, gradients, stretched};
use super::poisson::{Solution, Solve};
use super::remesh::{Kernel, Lattice, Placed};
use super::vorticity::Vorticity;
use crate::math::CollectVec;
use crate::{Error, StageTimes};
pub use integrals::Integrals;

/// How a step is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// The midpoint rule.
    RungeKutta2,
    /// Williamson's scheme of third order with two registers (1980).
    #[default]
    RungeKutta3,
}

impl Scheme {
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::RungeKutta2 => "rk2",
            Scheme::RungeKutta3 => "rk3",
        }
    }
}

/// How a flow goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Method {
    /// Steps.
    pub scheme: Scheme,
    /// Between particles and cells.
    pub kernel: Kernel,
    /// Vorticity below this part of the largest is left out at the end of each step.
    pub cutoff: f64,
}

impl Default for Method {
    fn default() -> Self {
        Method { scheme: Scheme::default(), kernel: Kernel::default(), cutoff: 1e-4 }
    }
}

/// A flow at one time.
#[derive(Debug, Clone)]
pub struct Flow {
    lattice: Lattice,
    method: Method,
    grid: Grid,
    vorticity: Vec<[f64; 3]>,
}

impl Flow {
    /// The flow with `vorticity` on a grid of `base`·16 cells a side.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for vorticity at the faces of the domain.
    pub fn new(lattice: Lattice, vorticity: &dyn Vorticity, method: Method) -> Result<Self, Error> {
        let base = lattice.base;
        let all = (0..base.pow(3)).into_par_iter().map(|n| {
            let block = Block { level: 0, index: [n % base, n / base % base, n / (base * base)] };
            let alone = lattice.grid([block]);
            let values = alone.sample(vorticity);
            values.iter().any(|w| *w != [0.0; 3]).then_some((block, values))
        });
        let filled: Vec<(Block, Vec<[f64; 3]>)> = all.flatten().collect();
        let grid = lattice.grid(filled.iter().map(|f| f.0));
        let mut field = vec![[0.0; 3]; grid.cells()];
        for (block, values) in filled {
            let b = grid.number(block).expect("the grid has its blocks");
            field[b * CELLS..(b + 1) * CELLS].copy_from_slice(&values);
        }
        let mut flow = Flow { lattice, method, grid, vorticity: field };
        flow.trim()?;
        Ok(flow)
    }

    /// The flow whose [`grid`](Self::grid) has these blocks, in this order, and this
    /// [`vorticity`](Self::vorticity) in their cells. A state that was saved between two steps, before
    /// it was solved, continues with the same bits.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for blocks outside of the lattice, twice or in another order, and for a wrong
    /// number of values; [`Error::NotFinite`].
    pub fn resume(lattice: Lattice, method: Method, blocks: &[Block], vorticity: Vec<[f64; 3]>) -> Result<Self, Error> {
        let outside = |b: &Block| b.level > 0 || b.index.iter().any(|&i| i >= lattice.base);
        if let Some(b) = blocks.iter().find(|b| outside(b)) {
            let what = format!("block {:?} of level {} lies outside of {}^3 blocks", b.index, b.level, lattice.base);
            return Err(Error::Unsupported(what));
        }
        let grid = lattice.grid(blocks.iter().copied());
        if grid.blocks() != blocks || blocks.windows(2).any(|b| b[0] == b[1]) {
            return Err(Error::Unsupported("the blocks are not in the order of a grid, each once".into()));
        }
        if vorticity.len() != grid.cells() {
            let what =
                format!("vorticity of {} cells, in place of the {} of its blocks", vorticity.len(), grid.cells());
            return Err(Error::Unsupported(what));
        }
        let mut bad = vorticity.as_flattened().iter().enumerate().filter(|(_, w)| !w.is_finite());
        if let Some((index, &value)) = bad.next() {
            return Err(Error::NotFinite { what: "the vorticity", index: index / 3, value, count: 1 + bad.count() });
        }
        Ok(Flow { lattice, method, grid, vorticity })
    }

    /// The cells that there are.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// ω of each.
    pub fn vorticity(&self) -> &[[f64; 3]] {
        &self.vorticity
    }

    /// Ψ and u, as `solver` finds them. What of ω is no curl, which has no velocity but grows by stretching, is taken away by Ψ.
    ///
    /// # Errors
    /// Those of [`Solve::solve`].
    pub fn solve(&mut self, solver: &mut dyn Solve, times: &mut StageTimes) -> Result<Solution, Error> {
        let solution = solver.solve(&self.grid, &self.vorticity, times)?;
        let gradient = divergent(&self.grid, &self.vorticity, &solution.psi);
        self.vorticity.par_iter_mut().zip(gradient).for_each(|(w, g)| (0..3).for_each(|k| w[k] += g[k]));
        Ok(solution)
    }

    /// Goes on by `dt`. `now` is the solution of this state, if it is known.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where vorticity has reached the faces of the domain; those of
    /// [`Solve::solve`].
    pub fn step(
        &mut self,
        solver: &mut dyn Solve,
        dt: f64,
        now: Option<Solution>,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let solution = match now {
            Some(solution) => solution,
            None => self.solve(solver, times)?,
        };
        let cells: Vec<usize> = (0..self.vorticity.len()).filter(|&i| self.vorticity[i] != [0.0; 3]).collect();
        let center = |&i: &usize| self.grid.center_of(i / CELLS, i % CELLS);
        let mut x: Vec<[f64; 3]> = cells.par_iter().map(center).collect_vec();
        let mut w: Vec<[f64; 3]> = cells.iter().map(|&i| self.vorticity[i]).collect();
        // At the first stage particles are at centers.
        let slopes = gradients(&self.grid, &self.vorticity, &solution.velocity);
        let here = |&i: &usize| [solution.velocity[i], stretched(self.vorticity[i], slopes[i])];
        let first: Vec<[[f64; 3]; 2]> = cells.par_iter().map(here).collect_vec();
        let add = |to: &mut [[f64; 3]], rates: &[[[f64; 3]; 2]], which: usize, factor: f64| {
            to.par_iter_mut().zip(rates).for_each(|(v, r)| (0..3).for_each(|k| v[k] += factor * r[which][k]));
        };
        match self.method.scheme {
            Scheme::RungeKutta2 => {
                let (mut middle, mut turned) = (x.clone(), w.clone());
                add(&mut middle, &first, 0, 0.5 * dt);
                add(&mut turned, &first, 1, 0.5 * dt);
                let rates = self.rates(solver, [&middle, &turned], times)?;
                add(&mut x, &rates, 0, dt);
                add(&mut w, &rates, 1, dt);
            }
            Scheme::RungeKutta3 => {
                let mut kept = first;
                for (stage, (a, b)) in
                    [(0.0, 1.0 / 3.0), (-5.0 / 9.0, 15.0 / 16.0), (-153.0 / 128.0, 8.0 / 15.0)].into_iter().enumerate()
                {
                    if stage > 0 {
                        let rates = self.rates(solver, [&x, &w], times)?;
                        kept.par_iter_mut().zip(rates).for_each(|(q, r)| {
                            for n in 0..2 {
                                (0..3).for_each(|k| q[n][k] = a * q[n][k] + r[n][k]);
                            }
                        });
                    }
                    add(&mut x, &kept, 0, b * dt);
                    add(&mut w, &kept, 1, b * dt);
                }
            }
        }
        let placed = self.placed(&x)?;
        self.grid = self.lattice.grid(placed.reached());
        self.vorticity = placed.scatter(&self.grid, &w);
        self.trim()
    }

    fn placed(&self, x: &[[f64; 3]]) -> Result<Placed, Error> {
        Placed::new(&self.lattice, self.method.kernel, x).ok_or_else(left)
    }

    /// u and (ω·∇)u at particles.
    fn rates(
        &self,
        solver: &mut dyn Solve,
        [x, w]: [&[[f64; 3]]; 2],
        times: &mut StageTimes,
    ) -> Result<Vec<[[f64; 3]; 2]>, Error> {
        let placed = self.placed(x)?;
        let reached = self.lattice.grid(placed.reached());
        let (grid, field) = surrounded(&self.lattice, &reached, &placed.scatter(&reached, w));
        let solution = solver.solve(&grid, &field, times)?;
        let slopes = gradients(&grid, &field, &solution.velocity);
        let [a, b, c] = [0, 1, 2].map(|k| slopes.par_iter().map(|g| g[k]).collect_vec());
        let there = placed.gather(&grid, [&solution.velocity, &a, &b, &c]);
        Ok(there.into_par_iter().zip(w).map(|([u, a, b, c], &w)| [u, stretched(w, [a, b, c])]).collect_vec())
    }

    /// Leaves out what is below the cutoff, and has blocks as far as differences of u reach.
    fn trim(&mut self) -> Result<(), Error> {
        let square = |w: &[f64; 3]| w.iter().map(|w| w * w).sum::<f64>();
        let largest = self.vorticity.par_iter().map(square).reduce(|| 0.0, f64::max);
        let least = self.method.cutoff.powi(2) * largest;
        self.vorticity.par_iter_mut().for_each(|w| {
            if square(w) < least {
                *w = [0.0; 3];
            }
        });
        let faces = self.lattice.base * BLOCK as u32;
        let near_face = self.vorticity.par_iter().enumerate().any(|(i, w)| {
            let (block, cell) = (self.grid.blocks()[i / CELLS], split(i % CELLS));
            let at = |d: usize| block.index[d] * BLOCK as u32 + cell[d] as u32;
            *w != [0.0; 3] && (0..3).any(|d| at(d) < 4 || at(d) + 4 >= faces)
        });
        if near_face {
            return Err(left());
        }
        (self.grid, self.vorticity) = surrounded(&self.lattice, &self.grid, &self.vorticity);
        Ok(())
    }
}

fn left() -> Error {
    Error::Unsupported("vorticity has reached the faces of the domain; make grid.side larger".into())
}

/// The blocks of a field with vorticity, and those that a cell with vorticity is nearer to than differences of u reach, with their values.
fn surrounded(lattice: &Lattice, grid: &Grid, field: &[[f64; 3]]) -> (Grid, Vec<[f64; 3]>) {
    // Cells of a difference.
    const NEAR: i64 = 2;
    let across = i64::from(lattice.base);
    let needed = |(b, &block): (usize, &Block)| {
        let own = &field[b * CELLS..(b + 1) * CELLS];
        let (mut low, mut high) = ([BLOCK as i64; 3], [-1; 3]);
        for (c, _) in own.iter().enumerate().filter(|(_, w)| **w != [0.0; 3]) {
            let cell = split(c);
            for d in 0..3 {
                (low[d], high[d]) = (low[d].min(cell[d]), high[d].max(cell[d]));
            }
        }
        if high[0] < 0 {
            return vec![];
        }
        let near = |n: i64| {
            let offset = [n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1];
            let index: [i64; 3] = std::array::from_fn(|d| i64::from(block.index[d]) + offset[d]);
            let reached = (0..3).all(|d| match offset[d] {
                -1 => low[d] < NEAR,
                1 => high[d] >= BLOCK as i64 - NEAR,
                _ => true,
            });
            let there = reached && index.iter().all(|i| (0..across).contains(i));
            there.then(|| Block { level: 0, index: index.map(|i| i as u32) })
        };
        (0..27).filter_map(near).collect()
    };
    let blocks: Vec<Vec<Block>> = grid.blocks().par_iter().enumerate().map(needed).collect_vec();
    let wider = lattice.grid(blocks.into_iter().flatten().collect::<BTreeSet<Block>>());
    let mut values = vec![[0.0; 3]; wider.cells()];
    values.par_chunks_mut(CELLS).zip(wider.blocks()).for_each(|(to, &block)| {
        if let Some(b) = grid.number(block) {
            to.copy_from_slice(&field[b * CELLS..(b + 1) * CELLS]);
        }
    });
    (wider, values)
}
