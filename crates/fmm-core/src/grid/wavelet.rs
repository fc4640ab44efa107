//! Which blocks a grid has: details of average-interpolating wavelets.
//!
//! The mean over 2³ cells is predicted back to them from the means around, along one axis after the other, by the polynomial of degree 4
//! whose means five neighbours are (Donoho 1993; Rossinelli et al. 2015): ū_0 ± [22 (ū_1 − ū_−1) − 3 (ū_2 − ū_−2)]/128. What is
//! missing is the detail of a cell. A block is refined where a detail of its cells is above one threshold; eight blocks become one where
//! all of their details are below another. Neighbours, across edges and corners too, then differ by one level at most.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use super::blocks::{BLOCK, Block, Grid};
use super::vorticity::Vorticity;
use crate::math::CollectVec;

/// When blocks are split and joined, and how finely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// A block with a larger detail is split.
    pub refinement: f64,
    /// Eight blocks without a larger detail become one.
    pub compression: f64,
    /// The finest level.
    pub finest: u8,
}

/// Means of coarse cells that a prediction needs beyond a block.
const GHOSTS: usize = 2;
/// Coarse cells along a side of a block.
const COARSE: usize = BLOCK / 2;
/// The same with ghosts.
const WIDE: usize = COARSE + 2 * GHOSTS;

impl Grid {
    /// The grid over the cube from `corner` with `side`, of `base`³ blocks at first, that holds `vorticity` to the thresholds.
    pub fn adapted(
        (corner, side): ([f64; 3], f64),
        base: u32,
        thresholds: Thresholds,
        vorticity: &dyn Vorticity,
    ) -> Grid {
        let start = Grid::uniform(corner, side, base);
        let mut forest = Forest { base, leaves: start.blocks().iter().copied().collect(), split: HashSet::new() };
        let mut details: HashMap<Block, f64> = HashMap::new();
        let mut measure = |blocks: Vec<Block>| {
            let news: Vec<Block> = blocks.iter().copied().filter(|b| !details.contains_key(b)).collect();
            let found: Vec<f64> = news.par_iter().map(|&b| detail(&start, b, vorticity)).collect_vec();
            details.extend(news.into_iter().zip(found));
            blocks.into_iter().map(|b| (b, details[&b])).collect::<Vec<_>>()
        };
        loop {
            let coarse = forest.leaves.iter().copied().filter(|b| b.level < thresholds.finest).collect();
            let large = measure(coarse).into_iter().filter(|(_, d)| *d > thresholds.refinement);
            let large: Vec<Block> = large.map(|(b, _)| b).collect();
            if large.is_empty() {
                break;
            }
            large.into_iter().for_each(|b| forest.refine(b));
        }
        // From the finest level up, so that what has become one may become less.
        for level in (1..=thresholds.finest).rev() {
            let parents: HashSet<Block> =
                forest.leaves.iter().filter(|b| b.level == level).filter_map(|b| b.parent()).collect();
            let mut parents: Vec<Block> = parents.into_iter().filter(|&p| forest.may_join(p)).collect();
            parents.sort_unstable();
            let parts = measure(parents.iter().flat_map(|p| p.children()).collect());
            for (parent, parts) in parents.into_iter().zip(parts.chunks(8)) {
                if parts.iter().all(|(_, d)| *d < thresholds.compression) {
                    forest.join(parent);
                }
            }
        }
        Grid::new(corner, side, base, forest.leaves.into_iter().collect())
    }
}

/// The largest detail of a block's cells, over the components of `vorticity`.
pub fn detail(grid: &Grid, block: Block, vorticity: &dyn Vorticity) -> f64 {
    let h = grid.spacing(block.level);
    let across = 2 * WIDE;
    let first = -2 * GHOSTS as i64;
    let mut fine = vec![[0.0; 3]; across * across * across];
    for (n, value) in fine.iter_mut().enumerate() {
        let cell = [n % across, n / across % across, n / (across * across)].map(|i| i as i64 + first);
        *value = vorticity.cell(grid.center(block, cell), h);
    }
    if fine.iter().all(|w| *w == [0.0; 3]) {
        return 0.0;
    }
    let mut largest = 0.0f64;
    for k in 0..3 {
        let at = |i: usize, j: usize, l: usize| fine[i + across * (j + across * l)][k];
        let mut means = vec![0.0; WIDE * WIDE * WIDE];
        for (n, mean) in means.iter_mut().enumerate() {
            let [i, j, l] = [n % WIDE, n / WIDE % WIDE, n / (WIDE * WIDE)].map(|i| 2 * i);
            *mean = (0..8).map(|c| at(i + (c & 1), j + (c >> 1 & 1), l + (c >> 2))).sum::<f64>() / 8.0;
        }
        // The first index becomes fine and goes last: after three turns all are fine and in order again.
        let along_x = predict(&means, WIDE * WIDE);
        let along_y = predict(&along_x, WIDE * BLOCK);
        let along_z = predict(&along_y, BLOCK * BLOCK);
        for (n, predicted) in along_z.iter().enumerate() {
            let [i, j, l] = [n % BLOCK, n / BLOCK % BLOCK, n / (BLOCK * BLOCK)].map(|i| i + 2 * GHOSTS);
            largest = largest.max((at(i, j, l) - predicted).abs());
        }
    }
    largest
}

