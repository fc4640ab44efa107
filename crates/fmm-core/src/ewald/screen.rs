//! What real space has of a kernel: the kernel less what the waves have of it.

use super::band::Band;
use crate::kernel::Radial;
use crate::math::erfc::erfc_and_gaussian;
use crate::math::simd::Vector;
use crate::math::{Number, horner};

/// A kernel less its smooth part, at two vectors of distances.
pub trait Screened<V: Vector>: Copy {
    /// Of r²: the potential, the force over r, and the kernel's own force over r.
    fn eval(&self, r2: [V; 2]) -> [(V, V, V); 2];

    /// Of r²: g = −K'/r and h = −g'/r, and those of the kernel itself.
    fn second(&self, r2: [V; 2]) -> [[V; 4]; 2];
}

/// 2/√π.
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// Where α²r² is less, the series of erf(αr)/r has more digits than its closed form.
const SMALL: f64 = 0.01;

/// erfc(αr) and e^(−α²r²), with 1/r, its square, and 2α/√π.
struct Screen<V> {
    erfc: V,
    gaussian: V,
    inverse: V,
    square: V,
    own: V,
}

impl<V: Vector<Scalar = f64>> Screen<V> {
    #[inline(always)]
    fn new(alpha: f64, r2: V) -> Self {
        let inverse = r2.rsqrt();
        let (erfc, gaussian) = erfc_and_gaussian(V::constant(alpha).mul(r2.mul(inverse)));
        Screen { erfc, gaussian, inverse, square: inverse.mul(inverse), own: V::constant(alpha * SLOPE) }
    }
}

/// `below` where `x` is less than `bound`, else `above`.
#[inline(always)]
fn by_size<V: Vector<Scalar = f64>>(x: V, bound: V, below: V, above: V) -> V {
    below.sub(below.keep_where_at_least(x, bound)).add(above.keep_where_at_least(x, bound))
}

/// 1/r less erf(αr)/r.
#[derive(Clone, Copy)]
pub struct Bare {
    /// α.
    pub alpha: f64,
}

impl<V: Vector<Scalar = f64>> Screened<V> for Bare {
    #[inline(always)]
    fn eval(&self, r2: [V; 2]) -> [(V, V, V); 2] {
        [self.eval_one(r2[0]), self.eval_one(r2[1])]
    }

    #[inline(always)]
    fn second(&self, r2: [V; 2]) -> [[V; 4]; 2] {
        [self.second_one(r2[0]), self.second_one(r2[1])]
    }
}

impl Bare {
    #[inline(always)]
    fn eval_one<V: Vector<Scalar = f64>>(&self, r2: V) -> (V, V, V) {
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        // At distance zero erfc(αr)/r without its 1/r.
        let at_zero = own.sub(own.keep_where_at_least(r2, V::splat(f64::TINY)));
        let screened = erfc.mul(inverse);
        (screened.sub(at_zero), own.mul_add(gaussian, screened).mul(square), inverse.mul(square))
    }

    #[inline(always)]
    fn second_one<V: Vector<Scalar = f64>>(&self, r2: V) -> [V; 4] {
        let a2 = self.alpha * self.alpha;
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        let g = own.mul_add(gaussian, erfc.mul(inverse)).mul(square);
        let h = g.mul_add(V::constant(3.0), own.mul(V::constant(2.0 * a2)).mul(gaussian)).mul(square);
        // What remains at distance zero: −erf(αr)/r = −2α/√π (1 − α²r²/3 + …).
        let left = V::constant(2.0 / 3.0 * a2 * self.alpha * SLOPE);
        let at_zero = left.sub(left.keep_where_at_least(r2, V::splat(f64::TINY)));
        let cube = inverse.mul(square);
        [g.sub(at_zero), h, cube, cube.mul(square).mul(V::constant(3.0))]
    }
}

/// A softened kernel less erf(αr)/r.
#[derive(Clone, Copy)]
pub struct Soft<K> {
    /// α.
    pub alpha: f64,
    /// The kernel.
    pub kernel: K,
}

impl<V: Vector<Scalar = f64>, K: Radial<V>> Screened<V> for Soft<K> {
    #[inline(always)]
    fn eval(&self, r2: [V; 2]) -> [(V, V, V); 2] {
        [self.eval_one(r2[0]), self.eval_one(r2[1])]
    }

    #[inline(always)]
    fn second(&self, r2: [V; 2]) -> [[V; 4]; 2] {
        [self.second_one(r2[0]), self.second_one(r2[1])]
    }
}

