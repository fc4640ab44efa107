//! A single sum in the plane on this machine's cores.

use super::bodies::Bodies;
use super::execute::{self, Executed};
use super::pyramid::power;
use super::{Blob, Kernel, Plan, Request, accuracy, guard, underflow};
use crate::accuracy::{self as space, Problem as Size, closest_pair};
use crate::bodies::{check_positions, check_sources, coincident_pairs};
use crate::comm::Solo;
use crate::guard::{Look, Norms};
use crate::prediction::Prediction;
use crate::solve::{Evaluation, Solved, Trial, solve};
use crate::{Cancel, Choice, Complex64, Error, Kept, Precision, Settings, Stage, StageTimes};

pub use super::bodies::Sum;

/// The sum of `sources` with `strengths` at `targets`; without targets at the sources themselves,
/// where none sees itself. Pairs of points at distance zero contribute nothing. A point x + iy is a
/// complex number, and so are a strength Γ and a field e_x + i e_y. `settings.tolerance` bounds the
/// L2 error of the field; its softening must be none: see [`Blob`].
///
/// # Errors
/// Settings out of range or that cannot be met, imaginary strengths with the log kernel, values
/// that are not finite, more or fewer strengths than sources, more than 2³² − 2 bodies.
///
/// ```
/// use fmm_core::planar::{Blob, Kernel, evaluate};
/// use fmm_core::{Complex64, Settings, StageTimes};
/// let (settings, zero) = (Settings::default(), Complex64::ZERO);
/// let (charge, at) = (Complex64::from(2.0), Complex64::from(1.0));
/// let sum = |kernel| evaluate(&settings, kernel, Blob::Point, &[zero], &[charge], Some(&[at]), &mut StageTimes::default());
/// let log = sum(Kernel::Log)?;
/// assert_eq!((log.potential[0], log.field[0]), (0.0, Complex64::from(-2.0)));
/// assert_eq!(sum(Kernel::Harmonic)?.field[0], Complex64::from(-2.0));
/// # Ok::<(), fmm_core::Error>(())
/// ```
pub fn evaluate(
    settings: &Settings,
    kernel: Kernel,
    blob: Blob,
    sources: &[Complex64],
    strengths: &[Complex64],
    targets: Option<&[Complex64]>,
    times: &mut StageTimes,
) -> Result<Evaluation<Complex64>, Error> {
    evaluate_problem(&Problem::new(settings, kernel, blob, sources, strengths, targets)?, times)
}

/// The sum that `problem` asks for: that of [`evaluate`].
///
/// # Errors
/// Settings out of range or that cannot be met.
pub fn evaluate_problem(problem: &Problem, times: &mut StageTimes) -> Result<Evaluation<Complex64>, Error> {
    Ok(evaluate_kept(problem, None, times)?.0)
}

/// The same, beginning with what an earlier sum of a run has `kept`, and what the next begins with.
pub(crate) fn evaluate_kept(
    problem: &Problem,
    kept: Option<Kept>,
    times: &mut StageTimes,
) -> Result<(Evaluation<Complex64>, Option<Kept>), Error> {
    let request = &problem.request;
    let settings = &request.settings;
    let mut trial = PlanarTrial { problem, norms: None, times };
    let Solved { choice, sums: summed, kept } = solve(settings, kept, &mut trial)?;
    let errors = if settings.errors { trial.calibrated(&choice, &summed)? } else { vec![] };
    let Summed { plan, sums, .. } = summed;
    let n = sums.len();
    let mut potential = vec![0.0; if request.kernel == Kernel::Log { n } else { 0 }];
    let mut field = vec![Complex64::ZERO; n];
    let mut error = vec![0.0; errors.len()];
    let (strength, signs) = (1.0 / request.scale, request.signs());
    for (&i, s) in plan.targets.order.iter().zip(&sums) {
        if request.kernel == Kernel::Log {
            potential[i as usize] = s.potential * strength;
        }
        field[i as usize] = Complex64::new(s.g[0] * signs[0], s.g[1] * signs[1]);
    }
    for (&i, e) in plan.targets.order.iter().zip(errors) {
        error[i as usize] = e * signs[0].abs();
    }
    let coincident_pairs = coincident_pairs(problem.sources);
    Ok((Evaluation { potential, field, error, choice, coincident_pairs }, kept))
}

/// A sum in the plane with its points on the host, checked.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    /// What is asked of them.
    pub request: Request,
    /// Positions of the sources, in the caller's unit.
    pub sources: &'a [[f64; 2]],
    /// Real parts of the strengths, and imaginary parts if any is not 0.
    pub strengths: Vec<Vec<f64>>,
    /// Positions of the targets, if they are not the sources.
    pub targets: Option<&'a [[f64; 2]]>,
}

