//! Every source at every target: targets in vectors, sources streamed.

use super::radial::Radial;
use super::{Points, Softening, Sums, UseRadial};
use crate::math::Real;
use crate::math::simd::Vector;

/// What sources and targets of a direct sum have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairRelation {
    /// No source lies at the place of a target.
    Apart,
    /// Any place.
    Anywhere,
    /// Target i is the source at this place + i, and skipped; the place may be negative or beyond the end.
    Same(isize),
}

/// The direct sum of a kernel, in both precisions: where bodies come too close for single
/// precision, a leaf is summed again in double. It gives one number and R components for each
/// target: the potential and the field, with R = D.
pub trait Pairs<const D: usize, const R: usize = D>: Sync {
    /// K(0), in the user's unit; 0 where it would be infinite.
    fn potential_at_zero(&self) -> f64;

    /// The length below which the kernel is smooth; 0 for 1/r.
    fn smooth_below(&self) -> f64;

    /// Every source at every target, in any common unit and about any common origin. In single precision
    /// `nearest`, one number for each target, falls to the smallest squared distance of a pair of
    /// different bodies; double precision leaves it as it is.
    fn p2p<T: Real, V: Vector<Scalar = T>>(
        &self,
        unit: f64,
        relation: PairRelation,
        targets: Points<T, D>,
        sources: Points<T, D>,
        sums: &mut Sums<T, R>,
        nearest: &mut [T],
    );

    /// What the number and the components are multiplied by that were summed in this unit of length.
    fn scales(unit: f64) -> [f64; 2] {
        [1.0 / unit, 1.0 / (unit * unit)]
    }
}

impl Pairs<3> for Softening {
    fn potential_at_zero(&self) -> f64 {
        self.at_zero()
    }

    fn smooth_below(&self) -> f64 {
        self.length()
    }

    #[inline(always)]
    fn p2p<T: Real, V: Vector<Scalar = T>>(
        &self,
        unit: f64,
        relation: PairRelation,
        targets: Points<T, 3>,
        sources: Points<T, 3>,
        sums: &mut Sums<T, 3>,
        nearest: &mut [T],
    ) {
        self.with_radial::<V, _>(unit, AllPairs { relation, targets, sources, sums, nearest });
    }
}

/// The loop over all pairs, for any radial function.
pub(super) struct AllPairs<'a, 'b, T, const R: usize> {
    pub relation: PairRelation,
    pub targets: Points<'a, T, 3>,
    pub sources: Points<'a, T, 3>,
    pub sums: &'a mut Sums<'b, T, R>,
    pub nearest: &'a mut [T],
}

impl<T: Real, V: Vector<Scalar = T>> UseRadial<V> for AllPairs<'_, '_, T, 3> {
    type Out = ();

    #[inline(always)]
    fn run<K: Radial<V>>(self, kernel: K) {
        all_pairs::<T, V, K>(kernel, self.relation, self.targets, self.sources, self.sums, self.nearest);
    }
}

/// Vectors of targets that are worked on together: enough independent chains to fill the pipelines.
const GROUP: usize = 2;

#[inline(always)]
fn all_pairs<T: Real, V: Vector<Scalar = T>, K: Radial<V>>(
    kernel: K,
    relation: PairRelation,
    targets: Points<T, 3>,
    sources: Points<T, 3>,
    sums: &mut Sums<T, 3>,
    nearest: &mut [T],
) {
    let n = sums.potential.len();
    let mut i = 0;
    while i < n {
        let vectors = ((n - i) / T::WIDTH).min(GROUP);
        // Targets i.. are sources own.. : only there a target must skip itself.
        let own = match relation {
            PairRelation::Same(first) => Some(first + i as isize)
                .filter(|&own| own < sources.q.len() as isize && own + (vectors * T::WIDTH) as isize > 0),
            _ => None,
        };
        match (vectors, own) {
            (GROUP, None) if relation == PairRelation::Apart => {
                group::<T, V, K, GROUP, true>(kernel, None, i, targets, sources, sums, nearest)
            }
            (GROUP, None) => group::<T, V, K, GROUP, false>(kernel, None, i, targets, sources, sums, nearest),
            (GROUP, own) => group::<T, V, K, GROUP, false>(kernel, own, i, targets, sources, sums, nearest),
            (_, None) if relation == PairRelation::Apart => {
                group::<T, V, K, 1, true>(kernel, None, i, targets, sources, sums, nearest)
            }
            (_, own) => group::<T, V, K, 1, false>(kernel, own, i, targets, sources, sums, nearest),
        }
        i += vectors * T::WIDTH;
    }
}

