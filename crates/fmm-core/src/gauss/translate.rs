//! M2L, one axis after the other.

use super::products::{Product, products};
use super::series::Shape;
use crate::math::simd::{Task, Vector, dispatch};

/// The matrix of M2L along one axis between boxes whose centers differ by `shift` (target minus
/// source, in units of σ), transposed: row n holds the terms m of
/// (−1)^m √((n + m)!/(n! m!)) ψ_(n + m)(shift). Of the `order` rows and columns only the
/// first `used` are not zero.
pub fn translation(order: usize, used: usize, shift: f64) -> Vec<f64> {
    let mut psi = vec![0.0; 2 * used];
    let (mut last, mut here) = (0.0, (-0.5 * shift * shift).exp());
    for (n, psi) in psi.iter_mut().enumerate() {
        *psi = here;
        let n = n as f64;
        (last, here) = (here, (shift * here - n.sqrt() * last) / (n + 1.0).sqrt());
    }
    let mut matrix = vec![0.0; order * order];
    for n in 0..used {
        let mut binomial = 1.0;
        for m in 0..used {
            let sign = if m % 2 == 0 { 1.0 } else { -1.0 };
            matrix[n * order + m] = sign * f64::sqrt(binomial) * psi[n + m];
            binomial *= (n + m + 1) as f64 / (m + 1) as f64;
        }
    }
    matrix
}

/// What one source box gives to a sum of translations: its matrix, order and coefficients.
pub type Term<'a> = (&'a [f64], usize, &'a [f64]);

/// M2L along the first axis of the coefficients of one column: the sum over all terms, with the axes turned by one place, so that the next is first.
pub struct Translate<'a> {
    /// How the coefficients lie.
    pub shape: Shape,
    /// Matrices and coefficients.
    pub terms: &'a [Term<'a>],
    /// The result; not added to.
    pub to: &'a mut [f64],
    /// As long as a column.
    pub scratch: &'a mut [f64],
}

/// Does the work of a [`Translate`].
pub fn translate(work: Translate) {
    dispatch(work);
}

impl Task<f64> for Translate<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        let Translate { shape, terms, to, scratch } = self;
        let (p, row, rest) = (shape.order, shape.row(), shape.rest());
        let all = terms.iter().map(|&(a, order, b)| Product { a, b, k: order, rows: order });
        products::<V, false>(all, (p, row), scratch, (p, row));
        // [a][b c] to [b][c a]: each number of a row goes to the end of its own run of p.
        if shape.dimension == 1 {
            to.copy_from_slice(scratch);
            return;
        }
        let run = rest / p;
        for b in 0..p {
            for c in 0..run {
                let to = &mut to[b * row + c * p..][..p];
                for (a, to) in to.iter_mut().enumerate() {
                    *to = scratch[a * row + b * run + c];
                }
            }
            to[b * row + rest..(b + 1) * row].fill(0.0);
        }
    }
}
