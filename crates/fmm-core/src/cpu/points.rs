//! What is summed in space, and its sums.

use crate::Weights;
use crate::comm::{Comm, Solo};
use crate::math::blocked::blocked_sums;
use crate::prediction::Prediction;

/// What is summed, as the caller gave it.
#[derive(Clone, Copy)]
pub(super) struct Points<'a> {
    pub sources: &'a [[f64; 3]],
    /// Strengths, `[sources]` in each column: one for potentials, three for vortices.
    pub columns: &'a [&'a [f64]],
    /// None: the sources.
    pub targets: Option<&'a [[f64; 3]]>,
}

impl<'a> Points<'a> {
    /// The targets, whichever they are.
    pub fn at(&self) -> &'a [[f64; 3]] {
        self.targets.unwrap_or(self.sources)
    }
}

/// The sums of one choice, in the order of the targets.
pub(crate) struct Summed {
    pub potential: Vec<f64>,
    pub field: Vec<[f64; 3]>,
    /// Empty unless it is asked for.
    pub hessian: Vec<[f64; 6]>,
    pub coincident_pairs: u64,
    /// The estimated size of the error of the field: by truncation, see
    /// [`error_field`](super::error_field), and by rounding where forces cancel. Empty if
    /// no expansion was used, or if it is not asked for.
    pub error: Vec<f64>,
    /// The largest term that is known of a doubted target, 0 of others. Empty where it is not looked for.
    pub largest_term: Vec<f64>,
    /// The spacing of numbers next to 1 in the precision of the sum.
    pub epsilon: f64,
}

impl Summed {
    /// How much errors of one size at all targets count, where ions have this field.
    pub fn weights(&self, field_of_ions: f64) -> Weights {
        let least = Weights::least_square(field_of_ions);
        let of_target = |i: usize| {
            let square = self.field[i].iter().map(|c| c * c).sum::<f64>();
            [1.0 / square.max(least), square, self.potential[i].powi(2)]
        };
        let n = self.field.len();
        Weights::of(blocked_sums(n, of_target), n, field_of_ions)
    }

    /// What the error field says of the sums.
    pub fn prediction(&self) -> Prediction<'_, [f64; 3], 3> {
        self.prediction_on(&Solo)
    }

    /// The same where the ranks of `comm` have the other targets.
    pub fn prediction_on<'a>(&'a self, comm: &'a dyn Comm) -> Prediction<'a, [f64; 3], 3> {
        let Summed { field, error, largest_term, epsilon, .. } = self;
        Prediction { comm, sums: field, error, largest_term, epsilon: *epsilon, relative: true }
    }
}
