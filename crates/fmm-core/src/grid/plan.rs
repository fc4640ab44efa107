//! Bricks of 8³ cells, and which nodes of the sources' tree act on each: logical plans.

use std::ops::Range;

use rayon::prelude::*;

use super::blocks::{BLOCK, Grid};
use super::sources::Sources;
use crate::Csr;

/// Cells along a side of a brick.
pub const SIDE: usize = 8;
/// Cells of a brick.
pub const POINTS: usize = SIDE * SIDE * SIDE;
/// Bricks of a block.
pub const BRICKS: usize = (BLOCK / SIDE) * (BLOCK / SIDE) * (BLOCK / SIDE);

/// The targets of one row of the lists.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Brick {
    /// Coordinates of the centers of its cells, by axis.
    pub at: [[f64; SIDE]; 3],
    /// h.
    pub spacing: f64,
}

impl Brick {
    /// Brick `b` of a grid: eight a block, x fastest.
    pub fn new(grid: &Grid, b: usize) -> Self {
        let (block, part) = (grid.blocks()[b / BRICKS], b % BRICKS);
        let first = |d: usize| ((part >> d & 1) * SIDE) as i64;
        let at = std::array::from_fn(|d| std::array::from_fn(|i| grid.coordinate(block, d, first(d) + i as i64)));
        Brick { at, spacing: grid.spacing(block.level) }
    }

    /// Its center.
    pub fn center(&self) -> [f64; 3] {
        self.at.map(|x| 0.5 * (x[0] + x[SIDE - 1]))
    }

    /// The distance of `x` from the box of the centers of its cells: no center is nearer.
    pub fn distance(&self, x: [f64; 3]) -> f64 {
        let beyond = |d: usize| (self.at[d][0] - x[d]).max(x[d] - self.at[d][SIDE - 1]).max(0.0);
        let d = [0, 1, 2].map(beyond);
        (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt()
    }
}

/// When a node acts on a brick by its expansion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Radius over distance must be less than this; 0 for direct sums.
    pub theta: f64,
    /// The distance must be at least this many ε: the expansion is that of the singular kernel, from which the regularised one differs
    /// by 3/8 (ε/r)⁴.
    pub guard: f64,
    /// Nodes with fewer sources are not worth an expansion.
    pub fewest: usize,
}

/// How much there is to do if nodes with fewer sources than the split act directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The fewest sources of a node that acts by its expansion.
    pub split: usize,
    /// Pairs of a point and a source that acts directly.
    pub direct: u64,
    /// Pairs of a point and a node that acts by its expansion.
    pub indirect: u64,
}

/// Who acts on whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    /// Nodes that act by expansion, one row a brick.
    pub far: Csr<u32>,
    /// Nodes whose sources act directly.
    pub near: Csr<u32>,
}

impl Lists {
    /// The lists of the bricks of `grid`. Every source acts once on every brick.
    pub fn new(grid: &Grid, sources: &Sources, rule: Rule) -> Self {
        let bricks = grid.blocks().len() * BRICKS;
        let rows = |b: usize| traverse(&Brick::new(grid, b), sources, rule);
        let (mut far, mut near): (Vec<_>, Vec<_>) = (vec![], vec![]);
        (0..bricks).into_par_iter().map(rows).unzip_into_vecs(&mut far, &mut near);
        Lists { far: far.into(), near: near.into() }
    }

    /// What there is to do directly and by expansions with each of `splits` as the [fewest](Rule::fewest) sources of a node that is worth one. The
    /// splits must rise; a rule accepts the same nodes with any of them.
    pub fn shares(grid: &Grid, sources: &Sources, rule: Rule, splits: &[usize]) -> Vec<Share> {
        let none = || vec![[0u64; 2]; splits.len() + 1];
        let add = |mut a: Vec<[u64; 2]>, b: Vec<[u64; 2]>| {
            a.iter_mut().zip(b).for_each(|(a, b)| (0..2).for_each(|k| a[k] += b[k]));
            a
        };
        let of_brick = |b: usize| {
            // By how many splits a node passes: nodes and their sources. Those that act directly in any case come first.
            let mut sums = none();
            let (far, near) = traverse(&Brick::new(grid, b), sources, Rule { fewest: 0, ..rule });
            for (node, accepted) in far.iter().map(|n| (n, true)).chain(near.iter().map(|n| (n, false))) {
                let count = sources.tree.count(*node as usize);
                let passed = if accepted { splits.partition_point(|&s| s <= count) } else { 0 };
                sums[passed][0] += u64::from(accepted);
                sums[passed][1] += count as u64;
            }
            sums
        };
        let sums = (0..grid.blocks().len() * BRICKS).into_par_iter().map(of_brick).reduce(none, add);
        let share = |(i, &split): (usize, &usize)| Share {
            split,
            direct: sums[..=i].iter().map(|s| s[1]).sum::<u64>() * POINTS as u64,
            indirect: sums[i + 1..].iter().map(|s| s[0]).sum::<u64>() * POINTS as u64,
        };
        splits.iter().enumerate().map(share).collect()
    }

