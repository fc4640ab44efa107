//! The model of errors by truncation and by rounding that the error fields of all places share.
//!
//! Expansions of order p lose degrees p + 1 and beyond on both sides of a translation. What is lost
//! is estimated from degree p, whose mean square over directions is known for every cell (see
//! [`LastDegree`]):
//! - a local expansion loses the field of its degree p, continued to the distance r of the target from the center of
//!   the cell: times r^(2p), in half sides of the cell;
//! - a multipole loses the field of its degree p, continued to the distance d of the target from the center of the
//!   sources: times d^(−2(p + 3)), in half sides of the source cell.
//!
//! Kernels that are softened at every distance have the derivatives of 1/r at √(d² + ε²): within the softening length
//! cells lose next to nothing.
//!
//! Where strengths have both signs, degree p may be near 0 and p + 1 not: in a crystal whole cells are neutral, and
//! symmetric about their centers. There the last degree of a multipole counts at least as a part of that of as many
//! bodies at random places and with random signs. The field of such a cell may be nothing, and what is left of it in
//! single precision the rounding of its multipole, whose square is ε² Σq² d⁻⁴.
//!
//! Squares add, since errors of different cells have no common sign. What comes from pairs of cells
//! is kept for the eight octants of each target cell. Within a cell, and from a cell to its
//! children, logarithms are interpolated linearly between the centers of the octants.

use crate::expansion::LastDegree;
use crate::lists::Classes;
use crate::math::factorial;
use crate::math::scale::larger;
use crate::{Boundary, Family, Precision, Softening};

/// What the square of the last degree of a local expansion counts next to that of a multipole:
/// measured, so that at orders 2 to 18 most errors are within a factor of 4 of their estimate up to
/// one common factor (docs/accuracy.md).
pub const LOCAL: f64 = 0.1;

/// Multipoles nearer than this to the center of a leaf, in its half sides, are looked at from each
/// target: no octant is small there.
pub const NEAR: f64 = 5.0;

/// The least that the square of the last degree of a multipole of both signs counts, over that of random bodies: two
/// kinds of crystals have 0.2 to 2 at one of two degrees that follow each other, and nearly 0 at the other.
const RANDOM: f64 = 0.25;

/// No octant of a cell counts less than this part of the largest.
pub const LEAST: f64 = 1e-6;

/// From these tolerances on the rounding of pairs counts nothing, even where fields are a thousandth of their largest
/// terms: of strengths of one sign, and of both. In crystals many such terms add up.
const COARSE: [f64; 2] = [1e-4, 1e-2];

/// What [`of_pairs`] counts: half a spacing of numbers, squared. Errors of ions are as large as that, those of random
/// charges half as large.
pub const OF_PAIRS: f64 = 0.25 * (f32::EPSILON as f64) * (f32::EPSILON as f64);

/// From so many tolerances on an estimated relative error is doubted: errors count relative to a thousandth of the
/// largest term at least, and where forces cancel, as in the middle of a molecule, this is far more than the force. The
/// terms of the bodies of the same leaf then say so: a target whose error counts nothing is not to be drawn for another.
pub const DOUBTED: f64 = 2.0;

/// Terms of so many bodies of the leaf are looked at before and after a target, in the order of the tree: any number may
/// lie at one place.
pub const LOOKED_AT: usize = 256;

/// The size of the largest term of the field at `x`, of `sources` with their strengths that are farther away than
/// `reach`.
pub fn largest_term(x: &[f64; 3], sources: impl Iterator<Item = ([f64; 3], f64)>, reach: f64) -> f64 {
    let term = |(at, strength): ([f64; 3], f64)| {
        let r2 = square(&[0, 1, 2].map(|d| x[d] - at[d]));
        if r2 > reach * reach { strength.abs() / r2 } else { 0.0 }
    };
    sources.map(term).fold(0.0, f64::max)
}

/// The largest relative error that is predicted, in tolerances. Where forces cancel errors count
/// relative to a thousandth of the largest term, which nobody knows before the direct sum, and no
/// target that feels nothing at all is to take the sample for itself.
pub const LARGEST: f64 = 1e3;

/// One value for each octant of a cell.
pub type Octants = [f64; 8];

/// The centers of the octants of a cell of this shape, in half sides from its center: bit d of an
/// octant is set in the upper half of axis d.
pub fn centers(aspect: [f64; 3]) -> [[f64; 3]; 8] {
    std::array::from_fn(|o| std::array::from_fn(|d| if o >> d & 1 == 1 { 0.5 * aspect[d] } else { -0.5 * aspect[d] }))
}

/// Where what multipoles lose is the unit of [`of_classes`], in half sides: next to the nearest cells of a list.
const NEAREST: [f64; 3] = [3.5, 0.0, 0.0];

