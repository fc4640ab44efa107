//! Pairs of sources that do not interact, such as bonded atoms.

use fmm_core::forces::PairInteraction;
use fmm_core::math::CollectVec;
use fmm_core::math::scale::power_of_two_below;
use fmm_core::{Hessian, PeriodicBox, Precision};
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
/// relative error that the rounding of these contributions leaves: the larger of rms over the
/// targets and L2, of field and second derivatives. Where sources are close, the contributions are
/// far larger than what is left.
pub(crate) fn leave_out(problem: &Problem, points: &Points, sum: &mut Evaluation) -> f64 {
    if problem.exclusions.is_empty() {
        return 0.0;
    }
    let softening = problem.in_space().simplified().softening;
    let cell = problem.settings.boundary.periodic();
    let n = points.sources.len();
    if cell.is_none() && problem.exclusions.len() == n * (n - 1) / 2 {
        // Nobody is left, and no rounding either.
        sum.potential.fill(0.0);
        sum.field.fill([0.0; 3]);
        sum.hessian.fill([0.0; 6]);
        return 0.0;
    }
    let digits = Digits::new(problem, points, sum);
    let pair = |&[i, j]: &[usize; 2]| {
        let pair = PairInteraction::of(softening, cell, &points.sources[i], &points.sources[j]);
        let hessian = if problem.hessian { Hessian(softening).at(pair.from) } else { [0.0; 6] };
        let lost = digits.lost(length(pair.from), cell.is_some_and(|cell| wraps(cell, points, [i, j])));
        (pair, hessian, [pair.slope * length(pair.from) * lost(2.0), size(&hessian) * lost(3.0)])
    };
    let pairs: Vec<_> = problem.exclusions.par_iter().with_min_len(PAIRS).map(pair).collect_vec();
    // In units of the largest one, so that squares are numbers.
    let unit = [0, 1].map(|k| power_of_two_below(1.0 / pairs.iter().map(|p| p.2[k]).fold(0.0, f64::max)));
    let mut wrong = vec![[0.0f64; 2]; sum.field.len()];
    for (&[i, j], (PairInteraction { from, potential, slope }, hessian, errors)) in problem.exclusions.iter().zip(pairs)
    {
        for (target, source, sign) in [(i, j, 1.0), (j, i, -1.0)] {
            let q = points.strengths[0][source];
            sum.potential[target] -= q * potential;
            (0..3).for_each(|k| sum.field[target][k] -= sign * q * slope * from[k]);
            if let Some(all) = sum.hessian.get_mut(target) {
                all.iter_mut().zip(hessian).for_each(|(all, h)| *all -= q * h);
            }
            (0..2).for_each(|k| wrong[target][k] += (q * (errors[k] * unit[k])).powi(2));
        }
    }
    let fields = sum.field.par_iter().with_min_len(PAIRS).map(|&e| length(e)).collect_vec();
    let matrices = sum.hessian.par_iter().with_min_len(PAIRS).map(size).collect_vec();
    let wrong = |k: usize| wrong.iter().map(move |w| w[k].sqrt() / unit[k]);
    relative(wrong(0), &fields).max(relative(wrong(1), &matrices))
}

/// Pairs or targets of one task.
const PAIRS: usize = 1024;

/// How sums round the contribution of one pair.
struct Digits {
    /// Relative error of a term.
    term: f64,
    /// Error of the distance of two sources, and that of two whose coordinates wrap around a box.
    place: [f64; 2],
}

impl Digits {
    fn new(problem: &Problem, points: &Points, sum: &Evaluation) -> Self {
        let side = match problem.settings.boundary.periodic() {
            Some(cell) => cell.longest(),
            None => (0..3).map(|d| extent(points.sources.iter().map(|x| x[d]))).fold(0.0, f64::max),
        };
        if sum.choice.precision == Precision::F32 {
            // Coordinates are those from the center of a leaf. Leaves of ordinary size hold this part of the sources.
            let leaf = (sum.choice.leaf_size as f64 / points.sources.len() as f64).min(1.0).cbrt();
            return Digits { term: 1.2e-7, place: [6e-8 * side * leaf; 2] };
        }
        // Differences of close coordinates are exact, but for those that wrap around a box.
        Digits { term: 4.0 * f64::EPSILON, place: [0.0, f64::EPSILON * side] }
    }

    /// The relative error of a contribution, by the power −order of the distance that it goes with.
    fn lost(&self, distance: f64, wraps: bool) -> impl Fn(f64) -> f64 {
        let (term, place) = (self.term, self.place[usize::from(wraps)]);
        move |order| if distance > 0.0 { term + order * place / distance } else { 0.0 }
    }
}

/// Whether a coordinate of these sources changes on the way into the box, or their nearest images
/// lie across a face.
fn wraps(cell: &PeriodicBox, points: &Points, [i, j]: [usize; 2]) -> bool {
    let (a, b) = (points.sources[i], points.sources[j]);
    (0..3).any(|d| {
        let inside = 0.0..cell.side[d];
        !inside.contains(&a[d]) || !inside.contains(&b[d]) || (a[d] - b[d]).abs() > 0.5 * cell.side[d]
    })
}

/// Largest less smallest value.
fn extent(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    high - low
}

/// The Frobenius norm of a symmetric matrix xx, yy, zz, xy, xz, yz.
fn size(h: &[f64; 6]) -> f64 {
    length([h[0], h[1], h[2]]).hypot(std::f64::consts::SQRT_2 * length([h[3], h[4], h[5]]))
}

/// The larger of rms and L2 of errors `wrong` of vectors of size `left`. A vector below a thousandth
/// of their rms counts as one of this size.
fn relative(wrong: impl Iterator<Item = f64>, left: &[f64]) -> f64 {
    let (wrong, n) = (wrong.take(left.len()).collect::<Vec<_>>(), left.len() as f64);
    let (off, all) = (norm(&wrong), norm(left));
    if off == 0.0 {
        return 0.0;
    }
    let floor = FLOOR * all / n.sqrt();
    let each: Vec<f64> = wrong.iter().zip(left).map(|(w, l)| w / l.max(floor)).collect();
    (norm(&each) / n.sqrt()).max(off / all)
}
