//! The adaptive octree: sort by Morton key, then split every over-full cell.

use rayon::prelude::*;

use super::key::{levels_per_key, morton, octant};
use super::sort::{self, Item};
use super::{Cube, Growth, Tree, child_center};
use crate::math::CollectVec;

/// Cells are not split below this level: a side of 2^-900 of the root's is beyond any coordinates that
/// differ and whose squared distance is not zero.
const DEEPEST: usize = 900;

impl<const D: usize> Tree<D> {
    /// The octree (quadtree, binary tree) of `points` in `cube`, with at most `leaf_size` bodies in a leaf.
    ///
    /// Bodies are sorted by key, then by index. A cell at the last level of a key that is still over-full
    /// gets new keys relative to its own corner, so that only bitwise-equal points share a leaf
    /// beyond its capacity.
    ///
    /// # Panics
    /// If `leaf_size` is 0 or there are more points than a `u32` numbers.
    pub fn octree(points: &[[f64; D]], cube: Cube<D>, leaf_size: usize) -> Self {
        assert!(leaf_size > 0, "leaf size 0");
        Self::grown(points, cube, Growth::Leaves(leaf_size), None)
    }

    /// The tree of `points` in `cube` whose leaves are all on level `depth`. Cells without bodies are not there.
    ///
    /// # Panics
    /// If there are more points than a `u32` numbers, or the depth is beyond the levels of a key.
    pub fn uniform(points: &[[f64; D]], cube: Cube<D>, depth: usize) -> Self {
        assert!(depth < levels_per_key(D) as usize, "depth {depth}");
        Self::grown(points, cube, Growth::Depth(depth), None)
    }

    /// The tree of a part of the points of a larger tree, whose first levels are `top`: cells that it splits are
    /// split here too. Where `top` has leaves, the cells are those of the larger tree.
    ///
    /// # Panics
    /// Those of [`octree`](Tree::octree) and [`uniform`](Tree::uniform).
    pub fn part(points: &[[f64; D]], cube: Cube<D>, growth: Growth, top: &Tree<D>) -> Self {
        Self::grown(points, cube, growth, Some(top))
    }

    fn grown(points: &[[f64; D]], cube: Cube<D>, growth: Growth, top: Option<&Tree<D>>) -> Self {
        // No leaf of a uniform tree is over-full.
        let (leaf_size, depth) = match growth {
            Growth::Leaves(size) => (size, 0),
            Growth::Depth(depth) => (usize::MAX, depth),
        };
        assert!(points.len() < u32::MAX as usize, "too many points");
        let mut items: Vec<Item> = points
            .par_iter()
            .enumerate()
            .map(|(i, x)| Item { key: morton(x, &cube.corner, cube.side), index: i as u32 })
            .collect_vec();
        sort::by_key(&mut items, levels_per_key(D) * D as u32);

        let mut tree = Tree {
            side: cube.side,
            leaf_size,
            bodies: vec![[0, points.len() as u32]],
            children: vec![[0, 0]],
            parent: vec![0],
            octant: vec![0],
            center: vec![cube.corner.map(|c| c + cube.side / 2.0)],
            level_start: vec![0, 1],
            ..Tree::default()
        };
        // The cells of `top` that the cells of a level are.
        let mut above = top.map_or(vec![], |_| vec![Some(0)]);
        for level in 0..DEEPEST {
            let cells = tree.level(level);
            let half = tree.half(level);
            let within = (level as u32) % levels_per_key(D);
            if within == 0 && level > 0 {
                for cell in cells.clone() {
                    if tree.count(cell) > leaf_size {
                        rekey(&mut items[tree.body_range(cell)], points, &tree.center[cell], half);
                    }
                }
            }
            let above_split = |cell: usize| {
                let here = above.get(cell - cells.start).copied().flatten();
                top.zip(here).is_some_and(|(top, here)| !top.is_leaf(here))
            };
            let split: Vec<Vec<(u8, [u32; 2])>> = cells
                .clone()
                .into_par_iter()
                .with_min_len(64)
                .map(|cell| {
                    let range = tree.body_range(cell);
                    let all = &items[range.clone()];
                    let split = match growth {
                        Growth::Leaves(size) => all.len() > size,
                        Growth::Depth(_) => level < depth && !all.is_empty(),
                    };
                    if !(split || above_split(cell)) || (within == 0 && level > 0 && all_equal(all, points)) {
                        return vec![];
                    }
                    let mut out = Vec::with_capacity(1 << D);
                    let mut start = 0;
                    while start < all.len() {
                        let o = octant::<D>(all[start].key, within + 1);
                        let n = all[start..].partition_point(|item| octant::<D>(item.key, within + 1) <= o);
                        out.push((o, [(range.start + start) as u32, (range.start + start + n) as u32]));
                        start += n;
                    }
                    out
                })
                .collect_vec();
            if let Some(top) = top {
                let child = |cell: usize, o: u8| {
                    let here = above.get(cell - cells.start).copied().flatten()?;
                    top.child_range(here).find(|&c| top.octant[c] == o)
                };
                above = cells
                    .clone()
                    .zip(&split)
                    .flat_map(|(t, p)| p.iter().map(move |s| (t, s.0)))
                    .map(|(t, o)| child(t, o))
                    .collect();
            }
            for (cell, parts) in cells.zip(split) {
                let first = tree.bodies.len() as u32;
                tree.children[cell] = [first, first + parts.len() as u32];
                for (o, bodies) in parts {
                    tree.center.push(child_center(&tree.center[cell], o, half));
                    tree.bodies.push(bodies);
                    tree.octant.push(o);
                    tree.parent.push(cell as u32);
                    tree.children.push([0, 0]);
                }
            }
            if tree.bodies.len() == tree.level_start[level + 1] as usize {
                break;
            }
            tree.level_start.push(tree.bodies.len() as u32);
        }
        for c in &mut tree.children {
            if c[0] == c[1] {
                *c = [0, 0];
            }
        }
        tree.leaves = (0..tree.len() as u32).filter(|&c| tree.is_leaf(c as usize)).collect();
        tree.leaves.sort_unstable_by_key(|&c| tree.bodies[c as usize][0]);
        tree.order = items.par_iter().map(|item| item.index).collect_vec();
        tree.coincident_pairs = tree.count_coincident(points);
        tree
    }