/// The largest number of that table: pairs nearer than those of any list would have larger ones.
const MOST: f64 = 1e30;

/// What multipoles of order `p` lose at the octants of target cells, for each class of offsets, by the square of their
/// last degree; and the unit of that. Single precision holds all classes of all orders.
pub fn of_classes(classes: Classes<3>, p: usize) -> (Vec<[f32; 8]>, f64) {
    let (aspect, centers, unit) = (classes.aspect(), centers(classes.aspect()), fall(NEAREST, 0.0, p));
    let of_class = |c: u32| {
        let offset = classes.offset(c);
        let from = |o: usize| std::array::from_fn(|d| centers[o][d] - 2.0 * f64::from(offset[d]) * aspect[d]);
        // The class of the offset zero has no pairs.
        std::array::from_fn(|o| if offset == [0; 3] { 0.0 } else { (fall(from(o), 0.0, p) / unit).min(MOST) as f32 })
    };
    ((0..classes.len() as u32).map(of_class).collect(), unit)
}

/// The fourth power of 1/distance between cells, in half sides, for each class of offsets. That is what the rounding of a
/// multipole of both signs loses at the center of a target cell: squared, in units of ε² Σq².
pub fn far_of_classes(classes: Classes<3>) -> Vec<f32> {
    let aspect = classes.aspect();
    let of_class = |c: u32| {
        let offset = classes.offset(c);
        let d2 = square(&[0, 1, 2].map(|d| 2.0 * f64::from(offset[d]) * aspect[d]));
        // The class of the offset zero has no pairs.
        if d2 > 0.0 { (1.0 / (d2 * d2)) as f32 } else { 0.0 }
    };
    (0..classes.len() as u32).map(of_class).collect()
}

/// What a multipole of order `p` at the origin loses at a place, where the square of the softening length is `core2`; both
/// in half sides of its cell.
pub fn fall(at: [f64; 3], core2: f64, p: usize) -> f64 {
    power(1.0 / (square(&at) + core2), p + 3)
}

/// What softening leaves of a power of 1/distance², `far` being the second of these.
pub fn softened(far: f32, core2: f64, exponent: usize) -> f64 {
    power(1.0 / (1.0 + core2 * f64::from(far).sqrt()), exponent)
}

/// What 1/r in place of a kernel that is softened at every distance loses of the field of a cell, squared: solid
/// harmonics know no other. Where charges cancel that of a few cells may be more than the whole field.
#[derive(Debug, Clone, Copy)]
pub struct Replaced {
    /// b of [`Softening::beside_newton`].
    pub part: f64,
    /// k of the same.
    pub power: usize,
    /// ε
    pub core: f64,
}

impl Replaced {
    /// That of `softening` in expansions of this family, if there is any.
    pub fn new(softening: Softening, family: Family) -> Option<Self> {
        let ((part, power), core) = (softening.beside_newton(), softening.core());
        let any = family == Family::Spherical && part > 0.0 && core > 0.0;
        any.then_some(Replaced { part, power: power as usize, core })
    }

    /// The same where this length is the unit.
    pub fn in_units_of(self, length: f64) -> Self {
        Replaced { core: self.core / length, ..self }
    }

    /// The charge of a cell as its multipoles of degree 0 and 1 have it: neutral cells have dipoles, which count as at
    /// the distance of near cells of a list.
    pub fn charge(self) -> LastDegree {
        // A field r^−n of a charge has the mean square p² (2 + n²)/3 r^(−2n − 2) of a dipole.
        let (n, r) = (self.power as f64 + 2.0, NEAREST[0]);
        let dipole = (2.0 + n * n) / 3.0 / (r * r);
        let [charge, mut all] = [0, 1].map(|p| LastDegree::new(Family::Spherical, p));
        // That of the field of 1/r is 2 p².
        all.multipole.iter_mut().for_each(|w| *w *= 0.5 * dipole);
        all.multipole.splice(0..0, charge.multipole);
        LastDegree { places: charge.places.start..all.places.end, multipole: all.multipole, local: vec![] }
    }

    /// At this square of the distance from a cell, for each unit of the square of its charge.
    pub fn at(self, r2: f64) -> f64 {
        (self.part / r2).powi(2) * power(self.core * self.core / r2, self.power)
    }
}

/// From this square of the softening length on, in half sides of a cell, [`softened`] counts.
pub const CORE: f64 = 1e-3;

