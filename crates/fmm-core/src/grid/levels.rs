//! A field on blocks of several levels, level by level: each has blocks of cells around its own, with values from the other levels.
//!
//! Where a grid is finer a level has what its coarser cells hold of the finer ones; around its blocks, where the grid is coarser, it has
//! what is predicted. So all that reaches some cells from a block, as differences and remeshing do, works on one level at a time. A
//! grid of one level is its only level.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;

use super::blocks::{Block, CELLS, Grid};
use super::padded::{Around, REACH, neighbor, padded};
use super::transfer::{Values, child, parent};
use crate::math::{CollectVec, zeros};

/// Blocks of one level and their cells, with N numbers each.
pub struct Level<'a, const N: usize> {
    /// The blocks: those of the grid, those that have been split and those around.
    pub grid: Cow<'a, Grid>,
    /// The cells of each.
    pub cells: Vec<Cow<'a, [[f64; N]]>>,
}

impl<const N: usize> Level<'_, N> {
    /// The cells of a block, if the level has it.
    pub fn block(&self, block: Block) -> Option<&[[f64; N]]> {
        self.grid.number(block).map(|b| &*self.cells[b])
    }

    /// The cells of a block and of those around.
    pub fn around(&self, block: Block) -> Around<'_, N> {
        std::array::from_fn(|n| self.block(neighbor(block, n)))
    }
}

/// A field by level, with N numbers a cell.
pub struct Levels<'a, const N: usize>(Vec<Level<'a, N>>);

impl<'a, const N: usize> Levels<'a, N> {
    /// The levels of `field`, which has a value for each cell of `grid`; it is zero where there are no blocks.
    pub fn of(grid: &'a Grid, field: &'a [[f64; N]], values: Values) -> Self {
        let finest = grid.finest();
        if finest == 0 {
            return Levels(vec![Level {
                grid: Cow::Borrowed(grid),
                cells: field.chunks(CELLS).map(Cow::Borrowed).collect(),
            }]);
        }
        let own = |block: Block| grid.number(block).map(|b| &field[b * CELLS..(b + 1) * CELLS]);
        // From the finest level down: blocks that have been split.
        let mut split: Vec<HashMap<Block, Vec<[f64; N]>>> = vec![HashMap::new(); usize::from(finest) + 1];
        for level in (0..finest).rev() {
            let below = &split[usize::from(level) + 1];
            let leaves = grid.blocks().iter().filter(|b| b.level == level + 1);
            let parents: BTreeSet<Block> = leaves.chain(below.keys()).filter_map(|b| b.parent()).collect();
            let made = |block: Block| {
                let parts = block.children().map(|c| own(c).or_else(|| below.get(&c).map(|v| &v[..])));
                (block, parent(values, parts))
            };
            let made = parents.into_iter().collect::<Vec<_>>().into_par_iter().map(made).collect_vec();
            split[usize::from(level)] = made.into_iter().collect();
        }
        let mut levels: Levels<N> = Levels(vec![]);
        for (level, mut split) in (0..=finest).zip(split) {
            let leaves = || grid.blocks().iter().copied().filter(move |b| b.level == level);
            let around = leaves().flat_map(|b| (0..27).map(move |n| neighbor(b, n)));
            let coarser = |b: &Block| b.parent().is_some_and(|p| grid.number(p).is_some());
            let blocks: BTreeSet<Block> = leaves().chain(split.keys().copied()).chain(around.filter(coarser)).collect();
            let whole = grid.with(blocks);
            let known = |&b: &Block| own(b).map(Cow::Borrowed).or_else(|| split.remove(&b).map(Cow::Owned));
            let known: Vec<_> = whole.blocks().iter().map(known).collect();
            let made = |(cells, &b): (Option<_>, &Block)| cells.unwrap_or_else(|| Cow::Owned(levels.child(values, b)));
            let cells = known.into_par_iter().zip(whole.blocks()).map(made).collect_vec();
            levels.0.push(Level { grid: Cow::Owned(whole), cells });
        }
        levels
    }

