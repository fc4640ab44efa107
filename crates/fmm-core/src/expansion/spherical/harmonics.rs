//! Solid harmonics in the normalisation of White & Head-Gordon (1994) and Dehnen (2014).
//!
//! R_l^m = r^l/(l+m)! P_l^m(cos θ) e^{imφ} (regular), I_l^m = (l−m)!/r^(l+1) P_l^m(cos θ) e^{imφ} (irregular), with the
//! Condon-Shortley sign. A_l^{−m} = (−1)^m conj(A_l^m), so m ≥ 0 is enough: (p+1)² reals, degree by degree,
//! within a degree Re A^0, Re A^1, Im A^1, Re A^2, …

use crate::cpu::simd::Vector;
use crate::real::Real;

/// Place of Re A_l^m; Im follows it (m > 0).
#[inline(always)]
pub fn at(l: usize, m: usize) -> usize {
    l * l + if m == 0 { 0 } else { 2 * m - 1 }
}

/// Which harmonics.
#[derive(Clone, Copy, PartialEq, Eq)]
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

    /// Calls `visit(l, m, Re, Im)` for every harmonic of degree ≤ p at (x, y, z), order by order.
    #[inline(always)]
    pub fn visit<V: Vector<Scalar = T>>(
        &self,
        kind: Kind,
        x: V,
        y: V,
        z: V,
        mut visit: impl FnMut(usize, usize, V, V),
    ) {
        let r2 = x.mul_add(x, y.mul_add(y, z.mul(z)));
        let p = self.p;
        let mut k = 0;
        match kind {
            Kind::Regular => {
                let (mut re, mut im) = (V::constant(1.0), V::zero());
                for m in 0..=p {
                    if m > 0 {
                        // R_m^m = −(x + iy)/(2m) R_{m−1}^{m−1}
                        let s = V::constant(-0.5 / m as f64);
                        let (sx, sy) = (s.mul(x), s.mul(y));
                        (re, im) = (sy.neg_mul_add(im, sx.mul(re)), sx.mul_add(im, sy.mul(re)));
                    }
                    visit(m, m, re, im);
                    let (mut re2, mut im2) = (re, im);
                    let (mut re1, mut im1) = (z.mul(re), z.mul(im));
                    if m < p {
                        visit(m + 1, m, re1, im1);
                    }
                    for l in m + 2..=p {
                        let [a, b] = self.regular[k];
                        k += 1;
                        let (az, br) = (V::splat(a).mul(z), V::splat(b).mul(r2));
                        let re0 = br.neg_mul_add(re2, az.mul(re1));
                        let im0 = br.neg_mul_add(im2, az.mul(im1));
                        visit(l, m, re0, im0);
                        (re2, im2, re1, im1) = (re1, im1, re0, im0);
                    }
                }
            }
            Kind::Irregular => {
                let inverse = V::constant(1.0).div(r2);
                let (xr, yr, zr) = (x.mul(inverse), y.mul(inverse), z.mul(inverse));
                let (mut re, mut im) = (inverse.sqrt(), V::zero());
                for m in 0..=p {
                    if m > 0 {
                        // I_m^m = −(2m−1)(x + iy)/r² I_{m−1}^{m−1}
                        let s = V::constant(-(2.0 * m as f64 - 1.0));
                        let (sx, sy) = (s.mul(xr), s.mul(yr));
                        (re, im) = (sy.neg_mul_add(im, sx.mul(re)), sx.mul_add(im, sy.mul(re)));
                    }
                    visit(m, m, re, im);
                    let (mut re2, mut im2) = (re, im);
                    let s = V::constant(2.0 * m as f64 + 1.0).mul(zr);
                    let (mut re1, mut im1) = (s.mul(re), s.mul(im));
                    if m < p {
                        visit(m + 1, m, re1, im1);
                    }
                    for l in m + 2..=p {
                        let [c, d] = self.irregular[k];
                        k += 1;
                        let (cz, dr) = (V::splat(c).mul(zr), V::splat(d).mul(inverse));
                        let re0 = dr.neg_mul_add(re2, cz.mul(re1));
                        let im0 = dr.neg_mul_add(im2, cz.mul(im1));
                        visit(l, m, re0, im0);
                        (re2, im2, re1, im1) = (re1, im1, re0, im0);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::simd::Array;

    /// Values at r = (0.3, −0.4, 1.2), computed to 20 digits elsewhere.
    #[test]
    fn harmonics_take_their_known_values() {
        let point = [0.3, -0.4, 1.2].map(<Array<f64, 8>>::splat);
        let mut regular = vec![(0.0, 0.0); 25];
        let mut irregular = vec![(0.0, 0.0); 25];
        let lane = |v: Array<f64, 8>| {
            let mut out = [0.0; 8];
            v.store(&mut out);
            out[7]
        };
        let factors = Factors::<f64>::new(4);
        for (kind, values) in [(Kind::Regular, &mut regular), (Kind::Irregular, &mut irregular)] {
            factors.visit(kind, point[0], point[1], point[2], |l, m, re, im| values[5 * l + m] = (lane(re), lane(im)));
        }
        let check = |got: (f64, f64), re: f64, im: f64| {
            assert!((got.0 - re).abs() <= 2e-15 * re.abs().max(1e-3), "{got:?} {re}");
            assert!((got.1 - im).abs() <= 2e-15 * im.abs().max(1e-3), "{got:?} {im}");
        };
        check(regular[5 + 1], -0.15, 0.2);
        check(regular[5 * 2], 0.6575, 0.0);
        check(regular[5 * 2 + 1], -0.18, 0.24);
        check(regular[5 * 3 + 2], -0.0105, -0.036);
        check(regular[5 * 4 + 4], -1.372_395_833_333_33e-4, 8.75e-5);
        check(regular[5 * 4], 0.042_376_562_5, 0.0);
        check(irregular[0], 0.769_230_769_230_769_2, 0.0);
        check(irregular[5], 0.546_199_362_767_41, 0.0);
        check(irregular[5 * 2 + 1], -0.290_875_400_290_337, 0.387_833_867_053_782);
        check(irregular[5 * 3 + 3], 0.279_687_884_894_555, 0.105_181_768_678_294);
        check(irregular[5 * 4], 2.301_749_393_483_6, 0.0);
        check(irregular[5 * 4 + 3], 1.390_164_634_978_85, 0.522_796_956_744_183);
    }
}
