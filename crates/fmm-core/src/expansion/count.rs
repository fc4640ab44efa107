//! The expansion that only counts: proof that a plan shows every source to every target exactly once.

use std::ops::Range;

use super::{Expansion, Lattice};
use crate::kernel::{PairRelation, Pairs, Points, Sums};
use crate::math::Real;
use crate::math::simd::Vector;

/// The "potential" is the sum of the strengths of all sources seen; the field is that of nothing.
///
/// Potentials are handed over in the units of the cell, 1/h of the true one, so a count becomes h times itself where it
/// turns from a property of sources into one of a place.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// Side of the root cube.
    pub side: f64,
}

impl<T: Real, const D: usize> Expansion<T, D> for Count {
    fn len(&self) -> usize {
        1
    }

    fn degree(&self, _: usize) -> Range<usize> {
        0..1
    }

    /// Images beyond the lists' are not counted: there is no end of them.
    fn lattice(&self, _: &Lattice, _: &[T], _: &mut [T]) {}

    #[inline(always)]
    fn p2m<V: Vector<Scalar = T>>(&self, sources: Points<T, D>, multipole: &mut [T]) {
        for &q in sources.q {
            multipole[0] += q;
        }
    }

    #[inline(always)]
    fn p2l<V: Vector<Scalar = T>>(&self, unit: f64, sources: Points<T, D>, local: &mut [T]) {
        for &q in sources.q {
            local[0] += q * T::from_f64(unit);
        }
    }

    #[inline(always)]
    fn l2p<V: Vector<Scalar = T>>(&self, local: &[T], _: Points<T, D>, sums: &mut Sums<T, D>) {
        for p in sums.potential.iter_mut() {
            *p += local[0];
        }
    }

    #[inline(always)]
    fn m2p<V: Vector<Scalar = T>>(&self, unit: f64, multipole: &[T], _: Points<T, D>, sums: &mut Sums<T, D>) {
        for p in sums.potential.iter_mut() {
            *p += multipole[0] * T::from_f64(unit);
        }
    }

    #[inline(always)]
    fn m2m<V: Vector<Scalar = T>>(&self, _: u8, _: &mut [V], _: &mut Vec<V>) {}

    #[inline(always)]
    fn l2l<V: Vector<Scalar = T>>(&self, _: u8, lanes: &mut [V], _: &mut Vec<V>) {
        lanes[0] = lanes[0].mul(V::constant(0.5));
    }

    #[inline(always)]
    fn m2l<V: Vector<Scalar = T>>(&self, _: u32, level: usize, lanes: &mut [V], _: &mut Vec<V>) {
        lanes[0] = lanes[0].mul(V::constant(self.side * 0.5f64.powi(level as i32 + 1)));
    }
}

impl<const D: usize> Pairs<D> for Count {
    fn potential_at_zero(&self) -> f64 {
        1.0
    }

    fn smooth_below(&self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn p2p<T: Real, V: Vector<Scalar = T>>(
        &self,
        unit: f64,
        relation: PairRelation,
        _: Points<T, D>,
        sources: Points<T, D>,
        sums: &mut Sums<T, D>,
        _: &mut [T],
    ) {
        for (i, p) in sums.potential.iter_mut().enumerate() {
            for (j, &q) in sources.q.iter().enumerate() {
                if relation != PairRelation::Same(j as isize - i as isize) {
                    *p += q * T::from_f64(unit);
                }
            }
        }
    }
}
