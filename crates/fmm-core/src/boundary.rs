//! What lies beyond the bodies: nothing, or images of their box without end.

use rayon::prelude::*;

use crate::Error;
use crate::kernel::Softening;
use crate::math::CollectVec;

/// Where space ends.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Boundary {
    /// Nowhere.
    #[default]
    Open,
    /// In a box that repeats along x, y and z.
    Periodic(PeriodicBox),
}

impl Boundary {
    /// The box, if there is one.
    pub fn periodic(&self) -> Option<&PeriodicBox> {
        match self {
            Boundary::Open => None,
            Boundary::Periodic(cell) => Some(cell),
        }
    }
}

/// What the infinitely many images are embedded in. It matters through the dipole of the box alone.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Surroundings {
    /// A conductor: the average of the potential over the box is zero.
    #[default]
    TinFoil,
    /// A medium of this dielectric constant; 1 is vacuum.
    Dielectric(f64),
}

/// A box with images: all sums run over `side`-translates of every source, and a charge that is not zero is compensated by a uniform
/// background.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeriodicBox {
    /// The sides along x, y and z, in the user's unit.
    pub side: [f64; 3],
    /// Around all images.
    pub surroundings: Surroundings,
}

/// Strengths that add up to less than this part of the sum of their magnitudes count as neutral: decimal fractions do.
const NEUTRAL: f64 = 1e-12;

impl PeriodicBox {
    /// The longest side over the shortest that expansions serve. Cells have the shape of the box, and longer ones converge slowly.
    pub const MOST_ELONGATED: f64 = 4.0;

    /// A cube in a conductor.
    pub fn cube(side: f64) -> Self {
        PeriodicBox { side: [side; 3], surroundings: Surroundings::TinFoil }
    }

    /// The volume.
    pub fn volume(&self) -> f64 {
        self.side.iter().product()
    }

    /// The longest side.
    pub fn longest(&self) -> f64 {
        self.side.into_iter().fold(0.0, f64::max)
    }

    /// The shortest side.
    pub fn shortest(&self) -> f64 {
        self.side.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Checks sides and surroundings, and that softening ends within half of a box.
    ///
    /// # Errors
    /// [`Error::Range`] for a number outside its range, [`Error::Unsupported`] for kernels that differ from 1/r at any distance.
    pub fn check(&self, softening: Softening) -> Result<(), Error> {
        for value in self.side {
            if !(1e-60..=1e60).contains(&value) {
                return Err(Error::Range { what: "side of the periodic box", value, range: "1e-60 to 1e60" });
            }
        }
        if let Surroundings::Dielectric(value) = self.surroundings
            && !(1.0..=1e300).contains(&value)
        {
            return Err(Error::Range { what: "dielectric constant of the surroundings", value, range: "1 or more" });
        }
        softening.check_in_box(self.shortest())
    }

    /// Checks that a box of these strengths has a potential in its surroundings.
    ///
    /// # Errors
    /// [`Error::Charged`] for a charged box that is not in a conductor.
    pub fn check_charge(&self, strengths: &[f64]) -> Result<(), Error> {
        self.check_total(strengths.iter().sum(), strengths.iter().map(|q| q.abs()).sum())
    }

    /// The same of strengths with this sum and this sum of sizes.
    ///
    /// # Errors
    /// [`Error::Charged`].
    pub fn check_total(&self, total: f64, magnitude: f64) -> Result<(), Error> {
        if self.surroundings != Surroundings::TinFoil && total.abs() > NEUTRAL * magnitude {
            return Err(Error::Charged(total));
        }
        Ok(())
    }

    /// The image of `x` in [0, side).
    pub fn wrapped(&self, x: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|d| {
            let side = self.side[d];
            let inside = x[d] - (x[d] / side).floor() * side;
            // Rounding reaches the ends.
            if inside >= side || inside < 0.0 { 0.0 } else { inside }
        })
    }

    /// All of `points` in [0, side).
    pub fn wrap(&self, points: &[[f64; 3]]) -> Vec<[f64; 3]> {
        points.par_iter().map(|x| self.wrapped(*x)).collect_vec()
    }

