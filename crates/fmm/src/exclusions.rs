//! Pairs of sources that do not interact, such as bonded atoms.

use fmm_core::forces::PairInteraction;
use fmm_core::{Hessian, Precision};

use crate::{Evaluation, Points, Problem};

/// Pairs with the smaller index first, in ascending order.
///
/// # Errors
/// A pair that is given twice.
pub fn in_order(mut pairs: Vec<[usize; 2]>) -> Result<Vec<[usize; 2]>, [usize; 2]> {
    pairs.iter_mut().for_each(|pair| pair.sort_unstable());
    pairs.sort_unstable();
    match pairs.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => Err(two[0]),
        None => Ok(pairs),
    }
}

/// Subtracts what the two sources of each excluded pair contribute to each other. Returns the relative error that this leaves
/// of the rounding of the sum: the larger of rms over the targets and L2, of field and second derivatives.
///
/// The sum holds these contributions to `digits` only, and where sources are close they are far larger than what is left.
pub(crate) fn leave_out(problem: &Problem, points: &Points, sum: &mut Evaluation) -> f64 {
    if problem.exclusions.is_empty() {
        return 0.0;
    }
    let mut taken = vec![[0.0f64; 2]; sum.field.len()];
    let softening = problem.in_space().simplified().softening;
    let cell = problem.settings.boundary.periodic();
    for &[i, j] in &problem.exclusions {
        let PairInteraction { from: d, potential, slope } =
            PairInteraction::of(softening, cell, &points.sources[i], &points.sources[j]);
        for (target, source, sign) in [(i, j, 1.0), (j, i, -1.0)] {
            let q = points.strengths[0][source];
            sum.potential[target] -= q * potential;
            (0..3).for_each(|k| sum.field[target][k] -= sign * q * slope * d[k]);
            let size = q.abs() * slope * d.iter().map(|c| c * c).sum::<f64>().sqrt();
            taken[target][0] = taken[target][0].hypot(size);
            if let Some(hessian) = sum.hessian.get_mut(target) {
                let pair = Hessian(softening).at(d).map(|h| q * h);
                hessian.iter_mut().zip(pair).for_each(|(h, pair)| *h -= pair);
                taken[target][1] = taken[target][1].hypot(size_of_matrix(&pair));
            }
        }
    }
    let digits = if sum.choice.precision == Precision::F32 { ROUNDING_F32 } else { f64::EPSILON };
    let field = rounding(digits, taken.iter().map(|t| t[0]), sum.field.iter().map(|e| e[0].hypot(e[1]).hypot(e[2])));
    let hessian = rounding(digits, taken.iter().map(|t| t[1]), sum.hessian.iter().map(size_of_matrix));
    field.max(hessian)
}

/// Relative error of the contribution of one pair in single precision: some rounding errors of 6e-8.
const ROUNDING_F32: f64 = 2.4e-7;

/// The Frobenius norm of a symmetric matrix xx, yy, zz, xy, xz, yz.
fn size_of_matrix(h: &[f64; 6]) -> f64 {
    (0..6).fold(0.0, |sum: f64, k| sum.hypot(if k < 3 { h[k] } else { std::f64::consts::SQRT_2 * h[k] }))
}

/// The larger of rms and L2 of errors `digits`·`taken` of vectors of size `left`. A vector below a thousandth of their rms
/// counts as one of this size.
fn rounding(
    digits: f64,
    taken: impl Iterator<Item = f64> + Clone,
    left: impl ExactSizeIterator<Item = f64> + Clone,
) -> f64 {
    let n = left.len().max(1) as f64;
    let norm = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::hypot);
    let (wrong, right) = (norm(&mut taken.clone()), norm(&mut left.clone()));
    if wrong == 0.0 || left.len() == 0 {
        return 0.0;
    }
    let floor = 1e-3 * right / n.sqrt();
    let rms = norm(&mut taken.zip(left).map(|(t, l)| t / l.max(floor))) / n.sqrt();
    digits * rms.max(wrong / right)
}