    /// Sources that act directly on a brick, as runs of their sorted places.
    pub fn runs<'a>(&'a self, sources: &'a Sources, brick: usize) -> impl Iterator<Item = Range<usize>> + 'a {
        self.near.row(brick).iter().map(|&n| sources.tree.body_range(n as usize))
    }

    /// Pairs of a point and a source that acts on it directly.
    pub fn pairs(&self, sources: &Sources) -> u64 {
        let counts = self.near.items.par_iter().map(|&n| sources.tree.count(n as usize) as u64);
        counts.sum::<u64>() * POINTS as u64
    }
}

/// The nodes that act on a brick by expansion, and those that act directly.
fn traverse(brick: &Brick, sources: &Sources, rule: Rule) -> (Vec<u32>, Vec<u32>) {
    let (tree, mut far, mut near) = (&sources.tree, vec![], vec![]);
    if sources.is_empty() {
        return (far, near);
    }
    let mut open = vec![0];
    while let Some(node) = open.pop() {
        let distance = brick.distance(tree.center[node]);
        let accepted = sources.radius[node] < rule.theta * distance && distance >= rule.guard * sources.core[node];
        if accepted && tree.count(node) >= rule.fewest {
            far.push(node as u32);
        } else if accepted || tree.is_leaf(node) {
            near.push(node as u32);
        } else {
            // The last pushed comes first: nodes are met in the order of their sources.
            open.extend(tree.child_range(node).rev());
        }
    }
    (far, near)
}

#[cfg(test)]
mod tests {
    use super::super::green::Green;
    use super::super::ring::Ring;
    use super::super::vorticity::Rings;
    use super::*;

    #[test]
    fn shares_are_those_of_the_lists() {
        let rings = Rings(vec![Ring::of_paper([0.5; 3], [0.0, 0.0, 1.0], 0.25)]);
        let grid = Grid::uniform([0.0; 3], 1.0, 2);
        let sources = Sources::new(&grid, &grid.sample(&rings), Green::Regularised, 32);
        let rule = Rule { theta: 0.5, guard: 2.0, fewest: 0 };
        let splits = [0, 1, 5, 9, 17, 33, 1 << 20];
        let shares = Lists::shares(&grid, &sources, rule, &splits);
        for (share, &fewest) in shares.iter().zip(&splits) {
            let lists = Lists::new(&grid, &sources, Rule { fewest, ..rule });
            let (direct, indirect) = (lists.pairs(&sources), (lists.far.len() * POINTS) as u64);
            assert_eq!(*share, Share { split: fewest, direct, indirect });
        }
        assert!(shares.windows(2).all(|w| w[0].direct <= w[1].direct && w[0].indirect >= w[1].indirect));
        assert!(shares[2].indirect > shares[4].indirect && shares[6].indirect == 0);
    }

    #[test]
    fn every_source_acts_once_on_every_brick() {
        let rings = Rings(vec![Ring::of_paper([0.5; 3], [0.0, 0.0, 1.0], 0.25)]);
        let grid = Grid::uniform([0.0; 3], 1.0, 2);
        let field = grid.sample(&rings);
        let sources = Sources::new(&grid, &field, Green::Regularised, 32);
        assert!(sources.len() > 1000 && sources.tree.leaves.len() > 64);
        for (theta, far) in [(0.0, false), (0.5, true), (0.9, true)] {
            let lists = Lists::new(&grid, &sources, Rule { theta, guard: 2.0, fewest: 4 });
            assert_eq!(!lists.far.is_empty(), far);
            for b in 0..grid.blocks().len() * BRICKS {
                let mut seen = vec![0; sources.len()];
                let all = lists.far.row(b).iter().chain(lists.near.row(b));
                all.for_each(|&n| sources.tree.body_range(n as usize).for_each(|i| seen[i] += 1));
                assert!(seen.iter().all(|&s| s == 1), "brick {b}");
                let brick = Brick::new(&grid, b);
                for &n in lists.far.row(b) {
                    let center = sources.tree.center[n as usize];
                    for c in 0..POINTS {
                        let x = [brick.at[0][c % 8], brick.at[1][c / 8 % 8], brick.at[2][c / 64]];
                        let r = (0..3).map(|d| (x[d] - center[d]).powi(2)).sum::<f64>().sqrt();
                        assert!(sources.radius[n as usize] < theta * r * (1.0 + 1e-12) && r > 1.999 * brick.spacing);
                    }
                }
            }
            let pairs = lists.pairs(&sources);
            let all = (sources.len() * grid.cells()) as u64;
            assert!(if far { pairs < all } else { pairs == all }, "{pairs} of {all}");
        }
    }
}