/// Rows of `WIDE` means, each to the 16 means of its inner halves; entry (i, row) of the result is at row + rows·i.
fn predict(means: &[f64], rows: usize) -> Vec<f64> {
    let mut fine = vec![0.0; rows * BLOCK];
    for (row, u) in means.chunks_exact(WIDE).enumerate() {
        for i in 0..COARSE {
            let c = i + GHOSTS;
            let slope = (22.0 * (u[c + 1] - u[c - 1]) - 3.0 * (u[c + 2] - u[c - 2])) / 128.0;
            fine[row + rows * (2 * i)] = u[c] - slope;
            fine[row + rows * (2 * i + 1)] = u[c] + slope;
        }
    }
    fine
}

/// Blocks that are leaves, and those that have been split.
struct Forest {
    base: u32,
    leaves: HashSet<Block>,
    split: HashSet<Block>,
}

impl Forest {
    /// The blocks of the same level around, and the block itself.
    fn around(&self, block: Block, reach: i64) -> impl Iterator<Item = Block> + use<> {
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
    fn refine(&mut self, block: Block) {
        if !self.leaves.remove(&block) {
            return;
        }
        self.split.insert(block);
        self.leaves.extend(block.children());
        let Some(parent) = block.parent() else { return };
        // Neighbours of the parts are of the block's level at least: their parents must have been split.
        for around in self.around(block, 1).collect::<Vec<_>>() {
            if around != block
                && let Some(above) = around.parent()
                && above != parent
            {
                self.refine(above);
            }
        }
    }

    /// Whether the parts of a block are leaves, and no neighbour of theirs is split.
    fn may_join(&self, parent: Block) -> bool {
        let parts = parent.children();
        parts.iter().all(|b| self.leaves.contains(b))
            && parts.iter().all(|&b| self.around(b, 1).all(|n| !self.split.contains(&n)))
    }

    fn join(&mut self, parent: Block) {
        // What was joined before may have changed nothing here: neighbours only become coarser.
        parent.children().iter().for_each(|b| {
            self.leaves.remove(b);
        });
        self.split.remove(&parent);
        self.leaves.insert(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Ring;
    use super::super::vorticity::Rings;
    use super::*;

    /// x⁴ + y z³ and the like.
    struct Quartic;

    impl Vorticity for Quartic {
        fn cell(&self, [x, y, z]: [f64; 3], h: f64) -> [f64; 3] {
            // Means over cells, of which every polynomial of degree 4 is predicted exactly.
            let m2 = |x: f64| x * x + h * h / 12.0;
            let m3 = |x: f64| x * x * x + x * h * h / 4.0;
            let m4 = |x: f64| x.powi(4) + x * x * h * h / 2.0 + h.powi(4) / 80.0;
            [m4(x) + m3(y) * z, m2(x) * m2(z), 1.0 + m4(z) - m4(y)]
        }
    }

    #[test]
    fn polynomials_of_degree_four_have_no_details() {
        let grid = Grid::uniform([-0.3, 0.1, 0.2], 1.0, 2);
        for &block in grid.blocks() {
            let d = detail(&grid, block, &Quartic);
            assert!(d < 1e-14, "{d}");
        }
        struct Step;
        impl Vorticity for Step {
            fn cell(&self, [x, _, _]: [f64; 3], _: f64) -> [f64; 3] {
                [0.0, if x > 0.26 { 1.0 } else { 0.0 }, 0.0]
            }
        }
        assert!(detail(&grid, grid.blocks()[1], &Step) > 0.1);
    }

    fn rings() -> Rings {
        let center = [0.5; 3];
        Rings(vec![Ring::of_paper(center, [0.0, 0.0, 1.0], 0.125), Ring::of_paper(center, [1.0, 0.0, 0.0], 0.125)])
    }

    #[test]
    fn an_adapted_grid_covers_the_domain_and_is_balanced() {
        for thresholds in [
            Thresholds { refinement: 30.0, compression: 0.3, finest: 4 },
            Thresholds { refinement: 1.0, compression: 0.9, finest: 3 },
        ] {
            let grid = Grid::adapted(([0.0; 3], 1.0), 1, thresholds, &rings());
            let volume: f64 = grid.blocks().iter().map(|b| 0.125f64.powi(i32::from(b.level))).sum();
            assert!((volume - 1.0).abs() < 1e-12, "{volume}");
            assert!(grid.finest() == thresholds.finest && !grid.is_uniform());
            let forest = Forest { base: 1, leaves: HashSet::new(), split: HashSet::new() };
            let leaf_around = |mut b: Block| loop {
                if grid.number(b).is_some() {
                    return Some(b);
                }
                b = b.parent()?;
            };
            let mut holding = false;
            for &block in grid.blocks() {
                for near in forest.around(block, 1) {
                    // A leaf that is coarser holds the neighbour; where it is finer, its own turn will tell.
                    if let Some(leaf) = leaf_around(near) {
                        assert!(block.level - leaf.level <= 1, "{block:?} beside {leaf:?}");
                        holding |= leaf.level < block.level;
                    }
                }
                let d = detail(&grid, block, &rings());
                assert!(block.level == thresholds.finest || d <= thresholds.refinement, "{block:?}: {d}");
            }
            assert!(holding);
        }
    }

    #[test]
    fn compression_joins_what_has_no_details() {
        let loose = Thresholds { refinement: 30.0, compression: 0.0, finest: 4 };
        let tight = Thresholds { compression: 29.0, ..loose };
        let [many, few] = [loose, tight].map(|t| Grid::adapted(([0.0; 3], 1.0), 1, t, &rings()).blocks().len());
        assert!(few < many, "{few} {many}");
        let none = Grid::adapted(([0.0; 3], 1.0), 2, loose, &Rings::default());
        assert_eq!(none.blocks().len(), 8);
    }
}
