//! Second derivatives of the potential: from the expansions and pairs of a plan that was executed
//! for the field.

use std::sync::Arc;

use rayon::prelude::*;

use super::direct::Units;
use super::far::{Cell, at_targets};
use super::near::{Near, Scratch};
use super::points::Points;
use super::schedule::Expansions;
use super::sorted::{Sum, by_leaf};
use crate::expansion::Expansion;
use crate::guard::Sample;
use crate::kernel::{AXES, Hessian, Pairs, Radial, Softening, UseRadial};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Number, Real};
use crate::{Stage, StageTimes};

impl<T: Real, E: Expansion<T, 3>> Expansions<'_, T, E, 3> {
    /// ∂²φ/∂x_i∂x_j for xx, yy, zz, xy, xz, yz, in the order of the target tree. `next` gives the
    /// expansion of the order after that of the plan.
    pub fn hessian<N: Expansion<T, 3>>(
        &self,
        softening: Softening,
        next: impl FnOnce() -> Arc<N>,
        times: &mut StageTimes,
    ) -> Vec<[f64; 6]> {
        let (plan, cancel) = (self.plan, times.cancel().clone());
        let mut near = vec![Sum::<6>::default(); plan.targets.order.len()];
        let pairs = Near { kernel: &Hessian(softening), plan, bodies: self.bodies, cancel: &cancel };
        times.time_more(Stage::P2P, || pairs.p2p::<T>(&mut near));
        let mut out: Vec<[f64; 6]> = near.into_par_iter().map(|s| Hessian::combine(s.potential, s.field)).collect_vec();
        if plan.schedule().contains(&Stage::L2P) {
            times.time_more(Stage::L2P, || self.add_locals(&mut out));
        }
        if !plan.lists.m2p.is_empty() {
            let next = next();
            times.time_more(Stage::M2P, || self.add_multipoles(&*next, &mut out));
        }
        out
    }

    /// Adds the second derivatives of each leaf's local expansion.
    fn add_locals(&self, out: &mut [[f64; 6]]) {
        let (tree, n) = (&self.plan.targets, self.expansion.len());
        let levels = tree.level_of();
        let leaves = tree.leaves.iter().map(|&l| (l as usize, tree.count(l as usize)));
        by_leaf(out, leaves).into_par_iter().for_each_init(Work::<T>::default, |work, (leaf, out)| {
            let (half, coefficients) = (tree.half(levels[leaf] as usize), &self.locals[leaf * n..(leaf + 1) * n]);
            let cell = Cell { local: true, center: &tree.center[leaf], half, coefficients };
            self.add(self.expansion, cell, leaf, work, out);
        });
    }

    /// Adds the second derivatives of the multipoles that meet each leaf.
    fn add_multipoles(&self, next: &impl Expansion<T, 3>, out: &mut [[f64; 6]]) {
        let (tree, sources, n) = (&self.plan.targets, self.plan.source_tree(), self.expansion.len());
        let levels = sources.level_of();
        let leaves = tree.leaves.iter().map(|&l| (l as usize, tree.count(l as usize)));
        by_leaf(out, leaves).into_par_iter().for_each_init(Work::<T>::default, |work, (leaf, out)| {
            for pair in self.plan.lists.m2p.row(leaf) {
                let source = pair.source as usize;
                let half = sources.half(levels[source] as usize);
                let coefficients = &self.multipoles[source * n..(source + 1) * n];
                let center = self.plan.geometry.space.place(pair.class, &sources.center[source]);
                self.add(next, Cell { local: false, center: &center, half, coefficients }, leaf, work, out);
            }
        });
    }

    /// Adds the second derivatives of the expansion of `cell` at the targets of `leaf`: the gradients of its
    /// derivatives, which `family` evaluates.
    fn add(
        &self,
        family: &impl Expansion<T, 3>,
        cell: Cell<T, 3>,
        leaf: usize,
        work: &mut Work<T>,
        out: &mut [[f64; 6]],
    ) {
        let range = self.plan.targets.body_range(leaf);
        // Where the second derivatives of x, y and z go that were not there yet.
        for (axis, places) in [&[(0, 0), (1, 3), (2, 4)][..], &[(1, 1), (2, 5)], &[(2, 2)]].into_iter().enumerate() {
            let derivative = self.expansion.derivative(cell.local, cell.coefficients, axis);
            work.sums.clear();
            work.sums.resize(range.len(), Sum::default());
            let cell = Cell { coefficients: &derivative, ..cell };
            at_targets(family, cell, self.bodies[0], range.clone(), &mut work.scratch, &mut work.sums);
            for (out, sum) in out.iter_mut().zip(&work.sums) {
                places.iter().for_each(|&(d, k)| out[k] -= sum.field[d] / cell.half);
            }
        }
    }
}

