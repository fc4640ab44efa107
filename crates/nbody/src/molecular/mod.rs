//! Ions in a periodic box: a short repulsion that keeps them from collapsing, and a bath of heat; and charges that do not see each other.

mod bath;
mod lennard_jones;
mod others;

use std::borrow::Cow;

use fmm_core::{Beside, Choice, Error, Executor, Particles, Stage, StageTimes};

pub use bath::{Bath, Kind};
pub use lennard_jones::LennardJones;
use others::Others;

use crate::device;
use crate::fault::Fault;
use crate::scenario::Scenario;

impl Scenario {
    /// The executor of a run of `n` particles with all that acts on them, on the device that the scenario asks for. `mass` is that of each.
    ///
    /// # Errors
    /// Those of [`device::executor`].
    pub fn executor(&self, n: usize, mass: &[f64], quiet: bool) -> Result<Box<dyn Executor>, Fault> {
        let ions = (self.short_range.is_some() || self.bath.is_some()) && self.exclusions.is_empty();
        if !ions || self.settings.boundary.periodic().is_none() || self.external.is_some() {
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

    /// Adds short-range forces, the bath and what excluded pairs do not do to an executor; returns it as it is where there are none.
    ///
    /// `mass` is that of each particle.
    pub fn with_molecular(&self, executor: Box<dyn Executor>, mass: &[f64]) -> Box<dyn Executor> {
        let others = self.others();
        if others.is_none() && self.bath.is_none() {
            return executor;
        }
        Box::new(Molecular {
            others,
            bath: self.bath,
            seed: self.seed,
            mass: mass.to_vec(),
            inner: executor,
            particles: Particles::default(),
            field: vec![],
            less: vec![],
            beside: Beside::default(),
        })
    }

    /// What acts between particles beside the sum over all.
    fn others(&self) -> Option<Others> {
        let cell = self.settings.boundary.periodic().copied();
        let short_range = self.short_range.filter(|_| cell.is_some());
        let acts = short_range.is_some() || !self.exclusions.is_empty();
        acts.then(|| Others {
            short_range,
            exclusions: self.exclusions.clone(),
            cell,
            softening: self.settings.clone().simplified().softening,
            constant: self.constant(),
        })
    }

    /// What Coulomb's law alone contributes to `field`, the forces of an executor made by [`Scenario::with_molecular`].
    pub fn without_others<'a>(&self, particles: &Particles, field: Cow<'a, [[f64; 3]]>) -> Cow<'a, [[f64; 3]]> {
        let Some(others) = self.others() else { return field };
        let mut own = field.into_owned();
        let mut beside = vec![[0.0; 3]; own.len()];
        others.add(&particles.position, &particles.strength, &mut beside);
        own.iter_mut().zip(&beside).for_each(|(e, b)| (0..3).for_each(|k| e[k] -= b[k]));
        Cow::Owned(own)
    }
}

/// An executor with forces between neighbours and a bath. The particles live here and visit the inner executor for Coulomb's forces.
struct Molecular {
    others: Option<Others>,
    bath: Option<Bath>,
    seed: u64,
    mass: Vec<f64>,
    inner: Box<dyn Executor>,
    particles: Particles,
    /// That of all forces, per charge and k_e.
    field: Vec<[f64; 3]>,
    /// What the potential at the two of each excluded pair is too large by.
    less: Vec<[f64; 2]>,
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
        let Some(others) = &self.others else { return Ok(()) };
        let Particles { position, strength, .. } = &self.particles;
        times.time_more(Stage::P2P, || {
            (self.beside, self.less) = others.add(position, strength, &mut self.field);
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
        let mut potential = self.inner.field().0;
        if let Some(others) = self.others.as_ref().filter(|_| !potential.is_empty()) {
            for (pair, less) in others.exclusions.iter().zip(&self.less) {
                (0..2).for_each(|k| potential[pair[k]] -= less[k]);
            }
        }
        (potential, self.field.clone())
    }

    fn choice(&self) -> Option<Choice> {
        self.inner.choice()
    }

    fn coincident_pairs(&self) -> u64 {
        self.inner.coincident_pairs()
    }
}