impl<'a> Problem<'a> {
    /// Checks what is to be summed: the arguments of [`evaluate`].
    ///
    /// # Errors
    /// Values that are not finite, more than 2³² − 2 bodies, strengths that do not fit the sources, and those of [`Request::new`].
    pub fn new(
        settings: &Settings,
        kernel: Kernel,
        blob: Blob,
        sources: &'a [Complex64],
        strengths: &[Complex64],
        targets: Option<&'a [Complex64]>,
    ) -> Result<Self, Error> {
        let sources: &[[f64; 2]] = bytemuck::cast_slice(sources);
        let targets: Option<&[[f64; 2]]> = targets.map(bytemuck::cast_slice);
        let mut parts = vec![strengths.iter().map(|q| q.re).collect::<Vec<f64>>()];
        if strengths.iter().any(|q| q.im != 0.0) {
            parts.push(strengths.iter().map(|q| q.im).collect());
        }
        let strengths = parts;
        check_sources(sources, &strengths.iter().map(|q| &q[..]).collect::<Vec<_>>())?;
        check_positions(targets.unwrap_or(&[]))?;
        let sizes: Vec<_> = strengths.iter().map(|q| space::Strengths::of(&[q])).collect();
        let others = targets.unwrap_or(&[]);
        let (numbers, extent) = ((sources.len(), targets.map(<[_]>::len)), extent(sources, others));
        let mut request = Request::new(settings, kernel, blob, numbers, &sizes, extent)?;
        let smallest = underflow::smallest(sources).min(underflow::smallest(others));
        if smallest < underflow::LOST * extent {
            let all = [sources, others].concat();
            let seen: Vec<_> = all.iter().map(|x| x.map(|c| c * power(-request.global))).collect();
            if coincident_pairs(&seen) > coincident_pairs(&all) {
                return Err(Error::TooClose { extent });
            }
        }
        request.may_underflow |= underflow::possible(smallest, extent);
        Ok(Problem { request, sources, strengths, targets })
    }
}

/// The longer side of the rectangle around all points; −∞ around none.
fn extent(sources: &[[f64; 2]], targets: &[[f64; 2]]) -> f64 {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for x in sources.iter().chain(targets) {
        for d in 0..2 {
            (low[d], high[d]) = (low[d].min(x[d]), high[d].max(x[d]));
        }
    }
    (high[0] - low[0]).max(high[1] - low[1]).min(f64::MAX)
}

/// A sum in the plane on the cores.
struct PlanarTrial<'a> {
    problem: &'a Problem<'a>,
    /// What the guard has found of the last sums.
    norms: Option<Norms>,
    times: &'a mut StageTimes,
}

impl PlanarTrial<'_> {
    /// The estimated errors of G of the targets, in the order of the plan and in scaled units.
    fn calibrated(&mut self, choice: &Choice, sums: &Summed) -> Result<Vec<f64>, Error> {
        if !choice.is_exact() && self.norms.is_none() {
            self.error(sums, Look::First)?;
        }
        let l2 = self.norms.filter(|_| !choice.is_exact()).map_or(0.0, |n| n.of_vectors);
        Ok(sums.prediction().calibrated(l2))
    }
}

/// The sums of one choice, in the order of the plan's targets.
struct Summed {
    plan: Plan,
    sums: Vec<Sum>,
    /// The estimated errors of G by truncation; empty if no expansion was used, or if they are not asked for.
    error: Vec<f64>,
}

impl Summed {
    /// What the error field says of the sums. The tolerance bounds L2 alone.
    fn prediction(&self) -> Prediction<'_, Sum, 2> {
        let epsilon = self.plan.choice.precision.epsilon();
        Prediction { comm: &Solo, sums: &self.sums, error: &self.error, largest_term: &[], epsilon, relative: false }
    }
}

