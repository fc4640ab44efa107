//! Octrees of blocks that are split and joined: neighbors, across edges and corners too, differ by one level at most.

use std::collections::{BTreeSet, HashSet};

use super::blocks::{Block, Grid};

/// Blocks that are leaves, and those that have been split. The roots are blocks of level 0, which need not fill the domain.
#[derive(Debug, Clone)]
pub struct Forest {
    base: u32,
    leaves: HashSet<Block>,
    split: HashSet<Block>,
}

impl Block {
    /// The block of level 0 that it is a part of.
    pub fn root(self) -> Block {
        Block { level: 0, index: self.index.map(|i| i >> self.level) }
    }
}

impl Forest {
    /// Roots that have not been split, of a domain of `base`³.
    pub fn new(base: u32, roots: impl IntoIterator<Item = Block>) -> Self {
        Forest { base, leaves: roots.into_iter().collect(), split: HashSet::new() }
    }

    /// That whose leaves are the blocks of a grid, and where its roots are not filled others as coarse as their neighbors allow.
    pub fn of(grid: &Grid) -> Self {
        let mut forest = Forest::new(grid.base(), grid.blocks().iter().copied());
        for &block in grid.blocks() {
            let mut above = block.parent();
            while let Some(parent) = above.filter(|&p| forest.split.insert(p)) {
                above = parent.parent();
            }
        }
        let parts = forest.split.iter().flat_map(|b| b.children());
        let empty: Vec<Block> = parts.filter(|&b| !forest.has(b)).collect();
        forest.leaves.extend(empty);
        forest.balance();
        forest
    }

    /// Whether the blocks of a grid are leaves of an octree: none covers another, and neighbors differ by one level at most.
    pub fn is_of(grid: &Grid) -> bool {
        let forest = Forest::of(grid);
        grid.blocks().iter().all(|b| forest.leaves.contains(b) && !forest.split.contains(b))
    }

    /// The grid of its leaves, over the domain of another one.
    pub fn grid(&self, like: &Grid) -> Grid {
        Grid::new(like.corner(), like.side(), like.base(), self.leaves.iter().copied().collect())
    }

    /// The leaves, in no order.
    pub fn leaves(&self) -> impl Iterator<Item = Block> {
        self.leaves.iter().copied()
    }

    /// Whether a block is a leaf or has been split.
    pub fn has(&self, block: Block) -> bool {
        self.leaves.contains(&block) || self.split.contains(&block)
    }

    /// The blocks of the same level around, and the block itself.
    pub fn around(&self, block: Block, reach: i64) -> impl Iterator<Item = Block> + use<> {
        let across = i64::from(self.base) << block.level;
        let wide = 2 * reach + 1;
        (0..wide * wide * wide).filter_map(move |n| {
            let offset = [n % wide, n / wide % wide, n / (wide * wide)].map(|o| o - reach);
            let index: [i64; 3] = std::array::from_fn(|d| i64::from(block.index[d]) + offset[d]);
            index
                .iter()
                .all(|i| (0..across).contains(i))
                .then(|| Block { level: block.level, index: index.map(|i| i as u32) })
        })
    }

    /// Splits a leaf, and what around it would be coarser by two levels. A block that has been split already is left alone.
    pub fn refine(&mut self, block: Block) {
        if !self.leaves.remove(&block) {
            return;
        }
        self.split.insert(block);
        self.leaves.extend(block.children());
        let Some(parent) = block.parent() else { return };
        // Neighbors of the parts are of the block's level at least: their parents must have been split.
        for around in self.around(block, 1).collect::<Vec<_>>() {
            if around != block
                && let Some(above) = around.parent()
                && above != parent
            {
                self.refine(above);
            }
        }
    }

    /// Splits what a block lies in, until it is a leaf or has been split itself; its root must be there.
    pub fn reach(&mut self, block: Block) {
        (0..block.level).for_each(|level| {
            self.refine(Block { level, index: block.index.map(|i| i >> (block.level - level)) });
        });
    }

