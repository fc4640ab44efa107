//! P2P: each leaf of the targets against the bodies of its list.

use std::iter;
use std::ops::Range;

use rayon::prelude::*;

use super::sorted::{Buffer, Sorted, Sum, Totals, by_leaf};
use crate::Cancel;
use crate::kernel::{FAR, PairRelation, Pairs};
use crate::math::scale::power_of_two_below;
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{Number, Real};
use crate::plan::OctreePlan;

/// Sources that are gathered before they meet the targets: they stay in the first-level cache, and single
/// precision adds no more terms than this before the sum goes on in double.
const GATHER: usize = 512;

/// Where more than one target in so many has a pair too close for single precision, all targets of the leaf are summed
/// again: bodies then lie on a curve or a surface, where forces of neighbours cancel and their rounding does not.
const FEW: usize = 8;

/// What one thread keeps between leaves: points along D axes, sums with R components.
pub struct Scratch<T, const D: usize, const R: usize = D> {
    pub targets: Buffer<T, D>,
    pub sources: Buffer<T, D>,
    pub totals: Totals<T, R>,
    /// Of each target, see [`Pairs::p2p`].
    pub nearest: Vec<T>,
    pub(super) runs: Vec<Run>,
}

/// Bodies that are consecutive, and the number of the target that the first of them is: that of no
/// target if it is negative or too large, and none if no body is a target.
pub(super) type Run = (Option<isize>, Range<usize>);

