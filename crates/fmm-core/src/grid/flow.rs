//! Flow in free space by the remeshed vortex method (Koumoutsakos 1997; Cottet & Koumoutsakos 2000).
//!
//! Particles are the cells with vorticity. dx/dt = u(x), dω/dt = (ω·∇)u + ν ∇²ω: at each stage of Runge & Kutta's scheme
//! particles give their vorticity to the cells around by M4' or M6*, u follows from the Poisson solver and ∇u and ∇²ω by differences of
//! fourth order, and all come back to the particles by the same kernel. A particle is stretched by ∇u as its own ω asks: so ω_θ/r of rings stays
//! what it was, which (ω·∇)u made in the cells would not keep. At the end of a step the cells become the particles of the next, and what
//! of ω is no curl is taken away. There are blocks only where there is vorticity, and around it as far as differences reach. Where thresholds
//! allow several levels, blocks are split and joined after each step, and each level has particles of its own (`particles.rs`).

mod adapt;
mod body_blocks;
mod constraint;
mod cores;
mod integrals;
mod particles;
mod penalise;
mod step;
mod store;
mod support;

use rayon::prelude::*;

use super::blocks::{Block, CELLS, Grid};
use super::forest::Forest;
use super::poisson::{Solution, Solver};
use super::remesh::{Kernel, Lattice};
use super::vorticity::Vorticity;
use super::wavelet::{Thresholds, detail, sampled};
use crate::math::CollectVec;
use crate::{Error, StageTimes};
use adapt::{BUFFER, Means};
use body_blocks::BodyBlocks;
pub use integrals::Integrals;
pub use penalise::{Conditions, Impulse, Load, Loads, PASSED};
pub use step::FOURIER;
pub use store::{FieldStore, Filled, Lost, Now, Path, Seeded};

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
    /// ν, 0 for an inviscid flow.
    pub viscosity: f64,
    /// The largest dt |∇u|: a step is divided so that it keeps this; `None` for steps as they are.
    pub lagrangian: Option<f64>,
    /// When blocks are split and joined; of the finest level 0 for a grid of one level.
    pub thresholds: Thresholds,
}

impl Default for Method {
    fn default() -> Self {
        Method {
            scheme: Scheme::default(),
            kernel: Kernel::default(),
            cutoff: 1e-4,
            viscosity: 0.0,
            lagrangian: None,
            thresholds: Thresholds::UNIFORM,
        }
    }
}

/// A flow at one time, whose fields are in a [`FieldStore`]; those of the cores are vectors.
#[derive(Debug, Clone)]
pub struct Flow<F = Vec<[f64; 3]>> {
    lattice: Lattice,
    method: Method,
    conditions: Conditions,
    grid: Grid,
    vorticity: F,
    loads: Loads,
    steps: u64,
}

impl Flow {
    /// The flow with `vorticity` on a grid of `base`·16 cells a side, and finer ones where the thresholds ask for them, at time 0.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for vorticity at the faces of the domain.
    pub fn new(
        lattice: Lattice,
        method: Method,
        conditions: Conditions,
        vorticity: &dyn Vorticity,
    ) -> Result<Self, Error> {
        let thresholds = method.thresholds;
        let start = Grid::uniform(lattice.corner, lattice.side, lattice.base);
        let vorticity = Means { of: vorticity, finest: start.spacing(thresholds.finest) };
        let mut forest = Forest::of(&start);
        let bodies = BodyBlocks::new(lattice, thresholds.finest, &conditions, 0.0);
        let of_block = |&block: &Block| match bodies.need(block) {
            true => f64::INFINITY,
            false => detail(&sampled(&start, block, &vorticity, BUFFER), BUFFER),
        };
        forest.adapt(thresholds, true, |blocks| Ok::<_, Error>(blocks.par_iter().map(of_block).collect_vec()))?;
        let whole = forest.grid(&start);
        let values = |&block: &Block| {
            let values = whole.with([block]).sample(&vorticity);
            values.iter().any(|w| *w != [0.0; 3]).then_some(values)
        };
        let values: Vec<Option<Vec<[f64; 3]>>> = whole.blocks().par_iter().map(values).collect_vec();
        let filled = || whole.blocks().iter().zip(&values).filter_map(|(&b, v)| Some((b, v.as_ref()?)));
        let grid = forest.over(&filled().map(|(b, _)| b.root()).collect()).grid(&start);
        let mut field = vec![[0.0; 3]; grid.cells()];
        for (block, values) in filled() {
            let b = grid.number(block).expect("the grid has its blocks");
            field[b * CELLS..(b + 1) * CELLS].copy_from_slice(values);
        }
        let mut flow = Flow::of(lattice, method, conditions, grid, field);
        flow.trim(&mut Solver::default(), 0.0, false)?;
        Ok(flow)
    }

