//! The blocks of all levels of a grid: its own, those that have been split, and those around where
//! the grid is coarser.
//!
//! This is structure alone: which blocks there are, and what the cells of each come from.
//! [`Levels`](super::levels::Levels) has the values on the cores, and a device has them in arrays
//! of its own.

use std::collections::{BTreeSet, HashMap};

use super::blocks::{Block, Grid, place_on_curve};
use super::padded::neighbor;

/// No block.
pub const NONE: u32 = u32::MAX;

/// What the cells of a block come from, by numbers of other blocks; [`NONE`] where there is no block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// They are zero.
    Nothing,
    /// They are those of this block.
    Same(u32),
    /// They hold the eight parts of the block.
    Parts([u32; 8]),
    /// They are predicted from the block of which this is a part, and from those around it; then
    /// which part it is.
    Above([u32; 27], usize),
}

/// The blocks of all levels of a grid.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// Those of the grid, in its order, and then those that are made from them.
    blocks: Vec<Block>,
    number: HashMap<Block, u32>,
    /// How many are the grid's.
    own: usize,
    /// What the others are made from, in rounds: each needs those before it.
    rounds: Vec<Vec<Source>>,
    /// The numbers of the blocks of each level, along the curve.
    levels: Vec<Vec<u32>>,
}

impl Hierarchy {
    /// Those of a grid.
    pub fn of(grid: &Grid) -> Self {
        let blocks = grid.blocks().to_vec();
        let number = blocks.iter().zip(0..).map(|(&b, n)| (b, n)).collect();
        let mut all = Hierarchy { own: blocks.len(), blocks, number, rounds: vec![], levels: vec![] };
        let finest = grid.finest();
        // From the finest level down: blocks that have been split.
        for level in (0..finest).rev() {
            let parts = all.blocks.iter().filter(|b| b.level == level + 1);
            let parents: BTreeSet<Block> = parts.filter_map(|b| b.parent()).collect();
            let source = |all: &Self, block: Block| Source::Parts(block.children().map(|c| all.number(c)));
            all.make(parents, source);
        }
        // From the coarsest up: blocks around those of a level that lie in a coarser one.
        for level in 1..=finest {
            let leaves = grid.blocks().iter().filter(|b| b.level == level);
            let around = leaves.flat_map(|&b| (0..27).map(move |n| neighbor(b, n)));
            let coarser = |b: &Block| b.parent().is_some_and(|p| grid.number(p).is_some());
            let made: BTreeSet<Block> = around.filter(coarser).collect();
            all.make(made, |all, block| all.above(block).expect("the coarser block is there"));
        }
        let mut levels = vec![vec![]; usize::from(finest) + 1];
        all.blocks.iter().zip(0..).for_each(|(b, n)| levels[usize::from(b.level)].push(n));
        levels.iter_mut().for_each(|l| l.sort_by_cached_key(|&n| place_on_curve(&all.blocks[n as usize])));
        all.levels = levels;
        all
    }

    /// Adds a round.
    fn make(&mut self, blocks: BTreeSet<Block>, source: impl Fn(&Self, Block) -> Source) {
        let sources = blocks.iter().map(|&b| source(self, b)).collect();
        for block in blocks {
            self.number.insert(block, self.blocks.len() as u32);
            self.blocks.push(block);
        }
        self.rounds.push(sources);
    }

    /// Prediction from the level above, if that has the block of which this is a part.
    fn above(&self, block: Block) -> Option<Source> {
        let above = block.parent().filter(|p| self.has(*p))?;
        Some(Source::Above(self.around(above), block.part()))
    }

    /// All blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// How many of them are the grid's; these come first.
    pub fn own(&self) -> usize {
        self.own
    }

    /// What the others are made from, round after round, in their order.
    pub fn rounds(&self) -> &[Vec<Source>] {
        &self.rounds
    }

    /// The numbers of the blocks of each level, from the coarsest on.
    pub fn levels(&self) -> &[Vec<u32>] {
        &self.levels
    }

    /// The number of a block, or [`NONE`].
    pub fn number(&self, block: Block) -> u32 {
        self.number.get(&block).copied().unwrap_or(NONE)
    }

    fn has(&self, block: Block) -> bool {
        self.number.contains_key(&block)
    }

    /// The numbers of a block and of those around, of its level: of 27 the block itself is the 14th.
    pub fn around(&self, block: Block) -> [u32; 27] {
        std::array::from_fn(|n| self.number(neighbor(block, n)))
    }

    /// What the cells of a block of another grid come from.
    pub fn source(&self, block: Block) -> Source {
        match self.number(block) {
            NONE => self.above(block).unwrap_or(Source::Nothing),
            number => Source::Same(number),
        }
    }

    /// The grid over which a field goes to `grid`, where that has blocks that are finer by more
    /// than one level: predictions go from level to level, first to blocks of one level more than
    /// there are.
    pub fn between(&self, grid: &Grid) -> Option<Grid> {
        let above = |&block: &Block| {
            let mut ancestors = std::iter::successors(Some(block), |b| b.parent());
            let known = |b: Block| self.has(b);
            let found = ancestors.clone().any(known);
            found.then(|| ancestors.find(|&b| known(b) || b.parent().is_some_and(known)))?
        };
        let steps: Vec<Block> = grid.blocks().iter().map(|b| above(b).unwrap_or(*b)).collect();
        (steps != grid.blocks()).then(|| grid.with(steps.into_iter().collect::<BTreeSet<_>>()))
    }
}
