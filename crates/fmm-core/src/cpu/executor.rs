//! The particles of a run on the cores of this machine.

use rayon::prelude::*;

use super::evaluate;
use crate::{Choice, Error, Executor, Particles, Settings, Stage, StageTimes};

/// Executes on the cores of this machine, in rayon's current thread pool.
pub struct CpuExecutor {
    settings: Settings,
    particles: Particles,
    potential: Vec<f64>,
    field: Vec<[f64; 3]>,
    choice: Option<Choice>,
    coincident_pairs: u64,
}

impl CpuExecutor {
    /// An executor without particles.
    ///
    /// # Errors
    /// [`Error::Range`] if a setting lies outside its range.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        Ok(CpuExecutor {
            settings,
            particles: Particles::default(),
            potential: vec![],
            field: vec![],
            choice: None,
            coincident_pairs: 0,
        })
    }
}

impl Executor for CpuExecutor {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        particles.check()?;
        self.particles = particles.clone();
        Ok(())
    }

    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        let sum = evaluate(&self.settings, &self.particles.position, &self.particles.strength, None, times)?;
        self.potential = sum.potential;
        self.field = sum.field;
        self.choice = Some(sum.choice);
        self.coincident_pairs = sum.coincident_pairs;
        Ok(())
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) {
        let Particles { velocity, coupling, .. } = &mut self.particles;
        times.time(Stage::Kick, || {
            velocity.par_iter_mut().zip(&self.field).zip(coupling).for_each(|((v, e), c)| {
                for d in 0..3 {
                    v[d] += h * (*c * e[d]);
                }
            });
        });
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) {
        let Particles { position, velocity, .. } = &mut self.particles;
        times.time(Stage::Drift, || {
            position.par_iter_mut().zip(velocity).for_each(|(x, v)| {
                for d in 0..3 {
                    x[d] += h * v[d];
                }
            });
        });
    }

    fn check(&mut self) -> Result<(), Error> {
        self.particles.check()
    }

    fn particles(&mut self) -> Particles {
        self.particles.clone()
    }

    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>) {
        (self.potential.clone(), self.field.clone())
    }

    fn choice(&self) -> Option<Choice> {
        self.choice.clone()
    }

    fn coincident_pairs(&self) -> u64 {
        self.coincident_pairs
    }
}
