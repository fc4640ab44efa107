//! The solver: sources, tree, lists, expansions and sums, one stage after the other.

use rayon::prelude::*;

use super::blocks::{BLOCK, CELLS, Grid};
use super::correction::correct;
use super::far::{Expansions, MAX_ORDER, MAX_SINGLE_ORDER};
use super::green::Green;
use super::near::{self, SUMS, Scratch};
use super::plan::{BRICKS, Brick, Lists, POINTS, Rule, SIDE};
use super::sources::Sources;
use crate::math::{Real, zeros};
use crate::{Error, Precision, Stage, StageTimes};

/// How a grid is solved on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solver {
    /// Green's function.
    pub green: Green,
    /// θ: a node acts by its expansion where its radius is less than θ times its distance from the brick; 0 for the direct sum. 0 to 0.9.
    pub theta: f64,
    /// p, 1 to 30.
    pub order: usize,
    /// Most sources of a leaf: 512 by default. The paper's 2048 suit a GPU; on cores they ask for a third more instructions.
    pub leaf_size: usize,
    /// Nodes with fewer sources act directly, 0 to 10⁶; by default those whose expansions would cost the cores more than their sources.
    pub split: Option<usize>,
    /// Expansions act from this many ε on; 0 to 1000.
    pub guard: f64,
    /// Whether the leading error is taken away.
    pub correction: bool,
    /// Of the sums at points; expansions are made in double precision. `Auto` is single precision up to order 14.
    pub precision: Precision,
}

impl Default for Solver {
    fn default() -> Self {
        Solver {
            green: Green::default(),
            theta: 0.5,
            order: 6,
            leaf_size: 512,
            split: None,
            guard: 10.0,
            correction: false,
            precision: Precision::Auto,
        }
    }
}

/// How much there was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Cells with vorticity.
    pub sources: usize,
    /// Cells.
    pub targets: usize,
    /// Nodes of the tree.
    pub nodes: usize,
    /// Pairs of a cell and a source that acts directly.
    pub direct: u64,
    /// Pairs of a cell and a node that acts by its expansion.
    pub indirect: u64,
    /// The fewest sources of a node that acts by its expansion.
    pub split: usize,
}