/// What one thread keeps between leaves.
struct Work<T> {
    scratch: Scratch<T, 3>,
    sums: Vec<Sum<3>>,
}

impl<T: Real> Default for Work<T> {
    fn default() -> Self {
        Work { scratch: Scratch::default(), sums: vec![] }
    }
}

/// The error of `found` at the targets of `sample`, by direct sums.
pub(super) fn error(sample: &Sample, softening: Softening, points: Points, found: &[[f64; 6]]) -> f64 {
    let (at, strengths, own) = (points.at(), points.columns[0], points.targets.is_none());
    let units = Units::of(points.sources, strengths, at);
    let sources = Sources::new(units, points.sources, strengths);
    let softening = softening.scaled(units.length);
    let direct = |&i: &usize| {
        let at = at[i].map(|c| c * units.length);
        // A source does not act on itself.
        let own = if own { strengths[i] * units.strength } else { 0.0 };
        dispatch(Direct { at, own, softening, sources: &sources })
    };
    let places: Vec<usize> = sample.places().collect();
    let exact: Vec<([f64; 6], f64)> = places.par_iter().map(direct).collect_vec();
    let scale = |h: f64| h * units.strength / units.length / units.length / units.length;
    sample.error_of_matrices(exact, places.iter().map(|&i| found[i].map(scale)))
}

/// Sources by component in scaled units, up to whole vectors; padding has no strength.
struct Sources {
    x: [Vec<f64>; 3],
    q: Vec<f64>,
}

impl Sources {
    fn new(units: Units, position: &[[f64; 3]], strengths: &[f64]) -> Self {
        let padded = |mut values: Vec<f64>| {
            values.resize(values.len().next_multiple_of(f64::WIDTH), 0.0);
            values
        };
        Sources {
            x: [0, 1, 2].map(|d| padded(position.iter().map(|x| x[d] * units.length).collect())),
            q: padded(strengths.iter().map(|q| q * units.strength).collect()),
        }
    }
}

/// The direct sum at one place, and the square of its largest term.
struct Direct<'a> {
    at: [f64; 3],
    /// The strength of the target itself among those at distance zero.
    own: f64,
    softening: Softening,
    sources: &'a Sources,
}

impl Task<f64> for Direct<'_> {
    type Out = ([f64; 6], f64);

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        self.softening.with_radial::<V, _>(1.0, self)
    }
}

impl<V: Vector<Scalar = f64>> UseRadial<V> for Direct<'_> {
    type Out = ([f64; 6], f64);

    #[inline(always)]
    fn run<K: Radial<V>>(self, kernel: K) -> Self::Out {
        let Sources { x, q } = self.sources;
        let tiny = V::constant(f64::MIN_POSITIVE);
        let (mut sums, mut largest, mut here) = ([V::zero(); 7], V::zero(), V::zero());
        for j in (0..q.len()).step_by(f64::WIDTH) {
            let mut d = [V::zero(); 3];
            for k in 0..3 {
                d[k] = V::splat(self.at[k]).sub(V::load(&x[k][j..]));
            }
            let r2 = d[0].mul_add(d[0], d[1].mul_add(d[1], d[2].mul(d[2])));
            let all = V::load(&q[j..]);
            let q = all.keep_where_at_least(r2, tiny);
            here = here.add(all.sub(q));
            let (g, h) = kernel.second(r2);
            let (g, h) = (q.mul(g), q.mul(h));
            sums[0] = sums[0].add(g);
            for (k, [a, b]) in AXES.into_iter().enumerate() {
                sums[k + 1] = h.mul(d[a]).mul_add(d[b], sums[k + 1]);
            }
            // Eigenvalues along and across the line to the source.
            let along = h.mul(r2).sub(g);
            largest = largest.max(along.mul_add(along, g.mul(g).mul(V::constant(2.0))));
        }
        let mut lanes = [0.0; 16];
        largest.store(&mut lanes);
        // The strengths at distance zero.
        let here = here.sum() - self.own;
        let at_zero = here * Hessian(self.softening).potential_at_zero();
        let sums = sums.map(|s| s.sum());
        let hessian = Hessian::combine(sums[0] + at_zero, std::array::from_fn(|k| sums[k + 1]));
        (hessian, lanes.into_iter().fold(0.0, f64::max))
    }
}
