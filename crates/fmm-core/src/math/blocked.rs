//! Sums whose bits do not depend on the number of threads.

use rayon::prelude::*;

use crate::math::CollectVec;

/// Terms of a block of the sums: blocks are added in their order, whichever thread summed them.
const BLOCK: usize = 4096;

/// Sums `N` terms of each index in 0..n; the order of additions depends on n alone.
pub fn blocked_sums<const N: usize>(n: usize, term: impl Fn(usize) -> [f64; N] + Sync) -> [f64; N] {
    added(blocks(n, term))
}

/// The sums of the terms of each block of 4096 indices.
pub fn blocks<const N: usize>(n: usize, term: impl Fn(usize) -> [f64; N] + Sync) -> Vec<[f64; N]> {
    let block = |b: usize| added((b * BLOCK..n.min((b + 1) * BLOCK)).map(&term));
    (0..n.div_ceil(BLOCK)).into_par_iter().map(block).collect_vec()
}

/// The sum of `terms` in their order.
pub fn added<const N: usize>(terms: impl IntoIterator<Item = [f64; N]>) -> [f64; N] {
    terms.into_iter().fold([0.0; N], |mut sum, x| {
        sum.iter_mut().zip(x).for_each(|(s, x)| *s += x);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_threads() {
        let term = |i: usize| [(i as f64).sin() / (1.0 + i as f64), (i as f64).sqrt()];
        let of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| blocked_sums(50_000, term))
        };
        assert_eq!(of(1).map(f64::to_bits), of(3).map(f64::to_bits));
        assert!((of(2)[1] - 2.0 / 3.0 * 50_000f64.powf(1.5)).abs() < 200.0);
    }
}
