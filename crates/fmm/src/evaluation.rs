//! The result of a sum.

use fmm_core::{Choice, Precision, StageTimes};

use crate::{Device, Error, Errors, Kernel, Points};

/// A sum, in the order of the targets.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// Σ q K; empty for kernels without a potential. `[m]`
    pub potential: Vec<f64>,
    /// Minus the gradient of the potential; the velocity of vortices; real and imaginary part of Φ
    /// of the harmonic kernel. Components that [`Kernel::outputs`] does not name are 0. `[m]`
    pub field: Vec<[f64; 3]>,
    /// Second derivatives of the potential, xx, yy, zz, xy, xz, yz; empty without
    /// [`Problem::hessian`](crate::Problem::hessian). `[m]`
    pub hessian: Vec<[f64; 6]>,
    /// The estimated size of the error of `field`; empty without
    /// [`Settings::errors`](fmm_core::Settings::errors). `[m]`
    pub error: Vec<f64>,
    /// Method, precision, order, opening angle and leaf size.
    pub choice: Choice,
    /// The device that summed.
    pub device: Device,
    /// Pairs at distance zero that contributed nothing, a source's own not counted.
    pub coincident_pairs: u64,
    /// Errors at [`Problem::sample`](crate::Problem::sample) targets.
    pub errors: Option<Errors>,
    /// Seconds of the stages.
    pub times: StageTimes,
    /// Seconds of the parts.
    pub seconds: Seconds,
}

/// Seconds of wall time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seconds {
    /// Of the sum.
    pub sum: f64,
    /// Of the direct sums that errors are measured with.
    pub errors: f64,
}

impl Evaluation {
    /// Refuses results that are not finite.
    pub(crate) fn check_finite(&self, kernel: Kernel, points: &Points) -> Result<(), Error> {
        let outputs = kernel.outputs(points.dimension);
        let potential = outputs.potential.map(|name| (name, self.potential.iter().position(|v| !v.is_finite())));
        let field = outputs.field.iter().enumerate();
        let field = field.map(|(d, &name)| (name, self.field.iter().position(|e| !e[d].is_finite())));
        let bits = if self.choice.precision == Precision::F32 { 32 } else { 64 };
        let refuse = |output, target: usize, value| {
            Err(Error::Overflow { output, target, position: points.at()[target], value, bits })
        };
        for (k, (output, bad)) in potential.into_iter().chain(field).enumerate() {
            if let Some(target) = bad {
                let component = k.checked_sub(usize::from(outputs.potential.is_some()));
                let value = component.map_or(self.potential[target], |d| self.field[target][d]);
                return refuse(output, target, value);
            }
        }
        let wrong = |h: &[f64; 6]| h.iter().copied().find(|h| !h.is_finite());
        match self.hessian.iter().enumerate().find_map(|(target, h)| Some((target, wrong(h)?))) {
            Some((target, value)) => refuse("hessian", target, value),
            None => Ok(()),
        }
    }
}
