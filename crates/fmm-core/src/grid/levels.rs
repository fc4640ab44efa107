//! A field on blocks of several levels, level by level: each has blocks of cells around its own, with values from the other levels.
//!
//! Where a grid is finer a level has what its coarser cells hold of the finer ones; around its blocks, where the grid is coarser, it has
//! what is predicted. So all that reaches some cells from a block, as differences and remeshing do, works on one level at a time. A
//! grid of one level is its only level.

use std::sync::Arc;

use rayon::prelude::*;

use super::blocks::{Block, CELLS, Grid};
use super::hierarchy::{Hierarchy, NONE, Source};
use super::padded::{Around, REACH, padded};
use super::transfer::{Values, child, parent};
use crate::math::{CollectVec, zeros};

/// A field by level, with N numbers a cell.
pub struct Levels<'a, const N: usize> {
    hierarchy: Arc<Hierarchy>,
    /// The cells of the blocks of the grid.
    own: &'a [[f64; N]],
    /// Those of each block that is made from them.
    made: Vec<Vec<[f64; N]>>,
}

impl<'a, const N: usize> Levels<'a, N> {
    /// The levels of `field`, which has a value for each cell of `grid`; it is zero where there are
    /// no blocks.
    pub fn of(grid: &Grid, field: &'a [[f64; N]], values: Values) -> Self {
        Levels::on(&Arc::new(Hierarchy::of(grid)), field, values)
    }

    /// The same for a grid whose blocks of all levels are known.
    pub fn on(hierarchy: &Arc<Hierarchy>, own: &'a [[f64; N]], values: Values) -> Self {
        let mut levels = Levels { hierarchy: hierarchy.clone(), own, made: vec![] };
        for round in hierarchy.rounds() {
            let made = round.par_iter().map(|source| levels.from(values, source)).collect_vec();
            levels.made.extend(made);
        }
        levels
    }

    /// The blocks of all levels.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// The cells of the block of this number.
    pub fn cells(&self, number: u32) -> &[[f64; N]] {
        let (n, own) = (number as usize, self.hierarchy.own());
        if n < own { &self.own[n * CELLS..(n + 1) * CELLS] } else { &self.made[n - own] }
    }

    fn known(&self, number: u32) -> Option<&[[f64; N]]> {
        (number != NONE).then(|| self.cells(number))
    }

    /// The cells of a block and of those around, of its level.
    pub fn around(&self, block: Block) -> Around<'_, N> {
        self.hierarchy.around(block).map(|n| self.known(n))
    }

    /// The values of a block and of [`REACH`] cells beyond, of its level.
    pub fn padded(&self, block: Block) -> Vec<[f64; N]> {
        padded(&self.around(block), REACH)
    }

    /// The cells of a block that comes from others.
    fn from(&self, values: Values, source: &Source) -> Vec<[f64; N]> {
        match source {
            Source::Nothing => zeros(CELLS),
            Source::Same(number) => self.cells(*number).to_vec(),
            Source::Parts(parts) => parent(values, parts.map(|n| self.known(n))),
            Source::Above(around, part) => child(values, &around.map(|n| self.known(n)), *part),
        }
    }

    /// The field in the cells of another grid: zero where this one has no blocks.
    pub fn onto(&self, values: Values, grid: &Grid) -> Vec<[f64; N]> {
        if let Some(between) = self.hierarchy.between(grid) {
            return Levels::of(&between, &self.onto(values, &between), values).onto(values, grid);
        }
        let mut cells: Vec<[f64; N]> = zeros(grid.cells());
        cells.par_chunks_mut(CELLS).zip(grid.blocks()).for_each(|(to, &block)| match self.hierarchy.source(block) {
            Source::Nothing => {}
            Source::Same(number) => to.copy_from_slice(self.cells(number)),
            source => to.copy_from_slice(&self.from(values, &source)),
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
