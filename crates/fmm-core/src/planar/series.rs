//! The series of a kernel: how many terms, their coefficients at points, and the matrix of M2L.

use super::Kernel;
use crate::math::Real;

/// A family of expansions in the plane of one order.
#[derive(Debug, Clone)]
pub struct Series<T> {
    /// What is summed.
    pub kernel: Kernel,
    /// Terms of an expansion: p + 1 (log), p (harmonic).
    pub terms: usize,
    /// Numbers of one part (real or imaginary) of one expansion: terms, up to whole vectors.
    pub part: usize,
    /// What M2L multiplies scaled multipoles with, by target term and source term: real, and the same for every pair of boxes.
    /// `[terms × terms]`
    pub matrix: Vec<T>,
    /// P2M gives c_n Σ Γ ((z − c)/u)^n, and P2L c_n Σ Γ (u/(z − c))^n but for the logarithm. `[terms]`
    pub weights: Vec<T>,
}

#[expect(clippy::len_without_is_empty, reason = "an expansion has terms")]
impl<T: Real> Series<T> {
    /// The series of order `p`, 1 or more.
    pub fn new(kernel: Kernel, p: usize) -> Self {
        let terms = if kernel == Kernel::Log { p + 1 } else { p };
        let mut matrix = vec![0.0; terms * terms];
        for l in 0..terms {
            for k in 0..terms {
                matrix[l * terms + k] = match (kernel, l, k) {
                    // binom(l + k, l)
                    (Kernel::Harmonic, ..) => binomial(l + k, l),
                    // −1/l; the logarithm itself is added separately.
                    (Kernel::Log, 0, 0) => 0.0,
                    (Kernel::Log, l, 0) => -1.0 / l as f64,
                    // binom(l + k − 1, k − 1)
                    (Kernel::Log, ..) => binomial(l + k - 1, l),
                };
            }
        }
        let weight = |n: usize| match (kernel, n) {
            (Kernel::Log, 1..) => -1.0 / n as f64,
            _ => 1.0,
        };
        Series {
            kernel,
            terms,
            part: terms.next_multiple_of(T::WIDTH),
            matrix: matrix.into_iter().map(T::from_f64).collect(),
            weights: (0..terms).map(weight).map(T::from_f64).collect(),
        }
    }

    /// Numbers of one expansion: real parts, then imaginary parts.
    pub fn len(&self) -> usize {
        2 * self.part
    }
}

/// n over k, of at most 2^53 to the last digit.
pub fn binomial(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |b, i| b * (n - k + i) as f64 / i as f64).round()
}