impl<T: Real, const D: usize, const R: usize> Default for Scratch<T, D, R> {
    fn default() -> Self {
        let (targets, sources, totals) = (Buffer::default(), Buffer::default(), Totals::default());
        Scratch { targets, sources, totals, nearest: vec![], runs: vec![] }
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
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let Scratch { targets, sources, totals, nearest, .. } = self.scratch;
        let (targets, sources) = (targets.points(), sources.points());
        self.kernel.p2p::<T, V>(self.unit, self.relation, targets, sources, &mut totals.sums(), nearest);
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
    /// Adds the direct sums to `out`. Returns whether those of each target are in double precision.
    pub fn p2p<T: Real>(&self, out: &mut [Sum<R>]) -> Vec<bool> {
        let (tree, closest) = (&self.plan.targets, self.plan.geometry.closest);
        let levels = tree.level_of();
        let leaves = || tree.leaves.iter().map(|&l| (l as usize, tree.count(l as usize)));
        let mut in_double = vec![T::WIDTH == f64::WIDTH; out.len()];
        let parts = by_leaf(out, leaves()).into_par_iter().zip(by_leaf(&mut in_double, leaves()));
        let scratch = || (Scratch::<T, D, R>::default(), Scratch::<f64, D, R>::default());
        parts.for_each_init(scratch, |(single, double), ((leaf, out), (_, in_double))| {
            if out.is_empty() || self.cancel.is_set() {
                return;
            }
            let half = tree.half(levels[leaf] as usize);
            let mut sums = vec![Sum::default(); out.len()];
            self.leaf(leaf, half, None, single, &mut sums);
            if T::WIDTH > f64::WIDTH {
                let unit = self.unit(half);
                let [close, smooth] = [closest * half / unit, self.kernel.smooth_below() / unit];
                let least = close * close - smooth * smooth;
                let unresolved = |i: usize| {
                    let too_close = single.nearest.get(i).is_some_and(|n| n.to_f64() < least);
                    // Bodies of a neighbour that is larger by more than single precision can square.
                    let finite = sums[i].potential.is_finite() && sums[i].field.iter().all(|f| f.is_finite());
                    too_close || !finite
                };
                let again: Vec<usize> = (0..sums.len()).filter(|&i| unresolved(i)).collect();
                if !again.is_empty() {
                    let few = again.len() * FEW <= sums.len();
                    self.leaf(leaf, half, few.then_some(&again[..]), double, &mut sums);
                    in_double.fill(!few);
                    again.iter().for_each(|&i| in_double[i] = true);
                }
            }
            for (o, s) in out.iter_mut().zip(sums) {
                o.potential += s.potential;
                for d in 0..R {
                    o.field[d] += s.field[d];
                }
            }
        });
        in_double
    }

    /// The unit of a leaf of this half side, which keeps the softening length in range as well.
    fn unit(&self, half: f64) -> f64 {
        power_of_two_below(half.max(self.kernel.smooth_below() / 1024.0))
    }

    /// The sums of one leaf in the precision of the scratch, or of the targets at the places `again` in it.
    fn leaf<T: Real>(
        &self,
        leaf: usize,
        half: f64,
        again: Option<&[usize]>,
        scratch: &mut Scratch<T, D, R>,
        out: &mut [Sum<R>],
    ) {
        let (target_tree, source_tree) = (&self.plan.targets, self.plan.source_tree());
        let (same, space) = (self.plan.sources.is_none(), &self.plan.geometry.space);
        // Double precision subtracts the coordinates as they are, so that no pair loses a digit; single precision
        // subtracts the center of the leaf first, in double.
        let unit = self.unit(half);
        let scale = 1.0 / unit;
        let center = if T::WIDTH == f64::WIDTH { [0.0; D] } else { target_tree.center[leaf] };
        let targets = target_tree.body_range(leaf);
        // Bodies at one place all feel the same: one of them stands for all, but for what each would feel of itself.
        let one_place = target_tree.is_one_place(leaf);
        let again = again.filter(|_| !one_place);
        let standing: Vec<Range<usize>> = match again {
            None => iter::once(0..if one_place { 1 } else { targets.len() }).collect(),
            Some(these) => these.iter().map(|&i| i..i + 1).collect(),
        };
        let places = || standing.iter().cloned().flatten();
        let runs = standing.iter().map(|run| targets.start + run.start..targets.start + run.end);
        scratch.targets.load_targets(self.bodies[0], runs, &center, scale);
        scratch.sources.clear();
        scratch.nearest.clear();
        scratch.nearest.resize(scratch.targets.len(), T::from_f64(FAR));
        places().for_each(|i| out[i] = Sum::default());
        let mut flush = |scratch: &mut Scratch<T, D, R>, own: Option<isize>| {
            scratch.totals.reset(scratch.targets.len());
            let relation = match own {
                Some(first) => PairRelation::Same(first),
                // Bodies at one place share a leaf.
                None if same => PairRelation::Apart,
                None => PairRelation::Anywhere,
            };
            dispatch(Meet { kernel: self.kernel, unit, relation, scratch });
            scratch.totals.add_to(places(), out, K::scales(unit));
            scratch.sources.clear();
        };
        let mut own = None;
        let mut met = false;
        for pair in self.plan.lists.p2p.row(leaf) {
            let source = pair.source as usize;
            // What is relative to the center there is relative to another place here.
            let (own_box, center) = (pair.class == 0, space.seen_from(pair.class, &center));
            let itself = same && own_box && source == leaf;
            let range = source_tree.body_range(source);
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
            let among = same && own_box && range.start < targets.end && targets.start < range.end;
            met |= among;
            scratch.runs.clear();
            match again {
                Some(these) if among => these_first(these, targets.start, range, &mut scratch.runs),
                _ => scratch.runs.push((among.then(|| range.start as isize - targets.start as isize), range)),
            }
            for k in 0..scratch.runs.len() {
                let (mut target, mut run) = scratch.runs[k].clone();
                while !run.is_empty() {
                    if scratch.sources.len() == GATHER {
                        flush(scratch, own.take());
                    }
                    let here = scratch.sources.len();
                    let part = run.start..run.end.min(run.start + GATHER - here);
                    let length = part.len() as isize;
                    if let Some(t) = target.filter(|&t| t < targets.len() as isize && t + length > 0) {
                        own = Some(here as isize - t);
                    }
                    (run.start, target) = (part.end, target.map(|t| t + length));
                    scratch.sources.push(self.bodies[1], part, &center, scale);
                }
            }
        }
        if scratch.sources.len() > 0 {
            flush(scratch, own);
        }
        if one_place {
            self.spread(targets, met, out);
        }
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

/// Adds the bodies of `range` to `runs`: first the targets, at the places `these` after `start`, then all
/// others, in their order.
fn these_first(these: &[usize], start: usize, range: Range<usize>, runs: &mut Vec<Run>) {
    runs.extend(these.iter().enumerate().map(|(k, &i)| (Some(k as isize), start + i..start + i + 1)));
    let mut begin = range.start;
    for i in these.iter().map(|i| start + i).chain([range.end]) {
        if begin < i {
            runs.push((None, begin..i));
        }
        begin = i + 1;
    }
}