    /// c = 2π/((2ε + 1) V) of the medium ε around the images (de Leeuw, Perram & Smith 1980): it adds c (2 x·D − S₂) to the potential in
    /// tin foil and −2 c D to the field, with D and S₂ of unwrapped positions. `None` in a conductor.
    pub fn depolarisation(&self) -> Option<f64> {
        match self.surroundings {
            Surroundings::TinFoil => None,
            Surroundings::Dielectric(medium) => {
                Some(2.0 * std::f64::consts::PI / ((2.0 * medium + 1.0) * self.volume()))
            }
        }
    }
}

/// Moments of strengths about a point: Q = Σ q, D = Σ q y and S₂ = Σ q y².
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// Q.
    pub charge: f64,
    /// D.
    pub dipole: [f64; 3],
    /// S₂.
    pub second: f64,
}

/// The field that is added to sums over images at last: that of the part of tin foil's potential that is not harmonic,
/// and that of the surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Background {
    /// The middle of the box.
    pub middle: [f64; 3],
    /// The field there.
    pub uniform: [f64; 3],
    /// What is added to it for each unit of length from there.
    pub slope: f64,
}

impl Background {
    /// Of sources with the moments `inner`, as they are wrapped into `cell` and about its middle, and `outer`, as they
    /// are given.
    pub fn of(cell: &PeriodicBox, inner: &Moments, outer: &Moments) -> Self {
        let c = 2.0 * 2.0 * std::f64::consts::PI / (3.0 * cell.volume());
        let around = 2.0 * cell.depolarisation().unwrap_or(0.0);
        Background {
            middle: cell.side.map(|s| 0.5 * s),
            uniform: [0, 1, 2].map(|d| c * inner.dipole[d] - around * outer.dipole[d]),
            slope: -c * inner.charge,
        }
    }

    /// That of strengths so many times as large.
    pub fn scaled(self, by: f64) -> Self {
        Background { uniform: self.uniform.map(|e| by * e), slope: by * self.slope, ..self }
    }

    /// `field` with it, at a place in the box.
    #[inline]
    pub fn added(&self, field: &[f64; 3], x: &[f64; 3]) -> [f64; 3] {
        std::array::from_fn(|d| field[d] + self.uniform[d] + self.slope * (x[d] - self.middle[d]))
    }
}

/// Bodies that one task adds up, so that sums do not depend on threads.
const BLOCK: usize = 1 << 13;

