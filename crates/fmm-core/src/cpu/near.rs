//! P2P: each leaf of the targets against the bodies of its list.

use std::ops::Range;

use rayon::prelude::*;

use super::sorted::{Buffer, Sorted, Sum, Totals, by_leaf};
use crate::Cancel;
use crate::kernel::{PairRelation, Pairs};
use crate::math::Real;
use crate::math::scale::power_of_two_below;
use crate::math::simd::{Task, Vector, dispatch};
use crate::plan::OctreePlan;

/// Sources that are gathered before they meet the targets: they stay in the first-level cache, and single
/// precision adds no more terms than this before the sum goes on in double.
const GATHER: usize = 512;

/// What one thread keeps between leaves: points along D axes, sums with R components.
pub struct Scratch<T, const D: usize, const R: usize = D> {
    pub targets: Buffer<T, D>,
    pub sources: Buffer<T, D>,
    pub totals: Totals<T, R>,
}

impl<T: Real, const D: usize, const R: usize> Default for Scratch<T, D, R> {
    fn default() -> Self {
        Scratch { targets: Buffer::default(), sources: Buffer::default(), totals: Totals::default() }
    }
}

/// The sources of a scratch at its targets.
pub(super) struct Meet<'a, T: Real, K, const D: usize, const R: usize> {
    pub kernel: &'a K,
    pub unit: f64,
    pub relation: PairRelation,
    pub scratch: &'a mut Scratch<T, D, R>,
}

impl<T: Real, K: Pairs<D, R>, const D: usize, const R: usize> Task<T> for Meet<'_, T, K, D, R> {
    type Out = T;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> T {
        let Scratch { targets, sources, totals } = self.scratch;
        self.kernel.p2p::<T, V>(self.unit, self.relation, targets.points(), sources.points(), &mut totals.sums())
    }
}

/// The direct sums of a plan.
pub struct Near<'a, K, const D: usize, const R: usize = D> {
    /// What is summed.
    pub kernel: &'a K,
    /// Who meets whom. Without sources of its own no target sees itself.
    pub plan: &'a OctreePlan<D>,
    /// Bodies of targets and sources.
    pub bodies: [&'a Sorted<D>; 2],
    /// What ends the sum early.
    pub cancel: &'a Cancel,
}

