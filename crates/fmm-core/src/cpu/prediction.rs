//! What the error field says of a sum: which targets the guard sums directly, and which are summed again.

use rayon::prelude::*;

use super::evaluate::Summed;
use crate::error_model::{LARGEST, of_direct_sums};
use crate::guard::{BINS, Norms, Sample, bin_of, predicted_size};
use crate::math::CollectVec;
use crate::math::scale::power_of_two_below;

impl Summed {
    /// The targets that the guard sums directly, drawn by their predicted errors.
    pub fn sample(&self, tolerance: f64) -> Sample {
        Sample::predicted(predicted_size(self.field.len()), &self.predicted(tolerance))
    }

    /// The root mean square of the field over all targets.
    pub fn rms(&self) -> f64 {
        let scale = self.scale();
        mean_square(&self.field, scale).sqrt() / scale
    }

    /// The targets that are to be summed again, see [`Norms::worst`]; none if there are too many.
    pub fn worst(&self, norms: Norms, tolerance: f64, most: usize) -> Vec<u32> {
        if self.error.is_empty() {
            return vec![];
        }
        let squares = self.predicted(tolerance);
        let empty = || [vec![0u32; BINS], vec![0; BINS]];
        let count = |mut counts: [Vec<u32>; 2], s: &[f64; 2]| {
            (0..2).for_each(|k| counts[k][bin_of(s[k])] += 1);
            counts
        };
        let join = |mut counts: [Vec<u32>; 2], more: [Vec<u32>; 2]| {
            (0..2).for_each(|k| counts[k].iter_mut().zip(&more[k]).for_each(|(a, b)| *a += b));
            counts
        };
        let [relative, absolute] = squares.par_iter().fold(empty, count).reduce(empty, join);
        let Some(from) = norms.worst([&relative, &absolute], tolerance, most) else { return vec![] };
        let places = |(i, s): (usize, &[f64; 2])| (s[0] >= from[0] || s[1] >= from[1]).then_some(i as u32);
        squares.par_iter().enumerate().filter_map(places).collect()
    }

    /// Scales the estimated errors so that their L2 norm over all targets is the one that was
    /// measured, and adds rounding. Without expansions all are this part of the field.
    pub fn calibrate(&mut self, l2: f64) {
        let (scale, epsilon) = (self.scale(), self.epsilon);
        if self.error.is_empty() {
            self.error = of_direct_sums(&self.field, l2, epsilon);
            return;
        }
        let predicted = (self.error.iter().map(|e| (e * scale).powi(2)).sum::<f64>() / self.error.len() as f64).sqrt();
        let factor = match l2 * self.rms() * scale / predicted {
            factor if factor.is_finite() => factor,
            _ => 1.0,
        };
        let errors = self.error.par_iter_mut().zip(&self.field);
        errors.for_each(|(e, a)| *e = (*e * factor).hypot(epsilon * square(a, scale).sqrt() / scale));
    }

    /// The squares of the predicted errors of each target, see [`predicted_squares`].
    fn predicted(&self, tolerance: f64) -> Vec<[f64; 2]> {
        predicted_squares(&self.error, &self.field, self.epsilon, tolerance)
    }

    /// What brings the largest component of the field near one.
    fn scale(&self) -> f64 {
        scale(&self.field)
    }
}

/// The squares of predicted errors of each target, for [`Sample::predicted`]: over its field, and
/// over an arbitrary unit. `epsilon` is the relative rounding error that `error` does not hold.
/// Direct sums, whose `error` is empty, have nothing but rounding: some part of each field, and the
/// same everywhere in addition, where forces cancel.
pub fn predicted_squares(error: &[f64], field: &[[f64; 3]], epsilon: f64, tolerance: f64) -> Vec<[f64; 2]> {
    let (scale, largest) = (scale(field), (LARGEST * tolerance).powi(2));
    let rounding = epsilon.powi(2);
    let everywhere = match error {
        [] => rounding * mean_square(field, scale),
        _ => 0.0,
    };
    let of_target = |(i, a): (usize, &[f64; 3])| {
        let a2 = square(a, scale);
        // A target that was summed again has no more than rounding left.
        let e2 = error.get(i).map_or(everywhere, |e| (e * scale).powi(2)) + rounding * a2;
        [if e2 > 0.0 { (e2 / a2).min(largest) } else { 0.0 }, e2]
    };
    field.par_iter().enumerate().map(of_target).collect_vec()
}

/// The mean square of the field.
fn mean_square(field: &[[f64; 3]], scale: f64) -> f64 {
    field.iter().map(|a| square(a, scale)).sum::<f64>() / field.len().max(1) as f64
}

/// What brings the largest component near one.
fn scale(field: &[[f64; 3]]) -> f64 {
    power_of_two_below(1.0 / field.as_flattened().iter().fold(0.0, |m: f64, c| m.max(c.abs())))
}

fn square(a: &[f64; 3], scale: f64) -> f64 {
    a.iter().map(|c| (c * scale).powi(2)).sum()
}
