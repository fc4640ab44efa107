//! Work of one kind, as microbenchmarks time it, and the peak that they compare with.

use std::time::Instant;

use crate::math::Real;
use crate::math::simd::{Task, Vector, dispatch};
use crate::settings::Precision;

/// One operator with its inputs and outputs.
pub trait Work: Send {
    /// Pairs, particles or translations of one [`run`](Work::run).
    fn units(&self) -> usize;

    /// Floating-point operations of one [`run`](Work::run).
    fn operations(&mut self) -> u64;

    /// Does the work once, with the best instructions of this machine; returns a number that depends on it.
    fn run(&mut self) -> f64;
}

/// Independent multiply-adds of the peak: more than any latency needs, no more than registers hold.
const CHAINS: usize = 14;
/// Multiply-adds of a chain in one go.
const LENGTH: usize = 4096;

struct Peak<T>(T);

impl<T: Real> Task<T> for Peak<T> {
    type Out = T;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> T {
        let mut sums = [V::zero(); CHAINS];
        let (a, b) = (V::splat(self.0), V::constant(0.25));
        for _ in 0..LENGTH {
            for i in 0..CHAINS {
                sums[i] = sums[i].mul_add(a, b);
            }
        }
        let mut total = V::zero();
        for s in sums {
            total = total.add(s);
        }
        total.sum()
    }
}

/// The most floating-point operations a second that one thread does here: independent multiply-adds in registers, the
/// best of `seconds` of trying.
pub fn peak(precision: Precision, seconds: f64) -> f64 {
    if precision == Precision::F32 { best::<f32>(seconds) } else { best::<f64>(seconds) }
}

fn best<T: Real>(seconds: f64) -> f64 {
    let operations = (2 * CHAINS * LENGTH * T::WIDTH) as f64;
    let (begun, mut best) = (Instant::now(), f64::INFINITY);
    while begun.elapsed().as_secs_f64() < seconds || best.is_infinite() {
        let start = Instant::now();
        for _ in 0..10 {
            std::hint::black_box(dispatch(Peak(std::hint::black_box(T::from_f64(0.5)))));
        }
        best = best.min(start.elapsed().as_secs_f64() / 10.0);
    }
    operations / best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::counted::count;

    #[test]
    fn the_peak_is_that_of_its_multiply_adds() {
        assert_eq!(count(Peak(0.5f64)), ((2 * CHAINS * LENGTH + CHAINS) * 8) as u64);
        assert!(peak(Precision::F32, 0.0) > 1e7);
    }
}
