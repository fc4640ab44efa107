//! The blocks that bodies need: of the finest level, as far as differences of what bodies make reach.

use super::super::blocks::{BLOCK, Block, Grid};
use super::super::bodies::Pose;
use super::super::remesh::Lattice;
use super::penalise::Conditions;

/// Cells of the finest level from a body that ∇ × (u' − u), ∇²ω of it and ∇u there reach.
const BODY_REACH: f64 = 8.0;

/// The blocks around bodies at one time, in a lattice with levels up to the finest.
pub(super) struct BodyBlocks {
    lattice: Lattice,
    finest: u8,
    /// Each with the radius of the sphere about its center that holds it.
    bodies: Vec<(Pose, f64)>,
}

impl BodyBlocks {
    pub fn new(lattice: Lattice, finest: u8, conditions: &Conditions, time: f64) -> Self {
        BodyBlocks { lattice, finest, bodies: conditions.bodies.iter().map(|b| (b.at(time), b.extent())).collect() }
    }

    /// Whether a block, of any level, has cells that a body needs: on several levels it is split up to the finest.
    pub fn need(&self, block: Block) -> bool {
        self.bodies.iter().any(|body| {
            let ends = self.ends(body, block.level, BODY_REACH);
            (0..3).all(|d| (ends[d][0]..=ends[d][1]).contains(&block.index[d])) && self.meets(body, block, BODY_REACH)
        })
    }

    /// All of these blocks that are of the finest level.
    pub fn blocks(&self) -> Vec<Block> {
        self.within(BODY_REACH)
    }

    /// Whether a grid has all of them.
    pub fn are_in(&self, grid: &Grid) -> bool {
        // Rounding of the time must not ask for one more: a flow that goes on has the same bits.
        self.within(0.999 * BODY_REACH).into_iter().all(|b| grid.number(b).is_some())
    }

    /// The blocks of the finest level up to so many of its cells from the bodies.
    fn within(&self, cells: f64) -> Vec<Block> {
        let mut blocks = vec![];
        for body in &self.bodies {
            let ends = self.ends(body, self.finest, cells);
            for k in ends[2][0]..=ends[2][1] {
                for j in ends[1][0]..=ends[1][1] {
                    let row = (ends[0][0]..=ends[0][1]).map(|i| Block { level: self.finest, index: [i, j, k] });
                    blocks.extend(row.filter(|&b| self.meets(body, b, cells)));
                }
            }
        }
        blocks
    }

    /// The side of a block.
    fn wide(&self, level: u8) -> f64 {
        BLOCK as f64 * self.lattice.spacing(level)
    }

    /// The first and the last place along each axis of the blocks up to so many of the finest cells
    /// from a body.
    fn ends(&self, (pose, extent): &(Pose, f64), level: u8, cells: f64) -> [[u32; 2]; 3] {
        let (reach, wide) = (extent + cells * self.lattice.spacing(self.finest), self.wide(level));
        let last = f64::from((self.lattice.base << level) - 1);
        std::array::from_fn(|d| {
            let along = |side: f64| ((pose.center[d] + side * reach - self.lattice.corner[d]) / wide).floor();
            [-1.0, 1.0].map(|side| along(side).clamp(0.0, last) as u32)
        })
    }

    fn meets(&self, (pose, _): &(Pose, f64), block: Block, cells: f64) -> bool {
        let reach = cells * self.lattice.spacing(self.finest);
        // Balls about cubes of a quarter of its side fit better than one about the block.
        let meets = |parts: usize| {
            let wide = self.wide(block.level) / parts as f64;
            (0..parts * parts * parts).any(|n| {
                let part = [n % parts, n / parts % parts, n / (parts * parts)];
                let along = |d: usize| f64::from(block.index[d] * parts as u32 + part[d] as u32) + 0.5;
                let center = std::array::from_fn(|d| self.lattice.corner[d] + along(d) * wide);
                pose.meets(center, 0.5 * 3f64.sqrt() * wide, reach)
            })
        };
        meets(1) && meets(4)
    }
}
