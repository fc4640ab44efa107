//! The vortex particles of a run. They are kept on the host; what costs is summed on the cores or on a GPU.

use super::{Exchange, Rates, Sums, exchange, rates};
use crate::bath::HeatExchange;
use crate::bodies::Particles;
use crate::planar::Flow;
use crate::{Choice, Error, ForceReport, Kept, ParticleStore, Settings, Stage, StageTimes};

/// Vortex particles. Of the [`Particles`] that it takes, `vorticity` has the strengths and `strength` the volumes, which
/// viscosity needs. [`ParticleStore::field`] gives α·ψ and the velocity.
pub struct VortexStore<'a> {
    sums: Box<dyn Sums + 'a>,
    settings: Settings,
    exchange: Option<Exchange>,
    particles: Particles,
    /// Of the last forces.
    last: Option<Rates>,
    /// The step of the places, and that of the strengths.
    moving: Flow,
    turning: Flow,
    /// What a rate of a strength is multiplied by to be compared with a velocity.
    unit: f64,
}

impl<'a> VortexStore<'a> {
    /// A store without particles. `settings` have the softening p1; with an `exchange` there is viscosity.
    ///
    /// # Errors
    /// [`Error::Range`] if a setting lies outside its range.
    pub fn new(sums: impl Sums + 'a, settings: Settings, exchange: Option<Exchange>) -> Result<Self, Error> {
        settings.check()?;
        Ok(VortexStore {
            sums: Box::new(sums),
            settings,
            exchange,
            particles: Particles::default(),
            last: None,
            moving: Flow::default(),
            turning: Flow::default(),
            unit: 0.0,
        })
    }
}

impl ParticleStore for VortexStore<'_> {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        particles.check()?;
        let (expected, found) = (particles.len(), particles.vorticity.len());
        if found != expected {
            return Err(Error::Shape { what: "vorticities", expected, found });
        }
        (self.particles, self.last) = (particles.clone(), None);
        Ok(())
    }

    fn forces_kept(&mut self, _: Option<Kept>, times: &mut StageTimes) -> Result<Option<Kept>, Error> {
        // What a failed sum leaves are no rates at these places.
        self.last = None;
        let Particles { position, vorticity, strength, .. } = &self.particles;
        let mut all = rates(&mut *self.sums, &self.settings, position, vorticity, times)?;
        if let Some(how) = self.exchange {
            let (tolerance, bodies) = (self.settings.tolerance, (&position[..], &vorticity[..], &strength[..]));
            exchange(&mut *self.sums, how, tolerance, bodies, &mut all.turning, times)?;
        }
        self.last = Some(all);
        Ok(None)
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        let VortexStore { particles, last: Some(last), .. } = self else { return Ok(()) };
        times.time(Stage::Kick, || particles.kick(h, &last.velocity));
        Ok(())
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        times.time(Stage::Drift, || self.particles.drift(h));
        Ok(())
    }

    fn begin_flow(&mut self) -> Result<f64, Error> {
        let far = self.moving.begin(&self.particles.position);
        let strong = self.turning.begin(&self.particles.vorticity);
        self.unit = if strong > 0.0 { far / strong } else { 0.0 };
        Ok(far)
    }

    fn flow(&mut self, weight: f64) -> Result<f64, Error> {
        let Some(Rates { velocity, turning, .. }) = &self.last else { return Ok(f64::INFINITY) };
        let moved = self.moving.take(velocity.clone(), weight);
        let turned = self.turning.take(turning.clone(), weight);
        // The first call of a step knows no change, whatever the unit.
        Ok(if moved.is_infinite() { moved } else { moved.max(self.unit * turned) })
    }

    fn flow_to(&mut self, h: f64, summed: bool) -> Result<(), Error> {
        self.particles.position = self.moving.reach(h, summed);
        self.particles.vorticity = self.turning.reach(h, summed);
        Ok(())
    }

    fn exchange_heat(&mut self, exchange: &HeatExchange<'_>) -> Result<(), Error> {
        exchange.apply(&mut self.particles.velocity);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        self.particles.check()
    }

    fn particles(&mut self) -> Result<Particles, Error> {
        Ok(self.particles.clone())
    }

    fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error> {
        Ok(self.last.as_ref().map_or_else(Default::default, |last| (last.energy.clone(), last.velocity.clone())))
    }

    fn force_report(&self) -> ForceReport {
        ForceReport::default()
    }

    fn choice(&self) -> Option<Choice> {
        self.last.as_ref().and_then(|last| last.choice.clone())
    }

    fn coincident_pairs(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.coincident_pairs)
    }
}
