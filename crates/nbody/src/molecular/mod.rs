//! Ions in a periodic box: a short repulsion that keeps them from collapsing, and a bath of heat.

mod bath;
mod lennard_jones;

use std::borrow::Cow;

use fmm_core::{Beside, Choice, Error, Executor, Particles, Stage, StageTimes};
use rayon::prelude::*;

pub use bath::{Bath, Kind};
pub use lennard_jones::LennardJones;

use crate::device;
use crate::fault::Fault;
use crate::scenario::Scenario;

impl Scenario {
    /// The executor of a run of `n` particles with all that acts on them, on the device that the scenario asks for. `mass` is that of each.
    ///
    /// # Errors
    /// Those of [`device::executor`].
    pub fn executor(&self, n: usize, mass: &[f64], quiet: bool) -> Result<Box<dyn Executor>, Fault> {
        let molecular = self.short_range.is_some() || self.bath.is_some();
        if !molecular || self.settings.boundary.periodic().is_none() || self.external.is_some() {
            let executor = device::executor(self.device, &self.settings, self.log_kernel(), n, quiet)?;
            return Ok(self.with_molecular(self.with_external(executor), mass));
        }
        let short_range = self.short_range.map(|pairs| pairs.on_device(self.constant()));
        let bath = self.bath.map(|bath| -> (u64, fmm_cuda::Bath) {
            let (seed, mass) = (self.seed, mass.to_vec());
            (bath.last, Box::new(move |step, h, velocity| bath.exchange(seed, step, h, &mass, velocity)))
        });
        let (executor, whole) = device::ion_executor(self.device, &self.settings, n, quiet, short_range, bath)?;
        Ok(if whole { executor } else { self.with_molecular(executor, mass) })
    }

    /// Adds short-range forces and the bath to an executor; returns it as it is where there are none.
    ///
    /// `mass` is that of each particle.
    pub fn with_molecular(&self, executor: Box<dyn Executor>, mass: &[f64]) -> Box<dyn Executor> {
        let (Some(cell), true) = (self.settings.boundary.periodic(), self.short_range.is_some() || self.bath.is_some())
        else {
            return executor;
        };
        Box::new(Molecular {
            short_range: self.short_range,
            side: cell.side,
            bath: self.bath,
            seed: self.seed,
            constant: self.constant(),
            mass: mass.to_vec(),
            inner: executor,
            particles: Particles::default(),
            field: vec![],
            beside: Beside::default(),
        })
    }

    /// What Coulomb's law alone contributes to `field`, the forces of an executor made by [`Scenario::with_molecular`].
    pub fn without_short_range<'a>(&self, particles: &Particles, field: Cow<'a, [[f64; 3]]>) -> Cow<'a, [[f64; 3]]> {
        let (Some(cell), Some(pairs)) = (self.settings.boundary.periodic(), self.short_range) else { return field };
        let mut own = field.into_owned();
        let (forces, _) = pairs.sums(cell.side, &particles.position, &particles.strength);
        add(&mut own, &forces, &particles.strength, -1.0 / self.constant());
        Cow::Owned(own)
    }
}

/// Adds `factor` times the field that does to each charge what a force does.
fn add(field: &mut [[f64; 3]], forces: &[[f64; 3]], charge: &[f64], factor: f64) {
    field.par_iter_mut().zip(forces).zip(charge).for_each(|((e, f), q)| {
        e.iter_mut().zip(f).for_each(|(e, f)| *e += factor * f / q);
    });
}

/// An executor with forces between neighbours and a bath. The particles live here and visit the inner executor for Coulomb's forces.
struct Molecular {
    short_range: Option<LennardJones>,
    side: [f64; 3],
    bath: Option<Bath>,
    seed: u64,
    /// k_e.
    constant: f64,
    mass: Vec<f64>,
    inner: Box<dyn Executor>,
    particles: Particles,
    /// That of all forces, per charge and k_e.
    field: Vec<[f64; 3]>,
    beside: Beside,
}

impl Executor for Molecular {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        self.inner.upload(particles)?;
        self.particles = particles.clone();
        Ok(())
    }

    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        self.inner.upload(&self.particles)?;
        self.inner.forces(times)?;
        self.field = self.inner.field().1;
        let Some(pairs) = self.short_range else { return Ok(()) };
        let Particles { position, strength, .. } = &self.particles;
        times.time_more(Stage::P2P, || {
            let (forces, beside) = pairs.sums(self.side, position, strength);
            add(&mut self.field, &forces, strength, 1.0 / self.constant);
            self.beside = beside;
        });
        Ok(())
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) {
        times.time(Stage::Kick, || self.particles.kick(h, &self.field));
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) {
        times.time(Stage::Drift, || self.particles.drift(h));
    }

    fn bathe(&mut self, step: u64, h: f64) {
        if let Some(bath) = self.bath {
            bath.exchange(self.seed, step, h, &self.mass, &mut self.particles.velocity);
        }
    }

    fn beside(&self) -> Beside {
        self.beside
    }

    fn check(&mut self) -> Result<(), Error> {
        self.particles.check()
    }

    fn particles(&mut self) -> Particles {
        self.particles.clone()
    }

    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>) {
        (self.inner.field().0, self.field.clone())
    }

    fn choice(&self) -> Option<Choice> {
        self.inner.choice()
    }

    fn coincident_pairs(&self) -> u64 {
        self.inner.coincident_pairs()
    }
}
