//! The place where a summation runs, and where the particles live between snapshots.

use crate::{Choice, Error, Particles, StageTimes};

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
    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error>;

    /// v += h a, with the accelerations of the last [`forces`](Executor::forces).
    fn kick(&mut self, h: f64, times: &mut StageTimes);

    /// x += h v.
    fn drift(&mut self, h: f64, times: &mut StageTimes);

    /// Checks that positions and velocities are finite.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the first bad particle.
    fn check(&mut self) -> Result<(), Error>;

    /// A copy of positions, velocities, strengths and couplings.
    fn particles(&mut self) -> Particles;

    /// Copies of the potential Σ q/r and the field e = −∇Σ q/r of the last [`forces`](Executor::forces).
    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>);

    /// What the last [`forces`](Executor::forces) chose; `None` before the first.
    fn choice(&self) -> Option<Choice>;

    /// Pairs of distinct particles at the same place in the last [`forces`](Executor::forces).
    fn coincident_pairs(&self) -> u64;
}
