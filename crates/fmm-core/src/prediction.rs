//! What the error field says of a sum: which targets the guard sums directly, and which are summed
//! again. In space and in the plane.

use rayon::prelude::*;

use crate::error_model::LARGEST;
use crate::guard::{Norms, Sample, predicted_size, sample_size};
use crate::math::CollectVec;
use crate::math::scale::power_of_two_below;

/// Relative errors of direct sums by rounding, in spacings of numbers next to 1.
const DIRECT: f64 = 4.0;

/// Sums at targets, in any order, with the estimated errors of their vectors.
pub struct Prediction<'a, S, const R: usize> {
    /// What was summed. `[targets]`
    pub sums: &'a [S],
    /// The vector of a sum.
    pub vector: fn(&S) -> [f64; R],
    /// The estimated sizes of the errors by truncation; empty if no expansion was used. `[targets]`
    pub error: &'a [f64],
    /// The spacing of numbers next to 1 in the precision of the sums.
    pub epsilon: f64,
    /// Whether the tolerance bounds the rms of relative errors as well as L2.
    pub relative: bool,
}

impl<S: Sync, const R: usize> Prediction<'_, S, R> {
    /// The targets that the guard sums directly: drawn by the error field, or evenly where there is none.
    pub fn sample(&self, tolerance: f64) -> Sample {
        let targets = self.sums.len();
        if self.error.is_empty() {
            return Sample::spread(targets, sample_size(targets));
        }
        Sample::predicted(predicted_size(targets), &self.squares(tolerance))
    }

    /// The root mean square of the vectors over all targets, if errors are predicted.
    pub fn rms(&self) -> Option<f64> {
        let scale = self.scale();
        let squares: f64 = self.sums.iter().map(|s| square(&(self.vector)(s), scale)).sum();
        (!self.error.is_empty()).then(|| (squares / self.sums.len().max(1) as f64).sqrt() / scale)
    }

    /// The targets that are to be summed again, see [`Norms::worst`].
    pub fn worst(&self, norms: Norms, tolerance: f64, most: usize) -> Vec<u32> {
        if self.error.is_empty() { vec![] } else { norms.worst(&self.squares(tolerance), tolerance, most) }
    }

    /// The estimated errors, scaled so that their L2 norm over all targets is the one that was
    /// measured, with rounding added. Without expansions all are this part of the vector.
    pub fn calibrated(&self, l2: f64) -> Vec<f64> {
        let (scale, epsilon) = (self.scale(), self.epsilon);
        let sizes = self.sums.par_iter().map(|s| square(&(self.vector)(s), scale).sqrt() / scale);
        if self.error.is_empty() {
            return sizes.map(|a| l2.max(DIRECT * epsilon) * a).collect_vec();
        }
        let predicted = (self.error.iter().map(|e| (e * scale).powi(2)).sum::<f64>() / self.error.len() as f64).sqrt();
        let factor = match l2 * self.rms().unwrap_or(0.0) * scale / predicted {
            factor if factor.is_finite() => factor,
            _ => 1.0,
        };
        self.error.par_iter().zip(sizes).map(|(e, a)| (e * factor).hypot(epsilon * a)).collect_vec()
    }

    /// The squares of the predicted errors of each target: over its vector, and over an arbitrary
    /// unit. Where the tolerance bounds L2 alone both are the latter.
    fn squares(&self, tolerance: f64) -> Vec<[f64; 2]> {
        let (scale, largest) = (self.scale(), (LARGEST * tolerance).powi(2));
        let of_target = |(error, sum): (&f64, &S)| {
            let (a2, e2) = (square(&(self.vector)(sum), scale), (error * scale).powi(2));
            // A target that was summed again has no more than rounding left.
            let e2 = e2 + self.epsilon.powi(2) * a2;
            let of_vector = if e2 > 0.0 { (e2 / a2).min(largest) } else { 0.0 };
            [if self.relative { of_vector } else { e2 }, e2]
        };
        self.error.par_iter().zip(self.sums).map(of_target).collect_vec()
    }

    /// What brings the largest component of the vectors near one.
    fn scale(&self) -> f64 {
        let largest = |m: f64, s: &S| (self.vector)(s).iter().fold(m, |m, c| m.max(c.abs()));
        power_of_two_below(1.0 / self.sums.iter().fold(0.0, largest))
    }
}

fn square<const R: usize>(a: &[f64; R], scale: f64) -> f64 {
    a.iter().map(|c| (c * scale).powi(2)).sum()
}
