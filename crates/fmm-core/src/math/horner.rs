//! Polynomials next to each other: the products of one wait for each other, those of several do not.

use super::simd::Vector;

/// The values of two polynomials at several places. `terms` are their coefficients, the highest first.
#[inline(always)]
pub fn two<V: Vector, const M: usize>(terms: &[[V::Scalar; 2]], t: [V; M]) -> [[V; M]; 2] {
    let mut sums = [[V::zero(); M]; 2];
    for term in terms {
        for k in 0..2 {
            let c = V::splat(term[k]);
            for m in 0..M {
                sums[k][m] = sums[k][m].mul_add(t[m], c);
            }
        }
    }
    sums
}

/// The coefficients of two polynomials side by side.
pub fn pairs(a: &[f64], b: &[f64]) -> Vec<[f64; 2]> {
    let n = a.len().max(b.len());
    let at = |c: &[f64], k: usize| (k + c.len()).checked_sub(n).map_or(0.0, |k| c[k]);
    (0..n).map(|k| [at(a, k), at(b, k)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::simd::Array;

    #[test]
    fn values_are_those_of_each_polynomial() {
        let terms = pairs(&[2.0, -1.0, 0.5], &[3.0, 4.0]);
        let places = [0.25, -2.0];
        let found = two(&terms, places.map(<Array<f64, 8> as Vector>::splat));
        for (m, t) in places.into_iter().enumerate() {
            assert_eq!(found[0][m].first(), 2.0 * t * t - t + 0.5);
            assert_eq!(found[1][m].first(), 3.0 * t + 4.0);
        }
    }
}
