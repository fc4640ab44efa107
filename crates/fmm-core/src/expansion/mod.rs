//! Expansions: the mathematics that a plan is executed with.
//!
//! Coefficients and bodies are in units of the cell: positions relative to its center and divided
//! by half its side h, multipoles M_l/h^l, local expansions L_l·h^(l+1). Operators are then the
//! same at every level, and nothing over- or underflows however deep the tree is. A potential in
//! true units is 1/h times the scaled one, a field 1/h² times. Operators that depend on the length
//! of a softened kernel take h as the argument `unit`, or the level of the cells. Every operator
//! ADDS to its result unless it says `in place`.

mod cartesian;
mod count;
pub mod dense;
mod last_degree;
mod matrix;
mod spherical;

pub use cartesian::{Cartesian, MAX_ORDER as MAX_CARTESIAN_ORDER};
pub use count::Count;
pub use last_degree::LastDegree;
pub use matrix::{Translation, matrix};
pub use spherical::{Kind, Lattice, Spherical, between_cells, recurrences};
pub(crate) use spherical::{multipole_weights, place_of};

use std::ops::Range;
use std::sync::Arc;

use crate::kernel::{Points, Sums};
use crate::math::Real;
use crate::math::simd::Vector;
use dense::Operators;

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
    /// If the kernel has no sum over a lattice. Such kernels are refused earlier.
    fn lattice(&self, _operator: &Lattice, _multipole: &[T], _local: &mut [T]) {
        unreachable!("a kernel without a sum over a lattice");
    }

    /// The derivative of an expansion along `axis`, in units of the cell: a local expansion of the
    /// same order, whose last degree vanishes, or a multipole of an order higher by one.
    ///
    /// # Panics
    /// If the family has none.
    fn derivative(&self, _local: bool, _coefficients: &[T], _axis: usize) -> Vec<T> {
        unreachable!("a family without derivatives");
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