    /// A level; `None` beyond the finest.
    pub fn level(&self, level: u8) -> Option<&Level<'a, N>> {
        self.0.get(usize::from(level))
    }

    /// The values of a block and of [`REACH`] cells beyond, of its level.
    pub fn padded(&self, block: Block) -> Vec<[f64; N]> {
        padded(&self.level(block.level).map_or([None; 27], |l| l.around(block)), REACH)
    }

    /// The prediction in a block from the level above.
    fn child(&self, values: Values, block: Block) -> Vec<[f64; N]> {
        let above = block.parent().expect("blocks of level 0 are of the grid");
        child(values, &self.0[usize::from(above.level)].around(above), block.part())
    }

    /// The field in the cells of another grid: zero where this one has no blocks.
    pub fn onto(&self, values: Values, grid: &Grid) -> Vec<[f64; N]> {
        let there = |b: Block| self.level(b.level)?.block(b);
        let has = |b: Block| there(b).is_some();
        // Predictions go from level to level: first to blocks of one level more than there are.
        let above = |&block: &Block| {
            let mut ancestors = std::iter::successors(Some(block), |b| b.parent());
            ancestors.clone().any(has).then(|| ancestors.find(|b| has(*b) || b.parent().is_some_and(has)))?
        };
        let steps: Vec<Block> = grid.blocks().iter().map(|b| above(b).unwrap_or(*b)).collect();
        if steps != grid.blocks() {
            let between = grid.with(steps.into_iter().collect::<BTreeSet<_>>());
            return Levels::of(&between, &self.onto(values, &between), values).onto(values, grid);
        }
        let mut cells: Vec<[f64; N]> = zeros(grid.cells());
        cells.par_chunks_mut(CELLS).zip(grid.blocks()).for_each(|(to, &block)| {
            if let Some(from) = there(block) {
                to.copy_from_slice(from);
            } else if block.parent().is_some_and(has) {
                to.copy_from_slice(&self.child(values, block));
            }
        });
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::super::forest::Forest;
    use super::super::padded::WIDE;
    use super::*;

    /// 2³ roots, of which the first has parts of two more levels.
    fn nested() -> Grid {
        let start = Grid::uniform([-1.0, 0.0, 0.5], 2.0, 2);
        let mut forest = Forest::of(&start);
        forest.refine(Block { level: 0, index: [0; 3] });
        forest.refine(Block { level: 1, index: [0; 3] });
        forest.refine(Block { level: 1, index: [0, 1, 1] });
        forest.grid(&start)
    }

    /// A polynomial of degree 3 whose means over cells are its values at centers: harmonic in each component.
    fn harmonic([x, y, z]: [f64; 3]) -> [f64; 3] {
        [x * x * x - 3.0 * x * y * y + z, 2.0 * z * z - x * x - y * y + x * y * z, 1.0 - x + y * z]
    }

    #[test]
    fn fields_pass_between_levels() {
        let grid = nested();
        assert_eq!(grid.finest(), 2);
        let field: Vec<_> = (0..grid.cells()).map(|i| harmonic(grid.center_of(i / CELLS, i % CELLS))).collect();
        for values in [Values::Means, Values::Points] {
            let levels = Levels::of(&grid, &field, values);
            let mut checked = 0;
            for &block in grid.blocks() {
                let wide = levels.padded(block);
                for (n, value) in wide.into_iter().enumerate() {
                    let cell = [n % WIDE, n / WIDE % WIDE, n / (WIDE * WIDE)].map(|i| i as i64 - REACH as i64);
                    let x = grid.center(block, cell);
                    // At the faces of the domain predictions have zeros beyond.
                    let margin = 4.0 * grid.spacing(block.level.max(1) - 1);
                    let from = |d: usize| (x[d] - grid.corner()[d]).min(grid.corner()[d] + 2.0 - x[d]);
                    if (0..3).any(|d| from(d) < margin) {
                        continue;
                    }
                    let exact = harmonic(x);
                    assert!((0..3).all(|k| (value[k] - exact[k]).abs() < 1e-12), "{values:?} {block:?} {cell:?}");
                    checked += 1;
                }
            }
            assert!(checked > 100_000, "{checked}");
        }
    }

    #[test]
    fn fields_pass_to_blocks_that_are_finer_by_more_than_one_level() {
        let coarse = Grid::uniform([-1.0, 0.0, 0.5], 2.0, 3);
        let mut forest = Forest::of(&coarse);
        forest.reach(Block { level: 3, index: [12, 11, 13] });
        let fine = forest.grid(&coarse);
        assert!(fine.finest() == 3 && Forest::is_of(&fine));
        let field =
            |grid: &Grid| (0..grid.cells()).map(|i| harmonic(grid.center_of(i / CELLS, i % CELLS))).collect::<Vec<_>>();
        let start = field(&coarse);
        let moved = Levels::of(&coarse, &start, Values::Means).onto(Values::Means, &fine);
        for (i, (found, exact)) in moved.iter().zip(field(&fine)).enumerate() {
            // Up to where predictions have zeros beyond the faces of the domain.
            let x = fine.center_of(i / CELLS, i % CELLS);
            let margin = 6.0 * coarse.spacing(0);
            if (0..3).all(|d| (margin..2.0 - margin).contains(&(x[d] - coarse.corner()[d]))) {
                assert!((0..3).all(|k| (found[k] - exact[k]).abs() < 1e-12), "{x:?}: {found:?} {exact:?}");
            }
        }
    }

    #[test]
    fn sums_of_means_stay_on_other_blocks() {
        let grid = nested();
        let field: Vec<[f64; 3]> = (0..grid.cells()).map(|i| [0, 1, 2].map(|k| ((3 * i + k) as f64).sin())).collect();
        let levels = Levels::of(&grid, &field, Values::Means);
        let mut other = Forest::of(&grid);
        other.join(Block { level: 1, index: [0; 3] });
        other.refine(Block { level: 1, index: [1, 0, 0] });
        let other = other.grid(&grid);
        let moved = levels.onto(Values::Means, &other);
        let sum = |grid: &Grid, field: &[[f64; 3]], k: usize| {
            let volume = |i: usize| grid.spacing(grid.blocks()[i / CELLS].level).powi(3);
            (0..field.len()).map(|i| volume(i) * field[i][k]).sum::<f64>()
        };
        for k in 0..3 {
            let (before, after) = (sum(&grid, &field, k), sum(&other, &moved, k));
            assert!((before - after).abs() < 1e-12, "{before} {after}");
        }
        // What is not another block has its values.
        let stays = Block { level: 0, index: [1, 1, 1] };
        let [a, b] = [&grid, &other].map(|g| g.number(stays).unwrap() * CELLS);
        assert_eq!(field[a..a + CELLS], moved[b..b + CELLS]);
        // Where there is no grid there is nothing.
        let none = Block { level: 0, index: [1, 0, 0] };
        let less = grid.with(grid.blocks().iter().copied().filter(|b| *b != none));
        let part = vec![[1.0; 3]; less.cells()];
        let back = Levels::of(&less, &part, Values::Means).onto(Values::Means, &grid);
        let n = grid.number(none).unwrap() * CELLS;
        assert!(back[n..n + CELLS].iter().all(|w| *w == [0.0; 3]) && back[..CELLS] == part[..CELLS]);
    }
}
