//! Which blocks a flow has: those with vorticity, and around them as far as differences of differences reach.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::super::forest::Forest;
use super::super::levels::Levels;
use super::super::transfer::Values;
use super::body_blocks::BodyBlocks;
use super::{Flow, short};
use crate::Error;
use crate::math::CollectVec;

impl Flow {
    /// Leaves out what is below the cutoff, splits and joins blocks, and has those as far as
    /// differences of u reach, and those of bodies at a time; `moved` is whether this is in a step.
    pub(super) fn trim(&mut self, time: f64, moved: bool) -> Result<(), Error> {
        let square = |w: &[f64; 3]| w.iter().map(|w| w * w).sum::<f64>();
        let largest = self.vorticity.par_iter().map(square).reduce(|| 0.0, f64::max);
        let least = self.method.cutoff.powi(2) * largest;
        self.vorticity.par_iter_mut().for_each(|w| {
            if square(w) < least {
                *w = [0.0; 3];
            }
        });
        let at_faces = |(i, w): (usize, &[f64; 3])| {
            let (block, cell) = (self.grid.blocks()[i / CELLS], split(i % CELLS));
            let faces = (self.lattice.base * BLOCK as u32) << block.level;
            let at = |d: usize| block.index[d] * BLOCK as u32 + cell[d] as u32;
            (*w != [0.0; 3] && (0..3).any(|d| at(d) < 4 || at(d) + 4 >= faces)).then_some(block.level)
        };
        if let Some(level) = self.vorticity.par_iter().enumerate().filter_map(at_faces).min() {
            return Err(self.at_faces(level, moved));
        }
        self.cover(&self.body_blocks(time));
        Ok(())
    }

    /// Splits and joins blocks, and has those as far as differences of u reach and those of bodies.
    pub(super) fn cover(&mut self, bodies: &BodyBlocks) {
        self.adapt(bodies);
        (self.grid, self.vorticity) = self.surrounded(&self.grid, &self.vorticity, bodies.blocks());
    }

    /// The blocks that bodies need at a time.
    pub(super) fn body_blocks(&self, time: f64) -> BodyBlocks {
        BodyBlocks::new(self.lattice, self.method.thresholds.finest, &self.conditions, time)
    }

    /// The blocks of a field with vorticity, those that a cell with vorticity is nearer to than
    /// differences of u reach, and `more`, of the finest level, with their values.
    pub(super) fn surrounded(&self, grid: &Grid, field: &[[f64; 3]], more: Vec<Block>) -> (Grid, Vec<[f64; 3]>) {
        let finest = self.method.thresholds.finest;
        let filled = |(b, block): (usize, &Block)| Filled::of(*block, &field[b * CELLS..(b + 1) * CELLS]);
        let filled = grid.blocks().par_iter().enumerate().map(filled).collect_vec();
        let whole = |&block: &Block| Filled { block, low: [0; 3], high: [BLOCK as i64 - 1; 3] };
        let wanted: Vec<(Filled, i64)> = filled
            .into_iter()
            .flatten()
            .map(|f| (f, if finest == 0 { STENCIL } else { f.widest() }))
            .chain(more.iter().map(|b| (whole(b), 0)))
            .collect();
        let roots_of = |ends: &[[i64; 2]; 3]| {
            let (wide, last) = ((BLOCK as i64) << finest, i64::from(grid.base()) - 1);
            let [x, y, z] = ends.map(|[from, to]| (from / wide).max(0)..=((to - 1) / wide).min(last));
            let rows = z.flat_map(move |k| y.clone().map(move |j| (j, k)));
            rows.flat_map(move |(j, k)| x.clone().map(move |i| Block { level: 0, index: [i, j, k].map(|i| i as u32) }))
        };
        let roots = wanted.iter().flat_map(|(f, near)| roots_of(&f.ends(*near, finest)));
        let mut forest = Forest::of(grid).over(&roots.collect());
        more.iter().for_each(|&block| forest.reach(block));
        let meeting = |ends: [[i64; 2]; 3]| {
            let meets = |block: Block| {
                let own = whole(&block).ends(0, finest);
                (0..3).all(|d| ends[d][0] < own[d][1] && own[d][0] < ends[d][1])
            };
            let mut found = vec![];
            roots_of(&ends).for_each(|root| forest.meeting(root, &meets, &mut found));
            found
        };
        let needed = |(filled, widest): &(Filled, i64)| {
            let (own, least) = (filled.block.level, filled.ends(STENCIL.min(*widest), finest));
            let mut found = meeting(least);
            if *widest <= STENCIL {
                return found;
            }
            for coarser in found.clone().into_iter().filter(|b| b.level < own) {
                let there = whole(&coarser).ends(0, finest);
                let predicted = std::array::from_fn(|d| {
                    let [from, to] = [least[d][0].max(there[d][0]), least[d][1].min(there[d][1])];
                    let beyond = (BELOW - STENCIL) << (finest - own);
                    [from - beyond, to + beyond]
                });
                found.extend(meeting(predicted));
            }
            let more = meeting(filled.ends(ABOVE, finest));
            if more.iter().any(|b| b.level > own) {
                found.extend(more);
            }
            found
        };
        let needed: BTreeSet<Block> = wanted.par_iter().flat_map_iter(needed).collect();
        let wider = grid.with(needed);
        let values = Levels::of(grid, field, Values::Means).onto(Values::Means, &wider);
        (wider, values)
    }
}

