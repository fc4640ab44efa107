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
        Solver(Place { device, gpus: vec![], note: Box::new(|_| {}), cancel: Cancel::default() })
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
        if !problem.settings.errors {
            sum.error = vec![];
        }
        let rounding = exclusions::leave_out(problem, points, &mut sum);
        let (single, precision) = (sum.choice.precision == Precision::F32, problem.settings.precision);
        if let Some(tolerance) = problem.settings.guarded() {
            // Well below, so that a later sum may keep this precision.
            if single && precision == Precision::Auto && (rounding.is_nan() || rounding > 0.5 * tolerance) {
                let settings = Settings { precision: Precision::F64, ..problem.settings.clone() };
                return self.evaluate(&Problem { settings, ..problem.clone() }, points);
            }
            if rounding > tolerance {
                let (method, precision) = (sum.choice.method.name(), sum.choice.precision.name());
                return Err(fmm_core::Error::Tolerance { tolerance, method, precision }.into());
            }
        }
        sum.check_finite(problem.kernel, points)?;
        sum.coincident_pairs = coincident::pairs(problem, points, sum.coincident_pairs);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::{Hessian, Method, Softening};

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

    /// Relative errors of field and second derivatives over all targets: the larger of rms and L2.
    fn errors(found: &Evaluation, x: &[[f64; 3]], q: &[f64], partner: impl Fn(usize) -> usize) -> [f64; 2] {
        let mut sums = [[0.0f64; 3]; 2];
        for i in 0..x.len() {
            let (mut field, mut hessian, mut largest) = ([0.0; 3], [0.0; 6], [0.0f64; 2]);
            for j in (0..x.len()).filter(|&j| j != i && j != partner(i)) {
                let d = [0, 1, 2].map(|k: usize| x[i][k] - x[j][k]);
                let r = d.iter().map(|c| c * c).sum::<f64>().sqrt();
                (0..3).for_each(|k| field[k] += q[j] * d[k] / r.powi(3));
                let pair = Hessian(Softening::None).at(d);
                (0..6).for_each(|k| hessian[k] += q[j] * pair[k]);
                largest = [largest[0].max(q[j].abs() / (r * r)), largest[1].max(q[j].abs() / r.powi(3))];
            }
            let square = |v: &[f64]| v.iter().map(|c| c * c).sum::<f64>();
            let of =
                |found: &[f64], exact: &[f64]| square(&found.iter().zip(exact).map(|(a, b)| a - b).collect::<Vec<_>>());
            let off = [of(&found.field[i], &field), found.hessian.get(i).map_or(0.0, |h| of(h, &hessian))];
            for (k, size) in [square(&field), square(&hessian)].into_iter().enumerate() {
                sums[k][0] += off[k] / size.max(1e-6 * largest[k].powi(2));
                (sums[k][1], sums[k][2]) = (sums[k][1] + off[k], sums[k][2] + size);
            }
        }
        sums.map(|[each, off, size]| (each / x.len() as f64).max(off / size).sqrt())
    }

    #[test]
    fn close_excluded_pairs_leave_the_tolerance_or_are_refused() {
        let n = 700;
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        let centers: Vec<[f64; 3]> = (0..n).map(|_| [0; 3].map(|_| random())).collect();
        let q: Vec<f64> = (0..2 * n).map(|_| random() - 0.5).collect();
        let exclusions: Vec<[usize; 2]> = (0..n).map(|i| [2 * i, 2 * i + 1]).collect();
        let (mut kept, mut refused) = (0, 0);
        for distance in [3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10] {
            let apart = |x: &[f64; 3]| [*x, [x[0] + 0.48 * distance, x[1] - 0.6 * distance, x[2] + 0.64 * distance]];
            let x: Vec<[f64; 3]> = centers.iter().flat_map(apart).collect();
            for (method, hessian, tolerance) in [
                (Method::Direct, false, 1e-2),
                (Method::Direct, true, 1e-4),
                (Method::Fmm, false, 1e-4),
                (Method::Fmm, true, 1e-3),
                (Method::Treecode, false, 1e-2),
            ] {
                let mut problem = Problem { exclusions: exclusions.clone(), hessian, ..Problem::new(Kernel::Laplace) };
                (problem.settings.method, problem.settings.tolerance) = (method, tolerance);
                for precision in [Precision::Auto, Precision::F32] {
                    problem.settings.precision = precision;
                    let what = format!("{distance:e} {method:?} {hessian} {tolerance:e} {precision:?}");
                    match Solver::new(Device::Cpu).evaluate(&problem, &Points::in_space(&x, &[&q])) {
                        Ok(found) => {
                            let errors = errors(&found, &x, &q, |i| i ^ 1);
                            assert!(errors.iter().all(|&e| e <= tolerance), "{what}: {errors:?} {:?}", found.choice);
                            kept += 1;
                        }
                        Err(Error::Sum(fmm_core::Error::Tolerance { .. })) => {
                            // A hundredth of the mean distance of bodies.
                            assert!(distance < 1e-3 || precision == Precision::F32, "{what}");
                            refused += 1;
                        }
                        Err(other) => panic!("{what}: {other}"),
                    }
                }
            }
        }
        assert!(kept > 30 && refused > 20, "{kept} {refused}");
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
