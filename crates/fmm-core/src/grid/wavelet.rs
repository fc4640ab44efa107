//! Which blocks a grid has: details of average-interpolating wavelets.
//!
//! The mean over 2³ cells is predicted back to them from the means around, along one axis after the other, by the polynomial of degree 4
//! whose means five neighbors are (Donoho 1993; Rossinelli et al. 2015): ū_0 ± [22 (ū_1 − ū_−1) − 3 (ū_2 − ū_−2)]/128. What is
//! missing is the detail of a cell. A block is refined where a detail of its cells is above one threshold; eight blocks become one where
//! all of their details are below another. Neighbours, across edges and corners too, then differ by one level at most.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use rayon::prelude::*;

use super::blocks::{BLOCK, Block, Grid};
use super::forest::Forest;
use super::transfer::{GHOSTS, Values, refined};
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

impl Thresholds {
    /// Those of a grid of one level.
    pub const UNIFORM: Thresholds = Thresholds { refinement: 1e-2, compression: 1e-4, finest: 0 };
}

impl Grid {
    /// The grid over the cube from `corner` with `side`, of `base`³ blocks at first, that holds `vorticity` to the thresholds.
    pub fn adapted(
        (corner, side): ([f64; 3], f64),
        base: u32,
        thresholds: Thresholds,
        vorticity: &dyn Vorticity,
    ) -> Grid {
        let start = Grid::uniform(corner, side, base);
        let mut forest = Forest::new(base, start.blocks().iter().copied());
        let of_block = |&block: &Block| detail(&sampled(&start, block, vorticity, 0), 0);
        let measured = forest.adapt(thresholds, false, |blocks| Ok(blocks.par_iter().map(of_block).collect_vec()));
        measured.unwrap_or_else(|e: Infallible| match e {});
        forest.grid(&start)
    }
}

impl Forest {
    /// Splits and joins leaves by the largest detail of a block, which `measure` finds, of many at
    /// once. Where they are adapted `again` and again, eight become one only if that one would not
    /// be split.
    ///
    /// # Errors
    /// Those of `measure`.
    pub fn adapt<E>(
        &mut self,
        thresholds: Thresholds,
        again: bool,
        mut measure: impl FnMut(&[Block]) -> Result<Vec<f64>, E>,
    ) -> Result<(), E> {
        let mut details: HashMap<Block, f64> = HashMap::new();
        let mut measure = |blocks: Vec<Block>| {
            let news: Vec<Block> = blocks.iter().copied().filter(|b| !details.contains_key(b)).collect();
            let found = measure(&news)?;
            details.extend(news.into_iter().zip(found));
            Ok(blocks.into_iter().map(|b| (b, details[&b])).collect::<Vec<_>>())
        };
        loop {
            let coarse = self.leaves().filter(|b| b.level < thresholds.finest).collect();
            let large = measure(coarse)?.into_iter().filter(|(_, d)| *d > thresholds.refinement);
            let large: Vec<Block> = large.map(|(b, _)| b).collect();
            if large.is_empty() {
                break;
            }
            large.into_iter().for_each(|b| self.refine(b));
        }
        // From the finest level up, so that what has become one may become less.
        for level in (1..=thresholds.finest).rev() {
            let parents: HashSet<Block> =
                self.leaves().filter(|b| b.level == level).filter_map(|b| b.parent()).collect();
            let mut parents: Vec<Block> = parents.into_iter().filter(|&p| self.may_join(p)).collect();
            parents.sort_unstable();
            let parts = measure(parents.iter().flat_map(|p| p.children()).collect())?;
            let own = if again { measure(parents.clone())? } else { vec![] };
            for (i, (parent, parts)) in parents.into_iter().zip(parts.chunks(8)).enumerate() {
                let stays = own.get(i).is_none_or(|(_, d)| *d <= thresholds.refinement);
                if stays && parts.iter().all(|(_, d)| *d < thresholds.compression) {
                    self.join(parent);
                }
            }
        }
        Ok(())
    }
}

