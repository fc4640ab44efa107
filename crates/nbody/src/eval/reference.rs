//! The truth at a sample of the particles, kept for more than one sum of them.

use fmm_core::Settings;
use fmm_core::planar::Blob;

use super::check::{Errors, choose, errors};
use super::kernel::{Kernel, Problem, Truth};
use crate::device::Device;

/// Direct sums in f64, pair by pair, at a sample of a set's own particles.
pub struct Reference {
    chosen: Vec<usize>,
    truth: Vec<Truth>,
}

impl Reference {
    /// The vector of `kernel` that a tolerance bounds, of the particles at `sample` of them, spread evenly.
    pub fn new(kernel: Kernel, position: &[[f64; 3]], strength: &[f64], sample: usize) -> Self {
        let settings = Settings::default();
        let strengths = [strength.to_vec()];
        let problem = Problem {
            kernel,
            settings: &settings,
            blob: Blob::Point,
            device: Device::Cpu,
            quiet: true,
            dimension: 3,
            sources: position,
            strengths: &strengths,
            targets: None,
        };
        let chosen = choose(position.len(), sample);
        let at: Vec<[f64; 3]> = chosen.iter().map(|&i| position[i]).collect();
        Reference { truth: problem.truth(&at), chosen }
    }

    /// The errors of a field, `[N]` in the order of the particles.
    pub fn errors(&self, field: &[[f64; 3]]) -> Errors {
        errors(self.chosen.iter().map(|&i| field[i]).zip(self.truth.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_seen() {
        let position = [[0.0; 3], [1.0, 0.0, 0.0]];
        let reference = Reference::new(Kernel::Laplace, &position, &[1.0, 2.0], 10);
        assert_eq!(reference.errors(&[[-2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]).max, 0.0);
        let e = reference.errors(&[[-2.2, 0.0, 0.0], [1.0, 0.0, 0.0]]);
        assert!((e.max - 0.1).abs() < 1e-12 && e.sample == 2, "{e:?}");
    }
}
