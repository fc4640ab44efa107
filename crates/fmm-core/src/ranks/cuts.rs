//! Where ranks are cut: a coarse octree of all particles, counted, and the ranks of its leaves.
//!
//! A coarse cell is split only where the octree of all particles splits it too, so every cut lies between two cells
//! of that octree. Each rank owns consecutive leaves of the coarse octree. Leaves are weighted by the work of their
//! particles; integers alone decide, so all ranks agree.

use rayon::prelude::*;

use crate::comm::Comm;
use crate::math::CollectVec;
use crate::tree::key::{levels_per_key, morton, octant};
use crate::tree::sort::{self, Item};
use crate::tree::{Cube, Growth, Tree, child_center};

/// Leaves of the coarse octree that a rank has at least, where particles allow it: the finer, the more equal are shares.
const GRAINS: u64 = 64;

/// Coarse cells are not split below this level: keys resolve no deeper ones.
const DEEPEST: usize = levels_per_key(3) as usize - 1;

/// The coarse octree and the owners of its leaves.
pub(super) struct Cuts {
    /// The cells; their bodies are sorted places among those of all ranks.
    pub tree: Tree<3>,
    /// The rank of each leaf of the tree, in the order of its leaves.
    pub owner: Vec<u32>,
    /// The sorted places that each rank owns begin here. `[ranks + 1]`
    pub first: Vec<u32>,
    /// The rank that owns each particle whose home is here.
    pub owner_of: Vec<u32>,
    /// The largest share of the work over the mean.
    pub largest: f64,
}

impl Cuts {
    /// Cuts the particles of all ranks, `position` and their `work` on this one.
    pub fn new(comm: &dyn Comm, position: &[[f64; 3]], work: &[u32], cube: Cube<3>, growth: Growth) -> Self {
        let size = comm.size() as u64;
        let mut items: Vec<Item> = position
            .par_iter()
            .enumerate()
            .map(|(i, x)| Item { key: morton(x, &cube.corner, cube.side), index: i as u32 })
            .collect_vec();
        sort::by_key(&mut items, levels_per_key(3) * 3);
        let mut before = vec![0u64];
        before.extend(items.iter().scan(0, |sum, item| {
            *sum += u64::from(work[item.index as usize]);
            Some(*sum)
        }));
        let mut all = [items.len() as u64, before[items.len()]];
        comm.sum(&mut all);
        let grain = all[1] / (size * GRAINS);
        let mut tree = Tree {
            side: cube.side,
            bodies: vec![[0, all[0] as u32]],
            children: vec![[0, 0]],
            parent: vec![0],
            octant: vec![0],
            center: vec![cube.corner.map(|c| c + cube.side / 2.0)],
            level_start: vec![0, 1],
            ..Tree::default()
        };
        // Items of each cell, and the work in it.
        let mut own = vec![[0, items.len()]];
        let mut weight = vec![all[1]];
        for level in 0..DEEPEST {
            let wanted = |cell: usize| match growth {
                Growth::Leaves(most) => tree.count(cell) > most,
                Growth::Depth(depth) => level < depth && tree.count(cell) > 0,
            };
            let split: Vec<usize> = tree.level(level).filter(|&c| size > 1 && weight[c] > grain && wanted(c)).collect();
            let mut sums = vec![0u64; 16 * split.len()];
            let mut parts = vec![];
            for (&cell, sums) in split.iter().zip(sums.chunks_exact_mut(16)) {
                let [mut start, end] = own[cell];
                for o in 0..8 {
                    let here = items[start..end].partition_point(|item| octant::<3>(item.key, level as u32 + 1) <= o);
                    let part = [start, start + here];
                    sums[2 * o as usize] = here as u64;
                    sums[2 * o as usize + 1] = before[part[1]] - before[part[0]];
                    parts.push(part);
                    start = part[1];
                }
            }
            comm.sum(&mut sums);
            let half = tree.half(level);
            for (k, &cell) in split.iter().enumerate() {
                let first = tree.len() as u32;
                let mut place = tree.bodies[cell][0];
                for o in (0..8).filter(|o| sums[16 * k + 2 * o] > 0) {
                    tree.bodies.push([place, place + sums[16 * k + 2 * o] as u32]);
                    place += sums[16 * k + 2 * o] as u32;
                    tree.center.push(child_center(&tree.center[cell], o as u8, half));
                    tree.octant.push(o as u8);
                    tree.parent.push(cell as u32);
                    tree.children.push([0, 0]);
                    weight.push(sums[16 * k + 2 * o + 1]);
                    own.push(parts[8 * k + o]);
                }
                tree.children[cell] = [first, tree.len() as u32];
            }
            if split.is_empty() {
                break;
            }
            tree.level_start.push(tree.len() as u32);
        }
        tree.leaves = (0..tree.len() as u32).filter(|&c| tree.is_leaf(c as usize)).collect();
        tree.leaves.sort_unstable_by_key(|&c| tree.bodies[c as usize][0]);
        let weight: Vec<u64> = tree.leaves.iter().map(|&l| weight[l as usize]).collect();
        let owner = owners(&weight, size);
        let mut shares = vec![0; size as usize];
        owner.iter().zip(&weight).for_each(|(&rank, weight)| shares[rank as usize] += weight);
        let largest = shares.into_iter().max().unwrap_or(0) as f64 * size as f64 / all[1].max(1) as f64;
        let mut counts = vec![0; size as usize];
        let mut owner_of = vec![0; items.len()];
        for (&leaf, &rank) in tree.leaves.iter().zip(&owner) {
            counts[rank as usize] += tree.count(leaf as usize) as u32;
            let [start, end] = own[leaf as usize];
            items[start..end].iter().for_each(|item| owner_of[item.index as usize] = rank);
        }
        let mut first = vec![0];
        counts.iter().for_each(|count| first.push(first[first.len() - 1] + count));
        Cuts { tree, owner, first, owner_of, largest }
    }
}

/// Consecutive leaves for each rank, so that the largest share of the weight is as small as it can be.
fn owners(weight: &[u64], size: u64) -> Vec<u32> {
    let assigned = |most: u64| {
        let (mut rank, mut sum) = (0, 0);
        weight.iter().map(move |&w| {
            if sum > 0 && sum + w > most {
                (rank, sum) = (rank + 1, 0);
            }
            sum += w;
            rank
        })
    };
    let fits = |most: u64| assigned(most).max().is_none_or(|last| u64::from(last) < size);
    let (mut low, mut high) = (weight.iter().copied().max().unwrap_or(0), weight.iter().sum());
    while low < high {
        let middle = low + (high - low) / 2;
        (low, high) = if fits(middle) { (low, middle) } else { (middle + 1, high) };
    }
    assigned(low).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_share_is_as_small_as_it_can_be() {
        assert_eq!(owners(&[3, 1, 4, 1, 5, 9, 2, 6], 3), [0, 0, 0, 0, 0, 1, 1, 2]);
        assert_eq!(owners(&[5, 5], 4), [0, 1]);
        assert_eq!(owners(&[0, 0, 7, 0], 2), [0, 0, 0, 0]);
        assert!(owners(&[], 2).is_empty() && owners(&[1, 1, 1], 1) == [0, 0, 0]);
    }
}
