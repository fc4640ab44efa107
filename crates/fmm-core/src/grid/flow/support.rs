//! Which blocks a flow has: those with vorticity, and around them as far as differences of differences reach.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::super::remesh::Lattice;
use super::Flow;
use crate::Error;
use crate::math::CollectVec;

impl Flow {
    /// Leaves out what is below the cutoff, and has blocks as far as differences of u reach, and those of bodies at a time.
    pub(super) fn trim(&mut self, time: f64) -> Result<(), Error> {
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
        let bodies = self.body_blocks(time);
        (self.grid, self.vorticity) = surrounded(&self.lattice, &self.grid, &self.vorticity, bodies);
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
}

/// The error of vorticity at the faces of the domain.
pub(super) fn left() -> Error {
    Error::Unsupported("vorticity has reached the faces of the domain; make grid.side larger or time.dt smaller".into())
}

/// The blocks of a field with vorticity, those that a cell with vorticity is nearer to than differences of u reach, and `more`, with their
/// values.
pub(super) fn surrounded(
    lattice: &Lattice,
    grid: &Grid,
    field: &[[f64; 3]],
    more: Vec<Block>,
) -> (Grid, Vec<[f64; 3]>) {
    // Cells of two differences, one of the other.
    const NEAR: i64 = 4;
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
    let wider = lattice.grid(blocks.into_iter().flatten().chain(more).collect::<BTreeSet<Block>>());
    let mut values = vec![[0.0; 3]; wider.cells()];
    values.par_chunks_mut(CELLS).zip(wider.blocks()).for_each(|(to, &block)| {
        if let Some(b) = grid.number(block) {
            to.copy_from_slice(&field[b * CELLS..(b + 1) * CELLS]);
        }
    });
    (wider, values)
}
