//! What the error field says of a sum: which targets the guard sums directly, and which are summed again.

use rayon::prelude::*;

use super::evaluate::Summed;
use crate::error_model::LARGEST;
use crate::guard::{Norms, Sample, predicted_size, sample_size};
use crate::math::CollectVec;
use crate::math::scale::power_of_two_below;

/// Relative errors of direct sums by rounding, in spacings of numbers next to 1.
const DIRECT: f64 = 4.0;

impl Summed {
    /// The targets that the guard sums directly: drawn by the error field, or evenly where there is none.
    pub fn sample(&self, tolerance: f64) -> Sample {
        let targets = self.field.len();
        if self.error.is_empty() {
            return Sample::spread(targets, sample_size(targets));
        }
        Sample::predicted(predicted_size(targets), &self.predicted(tolerance))
    }

    /// The root mean square of the field over all targets, if errors are predicted.
    pub fn rms(&self) -> Option<f64> {
        let scale = self.scale();
        let squares: f64 = self.field.iter().map(|a| square(a, scale)).sum();
        (!self.error.is_empty()).then(|| (squares / self.field.len().max(1) as f64).sqrt() / scale)
    }

    /// The targets that are to be summed again, see [`Norms::worst`].
    pub fn worst(&self, norms: Norms, tolerance: f64, most: usize) -> Vec<u32> {
        if self.error.is_empty() { vec![] } else { norms.worst(&self.predicted(tolerance), tolerance, most) }
    }

    /// Scales the estimated errors so that their L2 norm over all targets is the one that was
    /// measured, and adds rounding. Without expansions all are this part of the field.
    pub fn calibrate(&mut self, l2: f64) {
        let (scale, epsilon) = (self.scale(), self.epsilon);
        let sizes = self.field.par_iter().map(|a| square(a, scale).sqrt() / scale);
        if self.error.is_empty() {
            self.error = sizes.map(|a| l2.max(DIRECT * epsilon) * a).collect_vec();
            return;
        }
        let predicted = (self.error.iter().map(|e| (e * scale).powi(2)).sum::<f64>() / self.error.len() as f64).sqrt();
        let factor = match l2 * self.rms().unwrap_or(0.0) * scale / predicted {
            factor if factor.is_finite() => factor,
            _ => 1.0,
        };
        self.error.par_iter_mut().zip(sizes).for_each(|(e, a)| *e = (*e * factor).hypot(epsilon * a));
    }

    /// The squares of the predicted errors of each target: over its field, and over an arbitrary unit.
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
pub fn predicted_squares(error: &[f64], field: &[[f64; 3]], epsilon: f64, tolerance: f64) -> Vec<[f64; 2]> {
    let (scale, largest) = (scale(field), (LARGEST * tolerance).powi(2));
    let of_target = |(error, a): (&f64, &[f64; 3])| {
        let (a2, e2) = (square(a, scale), (error * scale).powi(2));
        // A target that was summed again has no more than rounding left.
        let e2 = e2 + epsilon.powi(2) * a2;
        [if e2 > 0.0 { (e2 / a2).min(largest) } else { 0.0 }, e2]
    };
    error.par_iter().zip(field).map(of_target).collect_vec()
}

/// What brings the largest component near one.
fn scale(field: &[[f64; 3]]) -> f64 {
    power_of_two_below(1.0 / field.as_flattened().iter().fold(0.0, |m: f64, c| m.max(c.abs())))
}

fn square(a: &[f64; 3], scale: f64) -> f64 {
    a.iter().map(|c| (c * scale).powi(2)).sum()
}
