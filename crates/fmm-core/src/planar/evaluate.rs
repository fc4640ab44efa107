//! A single sum in the plane on this machine's cores.

use super::execute::{self, Bodies};
use super::pyramid::{exponent_above, power};
use super::{Blob, Kernel, Plan, accuracy, guard};
use crate::accuracy::{self as space, Kind, Problem, closest_pair};
use crate::contract::{self, Attempt};
use crate::cpu::power_of_two_below;
use crate::{Choice, Error, Precision, Settings, Softening, Stage, StageTimes};

pub use super::execute::Sum;

/// Strengths of the sources, Γ = real + i imaginary.
#[derive(Debug, Clone, Copy)]
pub struct Strengths<'a> {
    /// Real parts. `[sources]`
    pub real: &'a [f64],
    /// Imaginary parts, for the harmonic kernel only. `[sources]`
    pub imaginary: Option<&'a [f64]>,
}

/// A sum in the plane, in the order of the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Log: Σ q log r. Harmonic: empty. `[targets]`
    pub potential: Vec<f64>,
    /// Log: e = −∇ of the potential. Harmonic: real and imaginary part of Φ = Σ Γ/(z_j − z). `[targets]`
    pub field: Vec<[f64; 2]>,
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of sources at the same place.
    pub coincident_pairs: u64,
}

/// The sum of `sources` with `strengths` at `targets`; without targets at the sources themselves, where none sees itself. Pairs of
/// points at distance zero contribute nothing. `settings.tolerance` bounds the L2 error of the field; its softening must be none:
/// see [`Blob`].
///
/// # Errors
/// Settings out of range or that cannot be met, imaginary strengths with the log kernel, values that are not finite, more than
/// 2³² − 2 bodies.
///
/// ```
/// use fmm_core::planar::{Blob, Kernel, Strengths, evaluate};
/// use fmm_core::{Settings, StageTimes};
/// let strengths = Strengths { real: &[2.0], imaginary: None };
/// let (settings, at) = (Settings::default(), [[1.0, 0.0]]);
/// let sum = |kernel| evaluate(&settings, kernel, Blob::Point, &[[0.0, 0.0]], strengths, Some(&at), &mut StageTimes::default());
/// let log = sum(Kernel::Log)?;
/// assert_eq!((log.potential[0], log.field[0]), (0.0, [-2.0, 0.0]));
/// assert_eq!(sum(Kernel::Harmonic)?.field[0], [-2.0, 0.0]);
/// # Ok::<(), fmm_core::Error>(())
/// ```
pub fn evaluate(
    settings: &Settings,
    kernel: Kernel,
    blob: Blob,
    sources: &[[f64; 2]],
    strengths: Strengths,
    targets: Option<&[[f64; 2]]>,
    times: &mut StageTimes,
) -> Result<Evaluation, Error> {
    let check = |position: &[[f64; 2]], strength: &[f64]| crate::bodies::check(position, &[], strength);
    check(sources, strengths.real)?;
    check(&[], strengths.imaginary.unwrap_or(&[]))?;
    check(targets.unwrap_or(&[]), &[])?;
    blob.check()?;
    let lengths = [Some(strengths.real), strengths.imaginary];
    if lengths.iter().flatten().any(|q| q.len() != sources.len()) {
        return Err(Error::Unsupported(format!("{} sources need as many strengths", sources.len())));
    }
    let settings = settings.clone().simplified();
    if settings.softening != Softening::None {
        return Err(Error::Unsupported("softenings of three dimensions have no meaning in the plane".into()));
    }
    if kernel == Kernel::Log && strengths.imaginary.is_some() {
        return Err(Error::Unsupported("strengths of the log kernel are real".into()));
    }
    let both: Vec<&[f64]> = lengths.into_iter().flatten().collect();
    let sizes: Vec<_> = both.iter().map(|q| space::Strengths::of(q)).collect();
    let largest = sizes.iter().fold(0.0, |m, s| f64::max(m, s.largest));
    let scale = power_of_two_below(1.0 / largest);
    let global = exponent_above(extent(sources, targets.unwrap_or(&[])));
    let problem = Problem {
        sources: sources.len(),
        targets: targets.map_or(sources.len(), <[_]>::len),
        kind: Kind::Cancelling,
        crowding: 1.0,
        dense_leaf: 0.0,
        strength_range: sizes.iter().fold(0.0, |m, s| f64::max(m, s.largest / s.smallest)),
    };
    let mut attempt = PlanarAttempt {
        kernel,
        blob: blob.scaled(power(-global)),
        sources,
        strengths: &both,
        targets,
        global,
        scale,
        times,
        done: None,
    };
    let choice = contract::keep(&settings, problem, &mut attempt)?;
    let Done { plan, sums, .. } = attempt.done.expect("the contract has summed");
    let n = sums.len();
    let (mut potential, mut field) = (vec![0.0; if kernel == Kernel::Log { n } else { 0 }], vec![[0.0; 2]; n]);
    let (strength, length) = (1.0 / scale, power(-global));
    for (&i, s) in plan.targets.order.iter().zip(&sums) {
        let g = s.g.map(|g| g * strength * length);
        if kernel == Kernel::Log {
            potential[i as usize] = s.potential * strength;
            field[i as usize] = [-g[0], g[1]];
        } else {
            field[i as usize] = [-g[0], -g[1]];
        }
    }
    Ok(Evaluation { potential, field, choice, coincident_pairs: plan.source_tree().coincident_pairs() })
}

