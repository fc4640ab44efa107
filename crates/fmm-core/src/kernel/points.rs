//! Points and sums in the units of a cell, one array an axis.

use crate::math::Real;
use crate::math::simd::Vector;

/// Bodies in the units of a cell, in arrays whose length is a multiple of
/// [`Number::WIDTH`](crate::math::Number::WIDTH). Padding has strength 0 and the place of a real body.
#[derive(Clone, Copy)]
pub struct Points<'a, T, const D: usize> {
    /// Coordinates, one array an axis.
    pub x: [&'a [T]; D],
    /// Strengths (of sources; empty for targets).
    pub q: &'a [T],
}

impl<T: Real, const D: usize> Points<'_, T, D> {
    /// The coordinates of the bodies from place `i` on, a vector an axis. (No closure: it would be compiled without the
    /// vector instructions unless it happened to be inlined.)
    #[inline(always)]
    pub fn load<V: Vector<Scalar = T>>(&self, i: usize) -> [V; D] {
        let mut at = [V::zero(); D];
        for d in 0..D {
            at[d] = V::load(&self.x[d][i..]);
        }
        at
    }
}

/// Sums at targets, padded like the targets: potential Σ q K and field e = −∇ of it.
pub struct Sums<'a, T, const D: usize> {
    /// Potential.
    pub potential: &'a mut [T],
    /// Field, one array an axis.
    pub field: [&'a mut [T]; D],
}
