//! Solid harmonics in the normalisation of White & Head-Gordon (1994) and Dehnen (2014).
//!
//! R_l^m = r^l/(l+m)! P_l^m(cos θ) e^{imφ} (regular), I_l^m = (l−m)!/r^(l+1) P_l^m(cos θ) e^{imφ} (irregular), with the
//! Condon-Shortley sign. A_l^{−m} = (−1)^m conj(A_l^m), so m ≥ 0 is enough: (p+1)² reals, degree by degree,
//! within a degree Re A^0, Re A^1, Im A^1, Re A^2, …

use crate::math::Real;
use crate::math::simd::Vector;

/// Place of Re A_l^m; Im follows it (m > 0).
#[inline(always)]
pub fn at(l: usize, m: usize) -> usize {
    l * l + if m == 0 { 0 } else { 2 * m - 1 }
}

/// Which harmonics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// R_l^m.
    Regular,
    /// I_l^m.
    Irregular,
}

/// The factors of the recurrences in l, for both kinds, to degree `p`.
#[derive(Debug, Clone)]
pub struct Factors<T> {
    /// For each (m, l ≥ m+2): R_l = a z R_{l−1} − b r² R_{l−2}; I_l = (c z I_{l−1} − d I_{l−2})/r².
    regular: Vec<[T; 2]>,
    irregular: Vec<[T; 2]>,
    p: usize,
}

/// The factors of all recurrences to degree `p`, in the order of their use: for each order m those of H_m^m = a (x + iy)
/// H_{m−1}^{m−1} and H_{m+1}^m = b z H_m^m, then for each l ≥ m + 2 those of H_l^m = a z H_{l−1}^m − b w H_{l−2}^m. For the
/// irregular harmonics x, y and z are divided by r², and w is 1/r²; for the regular ones w is r².
pub fn recurrences(kind: Kind, p: usize) -> Vec<[f64; 2]> {
    let factors = Factors::<f64>::new(p);
    let mut of_columns = if kind == Kind::Regular { &factors.regular } else { &factors.irregular }.iter();
    let mut all = vec![];
    for m in 0..=p {
        let k = m as f64;
        all.push(match kind {
            Kind::Regular => [if m > 0 { -0.5 / k } else { 1.0 }, 1.0],
            Kind::Irregular => [1.0 - 2.0 * k, 2.0 * k + 1.0],
        });
        all.extend(of_columns.by_ref().take((p + 1).saturating_sub(m + 2)));
    }
    all
}

impl<T: Real> Factors<T> {
    /// Factors up to degree `p`.
    pub fn new(p: usize) -> Self {
        let mut f = Factors { regular: vec![], irregular: vec![], p };
        for m in 0..=p {
            for l in m + 2..=p {
                let (l, m) = (l as f64, m as f64);
                let scale = 1.0 / ((l + m) * (l - m));
                f.regular.push([(2.0 * l - 1.0) * scale, scale].map(T::from_f64));
                f.irregular.push([2.0 * l - 1.0, (l - 1.0) * (l - 1.0) - m * m].map(T::from_f64));
            }
        }
        f
    }

    /// Every harmonic of degree ≤ p at (x, y, z) into `out`, in the order of [`at`].
    #[inline(always)]
    pub fn fill<V: Vector<Scalar = T>>(&self, kind: Kind, [x, y, z]: [V; 3], out: &mut [V]) {
        let r2 = x.mul_add(x, y.mul_add(y, z.mul(z)));
        match kind {
            Kind::Regular => {
                out[0] = V::constant(1.0);
                // R_m^m = −(x + iy)/(2m) R_{m−1}^{m−1};  R_{m+1}^m = z R_m^m.
                self.columns(&self.regular, [x, y, z], z, r2, |m| -0.5 / m as f64, |_| 1.0, out);
            }
            Kind::Irregular => {
                let inverse = V::constant(1.0).div(r2);
                let scaled = [x, y, z].map(|c| c.mul(inverse));
                out[0] = inverse.sqrt();
                // I_m^m = −(2m−1)(x + iy)/r² I_{m−1}^{m−1};  I_{m+1}^m = (2m+1) z/r² I_m^m.
                let diagonal = |m| -(2.0 * m as f64 - 1.0);
                let first = |m| 2.0 * m as f64 + 1.0;
                self.columns(&self.irregular, scaled, scaled[2], inverse, diagonal, first, out);
            }
        }
    }

