//! Expansions: the mathematics that a plan is executed with.
//!
//! Coefficients and bodies are in units of the cell: positions relative to its centre and divided by half its
//! side h, multipoles M_l/h^l, local expansions L_l·h^(l+1). Operators then are the same at every level,
//! nothing over- or underflows however deep the tree is, and a potential in true units is 1/h times
//! the scaled one, a field 1/h² times. Operators that know the length of a softened kernel are told h as `unit`, or the
//! level of the cells. Every operator ADDS to its result unless it says `in place`.

mod cartesian;
mod count;
mod matrix;
mod spherical;

pub use cartesian::{Cartesian, MAX_ORDER as MAX_CARTESIAN_ORDER};
pub use count::Count;
pub use matrix::{Translation, matrix};
pub use spherical::{Kind, Lattice, Spherical, between_cells, dense_order, recurrences};
pub(crate) use spherical::{multipole_weights, place_of};

use std::ops::Range;
use std::sync::Arc;

use crate::cpu::dense::Operators;
use crate::cpu::p2p;
use crate::cpu::simd::Vector;
use crate::real::Real;
use crate::settings::Softening;

/// Bodies in the units of a cell, in arrays whose length is a multiple of [`Real::WIDTH`]. Padding has
/// strength 0 and the place of a real body.
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

/// One family of expansions with its kernel, in D dimensions.
pub trait Expansion<T: Real, const D: usize>: Sync {
    /// Numbers in one expansion.
    fn len(&self) -> usize;

    /// The places of the coefficients of one degree, from 0 to the order.
    fn degree(&self, degree: usize) -> Range<usize>;

    /// Whether an expansion holds nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The matrices of M2L, where products with them are faster than [`m2l`](Expansion::m2l).
    fn matrices(&self) -> Option<Arc<Operators<T>>> {
        None
    }

    /// The multipole of the root of a periodic box to its local expansion, over all images that lists do not know.
    ///
    /// # Panics
    /// If the kernel has no sum over a lattice: such are refused before.
    fn lattice(&self, _operator: &Lattice, _multipole: &[T], _local: &mut [T]) {
        unreachable!("a kernel without a sum over a lattice");
    }

    /// Bodies to the multipole of their cell.
    fn p2m<V: Vector<Scalar = T>>(&self, sources: Points<T, D>, multipole: &mut [T]);

    /// Bodies to the local expansion of a cell that is far from all of them.
    fn p2l<V: Vector<Scalar = T>>(&self, unit: f64, sources: Points<T, D>, local: &mut [T]);

    /// A local expansion at the bodies of its cell.
    fn l2p<V: Vector<Scalar = T>>(&self, local: &[T], targets: Points<T, D>, sums: &mut Sums<T, D>);

    /// A multipole at bodies far from its cell.
    fn m2p<V: Vector<Scalar = T>>(&self, unit: f64, multipole: &[T], targets: Points<T, D>, sums: &mut Sums<T, D>);

    /// Multipoles of children in corner `octant`, one a lane, to their parents' frames. In place.
    fn m2m<V: Vector<Scalar = T>>(&self, octant: u8, lanes: &mut [V], scratch: &mut Vec<V>);

    /// Local expansions of parents, one a lane, to their children's frames in corner `octant`. In place.
    fn l2l<V: Vector<Scalar = T>>(&self, octant: u8, lanes: &mut [V], scratch: &mut Vec<V>);

    /// Multipoles to local expansions across the offset of `class`, one pair a lane. In place.
    fn m2l<V: Vector<Scalar = T>>(&self, class: u32, level: usize, lanes: &mut [V], scratch: &mut Vec<V>);
}

/// What sources and targets of a direct sum have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// No source lies at the place of a target.
    Apart,
    /// Any place.
    Anywhere,
    /// Target i is the source at this place + i, and skipped; the place may be negative or beyond the end.
    Same(isize),
}

/// The direct sum of a kernel, in both precisions: where bodies come too close for single precision, a leaf is summed again in
/// double.
pub trait Pairs<const D: usize>: Sync {
    /// K(0), in the user's unit; 0 where it would be infinite.
    fn potential_at_zero(&self) -> f64;

    /// The length below which the kernel is smooth; 0 for 1/r.
    fn smooth_below(&self) -> f64;

    /// Every source at every target, in any common unit and about any common origin. Returns the smallest squared distance of a pair
    /// of different bodies, in single precision; a large number in double, which needs none.
    fn p2p<T: Real, V: Vector<Scalar = T>>(
        &self,
        unit: f64,
        meeting: Meeting,
        targets: Points<T, D>,
        sources: Points<T, D>,
        sums: &mut Sums<T, D>,
    ) -> T;
}

impl Pairs<3> for Softening {
    fn potential_at_zero(&self) -> f64 {
        match *self {
            Softening::None => 0.0,
            Softening::Plummer(e) | Softening::Spline(e) => 1.0 / e,
            Softening::P1(e) => 1.5 / e,
        }
    }

    fn smooth_below(&self) -> f64 {
        match *self {
            Softening::None => 0.0,
            Softening::Plummer(e) | Softening::P1(e) | Softening::Spline(e) => e,
        }
    }

    #[inline(always)]
    fn p2p<T: Real, V: Vector<Scalar = T>>(
        &self,
        unit: f64,
        meeting: Meeting,
        targets: Points<T, 3>,
        sources: Points<T, 3>,
        sums: &mut Sums<T, 3>,
    ) -> T {
        p2p::softened::<T, V>(*self, unit, meeting, targets, sources, sums)
    }
}

/// Adds Σ weights·values to the potential and, with the opposite sign, the field of the vector of targets at place `i`; the
/// weights of one value are those in the potential and its three derivatives.
#[inline(always)]
fn add_weighted<T: Real, V: Vector<Scalar = T>>(i: usize, weights: &[[T; 4]], values: &[V], sums: &mut Sums<T, 3>) {
    let mut total = [V::zero(); 4];
    for (w, value) in weights.iter().zip(values) {
        for c in 0..4 {
            total[c] = V::splat(w[c]).mul_add(*value, total[c]);
        }
    }
    V::load(&sums.potential[i..]).add(total[0]).store(&mut sums.potential[i..]);
    for d in 0..3 {
        V::load(&sums.field[d][i..]).sub(total[d + 1]).store(&mut sums.field[d][i..]);
    }
}
