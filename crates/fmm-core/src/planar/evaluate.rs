//! A single sum in the plane on this machine's cores.

use super::bodies::Bodies;
use super::execute;
use super::pyramid::power;
use super::{Blob, Kernel, Plan, Request, accuracy, guard, underflow};
use crate::accuracy::{self as space, Problem as Size, closest_pair};
use crate::bodies::{check_positions, check_sources, coincident_pairs};
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
    let Solved { choice, sums, kept } = solve(&request.settings, kept, &mut PlanarTrial { problem, times })?;
    let Summed { plan, sums } = sums;
    let n = sums.len();
    let mut potential = vec![0.0; if request.kernel == Kernel::Log { n } else { 0 }];
    let mut field = vec![Complex64::ZERO; n];
    let (strength, signs) = (1.0 / request.scale, request.signs());
    for (&i, s) in plan.targets.order.iter().zip(&sums) {
        if request.kernel == Kernel::Log {
            potential[i as usize] = s.potential * strength;
        }
        field[i as usize] = Complex64::new(s.g[0] * signs[0], s.g[1] * signs[1]);
    }
    let coincident_pairs = coincident_pairs(problem.sources);
    Ok((Evaluation { potential, field, error: vec![], choice, coincident_pairs }, kept))
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
    times: &'a mut StageTimes,
}

/// The sums of one choice, in the order of the plan's targets.
struct Summed {
    plan: Plan,
    sums: Vec<Sum>,
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
        let closest = closest_pair(settings.tolerance);
        let sums = match plan.choice.precision {
            Precision::F32 => execute::execute::<f32>(kernel, blob, closest, &plan, &bodies, times),
            _ => execute::execute::<f64>(kernel, blob, closest, &plan, &bodies, times),
        };
        Ok(Summed { plan, sums })
    }

    fn error(&mut self, Summed { plan, sums }: &Summed) -> Result<f64, Error> {
        let Problem { request, strengths, .. } = self.problem;
        Ok(self.times.time(Stage::Guard, || {
            let bodies = Bodies::new(plan, strengths, request);
            guard::error(plan, &bodies, request.blob, sums)
        }))
    }
}
