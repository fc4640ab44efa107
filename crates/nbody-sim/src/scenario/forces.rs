//! What acts on the particles of a scenario in addition to their sum: a fixed field, a short
//! repulsion that keeps ions from collapsing, charges that do not see each other, and a bath of
//! heat.

use fmm_core::Executor;
use fmm_core::forces::Forces;

use super::{Law, Scenario};
use crate::failure::Failure;
use fmm::Note;

impl Scenario {
    /// The executor of a run of `n` particles with all that acts on them, on the device that the
    /// scenario asks for. `mass` is that of each, `note` receives notes on the choice of the
    /// device.
    ///
    /// # Errors
    /// Those of [`fmm::executor()`].
    pub fn executor(&self, n: usize, mass: &[f64], note: &mut dyn FnMut(Note)) -> Result<Box<dyn Executor>, Failure> {
        let bath = self.bath.map(|bath| {
            let (seed, mass) = (self.seed, mass.to_vec());
            fmm_core::Bath {
                last: bath.last,
                exchange: Box::new(move |step, h, velocity| bath.exchange(seed, step, h, &mass, velocity)),
            }
        });
        let more = (self.forces(), bath);
        fmm::executor(self.device, &self.settings, self.log_kernel(), n, more, note).map_err(|e| match &e {
            fmm::Error::Sum(sum) => self.refused(sum).map_or_else(|| e.into(), |text| Failure::new(65, text)),
            _ => e.into(),
        })
    }

    /// What acts in addition to the sum.
    pub fn forces(&self) -> Forces {
        let cell = self.settings.boundary.periodic().copied();
        Forces {
            external: self.external,
            short_range: self.short_range.filter(|_| cell.is_some()),
            exclusions: self.exclusions.clone(),
            constant: self.external_constant(),
            softening: self.settings.clone().simplified().softening,
            cell,
        }
    }

    /// What a field is multiplied by to be a force per mass or charge: −G or k_e.
    pub fn external_constant(&self) -> f64 {
        if self.law == Law::Gravity { -self.constant() } else { self.constant() }
    }
}