/// The longer side of the rectangle around all points.
fn extent(sources: &[[f64; 2]], targets: &[[f64; 2]]) -> f64 {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for x in sources.iter().chain(targets) {
        for d in 0..2 {
            (low[d], high[d]) = (low[d].min(x[d]), high[d].max(x[d]));
        }
    }
    let extent = (high[0] - low[0]).max(high[1] - low[1]);
    if extent > 0.0 { extent } else { 1.0 }
}

/// A sum in the plane, done with one choice after another.
struct PlanarAttempt<'a> {
    kernel: Kernel,
    /// In the scaled unit of length, 2^global.
    blob: Blob,
    sources: &'a [[f64; 2]],
    strengths: &'a [&'a [f64]],
    targets: Option<&'a [[f64; 2]]>,
    global: i32,
    scale: f64,
    times: &'a mut StageTimes,
    done: Option<Done>,
}

/// The present result.
struct Done {
    plan: Plan,
    sums: Vec<Sum>,
}

impl Attempt for PlanarAttempt<'_> {
    fn choose(&self, settings: &Settings, problem: Problem, aim: f64) -> Result<Choice, Error> {
        accuracy::choose(self.kernel, settings, problem, aim)
    }

    fn sum(&mut self, settings: &Settings, choice: Choice) -> Result<(), Error> {
        let length = power(-self.global);
        let times = &mut *self.times;
        let plan = Plan::new(choice, settings.tolerance, self.blob, self.sources, self.targets, length, times);
        let bodies = times.time_more(Stage::Tree, || Bodies::new(&plan, self.strengths, self.scale, self.global));
        let closest = closest_pair(settings.tolerance);
        let sums = match plan.choice.precision {
            Precision::F32 => execute::execute::<f32>(self.kernel, self.blob, closest, &plan, &bodies, times),
            _ => execute::execute::<f64>(self.kernel, self.blob, closest, &plan, &bodies, times),
        };
        drop(bodies);
        self.done = Some(Done { plan, sums });
        Ok(())
    }

    fn error(&mut self) -> f64 {
        let Some(Done { plan, sums }) = &self.done else { return f64::INFINITY };
        let PlanarAttempt { strengths, scale, global, blob, .. } = *self;
        self.times.time(Stage::Guard, || {
            let bodies = Bodies::new(plan, strengths, scale, global);
            guard::error(plan, &bodies, blob, sums)
        })
    }
}
