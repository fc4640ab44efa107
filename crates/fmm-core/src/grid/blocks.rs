//! An octree of blocks of 16³ cells that do not overlap.
//!
//! The domain is a cube of `base`³ blocks of level 0, each of which may be split into eight of the next level, whose cells are half as
//! wide. Fields have 16³ values a block, x fastest, block after block in the order of [`Grid::blocks`], which follows a
//! space-filling curve.

use std::collections::HashMap;

use rayon::prelude::*;

use super::vorticity::Vorticity;

/// Cells along a side of a block.
pub const BLOCK: usize = 16;
/// Cells of a block.
pub const CELLS: usize = BLOCK * BLOCK * BLOCK;
/// The deepest level.
pub const DEEPEST: u8 = 16;

/// A block: its level and its place among the blocks that would cover the domain on that level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    /// 0 is the coarsest.
    pub level: u8,
    /// Place along each axis, 0 to base·2^level − 1.
    pub index: [u32; 3],
}

impl Block {
    /// The block that this is an eighth of.
    pub fn parent(self) -> Option<Block> {
        let level = self.level.checked_sub(1)?;
        Some(Block { level, index: self.index.map(|i| i / 2) })
    }

    /// Which of the eight parts of its parent it is, x fastest.
    pub fn part(self) -> usize {
        (0..3).map(|d| (self.index[d] as usize & 1) << d).sum()
    }

    /// Its eight parts, x fastest.
    pub fn children(self) -> [Block; 8] {
        std::array::from_fn(|c| Block {
            level: self.level + 1,
            index: std::array::from_fn(|d| 2 * self.index[d] + (c as u32 >> d & 1)),
        })
    }
}

/// Blocks that cover a cube.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    corner: [f64; 3],
    side: f64,
    base: u32,
    blocks: Vec<Block>,
    /// The number of each block in `blocks`.
    number: HashMap<Block, u32>,
}

impl Grid {
    /// The grid of these blocks, which must cover the cube from `corner` with `side` once.
    pub fn new(corner: [f64; 3], side: f64, base: u32, mut blocks: Vec<Block>) -> Self {
        blocks.sort_unstable_by_key(place_on_curve);
        let number = blocks.iter().enumerate().map(|(i, &b)| (b, i as u32)).collect();
        Grid { corner, side, base, blocks, number }
    }

    /// The grid of `base`³ blocks of one level.
    pub fn uniform(corner: [f64; 3], side: f64, base: u32) -> Self {
        let place = |i: u32| [i % base, i / base % base, i / (base * base)];
        let blocks = (0..base * base * base).map(|i| Block { level: 0, index: place(i) }).collect();
        Grid::new(corner, side, base, blocks)
    }

    /// The grid of other blocks over the same domain.
    pub fn with(&self, blocks: impl IntoIterator<Item = Block>) -> Self {
        Grid::new(self.corner, self.side, self.base, blocks.into_iter().collect())
    }

    /// Lower corner of the domain.
    pub fn corner(&self) -> [f64; 3] {
        self.corner
    }

    /// Side of the domain.
    pub fn side(&self) -> f64 {
        self.side
    }

    /// Blocks of level 0 along a side.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The blocks, in the order of the fields.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.blocks.len() * CELLS
    }

    /// The finest level there is.
    pub fn finest(&self) -> u8 {
        self.blocks.iter().map(|b| b.level).max().unwrap_or(0)
    }

    /// Whether all blocks are of one level.
    pub fn is_uniform(&self) -> bool {
        self.blocks.iter().all(|b| b.level == self.blocks[0].level)
    }

    /// h, the side of the cells of a level.
    pub fn spacing(&self, level: u8) -> f64 {
        self.side / f64::from(self.base * BLOCK as u32) * 0.5f64.powi(i32::from(level))
    }

    /// The place along axis `d` of the center of cell `i` of a block; every use of a center has these bits. Cells may lie outside
    /// of the block.
    pub fn coordinate(&self, block: Block, d: usize, i: i64) -> f64 {
        let whole = i64::from(block.index[d]) * BLOCK as i64 + i;
        self.corner[d] + (whole as f64 + 0.5) * self.spacing(block.level)
    }

    /// The center of cell (i, j, k) of a block.
    pub fn center(&self, block: Block, cell: [i64; 3]) -> [f64; 3] {
        std::array::from_fn(|d| self.coordinate(block, d, cell[d]))
    }

    /// The center of cell `c` of the block number `b`.
    pub fn center_of(&self, b: usize, c: usize) -> [f64; 3] {
        self.center(self.blocks[b], split(c))
    }

    /// The number of a block, if it is one of the grid's.
    pub fn number(&self, block: Block) -> Option<usize> {
        self.number.get(&block).map(|&i| i as usize)
    }

    /// `vorticity` in all cells.
    pub fn sample(&self, vorticity: &dyn Vorticity) -> Vec<[f64; 3]> {
        let mut field = vec![[0.0; 3]; self.cells()];
        field.par_chunks_mut(CELLS).zip(&self.blocks).for_each(|(values, &block)| {
            let h = self.spacing(block.level);
            for (c, value) in values.iter_mut().enumerate() {
                *value = vorticity.cell(self.center(block, split(c)), h);
            }
        });
        field
    }
}

/// The cell `c` of a block as (i, j, k).
pub fn split(c: usize) -> [i64; 3] {
    [c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)].map(|i| i as i64)
}

/// The inverse of [`split`].
pub fn join([i, j, k]: [i64; 3]) -> usize {
    (i + BLOCK as i64 * (j + BLOCK as i64 * k)) as usize
}

/// The place of a block's lower corner on a Morton curve of the deepest level, then its level.
pub(super) fn place_on_curve(block: &Block) -> (u128, u8) {
    let mut key = 0u128;
    for d in 0..3 {
        let fine = u64::from(block.index[d]) << (DEEPEST - block.level);
        for bit in 0..40 {
            key |= u128::from(fine >> bit & 1) << (3 * bit + d);
        }
    }
    (key, block.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lie_where_they_should() {
        let grid = Grid::uniform([-1.0, 0.0, 2.0], 3.0, 3);
        assert_eq!((grid.blocks().len(), grid.cells(), grid.finest(), grid.is_uniform()), (27, 27 * 4096, 0, true));
        assert_eq!(grid.spacing(0), 0.0625);
        let last = grid.number(Block { level: 0, index: [2, 1, 0] }).unwrap();
        assert_eq!(grid.center_of(last, CELLS - 1), [2.0 - 0.03125, 2.0 - 0.03125, 3.0 - 0.03125]);
        for c in [0, 17, 4095] {
            assert_eq!(join(split(c)), c);
        }
    }
}