impl<K> Soft<K> {
    #[inline(always)]
    fn eval_one<V: Vector<Scalar = f64>>(&self, r2: V) -> (V, V, V)
    where
        K: Radial<V>,
    {
        let (potential, force) = self.kernel.eval::<false>(r2);
        let a2 = self.alpha * self.alpha;
        let x2 = V::constant(a2).mul(r2);
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        // erf(x)/x · √π/2 = 1 − x²/3 + x⁴/10 − x⁶/42 + x⁸/216 − x¹⁰/1320 where x is small, and minus twice its derivative by x².
        let (mut series, mut slope) = (V::constant(-1.0 / 1320.0), V::constant(10.0 / 1320.0));
        let terms = [1.0 / 216.0, -1.0 / 42.0, 1.0 / 10.0, -1.0 / 3.0];
        for (k, c) in terms.into_iter().enumerate() {
            series = series.mul_add(x2, V::constant(c));
            slope = slope.mul_add(x2, V::constant(-2.0 * (4 - k) as f64 * c));
        }
        let series = series.mul_add(x2, V::constant(1.0));
        let smooth = inverse.sub(erfc.mul(inverse));
        let pull = smooth.sub(own.mul(gaussian)).mul(square);
        let (near, near_pull) = (own.mul(series), own.mul(V::constant(a2)).mul(slope));
        let small = V::constant(SMALL);
        let (smooth, pull) = (by_size(x2, small, near, smooth), by_size(x2, small, near_pull, pull));
        (potential.sub(smooth), force.sub(pull), force)
    }

    #[inline(always)]
    fn second_one<V: Vector<Scalar = f64>>(&self, r2: V) -> [V; 4]
    where
        K: Radial<V>,
    {
        let (bare_g, bare_h) = self.kernel.second(r2);
        let a2 = self.alpha * self.alpha;
        let x2 = V::constant(a2).mul(r2);
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        // Of erf(αr)/r, whose series in x² = α²r² is 2α/√π Σ (−1)^k x^2k/(k! (2k + 1)): g and h are its first and
        // second derivative.
        let pull = inverse.sub(erfc.mul(inverse)).sub(own.mul(gaussian)).mul(square);
        let bend = pull.mul(V::constant(3.0)).sub(own.mul(V::constant(2.0 * a2)).mul(gaussian)).mul(square);
        let (mut first, mut second) = (V::constant(5.0 / 1320.0), V::constant(20.0 / 1320.0));
        for (k, c) in [(4, 1.0 / 216.0), (3, 1.0 / 42.0), (2, 1.0 / 10.0), (1, 1.0 / 3.0)] {
            let sign = if k % 2 == 0 { -1.0 } else { 1.0 };
            first = first.mul_add(x2, V::constant(sign * f64::from(k) * c));
            if k > 1 {
                second = second.mul_add(x2, V::constant(sign * f64::from(k * (k - 1)) * c));
            }
        }
        let near_pull = own.mul(V::constant(2.0 * a2)).mul(first);
        let near_bend = own.mul(V::constant(-4.0 * a2 * a2)).mul(second);
        let small = V::constant(SMALL);
        let (pull, bend) = (by_size(x2, small, near_pull, pull), by_size(x2, small, near_bend, bend));
        [bare_g.sub(pull), bare_h.sub(bend), bare_g, bare_h]
    }
}

/// A kernel less the waves of a band, which are polynomials of t = 2 r²/r_c² − 1 up to r_c, where
/// nothing is left.
#[derive(Clone, Copy)]
pub struct Banded<'a, K> {
    /// The waves.
    pub band: &'a Band,
    /// The kernel.
    pub kernel: K,
}

impl<K> Banded<'_, K> {
    /// The values of two polynomials.
    #[inline(always)]
    fn smooth<V: Vector<Scalar = f64>>(&self, terms: &[[f64; 2]], r2: [V; 2]) -> [[V; 2]; 2] {
        let (to_t, one) = (V::constant(2.0 / (self.band.cutoff * self.band.cutoff)), V::constant(-1.0));
        horner::two(terms, [r2[0].mul_add(to_t, one), r2[1].mul_add(to_t, one)])
    }

    /// 1 up to r_c, 0 beyond.
    #[inline(always)]
    fn kept<V: Vector<Scalar = f64>>(&self, r2: V) -> V {
        V::constant(1.0).keep_where_at_least(V::constant(self.band.cutoff * self.band.cutoff), r2)
    }
}

impl<V: Vector<Scalar = f64>, K: Radial<V>> Screened<V> for Banded<'_, K> {
    #[inline(always)]
    fn eval(&self, r2: [V; 2]) -> [(V, V, V); 2] {
        let [smooth, pull] = self.smooth(&self.band.field, r2);
        let mut all = [(V::zero(), V::zero(), V::zero()); 2];
        for m in 0..2 {
            let (potential, force) = self.kernel.eval::<false>(r2[m]);
            let kept = self.kept(r2[m]);
            all[m] = (potential.sub(smooth[m]).mul(kept), force.sub(pull[m]).mul(kept), force);
        }
        all
    }

    #[inline(always)]
    fn second(&self, r2: [V; 2]) -> [[V; 4]; 2] {
        let [pull, bend] = self.smooth(&self.band.second, r2);
        let mut all = [[V::zero(); 4]; 2];
        for m in 0..2 {
            let (g, h) = self.kernel.second(r2[m]);
            let kept = self.kept(r2[m]);
            all[m] = [g.sub(pull[m]).mul(kept), h.sub(bend[m]).mul(kept), g, h];
        }
        all
    }
}
