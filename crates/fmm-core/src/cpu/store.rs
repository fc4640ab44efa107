//! The particles of a run on the cores of this machine.

use super::evaluate::{evaluation, solve_points};
use super::points::Points;
use crate::bath::HeatExchange;
use crate::forces::Forces;
use crate::planar::{self, Blob, Flow, Kernel};
use crate::solve::{Evaluation, Quantity};
use crate::{Choice, Complex64, Error, ForceReport, Kept, ParticleStore, Particles, Settings, Stage, StageTimes};

/// What sums the field at the particles of a [`CpuStore`].
pub trait Summing: Send {
    /// Potential and field at the present positions, and what the next sum begins with.
    ///
    /// # Errors
    /// Those of [`ParticleStore::forces_kept`].
    fn sum(
        &mut self,
        particles: &Particles,
        kept: Option<Kept>,
        times: &mut StageTimes,
    ) -> Result<(Evaluation, Option<Kept>), Error>;

    /// As [`ParticleStore::set_core`].
    fn set_core(&mut self, _length: f64) {}

    /// Checks the particles, those of other ranks too where there are any.
    ///
    /// # Errors
    /// Those of [`Particles::check`].
    fn check(&self, particles: &Particles) -> Result<(), Error> {
        particles.check()
    }
}

/// The sum in space.
struct InSpace(Settings);

impl Summing for InSpace {
    fn sum(
        &mut self,
        Particles { position, strength, .. }: &Particles,
        kept: Option<Kept>,
        times: &mut StageTimes,
    ) -> Result<(Evaluation, Option<Kept>), Error> {
        let points = Points { sources: position, columns: &[strength], targets: None };
        let solved = solve_points(&self.0, kept, points, Quantity::Potential, times)?;
        let next = solved.kept;
        Ok((evaluation(solved), next))
    }
}

/// The sum in the plane.
struct InPlane {
    settings: Settings,
    kernel: Kernel,
    blob: Blob,
}

impl Summing for InPlane {
    fn sum(
        &mut self,
        Particles { position, strength, .. }: &Particles,
        kept: Option<Kept>,
        times: &mut StageTimes,
    ) -> Result<(Evaluation, Option<Kept>), Error> {
        let points: Vec<Complex64> = position.iter().map(|x| Complex64::new(x[0], x[1])).collect();
        let strengths: Vec<Complex64> = strength.iter().map(|&q| q.into()).collect();
        let problem = planar::Problem::new(&self.settings, self.kernel, self.blob, &points, &strengths, None)?;
        let (sum, next) = planar::evaluate_kept(&problem, kept, times)?;
        let Evaluation { potential, field, error, choice, coincident_pairs } = sum;
        let field = field.into_iter().map(|e| [e.re, e.im, 0.0]).collect();
        Ok((Evaluation { potential, field, error, choice, coincident_pairs }, next))
    }

    fn set_core(&mut self, length: f64) {
        self.blob = self.blob.with_length(length);
    }
}

/// Particles on the cores of this machine, whose work is done in rayon's current thread pool.
pub struct CpuStore<'a> {
    summing: Box<dyn Summing + 'a>,
    /// What acts in addition to the sum.
    forces: Forces,
    particles: Particles,
    flow: Flow,
    /// What the last forces have found. The field includes all forces.
    last: Option<Evaluation>,
    report: ForceReport,
}

impl<'a> CpuStore<'a> {
    /// A store without particles.
    ///
    /// # Errors
    /// [`Error::Range`] if a setting lies outside its range.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        Ok(Self::with(InSpace(settings)))
    }

    /// A store without particles that sums a kernel of the plane over x and y, with what [`planar::evaluate`] gives as potential and field
    /// and zero as the third component. z takes no part.
    ///
    /// # Errors
    /// As [`planar::evaluate`] for settings and blobs.
    pub fn in_plane(settings: Settings, kernel: Kernel, blob: Blob) -> Result<Self, Error> {
        planar::check(&settings)?;
        blob.check()?;
        Ok(Self::with(InPlane { settings, kernel, blob }))
    }

    /// A store without particles whose field `summing` sums.
    pub fn with(summing: impl Summing + 'a) -> Self {
        CpuStore {
            summing: Box::new(summing),
            forces: Forces::default(),
            particles: Particles::default(),
            flow: Flow::default(),
            last: None,
            report: ForceReport::default(),
        }
    }

    /// The same with forces in addition to the sum.
    pub fn with_forces(mut self, forces: Forces) -> Self {
        self.forces = forces;
        self
    }

    /// The field of the last forces; empty before the first.
    fn last_field(&self) -> &[[f64; 3]] {
        self.last.as_ref().map_or(&[], |last| &last.field)
    }
}

