//! Finds the targets where the truncation of expansions causes the largest errors.
//!
//! Expansions err most at the few targets in the corner of a cell that faces a concentrated source.
//! The error there is orders of magnitude larger than in the middle of the cell. Where these few
//! targets dominate the rms error, some hundred direct sums at evenly picked targets miss them. The
//! last degree of the expansions is large at just these targets, so it shows where to look.

use rayon::prelude::*;

use super::far::{Cell, at_targets};
use super::near::Scratch;
use super::sorted::{Sorted, Sum};
use crate::expansion::Expansion;
use crate::math::Real;
use crate::plan::OctreePlan;

/// Targets that are asked, at most about: of local expansions, which cost next to nothing, and of multipoles.
const SAMPLE: usize = 1 << 15;
const SAMPLE_MULTIPOLES: usize = 1 << 12;
/// The same in sets that lie along lines, where a single target can make the rms.
const SAMPLE_LINES: usize = 1 << 17;

/// The largest share where `tolerance` is to be kept: that of a thousand times as large an error. Where forces cancel errors count
/// relative to a thousandth of the largest term, and no target that feels nothing at all is to take the sample for itself.
pub fn largest_share(tolerance: f64) -> f64 {
    (1e3 * tolerance).powi(2)
}

/// Every how many leaves of a tree of `bodies` targets are asked, where `level_start` has the first cell of each level, and one past the last.
pub fn leaf_step(bodies: usize, level_start: &[u32], treecode: bool) -> usize {
    // A line meets 2^l cells of level l along an axis, and a curve some more.
    let cells = level_start.windows(2).map(|level| f64::from(level[1] - level[0]));
    let sample = match treecode {
        _ if cells.enumerate().all(|(l, count)| count <= 8.0 * (l as f64).exp2()) => SAMPLE_LINES,
        true => SAMPLE_MULTIPOLES,
        false => SAMPLE,
    };
    bodies.div_ceil(sample).max(1)
}

/// The expansions of a plan that has been executed.
pub struct Expansions<'a, T, E, const D: usize> {
    /// The family.
    pub expansion: &'a E,
    /// The plan.
    pub plan: &'a OctreePlan<D>,
    /// Of all source cells.
    pub multipoles: &'a [T],
    /// Of all target cells.
    pub locals: &'a [T],
    /// Targets and sources.
    pub bodies: [&'a Sorted<D>; 2],
}

impl<T: Real, E: Expansion<T, D>, const D: usize> Expansions<'_, T, E, D> {
    /// The squared force of the last degree p, relative to the whole force in `sums`, at the bodies of a sample of leaves: places in
    /// the order of the tree, and shares. Empty if no expansion was used.
    ///
    /// The last degrees of all cells around a target count: a cell hands its error down, while its last degree fades. No share
    /// is above [`largest_share`].
    pub fn last_degree(&self, sums: &[Sum<D>], tolerance: f64) -> Vec<(u32, f64)> {
        let Some(p) = self.plan.choice.order else { return vec![] };
        let (tree, bodies) = (&self.plan.targets, self.bodies[0]);
        let places = self.expansion.degree(p);
        let n = self.expansion.len();
        let treecode = self.plan.lists.m2l.is_empty();
        let (step, largest) = (leaf_step(tree.order.len(), &tree.level_start, treecode), largest_share(tolerance));
        let sample: Vec<u32> = tree.leaves.iter().copied().step_by(step).collect();
        // The last degree of one cell, all others zero.
        let only = |all: &[T], cell: usize, kept: &mut Vec<T>| {
            kept[places.clone()].copy_from_slice(&all[cell * n..(cell + 1) * n][places.clone()]);
        };
        let levels = tree.level_of();
        let source_levels = self.plan.source_tree().level_of();
        let work = || (Scratch::<T, D>::default(), vec![T::ZERO; n], vec![]);
        let of_leaf = |(scratch, kept, field): &mut (_, Vec<T>, Vec<Sum<D>>), &leaf: &u32| {
            let range = tree.body_range(leaf as usize);
            let mut shares = vec![0.0; range.len()];
            let mut add = |field: &mut Vec<Sum<D>>| {
                shares.iter_mut().zip(&*field).for_each(|(share, f)| *share += square(&f.field));
                field.fill(Sum::default());
            };
            field.clear();
            field.resize(range.len(), Sum::default());
            let (mut cell, mut level) = (leaf as usize, levels[leaf as usize] as usize);
            loop {
                // The root has a local expansion from the images of a periodic box alone.
                let counts = if level == 0 { self.plan.geometry.lattice.is_some() } else { !treecode };
                if counts {
                    only(self.locals, cell, kept);
                    let (center, half) = (&tree.center[cell], tree.half(level));
                    let here = Cell { local: true, center, half, coefficients: kept };
                    at_targets(self.expansion, here, bodies, range.clone(), scratch, field);
                    add(field);
                }
                if level == 0 {
                    break;
                }
                (cell, level) = (tree.parent[cell] as usize, level - 1);
            }
            for pair in self.plan.lists.m2p.row(leaf as usize) {
                let (sources, cell) = (self.plan.source_tree(), pair.source as usize);
                only(self.multipoles, cell, kept);
                let half = sources.half(source_levels[cell] as usize);
                let center = self.plan.geometry.space.place(pair.class, &sources.center[cell]);
                let here = Cell { local: false, center: &center, half, coefficients: kept };
                at_targets(self.expansion, here, bodies, range.clone(), scratch, field);
                add(field);
            }
            for (share, s) in shares.iter_mut().zip(&sums[range.clone()]) {
                *share = if *share > 0.0 { (*share / square(&s.field)).min(largest) } else { 0.0 };
            }
            range.zip(shares).map(|(i, share)| (i as u32, share)).collect::<Vec<_>>()
        };
        sample.par_iter().map_init(work, of_leaf).flatten_iter().collect()
    }
}

fn square<const D: usize>(x: &[f64; D]) -> f64 {
    x.iter().map(|x| x * x).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Cube, Tree};
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use std::f64::consts::TAU;

    #[test]
    fn all_targets_are_asked_along_lines_alone() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut step = |at: fn([f64; 3]) -> [f64; 3], treecode| {
            let points: Vec<[f64; 3]> = (0..70_000).map(|_| at(rng.random())).collect();
            let tree = Tree::octree(&points, Cube::around(&[&points]), 200);
            leaf_step(points.len(), &tree.level_start, treecode)
        };
        for treecode in [false, true] {
            assert_eq!(step(|u| [u[0], 0.0, 0.0], treecode), 1);
            assert_eq!(step(|u| [u[0], -2.0 * u[0], 0.3 * u[0]], treecode), 1);
            assert_eq!(step(|u| [(TAU * u[0]).cos(), (TAU * u[0]).sin(), 1e-6 * u[1]], treecode), 1);
            let others = if treecode { 18 } else { 3 };
            assert_eq!(step(|u| [u[0], u[1], 0.0], treecode), others);
            assert_eq!(step(|u| u, treecode), others);
            // A ball that is the denser the nearer to its middle.
            assert_eq!(step(|u| [u[0], u[1], u[2]].map(|c| (c - 0.5) * (-12.0 * u[0]).exp()), treecode), others);
        }
    }
}