    /// Order after order: H_m^m = diagonal(m)(x + iy) H_{m−1}^{m−1}, H_{m+1}^m = first(m) z H_m^m, and
    /// H_l^m = a z H_{l−1}^m − b w H_{l−2}^m beyond.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one recurrence for both kinds")]
    fn columns<V: Vector<Scalar = T>>(
        &self,
        factors: &[[T; 2]],
        [x, y, _]: [V; 3],
        z: V,
        w: V,
        diagonal: impl Fn(usize) -> f64,
        first: impl Fn(usize) -> f64,
        out: &mut [V],
    ) {
        let p = self.p;
        let out = &mut out[..(p + 1) * (p + 1)];
        let mut factors = factors.iter();
        let (mut re, mut im) = (out[0], V::zero());
        for m in 0..=p {
            if m > 0 {
                let s = V::constant(diagonal(m));
                let (sx, sy) = (s.mul(x), s.mul(y));
                (re, im) = (sy.neg_mul_add(im, sx.mul(re)), sx.mul_add(im, sy.mul(re)));
                (out[at(m, m)], out[at(m, m) + 1]) = (re, im);
            }
            let s = V::constant(first(m)).mul(z);
            let (mut re2, mut im2, mut re1, mut im1) = (re, im, s.mul(re), s.mul(im));
            for l in m + 1..=p {
                if l > m + 1 {
                    // One pair of factors for each l ≥ m + 2, in this order.
                    let Some(&[a, b]) = factors.next() else { break };
                    let (az, bw) = (V::splat(a).mul(z), V::splat(b).mul(w));
                    let re0 = bw.neg_mul_add(re2, az.mul(re1));
                    let im0 = bw.neg_mul_add(im2, az.mul(im1));
                    (re2, im2, re1, im1) = (re1, im1, re0, im0);
                }
                out[at(l, m)] = re1;
                if m > 0 {
                    out[at(l, m) + 1] = im1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::simd::Array;

    /// Values at r = (0.3, −0.4, 1.2), computed to 20 digits elsewhere.
    #[test]
    fn harmonics_take_their_known_values() {
        let point = [0.3, -0.4, 1.2].map(<Array<f64, 8>>::splat);
        let lane = |v: Array<f64, 8>| {
            let mut out = [0.0; 8];
            v.store(&mut out);
            out[7]
        };
        let factors = Factors::<f64>::new(4);
        let [regular, irregular] = [Kind::Regular, Kind::Irregular].map(|kind| {
            let mut out = [Array::zero(); 25];
            factors.fill(kind, point, &mut out);
            move |l, m| (lane(out[at(l, m)]), if m > 0 { lane(out[at(l, m) + 1]) } else { 0.0 })
        });
        let check = |got: (f64, f64), re: f64, im: f64| {
            assert!((got.0 - re).abs() <= 2e-15 * re.abs().max(1e-3), "{got:?} {re}");
            assert!((got.1 - im).abs() <= 2e-15 * im.abs().max(1e-3), "{got:?} {im}");
        };
        check(regular(1, 1), -0.15, 0.2);
        check(regular(2, 0), 0.6575, 0.0);
        check(regular(2, 1), -0.18, 0.24);
        check(regular(3, 2), -0.0105, -0.036);
        check(regular(4, 4), -1.372_395_833_333_33e-4, 8.75e-5);
        check(regular(4, 0), 0.042_376_562_5, 0.0);
        check(irregular(0, 0), 0.769_230_769_230_769_2, 0.0);
        check(irregular(1, 0), 0.546_199_362_767_41, 0.0);
        check(irregular(2, 1), -0.290_875_400_290_337, 0.387_833_867_053_782);
        check(irregular(3, 3), 0.279_687_884_894_555, 0.105_181_768_678_294);
        check(irregular(4, 0), 2.301_749_393_483_6, 0.0);
        check(irregular(4, 3), 1.390_164_634_978_85, 0.522_796_956_744_183);
    }
}
