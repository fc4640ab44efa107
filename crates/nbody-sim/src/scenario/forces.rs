//! What acts on the particles of a scenario in addition to their sum: a fixed field, a short
//! repulsion that keeps ions from collapsing, and charges that do not see each other.

use fmm_core::ParticleStore;
use fmm_core::comm::Comm;
use fmm_core::forces::Forces;

use super::{Law, Scenario};
use crate::failure::Failure;
use fmm::Note;

impl Scenario {
    /// The store of `n` particles of a run with the forces that act on them: on the device that the
    /// scenario asks for, or of the particles at home on one of several `ranks`, which sum on the cores.
    /// `note` receives notes on the choice of the device.
    ///
    /// # Errors
    /// Those of [`fmm::store()`] and of [`fmm_core::ranks::store()`].
    pub fn store<'a>(
        &self,
        ranks: Option<&'a dyn Comm>,
        n: usize,
        note: &mut dyn FnMut(Note),
    ) -> Result<Box<dyn ParticleStore + 'a>, Failure> {
        let store = match ranks {
            None if self.vortices_in_space() => {
                fmm::vortex_store(self.device, &self.settings, self.exchange(), n, note)
            }
            None => fmm::store(self.device, &self.settings, self.log_kernel(), n, self.forces(), note),
            Some(comm) => match fmm_core::ranks::store(comm, self.settings.clone()) {
                Ok(store) => Ok(Box::new(store) as Box<dyn ParticleStore + 'a>),
                Err(error) => Err(error.into()),
            },
        };
        store.map_err(|e| match &e {
            fmm::Error::Sum(sum) => self.refused(sum).map_or_else(|| e.into(), |text| Failure::new(65, text)),
            _ => e.into(),
        })
    }

    /// Whether these are ions in a periodic box with a softened kernel.
    pub fn softened_ions(&self) -> bool {
        let softened = self.settings.softening.length() > 0.0;
        self.law == Law::Coulomb && self.settings.boundary.periodic().is_some() && softened
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