    /// The flow whose [`grid`](Self::grid) has these blocks, in this order, and this
    /// [`vorticity`](Self::vorticity) in their cells at a `time`. A state that was saved between
    /// two steps, before it was solved, continues with the same bits. Where bodies, or a finer
    /// finest level, need blocks that it does not have, it gets them first.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for blocks outside of the lattice, twice or in another order, or which are no octree,
    /// and for a wrong number of values; [`Error::NotFinite`].
    pub fn resume(
        lattice: Lattice,
        method: Method,
        conditions: Conditions,
        time: f64,
        (blocks, vorticity): (&[Block], Vec<[f64; 3]>),
    ) -> Result<Self, Error> {
        let finest = method.thresholds.finest;
        let outside = |b: &Block| b.level > finest || b.index.iter().any(|&i| i >> b.level >= lattice.base);
        if let Some(b) = blocks.iter().find(|b| outside(b)) {
            let (index, level, base) = (b.index, b.level, lattice.base);
            let what =
                format!("block {index:?} of level {level} lies outside of {base}^3 blocks and {finest} finer levels");
            return Err(Error::Unsupported(what));
        }
        let grid = lattice.grid(blocks.iter().copied());
        if grid.blocks() != blocks || blocks.windows(2).any(|b| b[0] == b[1]) {
            return Err(Error::Unsupported("the blocks are not in the order of a grid, each once".into()));
        }
        if !Forest::is_of(&grid) {
            let what = "the blocks are not those of an octree whose neighbors differ by one level at most";
            return Err(Error::Unsupported(what.into()));
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
        let mut flow = Flow::of(lattice, method, conditions, grid, vorticity);
        let bodies = flow.body_blocks(time);
        if !bodies.are_in(&flow.grid) {
            flow.cover(&mut Solver::default(), &bodies)?;
        }
        Ok(flow)
    }

    fn of(lattice: Lattice, method: Method, conditions: Conditions, grid: Grid, vorticity: Vec<[f64; 3]>) -> Self {
        let loads = Loads::none(conditions.bodies.len());
        Flow { lattice, method, conditions, grid, vorticity, loads, steps: 0 }
    }

    /// ω of each cell.
    pub fn vorticity(&self) -> &[[f64; 3]] {
        &self.vorticity
    }

    /// The flow with its fields in a store.
    ///
    /// # Errors
    /// [`Error::Device`] if a device fails.
    pub fn move_to<S: FieldStore + ?Sized>(self, store: &mut S) -> Result<Flow<S::Field>, Error> {
        let Flow { lattice, method, conditions, grid, vorticity, loads, steps } = self;
        Ok(Flow { lattice, method, conditions, grid, vorticity: store.upload(vorticity)?, loads, steps })
    }
}

impl<F> Flow<F> {
    /// Mean forces on the bodies over the last [`step`](Self::step); zero before the first.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Takes back the forces that a state was saved with, as [`Loads::numbers`]; others are ignored.
    pub fn recall(&mut self, numbers: &[f64]) {
        self.loads = Loads::of(self.conditions.bodies.len(), numbers);
    }

    /// How many steps were made since the start of the flow, or since it was resumed: the parts of
    /// all [`step`](Self::step)s.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The cells that there are.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// ω of each cell, in the store.
    pub fn field(&self) -> &F {
        &self.vorticity
    }

    /// Ψ and u at a time, with the inflow. What of ω is no curl, which has no velocity but grows by
    /// stretching, is taken away by Ψ.
    ///
    /// # Errors
    /// Those of [`FieldStore::solve`].
    pub fn solve<S: FieldStore<Field = F> + ?Sized>(
        &mut self,
        store: &mut S,
        time: f64,
        times: &mut StageTimes,
    ) -> Result<Solution<F>, Error> {
        let solution = self.velocities(store, time, (&self.grid, &self.vorticity), times)?;
        store.project(&self.grid, &mut self.vorticity, &solution.psi)?;
        Ok(solution)
    }

    /// Ψ and u of a field at a time, with the inflow.
    fn velocities<S: FieldStore<Field = F> + ?Sized>(
        &self,
        store: &mut S,
        time: f64,
        (grid, field): (&Grid, &F),
        times: &mut StageTimes,
    ) -> Result<Solution<F>, Error> {
        let mut solution = store.solve(grid, field, times)?;
        let inflow = self.conditions.inflow.at(time);
        if inflow != [0.0; 3] {
            store.shift(&mut solution.velocity, inflow)?;
        }
        Ok(solution)
    }
}

/// A number to three significant digits, as people write it: `0.667`, `1.5e-7`.
fn short(x: f64) -> String {
    let rounded: f64 = format!("{x:.2e}").parse().unwrap_or(x);
    if rounded == 0.0 || (1e-4..1e6).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}
