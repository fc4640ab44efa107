//! Numbers and vectors: what every kernel computes with, the same bits on every machine.

pub mod blocked;
mod collect;
pub mod counted;
pub mod erfc;
pub(crate) mod exp;
pub mod horner;
mod mix;
pub mod number;
pub mod prolate;
pub mod scale;
pub mod simd;

pub use blocked::blocked_sums;
pub use collect::{CollectVec, zeros};
pub use mix::mix;
pub use number::Number;
pub use simd::Real;

/// a × b.
pub fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// a + b, and what rounding takes from it, exactly (Knuth 1969).
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> [f64; 2] {
    let sum = a + b;
    let part = sum - a;
    [sum, (a - (sum - part)) + (b - part)]
}

/// n!
pub fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}