/// A solver: the CPU, or the CPU with a GPU.
pub trait Solve {
    /// Ψ and u for `vorticity`, a value for each cell of `grid`. Times go to `times`.
    ///
    /// # Errors
    /// Those of [`Solver::solve`], and [`Error::Device`] where a device fails.
    fn solve(&mut self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Solution, Error>;
}

impl Solve for Solver {
    fn solve(&mut self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Solution, Error> {
        Solver::solve(self, grid, vorticity, times)
    }
}

/// Ψ and u in all cells, block after block.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution<F = Vec<[f64; 3]>> {
    /// Ψ. `[cells]`
    pub psi: F,
    /// u = ∇ × Ψ. `[cells]`
    pub velocity: F,
    /// What was done.
    pub work: Work,
}

impl Solver {
    /// The precision of the sums at points.
    pub fn summed_in(&self) -> Precision {
        match self.precision {
            Precision::Auto if self.order <= MAX_SINGLE_ORDER => Precision::F32,
            Precision::Auto => Precision::F64,
            given => given,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Range`] that names what is out of range.
    pub fn check(&self) -> Result<(), Error> {
        let most = if self.summed_in() == Precision::F32 { MAX_SINGLE_ORDER } else { MAX_ORDER };
        let range = if most == MAX_ORDER { "1 to 30" } else { "1 to 14 in single precision" };
        let checks = [
            ("theta", self.theta, (0.0..=0.9).contains(&self.theta), "0 to 0.9"),
            ("order", self.order as f64, (1..=most).contains(&self.order), range),
            ("leaf_size", self.leaf_size as f64, (1..=1_000_000).contains(&self.leaf_size), "1 to 1000000"),
            ("split", self.split.unwrap_or(0) as f64, self.split.is_none_or(|s| s <= 1_000_000), "0 to 1000000"),
            ("guard", self.guard, (0.0..=1000.0).contains(&self.guard), "0 to 1000"),
        ];
        match checks.into_iter().find(|(_, _, fits, _)| !fits) {
            Some((what, value, _, range)) => Err(Error::Range { what, value, range }),
            None => Ok(()),
        }
    }

    /// The rule by which nodes are accepted. An expansion of order p costs as much as some 3/8 (p + 2)² sources.
    pub fn rule(&self) -> Rule {
        let fewest = self.split.unwrap_or(3 * (self.order + 2) * (self.order + 2) / 8);
        Rule { theta: self.theta, guard: self.guard, fewest }
    }

    /// Checks the settings and what is to be solved for.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::NotFinite`], [`Error::TooMany`].
    pub fn check_for(&self, grid: &Grid, vorticity: &[[f64; 3]]) -> Result<(), Error> {
        self.check()?;
        let cells = grid.cells();
        if u32::try_from(cells).is_err() {
            return Err(Error::TooMany(cells));
        }
        assert_eq!(vorticity.len(), cells, "a value for each cell");
        if let Some(index) = vorticity.par_iter().position_first(|w| w.iter().any(|w| !w.is_finite())) {
            let value = vorticity[index].into_iter().find(|w| !w.is_finite()).unwrap_or(f64::NAN);
            let count = vorticity.as_flattened().iter().filter(|w| !w.is_finite()).count();
            return Err(Error::NotFinite { what: "the vorticity", index, value, count });
        }
        Ok(())
    }

    /// Solves for `vorticity`, a value for each cell of `grid`.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::NotFinite`], [`Error::TooMany`].
    pub fn solve(&self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Solution, Error> {
        self.check_for(grid, vorticity)?;
        let sources = times.time(Stage::Tree, || Sources::new(grid, vorticity, self.green, self.leaf_size));
        let lists = times.time(Stage::Lists, || Lists::new(grid, &sources, self.rule()));
        let mut sums = zeros(grid.blocks().len() * BRICKS * SUMS);
        times.time(Stage::P2P, || match self.summed_in() {
            Precision::F32 => self.direct::<f32>(grid, &sources, &lists, &mut sums),
            _ => self.direct::<f64>(grid, &sources, &lists, &mut sums),
        });
        self.expand(grid, &sources, &lists, &mut sums, times);
        let brick = |b: usize| &sums[b * SUMS..(b + 1) * SUMS];
        let (mut psi, mut velocity) = times.time(Stage::Output, || by_block(grid.cells(), brick, sources.scale));
        if self.correction {
            times.time_more(Stage::Output, || correct(grid, self.green, vorticity, &mut psi, &mut velocity));
        }
        Ok(Solution { psi, velocity, work: self.work(grid, &sources, &lists) })
    }

    /// Adds 4πΨ and 4πu by direct sums to `sums`, [`SUMS`] numbers a brick.
    fn direct<T: Real>(&self, grid: &Grid, sources: &Sources, lists: &Lists, sums: &mut [f64]) {
        sums.par_chunks_mut(SUMS).enumerate().for_each_init(Scratch::<T>::default, |scratch, (b, out)| {
            let runs = lists.runs(sources, b);
            near::brick(self.green, &Brick::new(grid, b), sources, runs, scratch, out);
        });
    }

    /// Adds 4πΨ and 4πu of strengths multiplied by their scale, by expansions, to `sums`: [`SUMS`] numbers a brick.
    pub fn expand(&self, grid: &Grid, sources: &Sources, lists: &Lists, sums: &mut [f64], times: &mut StageTimes) {
        match self.summed_in() {
            Precision::F32 => self.expand_in::<f32>(grid, sources, lists, sums, times),
            _ => self.expand_in::<f64>(grid, sources, lists, sums, times),
        }
    }

    fn expand_in<T: Real>(
        &self,
        grid: &Grid,
        sources: &Sources,
        lists: &Lists,
        sums: &mut [f64],
        times: &mut StageTimes,
    ) {
        if lists.far.is_empty() {
            return;
        }
        let expansions = Expansions::<T>::new(sources, self.order, times);
        times.time(Stage::M2P, || {
            sums.par_chunks_mut(SUMS).enumerate().for_each_init(Vec::new, |scratch, (b, out)| {
                expansions.brick(sources, &Brick::new(grid, b), lists.far.row(b), scratch, out);
            });
        });
    }

    /// How much there is to do.
    pub fn work(&self, grid: &Grid, sources: &Sources, lists: &Lists) -> Work {
        Work {
            sources: sources.len(),
            targets: grid.cells(),
            nodes: sources.tree.len(),
            direct: lists.pairs(sources),
            indirect: (lists.far.len() * POINTS) as u64,
            split: self.rule().fewest,
        }
    }
}

/// Ψ or u of one block.
type Field<'a> = &'a mut [[f64; 3]];

/// Ψ and u, block after block, from 4πΨ and 4πu of strengths multiplied by `scale` for each brick.
fn by_block<'a>(cells: usize, brick: impl Fn(usize) -> &'a [f64] + Sync, scale: f64) -> (Vec<[f64; 3]>, Vec<[f64; 3]>) {
    let (mut psi, mut velocity) = (zeros(cells), zeros(cells));
    let factor = 1.0 / (4.0 * std::f64::consts::PI * scale);
    let fields = psi.par_chunks_mut(CELLS).zip(velocity.par_chunks_mut(CELLS)).enumerate();
    fields.for_each(|(block, (psi, velocity)): (usize, (Field, Field))| {
        for part in 0..BRICKS {
            let corner = [0, 1, 2].map(|d: usize| (part >> d & 1) * SIDE);
            let sums = brick(block * BRICKS + part);
            for p in 0..POINTS {
                let [i, j, k] = [p % SIDE, p / SIDE % SIDE, p / (SIDE * SIDE)];
                let c = corner[0] + i + BLOCK * (corner[1] + j + BLOCK * (corner[2] + k));
                for d in 0..3 {
                    psi[c][d] += sums[d * POINTS + p] * factor;
                    velocity[c][d] += sums[(3 + d) * POINTS + p] * factor;
                }
            }
        }
    });
    (psi, velocity)
}
