//! Powers of two that bring lengths and strengths near 1: multiplying by them rounds nothing.

use rayon::prelude::*;

/// The power of two by which strengths are multiplied so that the largest lies in [1, 2): exact, and nothing
/// over- or underflows in single precision.
pub fn strength_scale(strengths: &[f64]) -> f64 {
    power_of_two_below(1.0 / strengths.par_iter().map(|q| q.abs()).reduce(|| 0.0, f64::max))
}

/// The largest power of two not above `x`; 1 for what has no logarithm.
pub fn power_of_two_below(x: f64) -> f64 {
    if x.is_normal() && x > 0.0 { 2f64.powi(x.log2().floor().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}