impl ParticleStore for CpuStore<'_> {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        self.summing.check(particles)?;
        self.particles = particles.clone();
        (self.last, self.report) = (None, ForceReport::default());
        Ok(())
    }

    fn forces_kept(&mut self, kept: Option<Kept>, times: &mut StageTimes) -> Result<Option<Kept>, Error> {
        // What a failed sum leaves are no forces at these positions.
        (self.last, self.report) = (None, ForceReport::default());
        let (mut sum, next) = self.summing.sum(&self.particles, kept, times)?;
        if !self.forces.is_none() {
            let Particles { position, strength, .. } = &self.particles;
            let (potential, field) = (&mut sum.potential, &mut sum.field);
            self.report = times.time_more(Stage::P2P, || self.forces.add(position, strength, potential, field));
        }
        self.last = Some(sum);
        Ok(next)
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        let CpuStore { particles, last: Some(last), .. } = self else { return Ok(()) };
        times.time(Stage::Kick, || particles.kick(h, &last.field));
        Ok(())
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        times.time(Stage::Drift, || self.particles.drift(h));
        Ok(())
    }

    fn begin_flow(&mut self) -> Result<f64, Error> {
        Ok(self.flow.begin(&self.particles.position))
    }

    fn flow(&mut self, weight: f64) -> Result<f64, Error> {
        let velocity = planar::velocities(&self.particles.coupling, self.last_field());
        Ok(self.flow.take(velocity, weight))
    }

    fn flow_to(&mut self, h: f64, summed: bool) -> Result<(), Error> {
        self.particles.position = self.flow.reach(h, summed);
        Ok(())
    }

    fn set_core(&mut self, length: f64) {
        self.summing.set_core(length);
    }

    fn exchange_heat(&mut self, exchange: &HeatExchange<'_>) -> Result<(), Error> {
        exchange.apply(&mut self.particles.velocity);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        self.summing.check(&self.particles)
    }

    fn particles(&mut self) -> Result<Particles, Error> {
        Ok(self.particles.clone())
    }

    fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error> {
        Ok(self.last.as_ref().map_or_else(Default::default, |last| (last.potential.clone(), last.field.clone())))
    }

    fn error(&mut self) -> Result<Vec<f64>, Error> {
        Ok(self.last.as_ref().map_or_else(Vec::new, |last| last.error.clone()))
    }

    fn force_report(&self) -> ForceReport {
        self.report
    }

    fn choice(&self) -> Option<Choice> {
        self.last.as_ref().map(|last| last.choice.clone())
    }

    fn coincident_pairs(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.coincident_pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two charges of size 1 on the x axis, at the distance 2.
    fn pair() -> (CpuStore<'static>, Particles) {
        let particles = Particles {
            position: vec![[-1.0, 0.0, 0.5], [1.0, 0.0, 0.5]],
            velocity: vec![[0.0; 3]; 2],
            strength: vec![1.0; 2],
            coupling: vec![2.0; 2],
            ..Particles::default()
        };
        let mut store = CpuStore::new(Settings::default()).unwrap();
        store.upload(&particles).unwrap();
        store.forces(&mut StageTimes::default()).unwrap();
        (store, particles)
    }

    #[test]
    fn new_particles_have_no_forces_of_earlier_ones() {
        let (mut store, particles) = pair();
        assert_eq!(store.field().unwrap(), (vec![0.5; 2], vec![[-0.25, 0.0, 0.0], [0.25, 0.0, 0.0]]));
        store.upload(&particles).unwrap();
        assert!(store.field().unwrap().1.is_empty() && store.choice().is_none());
        store.kick(1.0, &mut StageTimes::default()).unwrap();
        assert_eq!(store.particles().unwrap(), particles);
    }

    #[test]
    fn a_sum_that_fails_leaves_no_forces() {
        let (mut store, _) = pair();
        store.drift(f64::NAN, &mut StageTimes::default()).unwrap();
        assert!(store.forces(&mut StageTimes::default()).is_err());
        assert!(store.field().unwrap().1.is_empty() && store.choice().is_none());
    }

    #[test]
    fn a_store_in_space_flows_too() {
        let (mut store, _) = pair();
        assert_eq!(store.begin_flow().unwrap(), 1.0);
        assert_eq!(store.flow(1.0).unwrap(), f64::INFINITY);
        store.flow_to(4.0, true).unwrap();
        // u = 2 (e_y, -e_x), and z stays.
        assert_eq!(store.particles().unwrap().position, [[-1.0, 2.0, 0.5], [1.0, -2.0, 0.5]]);
    }
}
