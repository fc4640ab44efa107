//! Logarithms and exponentials of vectors, the same bits on every machine.

use crate::math::Number;
use crate::math::exp;
use crate::math::simd::Vector;

/// 1/r² and log r² + `shift`·log 2 for r² > 0, with one division for both; numbers without meaning for r² = 0.
///
/// r² = 2^e·m with m in [√½, √2), log m = 2 artanh((m − 1)/(m + 1)): an odd series in |s| ≤ 0.1716.
#[inline(always)]
pub fn inverse_and_log<V: Vector>(r2: V, shift: V) -> (V, V) {
    let (e, m) = r2.split_exponent();
    let one = V::constant(1.0);
    let sum = m.add(one);
    let both = one.div(r2.mul(sum));
    let inverse = both.mul(sum);
    let s = m.sub(one).mul(both.mul(r2));
    let s2 = s.mul(s);
    // The odd series of artanh, of minimal largest error on the interval.
    let series = if size_of::<V::Scalar>() == 4 {
        let series = V::constant(ARTANH_F32[3]).mul_add(s2, V::constant(ARTANH_F32[2]));
        let series = series.mul_add(s2, V::constant(ARTANH_F32[1]));
        series.mul_add(s2, V::constant(ARTANH_F32[0]))
    } else {
        let mut series = V::constant(ARTANH_F64[7]);
        for k in (0..7).rev() {
            series = series.mul_add(s2, V::constant(ARTANH_F64[k]));
        }
        series
    };
    let log_m = series.mul(s2).mul_add(s, s);
    let ln2 = V::constant(std::f64::consts::LN_2);
    (inverse, e.add(shift).mul_add(ln2, log_m.add(log_m)))
}

/// (artanh(s)/s − 1)/s² as a polynomial in s² ≤ 0.0295; largest errors 2.1e-16 and 3e-9 of it.
const ARTANH_F64: [f64; 8] = [
    0.333_333_333_333_333_3,
    0.200_000_000_000_004_4,
    0.142_857_142_854_016_16,
    0.111_111_111_959_002_35,
    0.090_908_978_154_423_77,
    0.076_931_201_029_067_39,
    0.066_343_798_342_803_06,
    0.065_433_835_049_740_87,
];
const ARTANH_F32: [f64; 4] =
    [0.333_333_332_772_258_24, 0.200_000_609_384_86, 0.142_754_082_998_557_74, 0.116_652_909_691_209_46];

/// e^(−x) for 0 ≤ x; zero from 700 (80 in `f32`) on.
#[inline(always)]
pub fn exp_minus<V: Vector>(x: V) -> V {
    let value = exp::exp_minus(x);
    value.sub(value.keep_where_at_least(x, exp::last()))
}

/// E₁(x) = ∫_x^∞ e^(−t)/t dt for x > 0, one number at a time.
pub fn exponential_integral(x: f64) -> f64 {
    const GAMMA: f64 = 0.577_215_664_901_532_9;
    if x <= 1.0 {
        // −γ − log x − Σ (−x)^k/(k k!)
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 1..=20 {
            term *= -x / f64::from(k);
            sum -= term / f64::from(k);
        }
        return sum - GAMMA - x.ln();
    }
    // The continued fraction e^(−x)/(x + 1 − 1/(x + 3 − 4/(x + 5 − …))), from its end. n terms err by e^(−4 √(n x)).
    let terms = (90.0 / x) as u32 + 4;
    let mut tail = x + f64::from(2 * terms + 1);
    for k in (1..=terms).rev() {
        tail = x + f64::from(2 * k - 1) - f64::from(k * k) / tail;
    }
    (-x).exp() / tail
}

/// A number in every lane by way of a function of one number.
#[inline(always)]
pub fn each_lane<V: Vector>(x: V, f: fn(f64) -> f64) -> V {
    let mut lanes = [V::Scalar::ZERO; 16];
    x.store(&mut lanes);
    for lane in &mut lanes[..V::Scalar::WIDTH] {
        *lane = V::Scalar::from_f64(f(lane.to_f64()));
    }
    V::load(&lanes)
}
