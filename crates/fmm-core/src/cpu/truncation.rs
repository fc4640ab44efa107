//! Where the truncation of expansions hurts most.
//!
//! Expansions err most at the few targets that lie in the corner of their cell towards a concentrated source, by orders of
//! magnitude more than in the middle: where such targets make the rms, some hundred direct sums at targets picked evenly miss them.
//! The last degree of the expansions is large at just these targets, so it tells where to look.

use rayon::prelude::*;

use super::far::{Cell, at_targets};
use super::near::Scratch;
use super::sorted::{Sorted, Sum};
use crate::expansion::Expansion;
use crate::plan::Plan;
use crate::real::Real;

/// Targets that are asked, at most about: of local expansions, which cost next to nothing, and of multipoles.
const SAMPLE: usize = 1 << 15;
const SAMPLE_MULTIPOLES: usize = 1 << 12;

/// The largest share where `tolerance` is to be kept: that of a thousand times as large an error. Where forces cancel errors count
/// relative to a thousandth of the largest term, and no target that feels nothing at all is to take the sample for itself.
pub fn largest_share(tolerance: f64) -> f64 {
    (1e3 * tolerance).powi(2)
}

/// Every how many leaves of a tree of `bodies` targets are asked.
pub fn leaf_step(bodies: usize, treecode: bool) -> usize {
    bodies.div_ceil(if treecode { SAMPLE_MULTIPOLES } else { SAMPLE }).max(1)
}

/// The expansions of a plan that has been executed.
pub struct Expansions<'a, T, E, const D: usize> {
    /// The family.
    pub expansion: &'a E,
    /// The plan.
    pub plan: &'a Plan<D>,
    /// Of all source cells.
    pub multipoles: &'a [T],
    /// Of all target cells.
    pub locals: &'a [T],
}

impl<T: Real, E: Expansion<T, D>, const D: usize> Expansions<'_, T, E, D> {
    /// The squared force of the last degree p, relative to the whole force in `sums`, at the bodies of a sample of leaves: places in
    /// the order of the tree, and shares. Empty if no expansion was used.
    ///
    /// The last degrees of all cells around a target count: a cell hands its error down, while its last degree fades. No share
    /// is above [`largest_share`].
    pub fn last_degree(&self, bodies: &Sorted<D>, sums: &[Sum<D>], tolerance: f64) -> Vec<(u32, f64)> {
        let Some(p) = self.plan.choice.order else { return vec![] };
        let tree = &self.plan.targets;
        let places = self.expansion.degree(p);
        let n = self.expansion.len();
        let treecode = self.plan.lists.m2l.pairs.is_empty();
        let (step, largest) = (leaf_step(tree.order.len(), treecode), largest_share(tolerance));
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
                let counts = if level == 0 { self.plan.lattice.is_some() } else { !treecode };
                if counts {
                    only(self.locals, cell, kept);
                    let (centre, half) = (&tree.centre[cell], tree.half(level));
                    let here = Cell { local: true, centre, half, coefficients: kept };
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
                let centre = self.plan.space.place(pair.class, &sources.centre[cell]);
                let here = Cell { local: false, centre: &centre, half, coefficients: kept };
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
