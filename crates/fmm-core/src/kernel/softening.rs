//! The kernels of sums in space: their names, their lengths, and the one way to their radial functions.

use super::radial::{Newton, P1, Plummer, Radial, Spline, Yukawa};
use crate::Error;
use crate::math::Number;
use crate::math::simd::{Array, Vector};

/// The softened kernel that replaces 1/r at short distance; lengths in the user's unit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Softening {
    /// 1/r.
    #[default]
    None,
    /// (r² + ε²)^(−1/2).
    Plummer(f64),
    /// GADGET's cubic spline with h = 2.8 ε: exactly 1/r beyond h.
    Spline(f64),
    /// (r² + 3/2 ε²)(r² + ε²)^(−3/2), falcON's P1.
    P1(f64),
    /// exp(−r/λ)/r with the screening length λ = 1/κ: charges in a plasma or in salt water.
    Yukawa(f64),
}

impl Softening {
    /// ε of kernels that differ from 1/r at every distance, 0 of others: their derivatives of any order are about those of
    /// 1/r at √(r² + ε²).
    pub const fn core(self) -> f64 {
        match self {
            Softening::Plummer(e) | Softening::P1(e) => e,
            Softening::None | Softening::Spline(_) | Softening::Yukawa(_) => 0.0,
        }
    }

    /// ε where single terms of the field are no larger than about q/(r² + ε²).
    pub const fn core_of_terms(self) -> f64 {
        match self {
            Softening::Plummer(e) | Softening::P1(e) | Softening::Spline(e) => e,
            Softening::None | Softening::Yukawa(_) => 0.0,
        }
    }

    /// The same kernel, with a length of zero, or of screening without end, taken for none.
    pub fn simplified(self) -> Self {
        match self {
            Softening::Plummer(0.0)
            | Softening::Spline(0.0)
            | Softening::P1(0.0)
            | Softening::Yukawa(f64::INFINITY) => Softening::None,
            other => other,
        }
    }
}

/// Code that is written once for all kernels, and compiled for each.
pub trait UseRadial<V: Vector> {
    /// What it returns.
    type Out;

    /// Runs it with the radial function of a kernel.
    fn run<K: Radial<V>>(self, kernel: K) -> Self::Out;
}

impl Softening {
    /// Those that are softened, with a length of 1, and 1/r before them.
    pub const SOFTENED: [Softening; 4] =
        [Softening::None, Softening::Plummer(1.0), Softening::Spline(1.0), Softening::P1(1.0)];