/// Fine cells beyond those whose details are known that a detail needs.
pub const AROUND: usize = 2 * GHOSTS;

/// `vorticity` in the cells of a block, of `beyond` and of [`AROUND`] more around.
pub fn sampled(grid: &Grid, block: Block, vorticity: &dyn Vorticity, beyond: usize) -> Vec<[f64; 3]> {
    let h = grid.spacing(block.level);
    let (across, first) = (BLOCK + 2 * (beyond + AROUND), (beyond + AROUND) as i64);
    let mut fine = vec![[0.0; 3]; across * across * across];
    for (n, value) in fine.iter_mut().enumerate() {
        let cell = [n % across, n / across % across, n / (across * across)].map(|i| i as i64 - first);
        *value = vorticity.cell(grid.center(block, cell), h);
    }
    fine
}

/// The largest detail of a block's cells and of `beyond`, an even number, around, over the components of `fine`, which has the cells that
/// [`sampled`] has.
pub fn detail(fine: &[[f64; 3]], beyond: usize) -> f64 {
    let inner = BLOCK + 2 * beyond;
    let (across, wide) = (inner + 2 * AROUND, inner / 2 + 2 * GHOSTS);
    if fine.iter().all(|w| *w == [0.0; 3]) {
        return 0.0;
    }
    let mut means = vec![[0.0; 3]; wide * wide * wide];
    for (n, mean) in means.iter_mut().enumerate() {
        let first = n % wide + across * (n / wide % wide + across * (n / (wide * wide)));
        let at = |c: usize| &fine[2 * first + (c & 1) + across * ((c >> 1 & 1) + across * (c >> 2))];
        *mean = [0, 1, 2].map(|k| (0..8).map(|c| at(c)[k]).sum::<f64>() / 8.0);
    }
    let predicted = refined(Values::Means, &means, wide);
    let rows = predicted.chunks_exact(inner).enumerate();
    let largest = |(n, row): (usize, &[[f64; 3]])| {
        let first = AROUND + across * (n % inner + AROUND + across * (n / inner + AROUND));
        let pairs = row.as_flattened().iter().zip(fine[first..].as_flattened());
        pairs.fold(0.0, |largest: f64, (predicted, is)| largest.max((is - predicted).abs()))
    };
    rows.map(largest).fold(0.0, f64::max)
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
            let d = [0, 2].map(|beyond| detail(&sampled(&grid, block, &Quartic, beyond), beyond));
            assert!(d.iter().all(|d| *d < 1e-14), "{d:?}");
        }
        struct Step;
        impl Vorticity for Step {
            fn cell(&self, [x, _, _]: [f64; 3], _: f64) -> [f64; 3] {
                [0.0, if x > 0.26 { 1.0 } else { 0.0 }, 0.0]
            }
        }
        let found = |x: usize, beyond: usize| {
            let block = Block { level: 0, index: [x as u32, 0, 0] };
            detail(&sampled(&grid, block, &Step, beyond), beyond)
        };
        assert!(found(1, 0) > 0.1);
        // The step is two cells beyond the first block.
        assert!(found(0, 0) < 0.05 && found(0, 2) > 0.1);
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
            let forest = Forest::of(&grid);
            assert!(Forest::is_of(&grid));
            let leaf_around = |mut b: Block| loop {
                if grid.number(b).is_some() {
                    return Some(b);
                }
                b = b.parent()?;
            };
            let mut holding = false;
            for &block in grid.blocks() {
                for near in forest.around(block, 1) {
                    // A leaf that is coarser holds the neighbor; where it is finer, its own turn will tell.
                    if let Some(leaf) = leaf_around(near) {
                        assert!(block.level - leaf.level <= 1, "{block:?} next to {leaf:?}");
                        holding |= leaf.level < block.level;
                    }
                }
                let d = detail(&sampled(&grid, block, &rings(), 0), 0);
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