/// A squared distance beyond all others.
pub const FAR: f64 = 1e30;

/// Ones around a zero, shifted so that the zero falls on the lane that is the source itself:
/// vectors from here on.
#[inline(always)]
pub(super) fn hole<T: Real>() -> [T; 33] {
    let mut hole = [T::ONE; 33];
    hole[16] = T::ZERO;
    hole
}

/// `N` vectors of targets from place `i`; with `own`, target i + k is source own + k and skipped; `APART` promises that there is none
/// and that no pair is at distance zero.
#[inline(always)]
fn group<T: Real, V: Vector<Scalar = T>, K: Radial<V>, const N: usize, const APART: bool>(
    kernel: K,
    own: Option<isize>,
    i: usize,
    targets: Points<T, 3>,
    sources: Points<T, 3>,
    sums: &mut Sums<T, 3>,
    nearest: &mut [T],
) {
    let n = sources.q.len();
    let [sx, sy, sz] = [&sources.x[0][..n], &sources.x[1][..n], &sources.x[2][..n]];
    let mut at = [[V::zero(); 3]; N];
    for k in 0..N {
        at[k] = targets.load(i + k * T::WIDTH);
    }
    let mut total = [[V::zero(); 4]; N];
    let mut least = [V::constant(FAR); N];
    // Distances that round to zero after all give a finite force, times zero.
    let raise = if APART { V::splat(T::TINY) } else { V::zero() };
    let hole = hole::<T>();
    // No closures in here: they are compiled without the vector instructions unless they happen to be inlined.
    for j in 0..n {
        let (x, y, z, q) = (V::splat(sx[j]), V::splat(sy[j]), V::splat(sz[j]), V::splat(sources.q[j]));
        for k in 0..N {
            let (dx, dy, dz) = (at[k][0].sub(x), at[k][1].sub(y), at[k][2].sub(z));
            let r2 = dx.mul_add(dx, dy.mul_add(dy, dz.mul_add(dz, raise)));
            let (potential, force) = kernel.eval::<APART>(r2);
            let (mut q, mut distance) = (q, r2);
            if let Some(own) = own {
                let lane = j as isize - own - (k * T::WIDTH) as isize;
                if (0..T::WIDTH as isize).contains(&lane) {
                    let others = V::load(&hole[16 - lane as usize..]);
                    q = q.mul(others);
                    distance = V::constant(FAR).mul_add(V::constant(1.0).sub(others), r2);
                }
            }
            if size_of::<T>() == 4 {
                least[k] = least[k].min(distance);
            }
            let force = q.mul(force);
            total[k][0] = q.mul_add(potential, total[k][0]);
            total[k][1] = force.mul_add(dx, total[k][1]);
            total[k][2] = force.mul_add(dy, total[k][2]);
            total[k][3] = force.mul_add(dz, total[k][3]);
        }
    }
    for k in 0..N {
        let place = i + k * T::WIDTH;
        if size_of::<T>() == 4 {
            V::load(&nearest[place..]).min(least[k]).store(&mut nearest[place..]);
        }
        V::load(&sums.potential[place..]).add(total[k][0]).store(&mut sums.potential[place..]);
        for d in 0..3 {
            V::load(&sums.field[d][place..]).add(total[k][d + 1]).store(&mut sums.field[d][place..]);
        }
    }
}
