//! What benchmarks sum, and what is right there.

use std::sync::{Arc, OnceLock};

use fmm::{Errors, Kernel, Reference};
use fmm_core::Particles;

use super::norm::Norm;

/// Particles with the truth about them.
pub struct Bodies {
    /// Positions, masses 1/N (in the plane strengths of either sign), and velocities so small that moving by them changes no tree.
    pub particles: Particles,
    /// The field at a sample of them.
    pub reference: Reference,
    pub(super) kernel: Kernel,
    /// All cores.
    pub(super) cores: Arc<rayon::ThreadPool>,
    /// The field at a larger sample, once a sum has asked for it.
    pub(super) larger: OnceLock<Option<Reference>>,
}

/// Pairs of the direct sums that every sum is compared with.
pub(super) const SAMPLED: usize = 1_000_000_000;

/// Pairs of those that a sum is compared with if it misses its tolerance by the former.
const SAMPLED_AGAIN: usize = 16 * SAMPLED;

impl Bodies {
    /// The errors of a field at a sample of the targets, a larger one where the small one misses the tolerance: few
    /// targets may make most of rms and L2, and count too much in a small sample that has one of them. One that has none is
    /// not doubted: misses are rarer in records than in sets.
    pub(super) fn errors(&self, field: &[[f64; 3]], norm: Norm, tolerance: f64) -> Errors {
        let errors = self.reference.errors(field);
        if norm == Norm::Max || norm.keeps(self.kernel, &errors, tolerance) {
            return errors;
        }
        let Particles { position, strength, .. } = &self.particles;
        let sample = (SAMPLED_AGAIN / position.len()).min(position.len() / 16);
        let all = || Reference::new(self.kernel, position, strength, sample);
        let larger = || (sample > errors.sample).then(|| self.cores.install(all));
        self.larger.get_or_init(larger).as_ref().map_or(errors, |larger| larger.errors(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Context, Limits};
    use crate::sets::Set;

    #[test]
    fn a_sum_that_misses_is_compared_at_more_targets() {
        let mut context = Context::new(Limits { samples: 1, budget: 0.0 }, None, None);
        let n = 20_000;
        let bodies = context.bodies(Kernel::Laplace, Set::Uniform, None, n).unwrap();
        let settings = fmm_core::Settings { tolerance: 1e-6, ..Default::default() };
        let Particles { position, strength, .. } = &bodies.particles;
        let exact = fmm_core::evaluate(&settings, position, strength, None, &mut Default::default()).unwrap().field;
        let errors = |field: &[[f64; 3]], norm| bodies.errors(field, norm, 1e-3);
        assert_eq!(errors(&exact, Norm::Rms).sample, 1000);
        // One target in twenty is in the small sample.
        let wrong = (0..n).map(|i| {
            let mut field = exact.clone();
            field[i] = field[i].map(|e| 1.05 * e);
            field
        });
        let missed = wrong.take(40).find(|field| bodies.reference.errors(field).rms > 1e-3).unwrap();
        let found = errors(&missed, Norm::Rms);
        assert_eq!(found.sample, n / 16);
        assert!(found.rms < bodies.reference.errors(&missed).rms, "{found:?}");
        assert_eq!(errors(&missed, Norm::Max).sample, 1000);
    }
}