/// The least that the square of the last degree of a multipole of order `p` counts for each unit of Σq² in a cell of
/// both signs, whose sides have this shape: a part of (p + 1) ⟨r^2p⟩, the mean of single bodies anywhere in the cell.
pub fn least_of_random(aspect: [f64; 3], p: usize) -> f64 {
    // ⟨x^2n⟩/n!
    let mean = |d: usize, n: usize| power(aspect[d] * aspect[d], n) / ((2 * n + 1) as f64 * factorial(n));
    let of_xy = |m: usize| (0..=m).map(|n| mean(0, n) * mean(1, m - n)).sum::<f64>();
    RANDOM * (p + 1) as f64 * factorial(p) * (0..=p).map(|m| of_xy(m) * mean(2, p - m)).sum::<f64>()
}

/// x².
pub fn square(x: &[f64; 3]) -> f64 {
    x[0] * x[0] + x[1] * x[1] + x[2] * x[2]
}

/// x^n by squaring: the same bits on every machine.
pub fn power(x: f64, n: usize) -> f64 {
    let (mut result, mut x, mut n) = (1.0, x, n);
    while n > 0 {
        if n & 1 == 1 {
            result *= x;
        }
        x *= x;
        n >>= 1;
    }
    result
}

/// The values at the octants of a cell, interpolated: their logarithms are linear along each axis between the centers of
/// the octants, and beyond the centers too. Logarithms are the bits of positive numbers, with a linear mantissa.
pub struct Interpolated {
    /// Of the products of the coordinates of the bits of the place in this array.
    coefficients: Octants,
}

impl Interpolated {
    /// Of these values.
    pub fn new(octants: &Octants) -> Self {
        let largest = octants.iter().fold(f64::MIN_POSITIVE, |m, &o| larger(m, o));
        let mut c = octants.map(|o| larger(o, LEAST * largest).to_bits() as f64);
        // 1/2 − x of the lower and 1/2 + x of the upper octants of each axis.
        for axis in 0..3 {
            for lower in (0..8).filter(|o| o >> axis & 1 == 0) {
                let upper = lower | 1 << axis;
                (c[lower], c[upper]) = (0.5 * (c[lower] + c[upper]), c[upper] - c[lower]);
            }
        }
        Interpolated { coefficients: c }
    }

    /// The value at a place in half sides from the center of the cell.
    #[inline]
    pub fn at(&self, [x, y, z]: [f64; 3]) -> f64 {
        let c = &self.coefficients;
        let low = c[0] + x * c[1] + y * (c[2] + x * c[3]);
        let high = c[4] + x * c[5] + y * (c[6] + x * c[7]);
        f64::from_bits((low + z * high) as u64)
    }
}

/// What [`rounding_of_terms`] knows of all strengths, whose sizes have the sum `total`: 1/Σ|q|, or 0 where the potential
/// says nothing of the terms.
///
/// Rounding is a part of the sum of the sizes of all terms. In open space the potential φ of 1/r knows
/// of these although the field does not: Σ|q|/r² ≥ φ²/Σ|q| by the inequality of Cauchy and Schwarz, and
/// both are equal where all sources have one sign and are equally far. For softened kernels it is an estimate.
pub fn per_potential(boundary: Boundary, total: f64) -> f64 {
    let per = 1.0 / total;
    if boundary.periodic().is_none() && per.is_finite() { per } else { 0.0 }
}

/// The spacing of numbers next to 1 in sums by expansions. Pairs have [`of_pairs`], and [`of_mixed`] where they are less
/// exact.
pub fn epsilon_of_terms(precision: Precision) -> f64 {
    if precision == Precision::F32 { Precision::F32.epsilon() } else { f64::EPSILON }
}

/// What pairs in single precision lose of a field that is in double precision otherwise, over it and the spacing of
/// numbers next to 1: medians of clusters and of uniform sets are 0.25 to 0.75. Few targets, those with the closest
/// pairs that are not summed again, lose far more.
const OF_MIXED: f64 = 0.4;

/// That, squared and over the square of the field; 0 where both have the same precision. Targets whose pairs were too close
/// for single precision lose nothing.
pub fn of_mixed(precision: Precision) -> f64 {
    if precision == Precision::Mixed { (OF_MIXED * Precision::Mixed.epsilon()).powi(2) } else { 0.0 }
}

/// ε² of [`far_of_classes`], or 0 where multipoles lose next to nothing by rounding: those of one sign, which do not
/// cancel, and in double precision.
pub fn rounding_of_multipoles(precision: Precision, mixed: bool) -> f64 {
    if mixed && precision == Precision::F32 { Precision::F32.epsilon().powi(2) } else { 0.0 }
}

/// Whether [`of_pairs`] is a part of the errors of a sum for this tolerance, of strengths of one sign or of both.
pub fn rounds_pairs(precision: Precision, tolerance: f64, mixed: bool) -> bool {
    precision != Precision::F64 && tolerance < COARSE[usize::from(mixed)]
}

