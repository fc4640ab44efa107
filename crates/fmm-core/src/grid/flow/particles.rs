//! The particles of a step: cells with vorticity of each level, and those around the blocks of the level that come into them.
//!
//! Each level has its own particles and cells. Around the blocks of a level particles are made from what the other levels have there; they
//! move like the others, and they add to cells of their own level alone. So a level sees its particles go on
//! beyond its blocks, and nothing is added twice: cells of another level get the same vorticity from particles of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::blocks::{Block, CELLS, Grid, split};
use super::super::differences::{Motion, stretched};
use super::super::forest::Forest;
use super::super::hierarchy::Hierarchy;
use super::super::levels::Levels;
use super::super::padded::{REACH, Within};
use super::super::transfer::Values;
use super::Flow;
use super::store::{FieldStore, Lost, Now, Path, Seeded};
use crate::Error;
use crate::math::CollectVec;

/// Particles of one level.
#[derive(Debug, Clone)]
pub struct Particles {
    pub(super) level: u8,
    /// Where they are, `[n, 3]`.
    pub(super) position: Vec<[f64; 3]>,
    /// ω of each, `[n, 3]`.
    pub(super) vorticity: Vec<[f64; 3]>,
}

/// dx/dt and dω/dt of the particles of a level, `[n, 2, 3]`.
pub type Rates = Vec<[[f64; 3]; 2]>;

impl Particles {
    /// Adds `factor` times the rates.
    pub(super) fn advance(&mut self, rates: &Rates, factor: f64) {
        for (to, which) in [(&mut self.position, 0), (&mut self.vorticity, 1)] {
            to.par_iter_mut().zip(rates).for_each(|(v, r)| (0..3).for_each(|k| v[k] += factor * r[which][k]));
        }
    }
}

/// The particles of each level of a grid, and their rates: [`FieldStore::particles`] on the cores.
pub(super) fn particles(
    [grid, wider]: [&Grid; 2],
    now: &Now<Vec<[f64; 3]>, Vec<Motion>>,
    way: f64,
) -> (Vec<Particles>, Vec<Rates>) {
    let means = |field: &Vec<[f64; 3]>| Levels::of(grid, field, Values::Means).onto(Values::Means, wider);
    let (w, d) = (means(now.vorticity), now.diffused.map(means));
    let motion = Levels::of(grid, now.motion, Values::Points).onto(Values::Points, wider);
    let hierarchy = Arc::new(Hierarchy::of(wider));
    let all_w = Levels::on(&hierarchy, &w, Values::Means);
    let all_d = d.as_ref().map(|d| Levels::on(&hierarchy, d, Values::Means));
    let all_motion = Levels::on(&hierarchy, &motion, Values::Points);
    let filled = |i: usize| w[i] != [0.0; 3] || d.as_ref().is_some_and(|d| d[i] != [0.0; 3]);
    let (mut particles, mut rates) = (vec![], vec![]);
    for level in 0..=wider.finest() {
        let within = Within::new(Seeded::margin(wider, level, way));
        // The place, ω and the rates of each particle of a block.
        let of_block = |seeded: &Seeded| {
            let (number, block) = (seeded.number, hierarchy.blocks()[seeded.number as usize]);
            let (w, motion) = (all_w.cells(number), all_motion.cells(number));
            let d = all_d.as_ref().map(|d| d.cells(number));
            let here = |c: &usize| w[*c] != [0.0; 3] || d.is_some_and(|d| d[*c] != [0.0; 3]);
            let particle = |c: usize| {
                let mut rate = stretched(w[c], &motion[c]);
                if let Some(d) = d {
                    (0..3).for_each(|k| rate[k] += d[c][k]);
                }
                let center = wider.center(block, split(c));
                (center, w[c], [[0, 1, 2].map(|k| motion[c][k]), rate])
            };
            let made = (0..CELLS).filter(here).filter(|&c| seeded.has(&within, c, &filled));
            made.map(particle).collect::<Vec<_>>()
        };
        let made = Seeded::of(wider, &hierarchy, level).par_iter().map(of_block).collect_vec();
        let joined = || made.par_iter().flatten_iter();
        rates.push(joined().map(|p| p.2).collect());
        particles.push(Particles {
            level,
            position: joined().map(|p| p.0).collect(),
            vorticity: joined().map(|p| p.1).collect(),
        });
    }
    (particles, rates)
}

impl<F> Flow<F> {
    /// The particles of each level at the beginning of a step of length `dt`, with their rates, and a grid with all blocks that they will
    /// reach.
    #[allow(clippy::type_complexity)] // three things
    pub(super) fn particles<S: FieldStore<Field = F> + ?Sized>(
        &self,
        store: &mut S,
        now: &Now<F, S::Motion>,
        dt: f64,
    ) -> Result<(Grid, S::Particles, S::Rates), Error> {
        let wider = self.widened(&store.paths(&self.grid, now, dt)?);
        let way = store.fastest(now.vorticity, now.velocity)? * dt;
        let (particles, rates) = store.particles([&self.grid, &wider], now, way)?;
        Ok((wider, particles, rates))
    }

    /// The flow's grid with the roots that its particles will reach.
    fn widened(&self, paths: &[Option<Path>]) -> Grid {
        // Cells beyond the reach of the kernel, for velocities that change during the step.
        const SLACK: f64 = 2.0;
        let (corner, width) = (self.grid.corner(), self.grid.side() / f64::from(self.grid.base()));
        let last = f64::from(self.grid.base() - 1);
        let root = |x: f64, d: usize| ((x - corner[d]) / width).floor().clamp(0.0, last) as u32;
        let mut roots: BTreeSet<Block> = self.grid.blocks().iter().map(|b| b.root()).collect();
        for (block, ends) in self.grid.blocks().iter().zip(paths) {
            let Some(ends) = ends else { continue };
            let reach = (REACH as f64 + SLACK) * self.grid.spacing(block.level);
            let from: [u32; 3] = std::array::from_fn(|d| root(ends[0][d] - reach, d));
            let to: [u32; 3] = std::array::from_fn(|d| root(ends[1][d] + reach, d));
            for k in from[2]..=to[2] {
                for j in from[1]..=to[1] {
                    roots.extend((from[0]..=to[0]).map(|i| Block { level: 0, index: [i, j, k] }));
                }
            }
        }
        Forest::of(&self.grid).over(&roots).grid(&self.grid)
    }

    /// The particles by their blocks.
    pub(super) fn placed<S: FieldStore<Field = F> + ?Sized>(
        &self,
        store: &mut S,
        particles: &S::Particles,
    ) -> Result<S::Placed, Error> {
        store.place(&self.lattice, self.method.kernel, particles).map_err(|lost| match lost {
            Lost::Outside(level) => self.at_faces(level, true),
            Lost::Failed(e) => e,
        })
    }
}

/// What particles become in cells: the grid `like` over the roots that they reach, and ω there.
pub(super) fn remeshed<S: FieldStore + ?Sized>(
    store: &mut S,
    like: &Grid,
    (placed, particles): (&S::Placed, &S::Particles),
) -> Result<(Grid, S::Field), Error> {
    let grid = Forest::of(like).over(&store.roots(placed)).grid(like);
    let field = store.scatter(&grid, placed, particles)?;
    Ok((grid, field))
}