/// Cells around those with vorticity that there must be: of two differences, one of the other.
const STENCIL: i64 = 4;
/// Where finer blocks are near, of a prediction for them too.
const ABOVE: i64 = 6;
/// Where coarser blocks are near: of theirs, of which each of those cells is predicted.
const BELOW: i64 = 10;

/// The box of the cells of a block with vorticity.
#[derive(Debug, Clone, Copy)]
struct Filled {
    block: Block,
    /// The first and the last along each axis.
    low: [i64; 3],
    high: [i64; 3],
}

impl Filled {
    /// `None` without vorticity.
    fn of(block: Block, field: &[[f64; 3]]) -> Option<Self> {
        let (mut low, mut high) = ([BLOCK as i64; 3], [-1; 3]);
        for (c, _) in field.iter().enumerate().filter(|(_, w)| **w != [0.0; 3]) {
            let cell = split(c);
            for d in 0..3 {
                (low[d], high[d]) = (low[d].min(cell[d]), high[d].max(cell[d]));
            }
        }
        (high[0] >= 0).then_some(Filled { block, low, high })
    }

    /// The most cells around that there may have to be.
    fn widest(&self) -> i64 {
        if self.block.level == 0 { ABOVE } else { BELOW }
    }

    /// Where the box with `near` cells around begins and ends along each axis, in cells of the
    /// finest level.
    fn ends(&self, near: i64, finest: u8) -> [[i64; 2]; 3] {
        std::array::from_fn(|d| {
            let first = i64::from(self.block.index[d]) * BLOCK as i64;
            [first + self.low[d] - near, first + self.high[d] + 1 + near].map(|e| e << (finest - self.block.level))
        })
    }
}

impl Flow {
    /// The error of vorticity of a level at the faces of the domain, at the start of a run or, if
    /// it has `moved`, in a step.
    pub(super) fn at_faces(&self, level: u8, moved: bool) -> Error {
        let finest = self.method.thresholds.finest;
        let larger = match level {
            _ if finest == 0 => "larger grid.side and grid.n",
            level if level < finest => {
                "a larger grid.side, or a larger grid.coarsest, so that the cells there are smaller"
            }
            _ => "larger grid.side and grid.finest",
        };
        // A run that has begun keeps its cells.
        let way_out = match moved {
            true => format!("end the run earlier by time.end, or start anew with {larger}"),
            false => format!("start with {larger}, or move it by its center or by grid.corner"),
        };
        Error::Unsupported(format!(
            "vorticity is nearer to the faces of the domain than four of its cells, {}; {way_out}",
            short(4.0 * self.lattice.spacing(level)),
        ))
    }
}
