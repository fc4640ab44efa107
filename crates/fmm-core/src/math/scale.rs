//! Powers of two that bring lengths and strengths near 1: multiplying by them rounds nothing.

use rayon::prelude::*;

/// Numbers that one task looks at.
const BLOCK: usize = 1 << 13;

/// The power of two by which strengths are multiplied so that the largest lies in [1, 2): exact, and nothing
/// over- or underflows in single precision.
pub fn strength_scale(strengths: &[f64]) -> f64 {
    scale_of(largest(strengths))
}

/// The largest size of all `numbers`, none of which is NaN; 0 of none.
pub fn largest(numbers: &[f64]) -> f64 {
    // Of several lanes, none of which waits for another.
    let of_block = |block: &[f64]| {
        let (rows, rest) = block.as_chunks::<16>();
        let mut most = [0.0; 16];
        for row in rows {
            most.iter_mut().zip(row).for_each(|(m, x)| *m = larger(*m, x.abs()));
        }
        most.iter().chain(rest).fold(0.0, |m, x| larger(m, x.abs()))
    };
    numbers.par_chunks(BLOCK).map(of_block).reduce(|| 0.0, larger)
}

/// The larger of two numbers, neither of which is NaN: a single instruction, unlike `f64::max`.
pub fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
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
    fn the_largest_is_found_at_any_place() {
        for n in [1, 15, 16, 17, 8192, 8193, 20_011] {
            for place in [0, n / 2, n - 1] {
                let mut numbers: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
                numbers[place] = -3.5;
                assert_eq!(largest(&numbers), 3.5, "{place} of {n}");
            }
        }
        assert_eq!(largest(&[]), 0.0);
    }

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