impl<K: Pairs<D, R>, const D: usize, const R: usize> Near<'_, K, D, R> {
    /// Adds the direct sums to `out`.
    pub fn p2p<T: Real>(&self, out: &mut [Sum<R>]) {
        let (tree, closest) = (&self.plan.targets, self.plan.geometry.closest);
        let levels = tree.level_of();
        let leaves = tree.leaves.iter().map(|&l| (l as usize, tree.count(l as usize)));
        let scratch = || (Scratch::<T, D, R>::default(), Scratch::<f64, D, R>::default());
        by_leaf(out, leaves).into_par_iter().for_each_init(scratch, |(single, double), (leaf, out)| {
            if out.is_empty() || self.cancel.is_set() {
                return;
            }
            let half = tree.half(levels[leaf] as usize);
            let mut sums = vec![Sum::default(); out.len()];
            let nearest = self.leaf(leaf, half, single, &mut sums);
            let too_close = nearest.hypot(self.kernel.smooth_below()) < closest * half;
            // Bodies of a neighbour that is larger by more than single precision can square.
            let too_far = || !sums.iter().all(|s| s.potential.is_finite() && s.field.iter().all(|f| f.is_finite()));
            if T::WIDTH > f64::WIDTH && (too_close || too_far()) {
                sums.fill(Sum::default());
                self.leaf(leaf, half, double, &mut sums);
            }
            for (o, s) in out.iter_mut().zip(sums) {
                o.potential += s.potential;
                for d in 0..R {
                    o.field[d] += s.field[d];
                }
            }
        });
    }

    /// The sums of one leaf in the precision of the scratch; returns the distance of its closest pair.
    fn leaf<T: Real>(&self, leaf: usize, half: f64, scratch: &mut Scratch<T, D, R>, out: &mut [Sum<R>]) -> f64 {
        let (target_tree, source_tree) = (&self.plan.targets, self.plan.source_tree());
        let (same, space) = (self.plan.sources.is_none(), &self.plan.geometry.space);
        // Double precision subtracts the coordinates as they are, so that no pair loses a digit; single precision
        // subtracts the center of the leaf first, in double. The unit keeps the softening length in range as well.
        let unit = power_of_two_below(half.max(self.kernel.smooth_below() / 1024.0));
        let scale = 1.0 / unit;
        let center = if T::WIDTH == f64::WIDTH { [0.0; D] } else { target_tree.center[leaf] };
        let targets = target_tree.body_range(leaf);
        // Bodies at one place all feel the same: one of them stands for all, but for what each would feel of itself.
        let one_place = target_tree.is_one_place(leaf);
        let standing = if one_place { targets.start..targets.start + 1 } else { targets.clone() };
        scratch.targets.load_targets(self.bodies[0], standing.clone(), &center, scale);
        scratch.sources.clear();
        let mut nearest = f64::INFINITY;
        let mut flush = |scratch: &mut Scratch<T, D, R>, own: Option<isize>| {
            scratch.totals.reset(scratch.targets.len());
            let relation = match own {
                Some(first) => PairRelation::Same(first),
                // Bodies at one place share a leaf.
                None if same => PairRelation::Apart,
                None => PairRelation::Anywhere,
            };
            let squared = dispatch(Meet { kernel: self.kernel, unit, relation, scratch });
            nearest = nearest.min(squared.to_f64().max(0.0).sqrt() * unit);
            scratch.totals.add_to(&mut out[..standing.len()], K::scales(unit));
            scratch.sources.clear();
        };
        let mut own = None;
        let mut met = false;
        for pair in self.plan.lists.p2p.row(leaf) {
            let source = pair.source as usize;
            // What is relative to the center there is relative to another place here.
            let (own_box, center) = (pair.class == 0, space.seen_from(pair.class, &center));
            let itself = same && own_box && source == leaf;
            let mut range = source_tree.body_range(source);
            if source_tree.is_one_place(source) {
                if !itself {
                    if scratch.sources.len() == GATHER {
                        flush(scratch, own.take());
                    }
                    let x = self.bodies[1].position(range.start);
                    scratch.sources.push_one(x, self.bodies[1].total(range), &center, scale);
                }
                continue;
            }
            while !range.is_empty() {
                if scratch.sources.len() == GATHER {
                    flush(scratch, own.take());
                }
                let room = GATHER - scratch.sources.len();
                let part = range.start..range.end.min(range.start + room);
                if same && own_box && part.start < targets.end && targets.start < part.end {
                    met = true;
                    own = Some(scratch.sources.len() as isize + targets.start as isize - part.start as isize);
                }
                range.start = part.end;
                scratch.sources.push(self.bodies[1], part, &center, scale);
            }
        }
        if scratch.sources.len() > 0 {
            flush(scratch, own);
        }
        if one_place {
            self.spread(targets, met, out);
        }
        nearest
    }

    /// Gives all bodies of one place what the first of them has felt. Each feels K(0) of all the others here, and their forces
    /// vanish; where the list had them within a larger cell (`met`), the first has felt the others already.
    fn spread(&self, targets: Range<usize>, met: bool, out: &mut [Sum<R>]) {
        out.fill(out[0]);
        if self.plan.sources.is_none() {
            let bodies = self.bodies[0];
            let here = if met { bodies.strength(targets.start) } else { bodies.total(targets.clone()) };
            let at_zero = self.kernel.potential_at_zero();
            for (o, i) in out.iter_mut().zip(targets) {
                o.potential += (here - bodies.strength(i)) * at_zero;
            }
        }
    }
}