    /// The tree of `points` in a box from the origin with `sides`, whose cells have its shape.
    ///
    /// # Panics
    /// As [`octree`](Tree::octree).
    pub fn octree_in_box(points: &[[f64; D]], sides: [f64; D], growth: Growth) -> Self {
        let longest = sides.into_iter().fold(0.0, f64::max);
        let cube = Cube { corner: [0.0; D], side: longest };
        if sides == [longest; D] {
            return Tree::grown(points, cube, growth, None);
        }
        // Keys, octants and levels are those of points in a cube that the box is stretched to.
        let stretch = sides.map(|s| longest / s);
        let stretched: Vec<[f64; D]> =
            points.par_iter().map(|x| std::array::from_fn(|d| x[d] * stretch[d])).collect_vec();
        let mut tree = Tree::grown(&stretched, cube, growth, None);
        for center in &mut tree.center {
            *center = std::array::from_fn(|d| center[d] / stretch[d]);
        }
        tree
    }

    /// Bitwise-equal points share a leaf, so it is enough to look inside each.
    fn count_coincident(&self, points: &[[f64; D]]) -> u64 {
        self.leaves
            .par_iter()
            .map(|&leaf| {
                let mut here: Vec<[u64; D]> =
                    self.order[self.body_range(leaf as usize)].iter().map(|&i| bits(&points[i as usize])).collect();
                here.sort_unstable();
                here.chunk_by(|a, b| a == b).map(|same| same.len() as u64 * (same.len() as u64 - 1) / 2).sum::<u64>()
            })
            .sum()
    }
}

/// Keys of the bodies of one cell relative to its own corner.
fn rekey<const D: usize>(items: &mut [Item], points: &[[f64; D]], center: &[f64; D], half: f64) {
    let corner = center.map(|c| c - half);
    for item in items.iter_mut() {
        item.key = morton(&points[item.index as usize], &corner, 2.0 * half);
    }
    items.sort_unstable();
}

fn all_equal<const D: usize>(items: &[Item], points: &[[f64; D]]) -> bool {
    let first = bits(&points[items[0].index as usize]);
    items.iter().all(|item| bits(&points[item.index as usize]) == first)
}

