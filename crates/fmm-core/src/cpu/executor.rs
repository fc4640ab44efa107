//! The particles of a run on the cores of this machine.

use super::evaluate::solve_points;
use super::points::Points;
use crate::forces::Forces;
use crate::planar::{self, Blob, Flow, Kernel};
use crate::solve::Quantity;
use crate::{Bath, Choice, Complex64, Error, Executor, ForceReport, Kept, Particles, Settings, Stage, StageTimes};

/// Executes on the cores of this machine, in rayon's current thread pool.
pub struct CpuExecutor {
    settings: Settings,
    /// Kernel and blobs of particles in the plane.
    plane: Option<(Kernel, Blob)>,
    /// What acts in addition to the sum.
    forces: Forces,
    bath: Option<Bath>,
    particles: Particles,
    flow: Flow,
    potential: Vec<f64>,
    field: Vec<[f64; 3]>,
    /// Empty unless the settings ask for it.
    error: Vec<f64>,
    force_report: ForceReport,
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
        Ok(Self::with(settings, None))
    }

    /// An executor without particles that sums a kernel of the plane over x and y, with what [`planar::evaluate`] gives as potential and field
    /// and zero as the third component. z takes no part.
    ///
    /// # Errors
    /// As [`planar::evaluate`] for settings and blobs.
    pub fn in_plane(settings: Settings, kernel: Kernel, blob: Blob) -> Result<Self, Error> {
        planar::check(&settings)?;
        blob.check()?;
        Ok(Self::with(settings, Some((kernel, blob))))
    }

    fn with(settings: Settings, plane: Option<(Kernel, Blob)>) -> Self {
        CpuExecutor {
            settings,
            plane,
            forces: Forces::default(),
            bath: None,
            particles: Particles::default(),
            flow: Flow::default(),
            potential: vec![],
            field: vec![],
            error: vec![],
            force_report: ForceReport::default(),
            choice: None,
            coincident_pairs: 0,
        }
    }

    /// The same with forces in addition to the sum.
    pub fn with_forces(mut self, forces: Forces) -> Self {
        self.forces = forces;
        self
    }

    /// The same with a bath, which acts on the velocities after every step up to its last.
    pub fn with_bath(mut self, bath: Option<Bath>) -> Self {
        self.bath = bath;
        self
    }
}

impl Executor for CpuExecutor {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        particles.check()?;
        self.particles = particles.clone();
        Ok(())
    }

    fn forces_kept(&mut self, kept: Option<Kept>, times: &mut StageTimes) -> Result<Option<Kept>, Error> {
        let Particles { position, strength, .. } = &self.particles;
        let (choice, coincident_pairs, next);
        if let Some((kernel, blob)) = self.plane {
            let points: Vec<Complex64> = position.iter().map(|x| Complex64::new(x[0], x[1])).collect();
            let strengths: Vec<Complex64> = strength.iter().map(|&q| q.into()).collect();
            let problem = planar::Problem::new(&self.settings, kernel, blob, &points, &strengths, None)?;
            let (sum, kept) = planar::evaluate_kept(&problem, kept, times)?;
            self.potential = sum.potential;
            self.field = sum.field.into_iter().map(|e| [e.re, e.im, 0.0]).collect();
            (choice, coincident_pairs, next) = (sum.choice, sum.coincident_pairs, kept);
        } else {
            let points = Points { sources: position, columns: &[strength], targets: None };
            let solved = solve_points(&self.settings, kept, points, Quantity::Potential, times)?;
            self.potential = solved.sums.potential;
            self.field = solved.sums.field;
            self.error = solved.sums.error;
            (choice, coincident_pairs, next) = (solved.choice, solved.sums.coincident_pairs, solved.kept);
        }
        self.choice = Some(choice);
        self.coincident_pairs = coincident_pairs;
        if !self.forces.is_none() {
            let (potential, field) = (&mut self.potential, &mut self.field);
            self.force_report = times.time_more(Stage::P2P, || self.forces.add(position, strength, potential, field));
        }
        Ok(next)
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        times.time(Stage::Kick, || self.particles.kick(h, &self.field));
        Ok(())
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        times.time(Stage::Drift, || self.particles.drift(h));
        Ok(())
    }

    fn thermostat(&mut self, step: u64, h: f64) -> Result<(), Error> {
        if let Some(bath) = self.bath.as_mut().filter(|bath| step <= bath.last) {
            (bath.exchange)(step, h, &mut self.particles.velocity);
        }
        Ok(())
    }

    fn force_report(&self) -> ForceReport {
        self.force_report
    }

    fn begin_flow(&mut self) -> Result<f64, Error> {
        Ok(self.flow.begin(&self.particles.position))
    }

    fn flow(&mut self, weight: f64) -> Result<f64, Error> {
        let velocity = planar::velocities(&self.particles.coupling, &self.field);
        Ok(self.flow.take(velocity, weight))
    }

    fn flow_to(&mut self, h: f64, summed: bool) -> Result<(), Error> {
        self.particles.position = self.flow.reach(h, summed);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        self.particles.check()
    }

    fn particles(&mut self) -> Result<Particles, Error> {
        Ok(self.particles.clone())
    }

    fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error> {
        Ok((self.potential.clone(), self.field.clone()))
    }

    fn error(&mut self) -> Result<Vec<f64>, Error> {
        Ok(self.error.clone())
    }

    fn choice(&self) -> Option<Choice> {
        self.choice.clone()
    }

    fn coincident_pairs(&self) -> u64 {
        self.coincident_pairs
    }
}
