//! The particles of a step: cells with vorticity of each level, and those around the blocks of the level that come into them.
//!
//! Each level has its own particles and cells. Around the blocks of a level particles are made from what the other levels have there; they
//! move like the others, and they add to cells of their own level alone. So a level sees its particles go on
//! beyond its blocks, and nothing is added twice: cells of another level get the same vorticity from particles of their own.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::blocks::{BLOCK, Block, CELLS, Grid, join, split};
use super::super::differences::{Motion, stretched};
use super::super::forest::Forest;
use super::super::levels::Levels;
use super::super::padded::{REACH, Within, neighbor};
use super::super::remesh::Placed;
use super::super::transfer::Values;
use super::Flow;
use crate::Error;
use crate::math::{CollectVec, zeros};

/// Particles of one level.
#[derive(Debug, Clone)]
pub(super) struct Particles {
    pub level: u8,
    /// Where they are, `[n, 3]`.
    pub position: Vec<[f64; 3]>,
    /// ω of each, `[n, 3]`.
    pub vorticity: Vec<[f64; 3]>,
}

/// dx/dt and dω/dt of the particles of a level, `[n, 2, 3]`.
pub(super) type Rates = Vec<[[f64; 3]; 2]>;

impl Particles {
    /// Adds `factor` times the rates.
    pub fn advance(&mut self, rates: &Rates, factor: f64) {
        for (to, which) in [(&mut self.position, 0), (&mut self.vorticity, 1)] {
            to.par_iter_mut().zip(rates).for_each(|(v, r)| (0..3).for_each(|k| v[k] += factor * r[which][k]));
        }
    }
}

/// What the cells of a flow have at the beginning of a step.
pub(super) struct Now<'a> {
    pub velocity: &'a [[f64; 3]],
    /// The velocity with its gradients.
    pub motion: &'a [Motion],
    /// ν ∇²ω, with viscosity.
    pub diffused: Option<&'a [[f64; 3]]>,
}

impl Flow {
    /// The particles of each level at the beginning of a step of length `dt`, with their rates, and a grid with all blocks that they will
    /// reach.
    pub(super) fn particles(&self, now: &Now, dt: f64) -> (Grid, Vec<Particles>, Vec<Rates>) {
        // Cells that diffusion reaches are particles too.
        let carries = |i: usize| self.vorticity[i] != [0.0; 3] || now.diffused.is_some_and(|d| d[i] != [0.0; 3]);
        let wider = self.widened(now.velocity, &carries, dt);
        let means = |field| Levels::of(&self.grid, field, Values::Means).onto(Values::Means, &wider);
        let (w, d) = (means(&self.vorticity), now.diffused.map(means));
        let motion = Levels::of(&self.grid, now.motion, Values::Points).onto(Values::Points, &wider);
        let means = |field| Levels::of(&wider, field, Values::Means);
        let (all_w, all_d) = (means(&w), d.as_ref().map(|d| means(d)));
        let all_motion = Levels::of(&wider, &motion, Values::Points);
        let fastest = self.fastest(now.velocity);
        let (mut particles, mut rates) = (vec![], vec![]);
        for level in 0..=wider.finest() {
            let Some(w_here) = all_w.level(level) else { continue };
            let (motion_here, d_here) = (all_motion.level(level), all_d.as_ref().and_then(|d| d.level(level)));
            let margin = (fastest * dt / wider.spacing(level)).ceil() as usize + REACH + 1;
            let within = Within::new(margin.min(BLOCK));
            let filled = |i: usize| w[i] != [0.0; 3] || d.as_ref().is_some_and(|d| d[i] != [0.0; 3]);
            // The place, ω and the rates of each particle of a block.
            let of_block = |(b, &block): (usize, &Block)| {
                let (wanted, w, d) =
                    (Around::of(&wider, block, &within), &w_here.cells[b], d_here.map(|d| &d.cells[b]));
                let motion = &motion_here.expect("the levels of all fields are the same").cells[b];
                let here = |c: &usize| w[*c] != [0.0; 3] || d.is_some_and(|d| d[*c] != [0.0; 3]);
                let particle = |c: usize| {
                    let mut rate = stretched(w[c], &motion[c]);
                    if let Some(d) = d {
                        (0..3).for_each(|k| rate[k] += d[c][k]);
                    }
                    (w_here.grid.center_of(b, c), w[c], [[0, 1, 2].map(|k| motion[c][k]), rate])
                };
                (0..CELLS).filter(here).filter(|&c| wanted.has(c, &filled)).map(particle).collect::<Vec<_>>()
            };
            let made = w_here.grid.blocks().par_iter().enumerate().map(of_block).collect_vec();
            let joined = || made.par_iter().flatten_iter();
            rates.push(joined().map(|p| p.2).collect());
            particles.push(Particles {
                level,
                position: joined().map(|p| p.0).collect(),
                vorticity: joined().map(|p| p.1).collect(),
            });
        }
        (wider, particles, rates)
    }

