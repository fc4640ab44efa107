//! Which blocks a flow has: those with vorticity, and around them as far as differences of differences reach.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::super::forest::Forest;
use super::super::levels::Levels;
use super::super::transfer::Values;
use super::Flow;
use crate::Error;
use crate::math::CollectVec;

impl Flow {
    /// Leaves out what is below the cutoff, splits and joins blocks, and has those as far as differences of u reach, and those of bodies at a
    /// time.
    pub(super) fn trim(&mut self, time: f64) -> Result<(), Error> {
        let square = |w: &[f64; 3]| w.iter().map(|w| w * w).sum::<f64>();
        let largest = self.vorticity.par_iter().map(square).reduce(|| 0.0, f64::max);
        let least = self.method.cutoff.powi(2) * largest;
        self.vorticity.par_iter_mut().for_each(|w| {
            if square(w) < least {
                *w = [0.0; 3];
            }
        });
        let near_face = self.vorticity.par_iter().enumerate().any(|(i, w)| {
            let (block, cell) = (self.grid.blocks()[i / CELLS], split(i % CELLS));
            let faces = (self.lattice.base * BLOCK as u32) << block.level;
            let at = |d: usize| block.index[d] * BLOCK as u32 + cell[d] as u32;
            *w != [0.0; 3] && (0..3).any(|d| at(d) < 4 || at(d) + 4 >= faces)
        });
        if near_face {
            return Err(left());
        }
        self.adapt();
        let bodies = self.body_blocks(time);
        (self.grid, self.vorticity) = self.surrounded(&self.grid, &self.vorticity, bodies);
        Ok(())
    }

    /// The blocks that bodies reach, with the differences of what they make: ∇ × (u' − u), ∇²ω of it, and ∇u there.
    fn body_blocks(&self, time: f64) -> Vec<Block> {
        const REACH: f64 = 8.0;
        let (lattice, poses) = (&self.lattice, self.poses(time));
        let h = lattice.spacing();
        let wide = BLOCK as f64 * h;
        let mut blocks = vec![];
        for (pose, body) in poses.iter().zip(&self.conditions.bodies) {
            let reach = body.extent() + REACH * h;
            let ends: [[u32; 2]; 3] = std::array::from_fn(|d| {
                let along = |side: f64| ((pose.center[d] + side * reach - lattice.corner[d]) / wide).floor();
                [-1.0, 1.0].map(|side| along(side).clamp(0.0, f64::from(lattice.base - 1)) as u32)
            });
            for k in ends[2][0]..=ends[2][1] {
                for j in ends[1][0]..=ends[1][1] {
                    for i in ends[0][0]..=ends[0][1] {
                        let index = [i, j, k];
                        let center = std::array::from_fn(|d| lattice.corner[d] + (f64::from(index[d]) + 0.5) * wide);
                        if pose.meets(center, 0.5 * 3f64.sqrt() * wide, REACH * h) {
                            blocks.push(Block { level: 0, index });
                        }
                    }
                }
            }
        }
        blocks
    }

    /// The blocks of a field with vorticity, those that a cell with vorticity is nearer to than differences of u reach, and `more`, of level
    /// 0, with their values.
    pub(super) fn surrounded(&self, grid: &Grid, field: &[[f64; 3]], more: Vec<Block>) -> (Grid, Vec<[f64; 3]>) {
        // Places in cells of the finest level.
        let finest = grid.finest();
        let wide = |level: u8| (BLOCK as i64) << (finest - level);
        let of_block = |(b, block): (usize, &Block)| {
            let own = &field[b * CELLS..(b + 1) * CELLS];
            let (mut low, mut high) = ([BLOCK as i64; 3], [-1; 3]);
            for (c, _) in own.iter().enumerate().filter(|(_, w)| **w != [0.0; 3]) {
                let cell = split(c);
                for d in 0..3 {
                    (low[d], high[d]) = (low[d].min(cell[d]), high[d].max(cell[d]));
                }
            }
            let near = self.near(block.level);
            let first = |d: usize| i64::from(block.index[d]) * BLOCK as i64;
            let ends = |d: usize| [first(d) + low[d] - near, first(d) + high[d] + 1 + near];
            (high[0] >= 0).then(|| std::array::from_fn(|d| ends(d).map(|e| e << (finest - block.level))))
        };
        let filled: Vec<Option<[[i64; 2]; 3]>> = grid.blocks().par_iter().enumerate().map(of_block).collect_vec();
        let place = |block: &Block| -> [[i64; 2]; 3] {
            block.index.map(|i| [i64::from(i), i64::from(i) + 1].map(|i| i * wide(block.level)))
        };
        let boxes: Vec<[[i64; 2]; 3]> = filled.into_iter().flatten().chain(more.iter().map(place)).collect();
        let roots_of = |ends: &[[i64; 2]; 3]| {
            let last = i64::from(grid.base()) - 1;
            let [x, y, z] = ends.map(|[from, to]| (from / wide(0)).max(0)..=((to - 1) / wide(0)).min(last));
            let rows = z.flat_map(move |k| y.clone().map(move |j| (j, k)));
            rows.flat_map(move |(j, k)| x.clone().map(move |i| Block { level: 0, index: [i, j, k].map(|i| i as u32) }))
        };
        let forest = Forest::of(grid).over(&boxes.iter().flat_map(roots_of).collect());
        let needed = |ends: &[[i64; 2]; 3]| {
            let meets = |block: Block| {
                let own = place(&block);
                (0..3).all(|d| ends[d][0] < own[d][1] && own[d][0] < ends[d][1])
            };
            let mut found = vec![];
            roots_of(ends).for_each(|root| forest.meeting(root, &meets, &mut found));
            found
        };
        let needed: BTreeSet<Block> = boxes.par_iter().flat_map_iter(needed).collect();
        let wider = grid.with(needed);
        let values = Levels::of(grid, field, Values::Means).onto(Values::Means, &wider);
        (wider, values)
    }

    /// Cells around those with vorticity that there must be.
    fn near(&self, level: u8) -> i64 {
        match (self.method.thresholds.finest, level) {
            // Cells of two differences, one of the other.
            (0, _) => 4,
            // And of a prediction for the level below.
            (_, 0) => 6,
            // Those of the level above of which each is predicted, for two differences and one more.
            _ => 10,
        }
    }
}

/// The error of vorticity at the faces of the domain.
pub(super) fn left() -> Error {
    Error::Unsupported("vorticity has reached the faces of the domain; make grid.side larger or time.dt smaller".into())
}