    /// The name used in scenarios, options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Softening::None => "none",
            Softening::Plummer(_) => "plummer",
            Softening::Spline(_) => "spline",
            Softening::P1(_) => "p1",
            Softening::Yukawa(_) => "yukawa",
        }
    }

    /// The length in the formula of this softening; 0 for 1/r.
    pub const fn parameter(self) -> f64 {
        match self {
            Softening::None => 0.0,
            Softening::Plummer(length)
            | Softening::Spline(length)
            | Softening::P1(length)
            | Softening::Yukawa(length) => length,
        }
    }

    /// The softening length; 0 for kernels that are not softened.
    pub const fn length(self) -> f64 {
        if let Softening::Yukawa(_) = self { 0.0 } else { self.parameter() }
    }

    /// The length over which the kernel falls exponentially; infinite for all others.
    pub const fn screening_length(self) -> f64 {
        if let Softening::Yukawa(length) = self { length } else { f64::INFINITY }
    }

    /// Whether the kernel falls exponentially.
    pub const fn screens(self) -> bool {
        self.screening_length().is_finite()
    }

    /// K(0); 0 where it would be infinite.
    pub fn at_zero(self) -> f64 {
        match self {
            Softening::None | Softening::Yukawa(_) => 0.0,
            Softening::Plummer(e) | Softening::Spline(e) => 1.0 / e,
            Softening::P1(e) => 1.5 / e,
        }
    }

    /// ∫ t K(t) dt from 0 to d, but for a constant, and d K(d): the potential and the pull of a thin shell consist of them.
    pub fn moment(self, d: f64) -> (f64, f64) {
        match self {
            Softening::None => (d, 1.0),
            Softening::Yukawa(length) => (-length * (-d / length).exp_m1(), (-d / length).exp()),
            Softening::Plummer(e) => {
                let s = d.hypot(e);
                (s, d / s)
            }
            Softening::P1(e) => {
                let s = d.hypot(e);
                (s - 0.5 * e * (e / s), d * (d * d + 1.5 * e * e) / s.powi(3))
            }
            // Springel, Yoshida & White 2001, eq. A1, times u and integrated; u = d/h.
            Softening::Spline(e) => {
                let h = 2.8 * e;
                let u = d / h;
                let (integral, product) = match u {
                    _ if u < 0.5 => (
                        u * u * (1.4 + u * u * (-4.0 / 3.0 + u * u * (1.6 - 32.0 / 35.0 * u))),
                        u * (2.8 + u * u * (-16.0 / 3.0 + u * u * (9.6 - 6.4 * u))),
                    ),
                    _ if u < 1.0 => {
                        let inner = -8.0 / 3.0 + u * (3.2 + u * (-1.6 + 32.0 / 105.0 * u));
                        let slope = -32.0 / 3.0 + u * (16.0 + u * (-9.6 + 32.0 / 15.0 * u));
                        (
                            1.0 / 140.0 + u * (-1.0 / 15.0 + u * (1.6 + u * u * inner)),
                            -1.0 / 15.0 + u * (3.2 + u * u * slope),
                        )
                    }
                    _ => (u - 31.0 / 140.0, 1.0),
                };
                (h * integral, product)
            }
        }
    }

    /// The distance beyond which the force differs from q/r² by less than half the tolerance.
    pub fn newtonian_beyond(self, tolerance: f64) -> f64 {
        match self {
            Softening::None => 0.0,
            Softening::Spline(e) => 2.8 * e,
            // Nowhere.
            Softening::Yukawa(_) => f64::INFINITY,
            Softening::Plummer(e) | Softening::P1(e) => {
                let (part, power) = self.beside_newton();
                e * (2.0 * part / tolerance).powf(1.0 / f64::from(power))
            }
        }
    }

    /// What the force of a kernel that is softened at every distance differs by from q/r², as a part of it: at most
    /// b (ε/r)^k, and that far away. Here b and k; b is 0 for all others.
    pub const fn beside_newton(self) -> (f64, i32) {
        match self {
            // 1 − (1 + ε²/r²)^(−3/2) ≤ 3/2 ε²/r².
            Softening::Plummer(_) => (1.5, 2),
            // 1 − (1 + 5/2 ε²/r²)(1 + ε²/r²)^(−5/2) ≤ 15/8 (ε/r)⁴.
            Softening::P1(_) => (1.875, 4),
            Softening::None | Softening::Spline(_) | Softening::Yukawa(_) => (0.0, 0),
        }
    }

    /// Checks the length.
    ///
    /// # Errors
    /// [`Error::Range`] if it is outside its range.
    pub fn check(self) -> Result<(), Error> {
        let value = self.parameter();
        match self {
            Softening::Yukawa(_) if value.is_nan() || value < 1e-100 => {
                Err(Error::Range { what: "screening length", value, range: "1e-100 or more" })
            }
            Softening::Yukawa(_) => Ok(()),
            _ if value.is_finite() && value >= 0.0 => Ok(()),
            _ => Err(Error::Range { what: "softening length", value, range: "0 or more" }),
        }
    }

    /// Checks that the kernel is 1/r beyond half of a periodic box with this shortest side.
    ///
    /// # Errors
    /// [`Error::Range`] for a length that is too long, [`Error::Unsupported`] for kernels that differ from 1/r everywhere.
    pub fn check_in_box(self, shortest: f64) -> Result<(), Error> {
        match self.simplified() {
            Softening::None => Ok(()),
            Softening::Spline(e) if 2.8 * e <= 0.5 * shortest => Ok(()),
            Softening::Spline(value) => Err(Error::Range {
                what: "softening length",
                value,
                range: "0 to 1/5.6 of the shortest side of the periodic box",
            }),
            Softening::Yukawa(_) => {
                Err(Error::Unsupported("screened charges are summed in open space, not in periodic boxes".into()))
            }
            Softening::Plummer(_) | Softening::P1(_) => Err(Error::Unsupported(
                "the softenings plummer and p1 reach beyond any periodic box; take spline, which is 1/r beyond 2.8 of its lengths, or none"
                    .into(),
            )),
        }
    }

    /// The same kernel with another softening length; what is not softened stays what it is.
    pub const fn with_length(self, length: f64) -> Self {
        match self {
            Softening::Yukawa(_) => self,
            _ => self.with_parameter(length),
        }
    }

    const fn with_parameter(self, length: f64) -> Self {
        match self {
            Softening::None => Softening::None,
            Softening::Plummer(_) => Softening::Plummer(length),
            Softening::Spline(_) => Softening::Spline(length),
            Softening::P1(_) => Softening::P1(length),
            Softening::Yukawa(_) => Softening::Yukawa(length),
        }
    }

    /// The same kernel in a unit of length in which lengths are `scale` times as large.
    pub fn scaled(self, scale: f64) -> Self {
        self.with_parameter(self.parameter() * scale)
    }

    /// Runs `user` with the radial function, for distances in `unit`.
    #[inline(always)]
    pub fn with_radial<V: Vector, U: UseRadial<V>>(self, unit: f64, user: U) -> U::Out {
        let square = |e: f64| V::constant((e / unit) * (e / unit));
        match self {
            Softening::None => user.run(Newton),
            Softening::Plummer(e) => user.run(Plummer::<V>(square(e))),
            Softening::P1(e) => user.run(P1::<V>(square(e))),
            // So short that its inverse would overflow: a point.
            Softening::Spline(e) if e / unit < V::Scalar::TINY.to_f64().cbrt() => user.run(Newton),
            Softening::Spline(e) => user.run(Spline::<V>(V::constant(unit / (2.8 * e)))),
            Softening::Yukawa(length) => user.run(Yukawa::<V>(V::constant(unit / length))),
        }
    }

    /// K and −K'/r at one distance r; both are 0 at r = 0 where they would be infinite.
    pub fn at(self, r: f64) -> (f64, f64) {
        struct At(f64);
        impl UseRadial<Array<f64, 8>> for At {
            type Out = (f64, f64);

            fn run<K: Radial<Array<f64, 8>>>(self, kernel: K) -> (f64, f64) {
                let (k, slope) = kernel.eval::<false>(Vector::splat(self.0 * self.0));
                (k.first(), slope.first())
            }
        }
        self.with_radial(1.0, At(r))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_derivatives_of_the_kernels() {
        for kernel in Softening::SOFTENED.map(|k| k.with_length(0.3)).into_iter().chain([Softening::Yukawa(0.5)]) {
            for r in [0.1, 0.3, 0.5, 0.7, 1.5] {
                let step = 1e-5;
                let difference = (kernel.at(r - step).0 - kernel.at(r + step).0) / (2.0 * step);
                let slope = r * kernel.at(r).1;
                assert!((difference / slope - 1.0).abs() < 1e-7, "{kernel:?} {r}: {difference} {slope}");
                let moment = (kernel.moment(r + step).0 - kernel.moment(r - step).0) / (2.0 * step);
                let exact = r * kernel.at(r).0;
                assert!((moment / exact - 1.0).abs() < 1e-8, "{kernel:?} {r}: {moment} {exact}");
                assert!((kernel.moment(r).1 / exact - 1.0).abs() < 1e-14, "{kernel:?} {r}");
            }
        }
        assert_eq!(Softening::None.at(0.0), (0.0, 0.0));
        assert!((Softening::Spline(0.3).at(0.0).0 - 1.0 / 0.3).abs() < 1e-12);
    }

    #[test]
    fn kernels_are_those_of_their_formulas() {
        let (e, r) = (0.3f64, 0.4f64);
        let u = r * r + e * e;
        for (kernel, k, slope) in [
            (Softening::None, 1.0 / r, r.powi(-3)),
            (Softening::Plummer(e), u.powf(-0.5), u.powf(-1.5)),
            (Softening::P1(e), (r * r + 1.5 * e * e) * u.powf(-1.5), (r * r + 2.5 * e * e) * u.powf(-2.5)),
            (Softening::Yukawa(0.5), (-2.0 * r).exp() / r, (1.0 + 2.0 * r) * (-2.0 * r).exp() / r.powi(3)),
        ] {
            let (found, found_slope) = kernel.at(r);
            assert!((found / k - 1.0).abs() < 1e-14 && (found_slope / slope - 1.0).abs() < 1e-14, "{kernel:?}");
        }
    }
}
