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

/// A sum that knows what rounding has taken from it (Neumaier 1974).
#[derive(Debug, Clone, Copy, Default)]
pub struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    /// Adds a term.
    pub fn add(&mut self, term: f64) {
        let [sum, lost] = two_sum(self.sum, term);
        (self.sum, self.lost) = (sum, self.lost + lost);
    }

    /// The sum, nearly as exact as its terms.
    pub fn value(self) -> f64 {
        self.sum + self.lost
    }
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