impl Trial for PlanarTrial<'_> {
    type Sums = Summed;

    fn problem(&self) -> Size {
        self.problem.request.size
    }

    fn cancel(&self) -> &Cancel {
        self.times.cancel()
    }

    fn choose(&self, settings: &Settings, target_error: f64) -> Result<Choice, Error> {
        let Request { kernel, size, apart, .. } = self.problem.request;
        accuracy::choose(kernel, settings, size, accuracy::table_error(apart, target_error))
    }

    fn execute(&mut self, settings: &Settings, choice: &Choice) -> Result<Summed, Error> {
        let Problem { request, sources, targets, .. } = self.problem;
        let Request { kernel, blob, global, .. } = *request;
        let (length, times) = (power(-global), &mut *self.times);
        let plan = Plan::new(choice.clone(), settings.tolerance, blob, sources, *targets, length, times);
        let bodies = times.time_more(Stage::Tree, || Bodies::new(&plan, &self.problem.strengths, request));
        // Leaves with a closer pair are summed again as a whole: half the margin of single targets serves.
        let closest = 0.5 * closest_pair(settings.tolerance);
        let errors = settings.estimates_errors();
        let Executed { sums, error } = match plan.choice.precision {
            Precision::F32 => execute::execute::<f32>(kernel, blob, closest, &plan, &bodies, errors, times),
            _ => execute::execute::<f64>(kernel, blob, closest, &plan, &bodies, errors, times),
        };
        Ok(Summed { plan, sums, error })
    }

    fn looks_closer(&self) -> bool {
        true
    }

    fn error(&mut self, summed: &Summed, look: Look) -> Result<f64, Error> {
        let Problem { request, strengths, .. } = self.problem;
        let Summed { plan, sums, .. } = summed;
        let norms = self.times.time(Stage::Guard, || {
            let bodies = Bodies::new(plan, strengths, request);
            let prediction = summed.prediction();
            let sample = prediction.sample(request.settings.tolerance, look);
            guard::errors(plan, &bodies, request.blob, sums, &sample, Some(prediction.rms()))
        });
        // The tolerance bounds L2 alone.
        let norms = Norms { rms: 0.0, rms_bound: 0.0, ..norms };
        self.norms = Some(norms);
        Ok(norms.judged())
    }

    fn repair(&mut self, summed: &mut Summed, choice: &Choice) -> Result<bool, Error> {
        let Problem { request, strengths, .. } = self.problem;
        let Some(norms) = self.norms else { return Ok(false) };
        Ok(self.times.time_more(Stage::Guard, || {
            let most = accuracy::repairs(request.kernel, request.size, choice);
            let worst = summed.prediction().worst(norms, request.settings.tolerance, most);
            let places: Vec<usize> = worst.iter().map(|&i| i as usize).collect();
            let bodies = Bodies::new(&summed.plan, strengths, request);
            let exact = guard::direct(&summed.plan, &bodies, request.blob, &places);
            drop(bodies);
            for (&i, (g, _)) in places.iter().zip(exact) {
                summed.sums[i].g = g;
                summed.error[i] = 0.0;
            }
            !places.is_empty()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points that look random, five of them with strengths that make all fields near them.
    fn set(n: usize) -> (Vec<Complex64>, Vec<Complex64>) {
        let place = |i: usize, step: f64| (i as f64 * step + 0.3).fract();
        let x = (0..n).map(|i| Complex64::new(place(i, 0.754_877_666_246_692_8), place(i, 0.569_840_290_998_053_2)));
        let strong = |i: usize| if i % (n / 5) == 7 { 1e4 } else { (i as f64).sin() };
        (x.collect(), (0..n).map(|i| strong(i).into()).collect())
    }

    #[test]
    fn the_few_targets_that_err_most_are_found_and_summed_again() {
        let (points, strengths) = set(8000);
        let settings = |tolerance| Settings {
            tolerance,
            method: crate::Method::Fmm,
            precision: Precision::F64,
            ..Settings::default()
        };
        let choice = Choice {
            method: crate::Method::Fmm,
            precision: Precision::F64,
            expansion: None,
            order: Some(14),
            theta: Some(0.5),
            leaf_size: 40,
        };
        for kernel in [Kernel::Log, Kernel::Harmonic] {
            let problem =
                |tolerance| Problem::new(&settings(tolerance), kernel, Blob::Point, &points, &strengths, None).unwrap();
            let truth = |summed: &Summed, problem: &Problem| {
                let bodies = Bodies::new(&summed.plan, &problem.strengths, &problem.request);
                let all: Vec<usize> = (0..points.len()).collect();
                let exact = guard::direct(&summed.plan, &bodies, Blob::Point, &all);
                let off = |(s, (g, _)): (&Sum, &([f64; 2], f64))| (s.g[0] - g[0]).powi(2) + (s.g[1] - g[1]).powi(2);
                let wrong: f64 = summed.sums.iter().zip(&exact).map(off).sum();
                (wrong / exact.iter().map(|(g, _)| g[0] * g[0] + g[1] * g[1]).sum::<f64>()).sqrt()
            };
            let (first, mut times) = (problem(1e-6), StageTimes::default());
            let mut trial = PlanarTrial { problem: &first, norms: None, times: &mut times };
            let summed = trial.execute(&settings(1e-6), &choice).unwrap();
            let (found, l2) = (trial.error(&summed, Look::First).unwrap(), truth(&summed, &first));
            assert!((0.7..1.5).contains(&(found / l2)), "{kernel:?}: {found:e}, true {l2:e}");
            // A little more than what is trusted.
            let again = problem(l2 / 0.9);
            let mut trial = PlanarTrial { problem: &again, norms: None, times: &mut times };
            let mut summed = trial.execute(&settings(l2 / 0.9), &choice).unwrap();
            assert!(trial.error(&summed, Look::First).unwrap() > 0.8 * l2 / 0.9);
            assert!(trial.repair(&mut summed, &choice).unwrap(), "{kernel:?}");
            let repaired = truth(&summed, &again);
            assert!(
                repaired < 0.9 * l2 && trial.error(&summed, Look::First).unwrap() < l2,
                "{kernel:?}: {repaired:e} of {l2:e}"
            );
            let count = summed.error.iter().filter(|e| **e == 0.0).count();
            assert!((1..800).contains(&count), "{kernel:?}: {count} of {}", points.len());
            // No repair of a sum that errs everywhere.
            let never = problem(1e-3 * l2);
            let mut trial = PlanarTrial { problem: &never, norms: None, times: &mut times };
            let mut summed = trial.execute(&settings(1e-3 * l2), &choice).unwrap();
            trial.error(&summed, Look::First).unwrap();
            assert!(!trial.repair(&mut summed, &choice).unwrap());
        }
    }
}
