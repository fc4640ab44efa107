//! Thermostats: baths of a temperature, which act after steps.

use fmm_core::bath::HeatExchange;
pub use fmm_core::bath::Kind;
use fmm_core::random::Stream;

/// A thermostat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thermostat {
    /// How.
    pub kind: Kind,
    /// As the user gives it.
    pub temperature: f64,
    /// k_B times the temperature.
    pub energy: f64,
    /// In which velocities, or the kinetic energy, forget.
    pub time: f64,
    /// The last step after which it acts.
    pub last: u64,
}

/// The random numbers of step 0: far from those of groups.
const FIRST: usize = 1 << 40;

impl Thermostat {
    /// What the step with number `step`, of length `h`, exchanges. The random numbers depend on seed and step alone, so that a resumed run
    /// draws the same.
    pub fn exchange<'a>(&self, seed: u64, step: u64, h: f64, mass: &'a [f64]) -> HeatExchange<'a> {
        let numbers = Stream::new(seed, FIRST + step as usize);
        HeatExchange { kind: self.kind, energy: self.energy, kept: (-h / self.time).exp(), numbers, mass }
    }
}