impl Moments {
    /// Those of bodies, about `origin`.
    pub fn of(points: &[[f64; 3]], strengths: &[f64], origin: [f64; 3]) -> Self {
        let block = |(points, strengths): (&[[f64; 3]], &[f64])| {
            let mut sum = Moments::default();
            for (x, q) in points.iter().zip(strengths) {
                let y: [f64; 3] = std::array::from_fn(|d| x[d] - origin[d]);
                sum.charge += q;
                (0..3).for_each(|d| sum.dipole[d] += q * y[d]);
                sum.second += q * (y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
            }
            sum
        };
        let parts: Vec<Moments> = points.par_chunks(BLOCK).zip(strengths.par_chunks(BLOCK)).map(block).collect_vec();
        parts.iter().fold(Moments::default(), |a, b| Moments {
            charge: a.charge + b.charge,
            dipole: std::array::from_fn(|d| a.dipole[d] + b.dipole[d]),
            second: a.second + b.second,
        })
    }

    /// Σ q |x − x_j|² at `y` from the origin, and minus its gradient.
    pub fn paraboloid(&self, y: [f64; 3]) -> (f64, [f64; 3]) {
        let square = y[0] * y[0] + y[1] * y[1] + y[2] * y[2];
        let along = y[0] * self.dipole[0] + y[1] * self.dipole[1] + y[2] * self.dipole[2];
        let slope = std::array::from_fn(|d| 2.0 * (self.dipole[d] - self.charge * y[d]));
        (self.charge * square - 2.0 * along + self.second, slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_is_what_paraboloids_give() {
        let cell = PeriodicBox { side: [2.0, 3.0, 4.0], surroundings: Surroundings::Dielectric(1.0) };
        let middle = cell.side.map(|s| 0.5 * s);
        let (points, q) = ([[0.5, 1.0, 3.0], [1.5, 2.5, 0.2]], [2.0, -1.0]);
        let (inner, outer) = (Moments::of(&points, &q, middle), Moments::of(&points, &q, [0.0; 3]));
        let (c, around) = (2.0 * std::f64::consts::PI / (3.0 * cell.volume()), cell.depolarisation().unwrap());
        let x: [f64; 3] = [0.1, 2.9, 1.0];
        let tin_foil = inner.paraboloid([0, 1, 2].map(|d| x[d] - middle[d])).1;
        let surroundings = Moments { charge: 0.0, ..outer }.paraboloid(x).1;
        let found = Background::of(&cell, &inner, &outer).scaled(2.0).added(&[1.0; 3], &x);
        for d in 0..3 {
            let expected = 1.0 + 2.0 * (c * tin_foil[d] - around * surroundings[d]);
            assert!((found[d] - expected).abs() < 1e-12 * expected.abs(), "{} {expected}", found[d]);
        }
    }

    #[test]
    fn bodies_come_to_lie_in_the_box() {
        let cell = PeriodicBox { side: [1.0, 2.0, 0.1], surroundings: Surroundings::TinFoil };
        let x = cell.wrapped([-0.25, 5.0, -1e-30]);
        assert_eq!(x, [0.75, 1.0, 0.0]);
        for value in [0.3, 0.1, 0.7, -0.1, 1e9, -1e17] {
            let z = cell.wrapped([0.0, 0.0, value])[2];
            assert!((0.0..0.1).contains(&z), "{value}: {z}");
        }
    }

    #[test]
    fn a_paraboloid_is_the_sum_of_its_terms() {
        let (points, q) = ([[0.1, 0.2, 0.7], [0.9, 0.4, 0.3]], [2.0, -0.5]);
        let (origin, x) = ([0.5, 0.5, 0.5], [0.3, 0.8, 0.1]);
        let y = std::array::from_fn(|d| x[d] - origin[d]);
        let (value, slope) = Moments::of(&points, &q, origin).paraboloid(y);
        let (mut sum, mut gradient) = (0.0, [0.0; 3]);
        for (s, q) in points.iter().zip(q) {
            for d in 0..3 {
                sum += q * (x[d] - s[d]).powi(2);
                gradient[d] -= 2.0 * q * (x[d] - s[d]);
            }
        }
        assert!((value - sum).abs() < 1e-14 && (0..3).all(|d| (slope[d] - gradient[d]).abs() < 1e-14));
    }

    #[test]
    fn boxes_and_softenings_that_make_no_sense_are_refused() {
        let check = |side, surroundings, softening| PeriodicBox { side, surroundings }.check(softening);
        let foil = Surroundings::TinFoil;
        assert!(check([1.0; 3], foil, Softening::Spline(0.1)).is_ok());
        assert!(check([1.0, 2.0, 3.0], Surroundings::Dielectric(78.0), Softening::Plummer(0.0)).is_ok());
        for side in [[0.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0, f64::NAN], [f64::INFINITY; 3]] {
            assert!(check(side, foil, Softening::None).is_err(), "{side:?}");
        }
        for medium in [0.5, f64::NAN, f64::INFINITY] {
            assert!(check([1.0; 3], Surroundings::Dielectric(medium), Softening::None).is_err());
        }
        for softening in [Softening::Spline(0.2), Softening::Plummer(1e-3), Softening::P1(1e-3)] {
            assert!(check([1.0; 3], foil, softening).is_err(), "{softening:?}");
        }
        let vacuum = PeriodicBox { surroundings: Surroundings::Dielectric(1.0), ..PeriodicBox::cube(1.0) };
        assert!(vacuum.check_charge(&[0.1, 0.2, -0.3]).is_ok() && vacuum.check_charge(&[1.0, -0.5]).is_err());
        assert!(PeriodicBox::cube(1.0).check_charge(&[1.0]).is_ok());
    }
}
