//! Which blocks a flow has: those with vorticity, and around them as far as differences of differences reach.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::blocks::{BLOCK, Block, Grid};
use super::super::forest::Forest;
use super::body_blocks::BodyBlocks;
use super::store::{FieldStore, Filled};
use super::{Flow, short};
use crate::Error;

impl<F> Flow<F> {
    /// Leaves out what is below the cutoff, splits and joins blocks, and has those as far as
    /// differences of u reach, and those of bodies at a time; `moved` is whether this is in a step.
    pub(super) fn trim<S: FieldStore<Field = F> + ?Sized>(
        &mut self,
        store: &mut S,
        time: f64,
        moved: bool,
    ) -> Result<(), Error> {
        store.cut(&mut self.vorticity, self.method.cutoff)?;
        let filled = store.filled(&self.vorticity)?;
        let at_faces = |(block, filled): (&Block, &Option<Filled>)| {
            let filled = filled.as_ref()?;
            let faces = i64::from(self.lattice.base * BLOCK as u32) << block.level;
            let first = |d: usize| i64::from(block.index[d]) * BLOCK as i64;
            let is = |d: usize| first(d) + filled.low[d] < 4 || first(d) + filled.high[d] + 4 >= faces;
            (0..3).any(is).then_some(block.level)
        };
        if let Some(level) = self.grid.blocks().iter().zip(&filled).filter_map(at_faces).min() {
            return Err(self.at_faces(level, moved));
        }
        self.cover(store, &self.body_blocks(time))
    }

    /// Splits and joins blocks, and has those as far as differences of u reach and those of bodies.
    pub(super) fn cover<S: FieldStore<Field = F> + ?Sized>(
        &mut self,
        store: &mut S,
        bodies: &BodyBlocks,
    ) -> Result<(), Error> {
        self.adapt(store, bodies)?;
        (self.grid, self.vorticity) = self.surrounded(store, (&self.grid, &self.vorticity), bodies.blocks())?;
        Ok(())
    }

    /// The blocks that bodies need at a time.
    pub(super) fn body_blocks(&self, time: f64) -> BodyBlocks {
        BodyBlocks::new(self.lattice, self.method.thresholds.finest, &self.conditions, time)
    }

    /// The blocks of a field with vorticity, those that a cell with vorticity is nearer to than
    /// differences of u reach, and `more`, of the finest level, with their values.
    pub(super) fn surrounded<S: FieldStore<Field = F> + ?Sized>(
        &self,
        store: &mut S,
        (grid, field): (&Grid, &F),
        more: Vec<Block>,
    ) -> Result<(Grid, F), Error> {
        let wider = self.around(grid, &store.filled(field)?, more);
        let values = store.onto(grid, field, &wider)?;
        Ok((wider, values))
    }

    /// The grid with these blocks.
    fn around(&self, grid: &Grid, filled: &[Option<Filled>], more: Vec<Block>) -> Grid {
        let finest = self.method.thresholds.finest;
        let whole = |&block: &Block| Turning { block, filled: Filled { low: [0; 3], high: [BLOCK as i64 - 1; 3] } };
        let turning = grid.blocks().iter().zip(filled);
        let turning = turning.filter_map(|(&block, &filled)| Some(Turning { block, filled: filled? }));
        let wanted: Vec<(Turning, i64)> = turning
            .map(|t| (t, if finest == 0 { STENCIL } else { t.widest() }))
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
        let needed = |(turning, widest): &(Turning, i64)| {
            let (own, least) = (turning.block.level, turning.ends(STENCIL.min(*widest), finest));
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
            let more = meeting(turning.ends(ABOVE, finest));
            if more.iter().any(|b| b.level > own) {
                found.extend(more);
            }
            found
        };
        let needed: BTreeSet<Block> = wanted.par_iter().flat_map_iter(needed).collect();
        grid.with(needed)
    }
}

/// Cells around those with vorticity that there must be: of two differences, one of the other.
const STENCIL: i64 = 4;
/// Where finer blocks are near, of a prediction for them too.
const ABOVE: i64 = 6;
/// Where coarser blocks are near: of theirs, of which each of those cells is predicted.
const BELOW: i64 = 10;

/// A block with vorticity.
#[derive(Debug, Clone, Copy)]
struct Turning {
    block: Block,
    filled: Filled,
}

impl Turning {
    /// The most cells around that there may have to be.
    fn widest(&self) -> i64 {
        if self.block.level == 0 { ABOVE } else { BELOW }
    }

    /// Where the box with `near` cells around begins and ends along each axis, in cells of the
    /// finest level.
    fn ends(&self, near: i64, finest: u8) -> [[i64; 2]; 3] {
        std::array::from_fn(|d| {
            let first = i64::from(self.block.index[d]) * BLOCK as i64;
            [first + self.filled.low[d] - near, first + self.filled.high[d] + 1 + near]
                .map(|e| e << (finest - self.block.level))
        })
    }
}

impl<F> Flow<F> {
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