    /// The largest speed in blocks with vorticity.
    pub(super) fn fastest(&self, velocity: &[[f64; 3]]) -> f64 {
        let square = |u: &[f64; 3]| u.iter().map(|u| u * u).sum::<f64>();
        let turning = self.vorticity.par_chunks(CELLS).zip(velocity.par_chunks(CELLS));
        let of_block = |(w, u): (&[[f64; 3]], &[[f64; 3]])| match w.iter().any(|w| *w != [0.0; 3]) {
            true => u.iter().map(square).fold(0.0, f64::max),
            false => 0.0,
        };
        turning.map(of_block).reduce(|| 0.0, f64::max).sqrt()
    }

    /// The flow's grid with the roots that its particles will reach in a step of length `dt`.
    fn widened(&self, velocity: &[[f64; 3]], carries: &(impl Fn(usize) -> bool + Sync), dt: f64) -> Grid {
        // Cells beyond the reach of the kernel, for velocities that change during the step.
        const SLACK: f64 = 2.0;
        let (corner, width) = (self.grid.corner(), self.grid.side() / f64::from(self.grid.base()));
        let of_block = |(b, block): (usize, &Block)| {
            let mut ends = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
            for i in (b * CELLS..(b + 1) * CELLS).filter(|&i| carries(i)) {
                let x = self.grid.center_of(b, i % CELLS);
                for d in 0..3 {
                    let way = dt * velocity[i][d];
                    ends[0][d] = ends[0][d].min(x[d] + way.min(0.0));
                    ends[1][d] = ends[1][d].max(x[d] + way.max(0.0));
                }
            }
            if ends[0][0] > ends[1][0] {
                return vec![];
            }
            let reach = (REACH as f64 + SLACK) * self.grid.spacing(block.level);
            let last = f64::from(self.grid.base() - 1);
            let root = |x: f64, d: usize| ((x - corner[d]) / width).floor().clamp(0.0, last) as u32;
            let from: [u32; 3] = std::array::from_fn(|d| root(ends[0][d] - reach, d));
            let to: [u32; 3] = std::array::from_fn(|d| root(ends[1][d] + reach, d));
            let mut roots = vec![];
            for k in from[2]..=to[2] {
                for j in from[1]..=to[1] {
                    roots.extend((from[0]..=to[0]).map(|i| Block { level: 0, index: [i, j, k] }));
                }
            }
            roots
        };
        let reached: Vec<Vec<Block>> = self.grid.blocks().par_iter().enumerate().map(of_block).collect_vec();
        let present = self.grid.blocks().iter().map(|b| b.root());
        let roots: BTreeSet<Block> = reached.into_iter().flatten().chain(present).collect();
        Forest::of(&self.grid).over(&roots).grid(&self.grid)
    }

    /// The particles of each level by their blocks.
    pub(super) fn placed(&self, particles: &[Particles]) -> Result<Vec<Placed>, Error> {
        let place = |p: &Particles| Placed::new(&self.lattice, p.level, self.method.kernel, &p.position);
        particles.iter().map(|p| place(p).ok_or_else(|| self.at_faces(p.level, true))).collect()
    }
}

/// What particles become in cells: the grid `like` over the roots that they reach, and ω there.
pub(super) fn remeshed(like: &Grid, placed: &[Placed], particles: &[Particles]) -> (Grid, Vec<[f64; 3]>) {
    let roots: BTreeSet<Block> = placed.iter().flat_map(Placed::reached).map(Block::root).collect();
    let grid = Forest::of(like).over(&roots).grid(like);
    let mut field = zeros(grid.cells());
    placed.iter().zip(particles).for_each(|(placed, p)| placed.scatter(&grid, &p.vorticity, &mut field));
    (grid, field)
}

/// Which cells of a block of a level may be particles.
enum Around<'a> {
    /// All: it is a block of the grid.
    Own,
    /// Those up to so many cells from a block of the grid: a bit for each neighbor that is one.
    /// Where the grid is coarser, only parts of cells
    /// that are filled: the number of the coarser block, and which part of it this is.
    Beyond(u32, &'a Within, Option<(usize, usize)>),
}

impl<'a> Around<'a> {
    fn of(grid: &Grid, block: Block, within: &'a Within) -> Self {
        if grid.number(block).is_some() {
            return Around::Own;
        }
        let near = (0..27).filter(|&n| grid.number(neighbor(block, n)).is_some()).map(|n| 1 << n).sum();
        let coarser = block.parent().and_then(|p| grid.number(p)).map(|p| (p, block.part()));
        Around::Beyond(near, within, coarser)
    }

    fn has(&self, c: usize, filled: &impl Fn(usize) -> bool) -> bool {
        let Around::Beyond(near, within, coarser) = self else { return true };
        let cell = split(c);
        within.any(*near, c)
            && coarser.is_none_or(|(b, part)| {
                let half = BLOCK as i64 / 2;
                filled(b * CELLS + join(std::array::from_fn(|d| half * (part >> d & 1) as i64 + cell[d] / 2)))
            })
    }
}
