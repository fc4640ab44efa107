//! Pairs of sources that do not interact, such as bonded atoms.

use fmm_core::forces::PairInteraction;
use fmm_core::math::scale::power_of_two_below;
use fmm_core::{Hessian, Precision};
use rayon::prelude::*;

use crate::errors::{FLOOR, length, norm};
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

/// Subtracts what the two sources of each excluded pair contribute to each other. Returns the
/// relative error that single precision leaves of the rounding of the sum: the larger of rms over
/// the targets and L2, of field and second derivatives.
///
/// The sum holds these contributions to [`ROUNDING`] only, and where sources are close they are far
/// larger than what is left.
pub(crate) fn leave_out(problem: &Problem, points: &Points, sum: &mut Evaluation) -> f64 {
    if problem.exclusions.is_empty() {
        return 0.0;
    }
    let softening = problem.in_space().simplified().softening;
    let cell = problem.settings.boundary.periodic();
    let single = sum.choice.precision == Precision::F32;
    let pair = |&[i, j]: &[usize; 2]| {
        let pair = PairInteraction::of(softening, cell, &points.sources[i], &points.sources[j]);
        let hessian = if problem.hessian { Hessian(softening).at(pair.from) } else { [0.0; 6] };
        let sizes = if single { [pair.slope * length(pair.from), size(&hessian)] } else { [0.0; 2] };
        (pair, hessian, sizes)
    };
    let pairs: Vec<_> = problem.exclusions.par_iter().with_min_len(PAIRS).map(pair).collect();
    let largest = pairs.iter().flat_map(|p| p.2).fold(0.0, f64::max);
    let unit = power_of_two_below(1.0 / largest);
    let mut taken = vec![[0.0f64; 2]; if single { sum.field.len() } else { 0 }];
    for (&[i, j], (PairInteraction { from, potential, slope }, hessian, sizes)) in problem.exclusions.iter().zip(pairs)
    {
        for (target, source, sign) in [(i, j, 1.0), (j, i, -1.0)] {
            let q = points.strengths[0][source];
            sum.potential[target] -= q * potential;
            (0..3).for_each(|k| sum.field[target][k] -= sign * q * slope * from[k]);
            if let Some(all) = sum.hessian.get_mut(target) {
                all.iter_mut().zip(hessian).for_each(|(all, h)| *all -= q * h);
            }
            if let Some(taken) = taken.get_mut(target) {
                (0..2).for_each(|k| taken[k] += (q * (sizes[k] * unit)).powi(2));
            }
        }
    }
    if !single {
        return 0.0;
    }
    let fields = sum.field.par_iter().with_min_len(PAIRS).map(|&e| length(e)).collect::<Vec<f64>>();
    let matrices = sum.hessian.par_iter().with_min_len(PAIRS).map(size).collect::<Vec<f64>>();
    let taken = |k: usize| taken.iter().map(move |t| t[k].sqrt() / unit);
    rounding(taken(0), &fields).max(rounding(taken(1), &matrices))
}

/// Pairs or targets of one task.
const PAIRS: usize = 1024;

/// Relative error of the contribution of one pair in single precision: some rounding errors of 6e-8.
const ROUNDING: f64 = 2.4e-7;

/// The Frobenius norm of a symmetric matrix xx, yy, zz, xy, xz, yz.
fn size(h: &[f64; 6]) -> f64 {
    length([h[0], h[1], h[2]]).hypot(std::f64::consts::SQRT_2 * length([h[3], h[4], h[5]]))
}

/// The larger of rms and L2 of errors [`ROUNDING`]·`taken` of vectors of size `left`. A vector
/// below a thousandth of their rms counts as one of this size.
fn rounding(taken: impl Iterator<Item = f64>, left: &[f64]) -> f64 {
    let (taken, n) = (taken.take(left.len()).collect::<Vec<_>>(), left.len() as f64);
    let (wrong, right) = (norm(&taken), norm(left));
    if wrong == 0.0 {
        return 0.0;
    }
    let floor = FLOOR * right / n.sqrt();
    let each: Vec<f64> = taken.iter().zip(left).map(|(t, l)| t / l.max(floor)).collect();
    ROUNDING * (norm(&each) / n.sqrt()).max(wrong / right)
}
