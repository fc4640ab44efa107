//! Where the particles of a run live between snapshots: on the cores or on a GPU.

use crate::bath::HeatExchange;
use crate::{Choice, Error, Kept, Particles, StageTimes, Totals};

/// Particles and what the last forces have found at them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Copied {
    /// As [`ParticleStore::particles`] gives them.
    pub particles: Particles,
    /// As [`ParticleStore::field`] gives it. `[n]`
    pub potential: Vec<f64>,
    /// The same. `[n]`
    pub field: Vec<[f64; 3]>,
    /// As [`ParticleStore::error`] gives it. `[n]`, or empty
    pub error: Vec<f64>,
}

/// Energy and virial of the forces between particles in addition to their sum, at the last forces.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ForceReport {
    /// Its energy.
    pub energy: f64,
    /// Its virial Σ d·f over pairs, d from one to the other.
    pub virial: f64,
}

/// A copy that is made already, to be brought to the host, on any thread, while the store goes on.
pub type Pending = Box<dyn FnOnce() -> Result<Copied, Error> + Send>;

/// Holds the particles of a run and does every operation of a step where they are.
///
/// A step is made of forces, kicks, drifts, and flows of vortices. All of them are operations on the
/// arrays of the store, so that every store has all of them. Which law goes with which integrator is
/// a matter of scenarios. Results are in the order of the caller's particles.
pub trait ParticleStore: Send {
    /// Takes over the particles.
    ///
    /// # Errors
    /// Values that are not finite, or too many particles.
    fn upload(&mut self, particles: &Particles) -> Result<(), Error>;

    /// Sums potential and field at the present positions, and adds the forces in addition to the sum.
    ///
    /// # Errors
    /// A request that cannot be met, with the reason.
    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        self.forces_kept(None, times).map(|_| ())
    }

    /// The same, beginning with the choice that an earlier sum of the run has `kept`. Returns what
    /// the next sum at other positions begins with. The sums are a function of the particles, the
    /// settings and `kept`.
    ///
    /// # Errors
    /// Those of [`forces`](ParticleStore::forces).
    fn forces_kept(&mut self, kept: Option<Kept>, times: &mut StageTimes) -> Result<Option<Kept>, Error>;

    /// v += h a, with the accelerations of the last [`forces`](ParticleStore::forces).
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn kick(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error>;

    /// x += h v.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn drift(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error>;

    /// Begins a step of vortices at the present positions. Their velocities are
    /// u = coupling · (e_y, −e_x) of the field e; z stays. Returns the largest coordinate.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn begin_flow(&mut self) -> Result<f64, Error>;

    /// Takes the velocities u of the last [`forces`](ParticleStore::forces) and adds `weight` times u to
    /// the step's sum of velocities. Returns the largest component of the change of u since the
    /// previous call; infinity in the first call of a step.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn flow(&mut self, weight: f64) -> Result<f64, Error>;

    /// Goes to x = start + `h` u with the velocities of the last [`flow`](ParticleStore::flow), or if
    /// `summed` with the step's sum of them.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn flow_to(&mut self, h: f64, summed: bool) -> Result<(), Error>;

    /// Sets the length of the blobs of vortices in the plane for the next forces, as viscosity widens them. Other stores
    /// have none, and ignore it.
    fn set_core(&mut self, _length: f64) {}

    /// Changes the velocities as a bath does. `[n]` masses, the same since the upload.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn exchange_heat(&mut self, exchange: &HeatExchange<'_>) -> Result<(), Error>;

    /// Checks that positions and velocities are finite.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the first bad particle.
    fn check(&mut self) -> Result<(), Error>;

    /// A copy of positions, velocities, strengths and couplings.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn particles(&mut self) -> Result<Particles, Error>;

    /// Copies of the potential Σ q/r and the field e = −∇Σ q/r of the last [`forces`](ParticleStore::forces).
    /// The field includes the forces in addition to the sum. Both are empty before the first.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error>;

    /// A copy of the estimated size of the error of the sum in the field of the last
    /// [`forces`](ParticleStore::forces). Empty without [`Settings::errors`](crate::Settings::errors),
    /// before the first forces, and where the store estimates none.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn error(&mut self) -> Result<Vec<f64>, Error> {
        Ok(vec![])
    }

    /// Particles, potential, field and its estimated errors as they are now.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn copy(&mut self) -> Result<Pending, Error> {
        let (particles, (potential, field)) = (self.particles()?, self.field()?);
        let copied = Copied { particles, potential, field, error: self.error()? };
        Ok(Box::new(move || Ok(copied)))
    }

    /// Sets whether the next sums must compute the potential as well. Stores that otherwise sum
    /// forces alone then sum both at once. The field has the same bits either way.
    fn want_potential(&mut self, _wanted: bool) {}

    /// Sums over the particles as they are now, with the last [`forces`](ParticleStore::forces).
    /// `None` where the particles are on the host, or the sums are made there: they are then taken
    /// from a copy. `mass` is that of each particle, the same since the upload.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn totals(&mut self, _mass: &[f64]) -> Result<Option<Totals>, Error> {
        Ok(None)
    }

    /// Energy and virial of the forces in addition to the sum, at the last [`forces`](ParticleStore::forces).
    fn force_report(&self) -> ForceReport;

    /// What the last [`forces`](ParticleStore::forces) chose; `None` before the first.
    fn choice(&self) -> Option<Choice>;

    /// Pairs of distinct particles at the same place in the last [`forces`](ParticleStore::forces).
    fn coincident_pairs(&self) -> u64;
}