/// Coordinates for comparison: −0 and 0 are the same place.
fn bits<const D: usize>(x: &[f64; D]) -> [u64; D] {
    x.map(|c| (c + 0.0).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn build<const D: usize>(points: &[[f64; D]], leaf_size: usize) -> Tree<D> {
        let tree = Tree::octree(points, Cube::around(&[points]), leaf_size);
        let mut order = tree.order.clone();
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(i, &o)| i as u32 == o), "the order is a permutation");
        let mut next = 0;
        for &leaf in &tree.leaves {
            assert_eq!(tree.bodies[leaf as usize][0], next, "leaves partition the bodies");
            next = tree.bodies[leaf as usize][1];
        }
        assert_eq!(next as usize, points.len());
        let level_of = tree.level_of();
        for cell in 0..tree.len() {
            let half = tree.half(level_of[cell] as usize);
            for i in tree.body_range(cell) {
                for d in 0..D {
                    let x = points[tree.order[i] as usize][d];
                    assert!((x - tree.center[cell][d]).abs() <= half * (1.0 + 1e-9), "a body lies in its cell");
                }
            }
            if !tree.is_leaf(cell) {
                let kids = tree.child_range(cell);
                assert_eq!(tree.bodies[kids.start][0], tree.bodies[cell][0]);
                assert_eq!(tree.bodies[kids.end - 1][1], tree.bodies[cell][1]);
                assert!(kids.clone().all(|k| tree.parent[k] as usize == cell && tree.count(k) > 0));
                assert!(kids.clone().zip(kids.skip(1)).all(|(a, b)| tree.octant[a] < tree.octant[b]));
            }
        }
        tree
    }

    #[test]
    fn random_points_fill_leaves_up_to_their_size() {
        let mut rng = StdRng::seed_from_u64(1);
        let points: Vec<[f64; 3]> = (0..5000).map(|_| rng.random()).collect();
        let tree = build(&points, 20);
        assert!(tree.leaves.iter().all(|&l| tree.count(l as usize) <= 20));
        assert!(tree.levels() > 3);
        let flat: Vec<[f64; 2]> = (0..5000).map(|_| rng.random()).collect();
        assert!(build(&flat, 20).levels() > 4);
        assert_eq!(tree.coincident_pairs, 0);
    }

    #[test]
    fn a_geometric_series_is_resolved_below_the_last_level_of_a_key() {
        let points: Vec<[f64; 3]> = (0..50).map(|k| [0.5f64.powi(k), 0.0, 0.0]).collect();
        let tree = build(&points, 1);
        assert!(tree.leaves.iter().all(|&l| tree.count(l as usize) == 1));
        assert!(tree.levels() > 45);
        // Towards a face of the first cells from both sides, far below what a difference to the corner can hold.
        let both: Vec<[f64; 3]> =
            (0..150).flat_map(|k| [1.0, -1.0].map(|sign| [sign * 0.5f64.powi(k), 0.0, 0.0])).collect();
        let tree = build(&both, 1);
        assert!(tree.leaves.iter().all(|&l| tree.count(l as usize) == 1));
        assert!(tree.levels() > 145);
    }

    #[test]
    fn only_equal_points_share_an_over_full_leaf() {
        let mut points = vec![[0.25, 0.5, 0.75]; 1000];
        points.extend((0..100).map(|k| [0.25, 0.5 + f64::EPSILON * k as f64, 0.75]));
        points.push([0.0; 3]);
        points.push([-0.0, 0.0, 0.0]);
        let tree = build(&points, 8);
        let over: Vec<_> = tree.leaves.iter().filter(|&&l| tree.count(l as usize) > 8).collect();
        assert_eq!(over.len(), 1);
        assert_eq!(tree.coincident_pairs, 1001 * 1000 / 2 + 1);
    }

    #[test]
    fn leaves_of_a_uniform_tree_are_on_one_level() {
        let mut rng = StdRng::seed_from_u64(1);
        let points: Vec<[f64; 3]> = (0..500).map(|_| rng.random()).collect();
        for depth in 0..4 {
            let tree = Tree::uniform(&points, Cube::around(&[&points]), depth);
            let level_of = tree.level_of();
            assert_eq!(tree.levels(), depth + 1);
            assert!(
                tree.leaves.iter().all(|&l| level_of[l as usize] as usize == depth && !tree.is_one_place(l as usize))
            );
            assert_eq!(tree.leaves.iter().map(|&l| tree.count(l as usize)).sum::<usize>(), 500);
        }
        assert_eq!(Tree::<3>::uniform(&[], Cube::around(&[]), 3).len(), 1);
    }

    #[test]
    fn no_points_and_one_point_make_a_root() {
        assert_eq!(build::<3>(&[], 4).len(), 1);
        assert_eq!(build(&[[1e300, -4.0, 0.0]], 4).len(), 1);
    }
}