    /// Whether the parts of a block are leaves, and no neighbor of theirs is split.
    pub fn may_join(&self, parent: Block) -> bool {
        let parts = parent.children();
        parts.iter().all(|b| self.leaves.contains(b))
            && parts.iter().all(|&b| self.around(b, 1).all(|n| !self.split.contains(&n)))
    }

    /// Makes the parts of a block one leaf.
    pub fn join(&mut self, parent: Block) {
        // What was joined before may have changed nothing here: neighbors only become coarser.
        parent.children().iter().for_each(|b| {
            self.leaves.remove(b);
        });
        self.split.remove(&parent);
        self.leaves.insert(parent);
    }

    /// Adds the leaves below a block of the forest that `meets` holds for, as it does for what they are parts of.
    pub fn meeting(&self, block: Block, meets: &impl Fn(Block) -> bool, found: &mut Vec<Block>) {
        if !meets(block) {
        } else if self.split.contains(&block) {
            block.children().into_iter().for_each(|part| self.meeting(part, meets, found));
        } else {
            found.push(block);
        }
    }

    /// The same octrees over these roots: others are left out, and new ones are as coarse as their neighbors allow.
    pub fn over(&self, roots: &BTreeSet<Block>) -> Forest {
        let kept = |blocks: &HashSet<Block>| blocks.iter().copied().filter(|b| roots.contains(&b.root())).collect();
        let mut forest = Forest { base: self.base, leaves: kept(&self.leaves), split: kept(&self.split) };
        forest.leaves.extend(roots.iter().filter(|r| !self.has(**r)));
        forest.balance();
        forest
    }

    /// Splits leaves that are coarser than a neighbor by two levels or more.
    fn balance(&mut self) {
        let finest = self.leaves.iter().map(|b| b.level).max().unwrap_or(0);
        for level in (2..=finest).rev() {
            let fine: Vec<Block> = self.leaves.iter().copied().filter(|b| b.level == level).collect();
            let around: BTreeSet<Block> = fine.into_iter().flat_map(|b| self.around(b, 1)).collect();
            for neighbor in around {
                for above in 0..=level - 2 {
                    let index = neighbor.index.map(|i| i >> (level - above));
                    self.refine(Block { level: above, index });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_that_are_added_are_as_coarse_as_their_neighbors_allow() {
        let root = |i: u32| Block { level: 0, index: [i, 0, 0] };
        let like = Grid::uniform([0.0; 3], 1.0, 3);
        let mut forest = Forest::new(3, [root(0)]);
        forest.refine(root(0));
        let near = Block { level: 1, index: [1, 0, 0] };
        forest.refine(near);
        forest.refine(Block { level: 2, index: [3, 0, 0] });
        let over = forest.over(&[root(0), root(1), root(2)].into());
        assert!(Forest::is_of(&over.grid(&like)) && !forest.has(root(1)));
        // Next to blocks of level 3 those of level 2, next to these those of level 1.
        assert!(over.leaves.contains(&Block { level: 2, index: [4, 0, 0] }));
        assert!(over.leaves.contains(&Block { level: 1, index: [3, 0, 0] }) && over.leaves.contains(&root(2)));
        // And back again, without those.
        assert!(over.over(&[root(0)].into()).leaves == forest.leaves);
        // Blocks that are left out come back, as coarse as neighbors allow.
        let less = over.leaves().filter(|b| b.level != 2);
        assert!(Forest::of(&like.with(less)).leaves == over.leaves);
        let alone = Forest::of(&like.with([Block { level: 3, index: [7, 0, 0] }]));
        assert!(alone.leaves == forest.leaves);
        // A part and the whole, and a block of level 0 next to one of level 2.
        assert!(!Forest::is_of(&like.with(forest.leaves().chain([near]))));
        assert!(!Forest::is_of(&like.with(forest.leaves().chain([root(1)]))));
    }
}
