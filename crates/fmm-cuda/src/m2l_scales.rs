//! Powers of two that coefficients of expansions and matrices of M2L are scaled by for halves, whose exponents have five bits.

/// Powers of two for spherical expansions.
///
/// A coefficient of degree l and order m is some Σ|q| rˡ/√((l−m)! (l+m)!) and an entry of M2L's matrices the product of both
/// roots over a power of the distance. With these roots, and 2ˡ for the distance of four half sides, entries of all
/// degrees are of like sizes.
pub struct Scales {
    /// What source and target coefficients are multiplied and divided by. `[n]`
    exponents: Vec<i32>,
    /// What all matrices are multiplied by.
    matrices: i32,
}

/// Exponents of the largest entry of all matrices and of the largest coefficient of a cell: products of these and the
/// sums of many are far from the largest number of single precision.
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
        let n = exponents.len();
        let mut largest: f64 = 0.0;
        for matrix in &mut *matrices {
            for (i, entry) in matrix.iter_mut().enumerate() {
                *entry *= 2f64.powi(-exponents[i / n] - exponents[i % n]);
                largest = largest.max(entry.abs());
            }
        }
        let scale = if largest > 0.0 { LARGEST_ENTRY - largest.log2().floor() as i32 } else { 0 };
        matrices.iter_mut().for_each(|matrix| matrix.iter_mut().for_each(|entry| *entry *= 2f64.powi(scale)));
        Scales { exponents, matrices: scale }
    }

    /// What a source coefficient is multiplied by.
    pub fn of_source(&self, k: usize) -> f64 {
        2f64.powi(self.exponents[k])
    }

    /// What the sum of a target coefficient is multiplied by.
    pub fn of_target(&self, k: usize) -> f64 {
        2f64.powi(self.exponents[k] - self.matrices)
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
            // Nearest neighbours, the same for all degrees: none is smaller than a thousandth.
            let degree = |l: usize| l * l;
            let [first, last] = [0, order].map(|l| matrices[0][degree(l) * n + degree(l)].abs());
            assert!(last > 1e-3 * first, "{first} {last}");
            for (i, (scaled, exact)) in all.iter().zip(exact.concat()).enumerate() {
                let [source, target] = [i % (n * n) / n, i % n];
                assert_eq!(scaled * scales.of_source(source) * scales.of_target(target), exact);
            }
        }
    }
}
