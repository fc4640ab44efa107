//! Pairs of sources that do not interact, such as bonded atoms.

use fmm_core::Hessian;
use fmm_core::forces::PairInteraction;

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

/// Subtracts what the two sources of each excluded pair contribute to each other.
pub(crate) fn leave_out(problem: &Problem, points: &Points, sum: &mut Evaluation) {
    let softening = problem.in_space().simplified().softening;
    let cell = problem.settings.boundary.periodic();
    for &[i, j] in &problem.exclusions {
        let PairInteraction { from: d, potential, slope } =
            PairInteraction::of(softening, cell, &points.sources[i], &points.sources[j]);
        for (target, source, sign) in [(i, j, 1.0), (j, i, -1.0)] {
            let q = points.strengths[0][source];
            sum.potential[target] -= q * potential;
            (0..3).for_each(|k| sum.field[target][k] -= sign * q * slope * d[k]);
            if let Some(hessian) = sum.hessian.get_mut(target) {
                hessian.iter_mut().zip(Hessian(softening).at(d)).for_each(|(h, pair)| *h -= q * pair);
            }
        }
    }
}
