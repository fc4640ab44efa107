//! Powers of two that bring lengths and strengths near 1: multiplying by them rounds nothing.

use rayon::prelude::*;

/// The power of two by which strengths are multiplied so that the largest lies in [1, 2): exact, and nothing
/// over- or underflows in single precision.
pub fn strength_scale(strengths: &[f64]) -> f64 {
    scale_of(strengths.par_iter().map(|q| q.abs()).reduce(|| 0.0, f64::max))
}

/// The same for strengths of which the largest is known. The inverse of the smallest numbers is infinite, and they are
/// brought as near 1 as a power of two can.
pub fn scale_of(largest: f64) -> f64 {
    power_of_two_below((1.0 / largest).min(f64::MAX))
}

/// The largest power of two not above `x`; 1 for what has no logarithm.
pub fn power_of_two_below(x: f64) -> f64 {
    if x.is_normal() && x > 0.0 { 2f64.powi(x.log2().floor().clamp(-1000.0, 1000.0) as i32) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strengths_come_near_one() {
        for largest in [5e-324, 1e-310, 1e-300, 1.0, 3.7, 1e300] {
            let scaled = largest * scale_of(largest);
            let near = if largest < 1e-300 { 1e-25 } else { 0.5 };
            assert!((near..=2.0).contains(&scaled), "{largest:e}: {scaled:e}");
        }
        assert_eq!(0.0 * strength_scale(&[0.0]), 0.0);
    }
}