/// The squares of what the rounding of pairs with bodies of a cell to single precision loses of the field at the
/// octants of a target cell, in units of Σ|q| of the source cell over the square of its half side. The offsets of the
/// lower and of the upper octants from its center are in these half sides, axis by axis, as is the softening length,
/// whose square is `core2`: a part of each term r/(r² + ε²)^(3/2), with r of a half side at least. Where signs
/// cancel neither fields nor potentials know of these terms.
pub fn of_pairs(from: [[f64; 2]; 3], core2: f64) -> Octants {
    let [x, y, z] = from.map(|sides| sides.map(|x| x * x));
    std::array::from_fn(|o| {
        let r2 = larger(x[o & 1] + y[o >> 1 & 1] + z[o >> 2], 1.0);
        let softened = r2 + core2;
        OF_PAIRS / (softened * softened) * (r2 / softened)
    })
}

/// The rounding of a field whose terms cancel, from the potential there, with this spacing of numbers next to 1.
pub fn rounding_of_terms(epsilon: f64, per_potential: f64, potential: f64) -> f64 {
    // The square of a potential may be no number.
    epsilon * potential.abs() * (potential.abs() * per_potential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolation_returns_the_octants_at_their_centers() {
        let octants: Octants = std::array::from_fn(|o| 3f64.powi(o as i32 - 4));
        let between = Interpolated::new(&octants);
        for (o, center) in centers([1.0; 3]).into_iter().enumerate() {
            let found = between.at(center);
            assert!((found / octants[o] - 1.0).abs() < 1e-9, "{found} {}", octants[o]);
        }
        // Between two of them, and beyond: powers go on, to the linear mantissa's 6 %.
        for x in [-1.0, -0.25, 0.0, 0.7, 1.0] {
            let found = between.at([x, 0.5, 0.5]);
            let expected = octants[6] * 3f64.powf(x + 0.5);
            assert!((found / expected - 1.0).abs() < 0.13, "{x}: {found} {expected}");
        }
        // Nothing is a small number, not none.
        assert!(Interpolated::new(&[0.0; 8]).at([0.3; 3]) < 1e-300);
    }

    #[test]
    fn rounding_is_known_from_potentials_of_any_size_in_open_space() {
        use crate::PeriodicBox;
        // Two bodies at the distance 2 of a target between them: terms of 3/4 each.
        for unit in [1.0, 2f64.powi(600), 2f64.powi(-600)] {
            let per = per_potential(Boundary::Open, 6.0 * unit);
            assert_eq!(rounding_of_terms(0.5, per, 3.0 * unit), 0.5 * 1.5 * unit);
            // Of both signs it is a part: terms of 3/4 and 1/4, whose potential is 1.
            let part = rounding_of_terms(0.5, per_potential(Boundary::Open, 4.0 * unit), unit);
            assert_eq!(part, 0.5 * 0.25 * unit);
        }
        assert_eq!(per_potential(Boundary::Open, 0.0), 0.0);
        assert_eq!(per_potential(Boundary::Periodic(PeriodicBox::cube(1.0)), 1.0), 0.0);
    }

    #[test]
    fn random_bodies_have_the_mean_of_their_places() {
        // ⟨r²⟩ = 1/3 (1 + 1/4 + 1/16), and for p = 2 ⟨x⁴⟩ = 1/5 and ⟨x²y²⟩ = 1/9 in a cube.
        assert!((least_of_random([1.0, 0.5, 0.25], 1) / RANDOM / (2.0 * 21.0 / 48.0) - 1.0).abs() < 1e-14);
        assert!((least_of_random([1.0; 3], 2) / RANDOM / (3.0 * (3.0 / 5.0 + 6.0 / 9.0)) - 1.0).abs() < 1e-14);
        assert!(least_of_random([1.0; 3], 40).is_normal());
    }

    #[test]
    fn multipoles_lose_more_where_they_are_near() {
        let classes = Classes::<3>::new(4.0);
        let (table, unit) = of_classes(classes, 6);
        // Sources at x = −2 sides: the lower octants along x are nearer.
        let octants = table[classes.class([-2, 0, 0]) as usize].map(f64::from);
        assert!((octants[0] / octants[1] - (((4.5f64).powi(2) + 0.5) / (3.5f64.powi(2) + 0.5)).powi(9)).abs() < 1e-5);
        assert!((octants[0] * unit * (3.5f64.powi(2) + 0.5).powi(9) - 1.0).abs() < 1e-6);
        // Of the highest order too the farthest class is a number.
        let farthest = of_classes(classes, 30).0[classes.class([3; 3]) as usize];
        assert!(farthest.iter().all(|lost| lost.is_normal()), "{farthest:?}");
    }
}
