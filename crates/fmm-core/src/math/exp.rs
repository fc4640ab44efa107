//! The exponential of vectors, the same bits on every machine.

use super::simd::Vector;

#[inline(always)]
const fn single<V: Vector>() -> bool {
    size_of::<V::Scalar>() == 4
}

/// From here on [`exp_minus`] does not fall any further: 80 in single precision, 700 in double.
#[inline(always)]
pub fn last<V: Vector>() -> V {
    V::constant(if single::<V>() { 80.0 } else { 700.0 })
}

/// e^(−x) for x ≥ 0, to rounding.
#[inline(always)]
pub fn exp_minus<V: Vector>(x: V) -> V {
    if single::<V>() { exp_minus_of::<V, 7>(x) } else { exp_minus_of::<V, 13>(x) }
}

/// The same by a series of degree `TERMS` in |f| ≤ log(2)/2: relative errors 2.8e-10 with 8 terms.
#[inline(always)]
pub fn exp_minus_of<V: Vector, const TERMS: usize>(x: V) -> V {
    let single = single::<V>();
    let x = x.min(last());
    // x = n log 2 − f: adding and subtracting a large number rounds.
    let round = V::constant(if single { 12_582_912.0 } else { 6_755_399_441_055_744.0 });
    let n = x.mul_add(V::constant(std::f64::consts::LOG2_E), round).sub(round);
    let f = if single || TERMS > 8 {
        // The logarithm in two parts, of which n times the first is exact.
        let high = V::constant(if single { 0.693_359_375 } else { 0.693_147_180_369_123_8 });
        let low = V::constant(if single { -2.121_944_4e-4 } else { 1.908_214_929_270_587_7e-10 });
        n.mul_add(low, n.mul(high).sub(x))
    } else {
        n.mul(V::constant(std::f64::consts::LN_2)).sub(x)
    };
    let mut sum = V::constant(1.0 / FACTORIAL[TERMS]);
    for k in (0..TERMS).rev() {
        sum = sum.mul_add(f, V::constant(1.0 / FACTORIAL[k]));
    }
    sum.times_power_of_two(V::zero().sub(n))
}

const FACTORIAL: [f64; 14] = {
    let mut f = [1.0; 14];
    let mut k = 1;
    while k < 14 {
        f[k] = f[k - 1] * k as f64;
        k += 1;
    }
    f
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::simd::{Task, dispatch};

    struct Errors([f64; 8]);

    impl Task<f64> for Errors {
        type Out = [f64; 2];

        #[inline(always)]
        fn run<V: Vector<Scalar = f64>>(self) -> [f64; 2] {
            let x = V::load(&self.0);
            let mut errors = [0.0; 2];
            let all = [exp_minus_of::<V, 8>(x), exp_minus(x)];
            for (error, values) in errors.iter_mut().zip(all) {
                let mut lanes = [0.0; 8];
                values.store(&mut lanes);
                *error = lanes.iter().zip(self.0).map(|(v, x)| (v / (-x).exp() - 1.0).abs()).fold(0.0, f64::max);
            }
            errors
        }
    }

    #[test]
    fn errors_are_as_told() {
        let mut worst = [0.0f64; 2];
        for i in 0..5000 {
            let errors = dispatch(Errors(std::array::from_fn(|k| (8 * i + k) as f64 * 5e-4)));
            worst = std::array::from_fn(|k| worst[k].max(errors[k]));
        }
        assert!(worst[0] < 2.8e-10 && worst[1] < 5e-16, "{worst:?}");
        let far = dispatch(Errors([0.0, 600.0, 650.0, 699.0, 0.0, 0.0, 0.0, 0.0]));
        assert!(far[1] < 1e-15, "{far:?}");
    }
}
