//! What is made of copies of the particles, on whichever thread.

use std::sync::Arc;

use fmm_core::{Copied, Particles};
use rayon::prelude::*;

use crate::diagnostics::{Diagnostics, State};
use crate::external::External;
use crate::initial::Initial;
use crate::scenario::Law;

/// What a run knows beside the copies.
pub struct Taker {
    /// Masses and charges.
    pub initial: Arc<Initial>,
    /// A field beside that of the particles.
    pub external: Option<External>,
    /// Gravity or Coulomb.
    pub law: Law,
    /// G or k_e.
    pub constant: f64,
}

impl Taker {
    /// What potentials Σ q/r are multiplied by. Attraction: φ = −G Σ m/r. Repulsion of like charges: φ = k_e Σ q/r.
    pub fn sign(&self) -> f64 {
        if self.law == Law::Coulomb { self.constant } else { -self.constant }
    }

    /// Accelerations are coupling · field.
    pub fn acceleration(particles: &Particles, field: &[[f64; 3]]) -> Vec<[f64; 3]> {
        particles.coupling.par_iter().zip(field).map(|(c, e)| e.map(|e| c * e)).collect()
    }

    /// φ of the particles and of the external field, from Σ q/r.
    pub fn whole_potential(&self, particles: &Particles, mut potential: Vec<f64>) -> Vec<f64> {
        let (sign, external) = (self.sign(), self.external_potential(&particles.position));
        potential.par_iter_mut().for_each(|p| *p *= sign);
        potential.iter_mut().zip(&external).for_each(|(p, e)| *p += e);
        potential
    }

    /// The sums over particles, here.
    pub fn diagnostics(&self, Copied { particles, potential, field }: &Copied) -> Diagnostics {
        let sign = self.sign();
        let potential: Vec<f64> = potential.par_iter().map(|p| sign * p).collect();
        Diagnostics::of(State {
            position: &particles.position,
            velocity: &particles.velocity,
            mass: &self.initial.mass,
            strength: &particles.strength,
            potential: &potential,
            external: &self.external_potential(&particles.position),
            acceleration: &Taker::acceleration(particles, field),
        })
    }

    /// Of each position; empty where there is no external field.
    fn external_potential(&self, position: &[[f64; 3]]) -> Vec<f64> {
        let at = |e: External| position.par_iter().map(|&x| e.at(x, self.law, self.constant).0).collect();
        self.external.map(at).unwrap_or_default()
    }
}
