//! Sums on one device.

use std::time::Instant;

use crate::device::Place;
use crate::reference::measure;
use crate::{Device, Error, Evaluation, Note, Points, Problem, coincident, exclusions, sums};

/// Sums on one device. A GPU is opened by the first sum that goes there and stays open.
pub struct Solver<'n>(Place<'n>);

impl Default for Solver<'_> {
    fn default() -> Self {
        Solver::new(Device::Auto)
    }
}

impl<'n> Solver<'n> {
    /// A solver for this device. Nothing is opened yet.
    pub fn new(device: Device) -> Self {
        Solver(Place { device, gpu: None, note: Box::new(|_| {}) })
    }

    /// Passes notes on the choice of the device to `note`.
    pub fn with_notes(self, note: impl FnMut(Note) + Send + 'n) -> Self {
        Solver(Place { note: Box::new(note), ..self.0 })
    }

    /// Sums. Results do not depend on the number of threads of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Request`] for parameters that do not go together; [`Error::Unavailable`] without
    /// the GPU that is asked for; [`Error::Overflow`] for results that are not finite; what the sum
    /// refuses: shapes, values that are not finite, settings out of range, a tolerance that is not
    /// reached, a device that fails.
    pub fn evaluate(&mut self, problem: &Problem, points: &Points) -> Result<Evaluation, Error> {
        problem.check()?;
        points.check(problem)?;
        let begun = Instant::now();
        let mut sum = sums::sum(&mut self.0, problem, points)?;
        sum.seconds.sum = begun.elapsed().as_secs_f64();
        if problem.sample > 0 {
            let begun = Instant::now();
            sum.errors = Some(measure(problem, points, &sum));
            sum.seconds.errors = begun.elapsed().as_secs_f64();
        }
        exclusions::leave_out(problem, points, &mut sum);
        sum.check_finite(problem.kernel, points)?;
        sum.coincident_pairs = coincident::pairs(problem, points, sum.coincident_pairs);
        Ok(sum)
    }
}
