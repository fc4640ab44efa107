//! Where the fields of a flow are, and what is done with them: on the cores or on a GPU.
//!
//! The driver of a flow decides which blocks there are and how long steps are. All numbers of cells
//! and particles are the store's: a field is a handle, and comes to the host only where it is asked
//! for.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::blocks::{BLOCK, Block, CELLS, Grid, join, split};
use super::super::hierarchy::Hierarchy;
use super::super::padded::{REACH, Within, neighbor};
use super::super::poisson::Solution;
use super::super::remesh::{Kernel, Lattice};
use super::penalise::Impulse;
use crate::{Error, StageTimes};

/// The box of the cells of a block with vorticity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// The first along each axis.
    pub low: [i64; 3],
    /// The last along each axis.
    pub high: [i64; 3],
}

/// The lowest and the highest coordinates of what particles of a block pass in a step.
pub type Path = [[f64; 3]; 2];

/// What the cells of a flow have at the beginning of a step.
pub struct Now<'a, F, M> {
    /// ω.
    pub vorticity: &'a F,
    /// u.
    pub velocity: &'a F,
    /// u with its gradients.
    pub motion: &'a M,
    /// ν ∇²ω, with viscosity.
    pub diffused: Option<&'a F>,
}

/// Why particles have no place.
#[derive(Debug)]
pub enum Lost {
    /// One of this level is outside of the lattice, or so near its faces that the kernel reaches
    /// beyond.
    Outside(u8),
    /// The place failed.
    Failed(Error),
}

impl From<Error> for Lost {
    fn from(e: Error) -> Self {
        Lost::Failed(e)
    }
}

/// A place for the fields of a flow. Fields have three numbers a cell, block after block in the
/// order of a [`Grid`], which the caller knows. Every error is [`Error::Device`] of a device that
/// fails, but for those of
/// [`solve`](FieldStore::solve).
#[allow(clippy::missing_errors_doc)] // said once for all of them
pub trait FieldStore {
    /// ω, Ψ, u or ν ∇²ω. `[cells, 3]`
    type Field;
    /// The velocity with its gradients: u_x, u_y and u_z, then the gradient of each. `[cells, 12]`
    type Motion;
    /// Places of the particles of all levels, and ω of each.
    type Particles;
    /// dx/dt and dω/dt of particles.
    type Rates;
    /// Particles by the blocks that hold them.
    type Placed;

    /// The field with these values.
    fn upload(&mut self, values: Vec<[f64; 3]>) -> Result<Self::Field, Error>;

