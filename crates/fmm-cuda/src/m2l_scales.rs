//! Powers of two that coefficients of expansions and matrices of M2L are scaled by for halves, whose exponents have five bits.

use rayon::prelude::*;

/// Powers of two for spherical expansions.
///
/// A coefficient of degree l and order m is some Σ|q| rˡ/√((l−m)! (l+m)!), and an entry of M2L's matrices these roots of both
/// coefficients times a binomial over a power of the distance. With the roots, and 2ˡ for the binomials, entries of all
/// degrees are of like sizes at the least distance, four half sides.
pub struct Scales {
    /// Source coefficients are multiplied by these powers of two before the product, sums after it. `[n]`
    exponents: Vec<i32>,
    /// The power of two that all matrices are multiplied by.
    matrix_exponent: i32,
}

/// Exponent of the largest entry of all matrices. That of a cell's coefficients is one more (`LARGEST` in m2l.cu): products
/// of both, and sums of many, are far from the largest number of single precision.
const LARGEST_ENTRY: i32 = 13;

impl Scales {
    /// For these matrices of M2L of an order, which are scaled. `[source][target]`
    pub fn new(order: usize, matrices: &mut [Vec<f64>]) -> Self {
        let log_factorial = |n: usize| (1..=n).map(|k| (k as f64).log2()).sum::<f64>();
        let of_degree = |l: usize| {
            (0..=2 * l).map(move |k| {
                let m = k.div_ceil(2);
                (0.5 * (log_factorial(l - m) + log_factorial(l + m))).round() as i32 - l as i32
            })
        };
        let exponents: Vec<i32> = (0..=order).flat_map(of_degree).collect();
        let factors: Vec<f64> = exponents.iter().map(|&e| 2f64.powi(-e)).collect();
        let scale_rows = |matrix: &mut Vec<f64>| {
            let mut largest: f64 = 0.0;
            for (row, of_row) in matrix.chunks_mut(factors.len()).zip(&factors) {
                for (entry, factor) in row.iter_mut().zip(&factors) {
                    *entry *= factor * of_row;
                    largest = largest.max(entry.abs());
                }
            }
            largest
        };
        let largest = matrices.par_iter_mut().map(scale_rows).reduce(|| 0.0, f64::max);
        let matrix_exponent = if largest > 0.0 { LARGEST_ENTRY - largest.log2().floor() as i32 } else { 0 };
        let factor = 2f64.powi(matrix_exponent);
        matrices.par_iter_mut().for_each(|matrix| matrix.iter_mut().for_each(|entry| *entry *= factor));
        Scales { exponents, matrix_exponent }
    }

    /// What a source coefficient is multiplied by.
    pub fn of_source(&self, k: usize) -> f64 {
        2f64.powi(self.exponents[k])
    }

    /// What the sum of a target coefficient is multiplied by.
    pub fn of_target(&self, k: usize) -> f64 {
        2f64.powi(self.exponents[k] - self.matrix_exponent)
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::expansion::{Spherical, Translation, matrix};
    use fmm_core::lists::Classes;

    use super::*;

    #[test]
    fn scaled_matrices_have_entries_of_like_sizes() {
        for order in [3, 12, 20, 30] {
            let classes = Classes::<3>::new(4.0);
            let expansion = Spherical::<f64>::new(order, classes);
            let of = |offset| matrix(&expansion, Translation::M2L(classes.class(offset)));
            let mut matrices = vec![of([2, 0, 0]), of([3, 3, 3])];
            let (exact, n) = (matrices.clone(), (order + 1) * (order + 1));
            let scales = Scales::new(order, &mut matrices);
            let all = matrices.concat();
            let largest = all.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            assert!((8192.0..16384.0).contains(&largest), "{largest}");
            // Of the nearest neighbours, to the coefficients of a degree from those of the same: the largest of each.
            let of_degree = |l: usize| {
                let all = l * l..(l + 1) * (l + 1);
                let sizes =
                    all.clone().flat_map(|i| all.clone().map(move |j| i * n + j)).map(|at| matrices[0][at].abs());
                sizes.fold(0.0, f64::max)
            };
            assert!((1..=order).all(|l| of_degree(l) > 1e-2 * of_degree(0)), "{order}");
            for (i, (scaled, exact)) in all.iter().zip(exact.concat()).enumerate() {
                let [source, target] = [i % (n * n) / n, i % n];
                assert_eq!(scaled * scales.of_source(source) * scales.of_target(target), exact);
            }
        }
    }
}
