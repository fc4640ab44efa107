//! A single sum on this machine's cores.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::boxed::{self, BoxedAttempt};
use super::guard;
use super::schedule::{Bodies, execute_sorted};
use super::sorted::Sum;
use crate::accuracy::{self, Problem};
use crate::contract::{self, Attempt};
use crate::expansion::{Cartesian, Spherical};
use crate::math::Real;
use crate::plan::Plan;
use crate::tree::Cube;
use crate::{Boundary, Choice, Error, Family, Precision, Settings, Softening, Stage, StageTimes};

/// Potential and field of a sum, in the order of the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Σ q K(r). `[targets]`
    pub potential: Vec<f64>,
    /// e = −∇ of the potential. `[targets]`
    pub field: Vec<[f64; 3]>,
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of sources at bitwise the same place.
    pub coincident_pairs: u64,
}

/// The field of `sources` with `strengths` at `targets`; without targets at the sources themselves, where none sees
/// itself. Pairs at distance zero contribute nothing unsoftened. In a periodic box every source has images, those of a source among
/// what it sees; `direct` is Ewald's sum there.
///
/// # Errors
/// Settings out of range or that cannot be met, values that are not finite, coordinates and distances outside
/// 1e-100 to 1e100, more than 2³² − 2 bodies, a charged box in surroundings that
/// leave it without a potential.
///
/// ```
/// use fmm_core::{Settings, StageTimes, evaluate};
/// let sources = [[0.0, 0.0, 0.0]];
/// let e = evaluate(&Settings::default(), &sources, &[2.0], Some(&[[1.0, 0.0, 0.0]]), &mut StageTimes::default())?;
/// assert_eq!((e.potential[0], e.field[0]), (2.0, [2.0, 0.0, 0.0]));
/// # Ok::<(), fmm_core::Error>(())
/// ```
pub fn evaluate(
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<Evaluation, Error> {
    let bodies = |position: &[[f64; 3]], strength: &[f64]| crate::bodies::check(position, &[], strength);
    bodies(sources, strengths)?;
    targets.map_or(Ok(()), |t| bodies(t, &[]))?;
    crate::bodies::check_reach(&[sources, targets.unwrap_or(&[])])?;
    let settings = settings.clone().simplified();
    let count = targets.map_or(sources.len(), <[_]>::len);
    if let Boundary::Periodic(cell) = settings.boundary {
        settings.check()?;
        cell.check_charge(strengths)?;
        let problem = times.time_more(Stage::Tree, || boxed::problem(&cell, sources, strengths, count));
        let mut attempt = times.time_more(Stage::Tree, || BoxedAttempt::new(cell, sources, strengths, targets));
        attempt.times = std::mem::take(times);
        let choice = contract::keep(&settings, problem, &mut attempt);
        *times = std::mem::take(&mut attempt.times);
        return Ok(attempt.evaluation(choice?));
    }
    let cube = times.time_more(Stage::Tree, || Cube::around(&[sources, targets.unwrap_or(&[])]));
    let problem = times.time_more(Stage::Tree, || Problem::of(sources, strengths, count, &cube));
    let mut attempt = CpuAttempt {
        cube,
        problem,
        fits: settings.leaf_size.is_none() && settings.uniform.is_none(),
        sources,
        strengths,
        targets,
        times,
        softening: settings.softening,
        done: None,
    };
    let choice = contract::keep(&settings, problem, &mut attempt)?;
    let Summed { potential, field, coincident_pairs, .. } = attempt.done.expect("the contract has summed");
    Ok(Evaluation { potential, field, choice, coincident_pairs })
}

/// A sum on this machine's cores, done with one choice after another.
struct CpuAttempt<'a> {
    cube: Cube<3>,
    problem: Problem,
    /// Whether the cube may be widened to fit the leaves: not where their size is given.
    fits: bool,
    sources: &'a [[f64; 3]],
    strengths: &'a [f64],
    targets: Option<&'a [[f64; 3]]>,
    times: &'a mut StageTimes,
    softening: Softening,
    done: Option<Summed>,
}