    /// The values of a field.
    fn download<'a>(&mut self, field: &'a Self::Field) -> Result<Cow<'a, [[f64; 3]]>, Error>;

    /// The values of a field in some cells.
    fn pick(&mut self, field: &Self::Field, cells: &[u32]) -> Result<Vec<[f64; 3]>, Error>;

    /// The field that has these values in these cells, and zero elsewhere.
    fn put(&mut self, grid: &Grid, cells: &[u32], values: &[[f64; 3]]) -> Result<Self::Field, Error>;

    /// Adds another field.
    fn add(&mut self, to: &mut Self::Field, other: &Self::Field) -> Result<(), Error>;

    /// Adds the same to all cells.
    fn shift(&mut self, field: &mut Self::Field, by: [f64; 3]) -> Result<(), Error>;

    /// Ψ and u = ∇ × Ψ: zero without vorticity.
    ///
    /// # Errors
    /// Those of [`Solve::solve`](super::super::poisson::Solve::solve).
    fn solve(
        &mut self,
        grid: &Grid,
        vorticity: &Self::Field,
        times: &mut StageTimes,
    ) -> Result<Solution<Self::Field>, Error>;

    /// Adds ∇(∇·Ψ) where there is vorticity, as [`divergent`](super::super::differences::divergent)
    /// has it.
    fn project(&mut self, grid: &Grid, vorticity: &mut Self::Field, psi: &Self::Field) -> Result<(), Error>;

    /// ∇ × `field`, values at points.
    fn curl(&mut self, grid: &Grid, field: &Self::Field) -> Result<Self::Field, Error>;

    /// `factor` ∇²ω.
    fn laplacian(&mut self, grid: &Grid, vorticity: &Self::Field, factor: f64) -> Result<Self::Field, Error>;

    /// The velocity with its gradients.
    fn motion(&mut self, grid: &Grid, velocity: &Self::Field) -> Result<Self::Motion, Error>;

    /// A field of means over cells in the cells of another grid.
    fn onto(&mut self, from: &Grid, field: &Self::Field, to: &Grid) -> Result<Self::Field, Error>;

    /// The largest speed in blocks with vorticity.
    fn fastest(&mut self, vorticity: &Self::Field, velocity: &Self::Field) -> Result<f64, Error>;

    /// The largest |∇u| of cells with vorticity.
    fn steepest(&mut self, vorticity: &Self::Field, motion: &Self::Motion) -> Result<f64, Error>;

    /// Makes vorticity below this part of the largest zero.
    fn cut(&mut self, vorticity: &mut Self::Field, part: f64) -> Result<(), Error>;

    /// Where each block has vorticity; `None` if it has none.
    fn filled(&mut self, vorticity: &Self::Field) -> Result<Vec<Option<Filled>>, Error>;

    /// I and A about a point.
    fn impulse(&mut self, grid: &Grid, vorticity: &Self::Field, about: [f64; 3]) -> Result<Impulse, Error>;

    /// Measures the largest details of some blocks of the hierarchy of `grid` and of so many cells
    /// around each, an even number.
    fn details(
        &mut self,
        grid: &Grid,
        vorticity: &Self::Field,
        beyond: usize,
    ) -> Result<impl FnMut(&[Block]) -> Result<Vec<f64>, Error>, Error>;

    /// Where the particles of each block of a grid go in a time `dt`.
    fn paths(&mut self, grid: &Grid, now: &Now<Self::Field, Self::Motion>, dt: f64)
    -> Result<Vec<Option<Path>>, Error>;

    /// The particles of all levels of the grid `wider`, which has the blocks of `grid` and more,
    /// with their rates. They go `way` at most.
    #[allow(clippy::type_complexity)] // a pair
    fn particles(
        &mut self,
        grids: [&Grid; 2],
        now: &Now<Self::Field, Self::Motion>,
        way: f64,
    ) -> Result<(Self::Particles, Self::Rates), Error>;

    /// Adds `factor` times the rates to the particles.
    fn advance(&mut self, particles: &mut Self::Particles, rates: &Self::Rates, factor: f64) -> Result<(), Error>;

    /// A copy of the particles.
    fn copy(&mut self, particles: &Self::Particles) -> Result<Self::Particles, Error>;

    /// Multiplies rates by `factor` and adds others.
    fn blend(&mut self, rates: &mut Self::Rates, factor: f64, others: &Self::Rates) -> Result<(), Error>;

    /// Finds the blocks that hold the particles.
    ///
    /// # Errors
    /// [`Lost`].
    fn place(&mut self, lattice: &Lattice, kernel: Kernel, particles: &Self::Particles) -> Result<Self::Placed, Lost>;

    /// The blocks of level 0 that have cells which the kernel reaches from particles.
    fn roots(&self, placed: &Self::Placed) -> BTreeSet<Block>;

    /// Σ ω times the kernel over the particles of its level, in each cell.
    fn scatter(
        &mut self,
        grid: &Grid,
        placed: &Self::Placed,
        particles: &Self::Particles,
    ) -> Result<Self::Field, Error>;

    /// u and (ω·∇)u + ν ∇²ω at the particles.
    fn rates(
        &mut self,
        grid: &Grid,
        particles: (&Self::Placed, &Self::Particles),
        motion: &Self::Motion,
        diffused: Option<&Self::Field>,
    ) -> Result<Self::Rates, Error>;
}

/// A block in whose cells there may be particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeded {
    /// Its number in the hierarchy.
    pub number: u32,
    /// `None` for a block of the grid, all of whose cells may be particles; else a bit for each of
    /// 27 neighbors that is one, near which cells may.
    pub near: Option<u32>,
    /// Where the grid is coarser: the number of the coarser block, of whose cells only those with
    /// vorticity make particles, and which part of it this is.
    pub coarser: Option<(u32, usize)>,
}

impl Seeded {
    /// Those of a level of a grid, along the curve.
    pub fn of(grid: &Grid, hierarchy: &Hierarchy, level: u8) -> Vec<Seeded> {
        let of_block = |&number: &u32| {
            let block = hierarchy.blocks()[number as usize];
            if (number as usize) < hierarchy.own() {
                return Seeded { number, near: None, coarser: None };
            }
            let near = (0..27).filter(|&n| grid.number(neighbor(block, n)).is_some()).map(|n| 1 << n).sum();
            let coarser = block.parent().and_then(|p| grid.number(p)).map(|p| (p as u32, block.part()));
            Seeded { number, near: Some(near), coarser }
        };
        hierarchy.levels()[usize::from(level)].iter().map(of_block).collect()
    }

    /// How many cells of a level from its blocks there are particles, which go `way` at most.
    pub fn margin(grid: &Grid, level: u8, way: f64) -> usize {
        ((way / grid.spacing(level)).ceil() as usize + REACH + 1).min(BLOCK)
    }

    /// Whether cell `c` may be a particle; `filled` says which cells of a coarser block have vorticity.
    pub fn has(&self, within: &Within, c: usize, filled: &impl Fn(usize) -> bool) -> bool {
        let Some(near) = self.near else { return true };
        within.any(near, c)
            && self.coarser.is_none_or(|(b, part)| {
                let (cell, half) = (split(c), BLOCK as i64 / 2);
                let above = std::array::from_fn(|d| half * (part >> d & 1) as i64 + cell[d] / 2);
                filled(b as usize * CELLS + join(above))
            })
    }
}
