//! The place where a summation runs, and where the particles live between snapshots.

use crate::{Choice, Error, Kept, Particles, StageTimes, Totals};

/// Particles and what the last forces have found at them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Copied {
    /// As [`Executor::particles`] gives them.
    pub particles: Particles,
    /// As [`Executor::field`] gives it. `[n]`
    pub potential: Vec<f64>,
    /// The same. `[n]`
    pub field: Vec<[f64; 3]>,
    /// As [`Executor::error`] gives it. `[n]`, or empty
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

/// Gets the number of a step, its length, and the velocities.
pub type Exchange = Box<dyn FnMut(u64, f64, &mut [[f64; 3]]) + Send>;

/// What exchanges heat with particles. The random numbers of a step depend on its number alone, so that
/// a resumed run draws the same.
pub struct Bath {
    /// The last step that it takes part in.
    pub last: u64,
    /// What it does to the velocities after a step.
    pub exchange: Exchange,
}

/// A copy that is made already, to be brought to the host, on any thread, while the executor goes on.
pub type Pending = Box<dyn FnOnce() -> Result<Copied, Error> + Send>;

/// Holds the particles of a run and does every stage of a step where they are.
///
/// Results are in the order of the caller's particles.
pub trait Executor: Send {
    /// Takes over the particles.
    ///
    /// # Errors
    /// Values that are not finite, or too many particles.
    fn upload(&mut self, particles: &Particles) -> Result<(), Error>;

    /// Builds tree and lists for the present positions and sums potential and field.
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
    /// Those of [`forces`](Executor::forces).
    fn forces_kept(&mut self, kept: Option<Kept>, times: &mut StageTimes) -> Result<Option<Kept>, Error>;

    /// v += h a, with the accelerations of the last [`forces`](Executor::forces).
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn kick(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error>;

    /// x += h v.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn drift(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error>;

    /// Begins a step of point vortices at the present positions. Their velocities are
    /// u = coupling · (e_y, −e_x) of the field e. Returns the largest coordinate.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where there are no vortices.
    fn begin_flow(&mut self) -> Result<f64, Error> {
        Err(Error::Unsupported("only particles in the plane flow".into()))
    }

    /// Takes the velocities u of the last [`forces`](Executor::forces) and adds `weight` times u to
    /// the step's sum of velocities. Returns the largest component of the change of u since the
    /// previous call; infinity in the first call of a step.
    ///
    /// # Errors
    /// Those of [`begin_flow`](Executor::begin_flow), and what keeps an executor from it.
    fn flow(&mut self, _weight: f64) -> Result<f64, Error> {
        self.begin_flow()
    }

    /// Goes to x = start + `h` u with the velocities of the last [`flow`](Executor::flow), or if `summed` with the step's sum of them.
    ///
    /// # Errors
    /// Those of [`flow`](Executor::flow).
    fn flow_to(&mut self, _h: f64, _summed: bool) -> Result<(), Error> {
        self.begin_flow().map(|_| ())
    }

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

    /// Copies of the potential Σ q/r and the field e = −∇Σ q/r of the last [`forces`](Executor::forces).
    /// The field includes the forces in addition to the sum. Both are empty before the first.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error>;

    /// A copy of the estimated size of the error of the sum in the field of the last
    /// [`forces`](Executor::forces). Empty without [`Settings::errors`](crate::Settings::errors),
    /// before the first forces, and where the executor estimates none.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn error(&mut self) -> Result<Vec<f64>, Error> {
        Ok(vec![])
    }

    /// Particles, potential, field and its estimated errors as they are now.
    ///
    /// # Errors
    /// What keeps an executor from copying them.
    fn copy(&mut self) -> Result<Pending, Error> {
        let (particles, (potential, field)) = (self.particles()?, self.field()?);
        let copied = Copied { particles, potential, field, error: self.error()? };
        Ok(Box::new(move || Ok(copied)))
    }

    /// Sets whether the next sums must compute the potential as well. Executors that otherwise sum
    /// forces alone then sum both at once. The field has the same bits either way.
    fn want_potential(&mut self, _wanted: bool) {}

    /// Sums over the particles as they are now, with the last [`forces`](Executor::forces), where the particles live far from the
    /// host; `None` where they are as well taken from copies. `mass` is that of each particle, the same since the upload.
    ///
    /// # Errors
    /// What keeps an executor from summing.
    fn totals(&mut self, _mass: &[f64]) -> Result<Option<Totals>, Error> {
        Ok(None)
    }

    /// Energy and virial of the forces in addition to the sum, at the last [`forces`](Executor::forces).
    fn force_report(&self) -> ForceReport;

    /// Exchanges heat with a bath over a step of length h, the one with number `step` in its run. Does
    /// nothing without a bath.
    ///
    /// # Errors
    /// [`Error::Device`] where the device fails.
    fn thermostat(&mut self, step: u64, h: f64) -> Result<(), Error>;

    /// What the last [`forces`](Executor::forces) chose; `None` before the first.
    fn choice(&self) -> Option<Choice>;

    /// Pairs of distinct particles at the same place in the last [`forces`](Executor::forces).
    fn coincident_pairs(&self) -> u64;
}