/// The sums of one choice, in the order of the targets.
#[derive(Default)]
pub(super) struct Summed {
    pub potential: Vec<f64>,
    pub field: Vec<[f64; 3]>,
    pub coincident_pairs: u64,
    /// Targets, and how much of their force the last degree makes: see [`truncation`](super::truncation).
    pub shares: Vec<(u32, f64)>,
}

impl Summed {
    /// What `plan` comes to.
    pub fn of(
        settings: &Settings,
        plan: &Plan<3>,
        sources: &[[f64; 3]],
        strengths: &[f64],
        targets: Option<&[[f64; 3]]>,
        times: &mut StageTimes,
    ) -> Self {
        let bodies = times.time_more(Stage::Tree, || Bodies::new(plan, sources, strengths, targets));
        let (sorted, mut shares) = match plan.choice.precision {
            Precision::F32 => sum::<f32>(settings, plan, &bodies, times),
            _ => sum::<f64>(settings, plan, &bodies, times),
        };
        let (potential, field) = times.time_more(Stage::Output, || in_rows(&plan.targets.order, &sorted));
        shares.iter_mut().for_each(|s| s.0 = plan.targets.order[s.0 as usize]);
        Summed { potential, field, coincident_pairs: plan.source_tree().coincident_pairs, shares }
    }
}

impl Attempt for CpuAttempt<'_> {
    fn sum(&mut self, settings: &Settings, choice: Choice) -> Result<(), Error> {
        let CpuAttempt { cube, problem, sources, strengths, targets, .. } = *self;
        let cube = if self.fits { accuracy::fit(cube, &problem, accuracy::best_leaf(&choice)) } else { cube };
        let times = &mut *self.times;
        let plan = Plan::new(settings, choice, cube, sources, targets, times);
        self.done = Some(Summed::of(settings, &plan, sources, strengths, targets, times));
        Ok(())
    }

    fn error(&mut self) -> f64 {
        let Some(done) = &self.done else { return f64::INFINITY };
        let at = self.targets.unwrap_or(self.sources);
        let sample = guard::Sample::new(at.len(), &done.shares);
        let error = || sample.error(self.softening, self.sources, self.strengths, at, &done.field);
        self.times.time(Stage::Guard, error)
    }
}

/// Potential and field of targets `sorted` by a tree, in the rows' order: row `order[k]` gets the sum `k`.
fn in_rows(order: &[u32], sorted: &[Sum<3>]) -> (Vec<f64>, Vec<[f64; 3]>) {
    // Relaxed stores cost no more than plain ones, and all cores may scatter.
    let place: Vec<AtomicU32> = order.par_iter().map(|_| AtomicU32::new(0)).collect();
    order.par_iter().enumerate().for_each(|(k, &row)| place[row as usize].store(k as u32, Ordering::Relaxed));
    let (mut potential, mut field) = (vec![], vec![]);
    let sums = place.into_par_iter().map(|k| &sorted[k.into_inner() as usize]).map(|s| (s.potential, s.field));
    sums.unzip_into_vecs(&mut potential, &mut field);
    (potential, field)
}

/// The sums of a plan in the order of its targets, and where its expansions err most.
fn sum<T: Real>(
    settings: &Settings,
    plan: &Plan<3>,
    bodies: &Bodies<3>,
    times: &mut StageTimes,
) -> (Vec<Sum<3>>, Vec<(u32, f64)>) {
    let (order, guarded) = (plan.choice.order.unwrap_or(1), settings.guarded());
    if plan.choice.expansion == Some(Family::Cartesian) {
        let tree = &plan.targets;
        let expansion = Cartesian::<T>::new(order, settings.softening, plan.classes, tree.side, tree.levels());
        execute_sorted(&expansion, &settings.softening, plan, bodies, guarded, times)
    } else {
        let expansion = Spherical::<T>::shared(order, plan.classes);
        execute_sorted(&*expansion, &settings.softening, plan, bodies, guarded, times)
    }
}
