//! Sums on one device.

use std::time::Instant;

use fmm_core::{Cancel, Precision, Settings};

use crate::device::Place;
use crate::reference::measure;
use crate::{Device, Error, Evaluation, Note, Points, Problem, coincident, exclusions, sums};

/// Sums on one device. A GPU is opened by the first sum that goes there and stays open.
pub struct Solver<'n>(pub(crate) Place<'n>);

impl Default for Solver<'_> {
    fn default() -> Self {
        Solver::new(Device::Auto)
    }
}

impl<'n> Solver<'n> {
    /// A solver for this device. Nothing is opened yet.
    pub fn new(device: Device) -> Self {
        Solver(Place { device, gpu: None, note: Box::new(|_| {}), cancel: Cancel::default() })
    }

    /// Passes notes on the choice of the device to `note`.
    pub fn with_notes(self, note: impl FnMut(Note) + Send + 'n) -> Self {
        Solver(Place { note: Box::new(note), ..self.0 })
    }

    /// Lets another thread end the sums that follow, by this flag.
    ///
    /// A sum ends within a leaf or a block of cells, or with the kernel that runs on a GPU. The
    /// direct sum in a periodic box and the direct sums of [`Problem::sample`] run to their end.
    pub fn set_cancel(&mut self, cancel: Cancel) {
        self.0.cancel = cancel;
    }

    /// Sums. Results do not depend on the number of threads of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Request`] for parameters that do not go together; [`Error::Unavailable`] without
    /// the GPU that is asked for; [`Error::Overflow`] for results that are not finite; what the sum
    /// refuses: shapes, values that are not finite, settings out of range, a tolerance that is not
    /// reached, a device that fails; [`fmm_core::Error::Cancelled`].
    pub fn evaluate(&mut self, problem: &Problem, points: &Points) -> Result<Evaluation, Error> {
        problem.check()?;
        points.check(problem)?;
        let begun = Instant::now();
        let mut sum = sums::sum(&mut self.0, problem, points)?;
        sum.seconds.sum = begun.elapsed().as_secs_f64();
        if self.0.cancel.is_set() {
            return Err(fmm_core::Error::Cancelled.into());
        }
        if problem.sample > 0 {
            let begun = Instant::now();
            sum.errors = Some(measure(problem, points, &sum));
            sum.seconds.errors = begun.elapsed().as_secs_f64();
        }
        let rounding = exclusions::leave_out(problem, points, &mut sum);
        let Settings { tolerance, precision, .. } = problem.settings;
        // Double precision is the best that there is.
        if rounding > tolerance && sum.choice.precision == Precision::F32 {
            if precision == Precision::Auto {
                let settings = Settings { precision: Precision::F64, ..problem.settings.clone() };
                return self.evaluate(&Problem { settings, ..problem.clone() }, points);
            }
            let (method, precision) = (sum.choice.method.name(), precision.name());
            return Err(fmm_core::Error::Tolerance { tolerance, method, precision }.into());
        }
        sum.check_finite(problem.kernel, points)?;
        sum.coincident_pairs = coincident::pairs(problem, points, sum.coincident_pairs);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::Method;

    use super::*;
    use crate::Kernel;

    const CANCELLED: Result<(), Error> = Err(Error::Sum(fmm_core::Error::Cancelled));

    /// Some points in the plane z = 0 with strengths 1.
    fn points(n: usize) -> (Vec<[f64; 3]>, Vec<f64>) {
        let place = |i: usize| [(i as f64 * 0.618).fract(), (i as f64 * 0.755).fract(), 0.0];
        ((0..n).map(place).collect(), vec![1.0; n])
    }

    #[test]
    fn a_flag_ends_sums_of_every_kernel() {
        let (x, q) = points(3000);
        for kernel in [Kernel::Laplace, Kernel::Yukawa(1.0), Kernel::Vortex, Kernel::Log, Kernel::Gauss(0.1)] {
            let columns: Vec<&[f64]> = vec![&q; kernel.strengths().len()];
            let dimension = if kernel == Kernel::Log { 2 } else { 3 };
            let (problem, points) = (Problem::new(kernel), Points { dimension, ..Points::in_space(&x, &columns) });
            let mut solver = Solver::new(Device::Cpu);
            let cancel = Cancel::new();
            solver.set_cancel(cancel.clone());
            assert!(solver.evaluate(&problem, &points).is_ok(), "{kernel:?}");
            cancel.set();
            assert_eq!(solver.evaluate(&problem, &points).map(|_| ()), CANCELLED, "{kernel:?}");
            solver.set_cancel(Cancel::new());
            assert!(solver.evaluate(&problem, &points).is_ok(), "{kernel:?}");
        }
    }

    #[test]
    fn close_excluded_pairs_leave_the_tolerance() {
        // Ions of charges that cancel, in pairs at this distance which do not interact.
        let (centers, _) = points(500);
        let pairs = |distance: f64| -> Vec<[f64; 3]> {
            centers.iter().flat_map(|x| [*x, [x[0], x[1] + 0.6 * distance, 0.8 * distance]]).collect()
        };
        let q: Vec<f64> = (0..1000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let exclusions: Vec<[usize; 2]> = (0..500).map(|i| [2 * i, 2 * i + 1]).collect();
        for hessian in [false, true] {
            let mut problem = Problem { exclusions: exclusions.clone(), hessian, ..Problem::new(Kernel::Laplace) };
            let mut solver = Solver::new(Device::Cpu);
            for distance in [1e-2, 1e-3, 1e-4] {
                let x = pairs(distance);
                let found = solver.evaluate(&problem, &Points::in_space(&x, &[&q])).unwrap();
                let (mut wrong, mut right) = (0.0, 0.0);
                for i in 0..1000 {
                    let mut exact = [0.0; 3];
                    for j in (0..1000).filter(|j| j / 2 != i / 2) {
                        let d = [0, 1, 2].map(|k: usize| x[i][k] - x[j][k]);
                        let r = d.iter().map(|c| c * c).sum::<f64>().sqrt();
                        (0..3).for_each(|k| exact[k] += q[j] * d[k] / r.powi(3));
                    }
                    wrong += (0..3).map(|k| (found.field[i][k] - exact[k]).powi(2)).sum::<f64>();
                    right += exact.iter().map(|e| e * e).sum::<f64>();
                }
                let error = f64::sqrt(wrong / right);
                assert!(error <= 1e-4, "{distance}: {error:e} {:?}", found.choice);
            }
            problem.settings.precision = Precision::F32;
            let x = pairs(1e-4);
            let refused = solver.evaluate(&problem, &Points::in_space(&x, &[&q])).map(|_| ()).unwrap_err();
            assert!(matches!(refused, Error::Sum(fmm_core::Error::Tolerance { .. })), "{refused}");
        }
    }

    #[test]
    fn a_sum_that_runs_is_ended() {
        // 4e12 pairs: an hour, where the flag is not seen.
        let (x, q) = points(2_000_000);
        for method in [Method::Direct, Method::Treecode, Method::Fmm] {
            let (cancel, mut problem) = (Cancel::new(), Problem::new(Kernel::Laplace));
            (problem.settings.method, problem.settings.tolerance) = (method, 1e-10);
            let flag = cancel.clone();
            let setter = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(1500));
                flag.set();
            });
            let mut solver = Solver::new(Device::Cpu);
            solver.set_cancel(cancel);
            assert_eq!(solver.evaluate(&problem, &Points::in_space(&x, &[&q])).map(|_| ()), CANCELLED, "{method:?}");
            setter.join().unwrap();
        }
    }
}
