//! The CPU as an executor, and a single sum.

use rayon::prelude::*;

use super::near::Near;
use super::sorted::{Sorted, Sum, strength_scale};
use super::{far, guard};
use crate::accuracy::Problem;
use crate::expansion::{Cartesian, Expansion, Pairs, Spherical};
use crate::plan::Plan;
use crate::real::Real;
use crate::tree::Cube;
use crate::{Choice, Error, Executor, Family, Method, Particles, Precision, Settings, Stage, StageTimes, accuracy};

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
/// itself. Pairs at distance zero contribute nothing unsoftened.
///
/// # Errors
/// Settings out of range or that cannot be met, values that are not finite, more than 2³² − 2 bodies.
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
    let settings = settings.clone().simplified();
    let cube = times.time_more(Stage::Tree, || Cube::around(&[sources, targets.unwrap_or(&[])]));
    let count = targets.map_or(sources.len(), <[_]>::len);
    let problem = times.time_more(Stage::Tree, || Problem::of(sources, strengths, count, &cube));
    // The tables of `accuracy` hold for sets like those that they were measured on. Where the order is ours to choose, a
    // sample of direct sums tells whether they hold here; if not, the next attempt aims lower, and then in double precision.
    let guarded = settings.order.is_none();
    let (mut attempt, mut aim) = (settings.clone(), settings.tolerance);
    for _ in 0..ATTEMPTS {
        let choice = accuracy::choose_for(&attempt, problem, aim)?;
        let plan = Plan::new(&attempt, choice, cube, sources, targets, times);
        let evaluation = evaluate_plan(&attempt, plan, sources, strengths, targets, times);
        if !guarded || evaluation.choice.order.is_none() {
            return Ok(evaluation);
        }
        let sampled = || guard::sampled_error(settings.softening, sources, strengths, targets, &evaluation.field);
        let error = times.time(Stage::Guard, sampled);
        if error <= settings.tolerance {
            return Ok(evaluation);
        }
        aim = (aim * (0.5 * settings.tolerance / error).clamp(1e-4, 0.5)).max(Settings::TIGHTEST);
        if settings.precision == Precision::Auto && attempt != settings {
            attempt.precision = Precision::F64;
        }
        attempt.leaf_size = settings.leaf_size.or(Some(evaluation.choice.leaf_size));
    }
    let pairs = problem.sources as f64 * problem.targets as f64;
    if settings.precision == Precision::F32 || pairs > MOST_PAIRS {
        return Err(Error::Unsupported(format!(
            "tolerance {:e} is not reached on these particles by {} in {}; use --method direct or precision f64",
            settings.tolerance,
            settings.method.name(),
            attempt.precision.name()
        )));
    }
    let direct = Settings { method: Method::Direct, precision: Precision::F64, ..settings };
    let choice = accuracy::choose(&direct, problem)?;
    let plan = Plan::new(&direct, choice, cube, sources, targets, times);
    Ok(evaluate_plan(&direct, plan, sources, strengths, targets, times))
}

/// How often order and angle are chosen anew before the direct sum is taken.
const ATTEMPTS: usize = 4;

/// The largest direct sum that stands in where no expansion keeps the tolerance.
const MOST_PAIRS: f64 = 1e11;

fn evaluate_plan(
    settings: &Settings,
    plan: Plan<3>,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Evaluation {
    let bodies = times.time_more(Stage::Tree, || Bodies::new(&plan, sources, strengths, targets));
    let sorted = match plan.choice.precision {
        Precision::F32 => sum::<f32>(settings, &plan, &bodies, times),
        _ => sum::<f64>(settings, &plan, &bodies, times),
    };
    let (mut potential, mut field) = (vec![0.0; sorted.len()], vec![[0.0; 3]; sorted.len()]);
    for (&i, s) in plan.targets.order.iter().zip(&sorted) {
        potential[i as usize] = s.potential;
        field[i as usize] = s.field;
    }
    let coincident_pairs = plan.source_tree().coincident_pairs;
    Evaluation { potential, field, choice: plan.choice, coincident_pairs }
}

/// Bodies in the order of their trees, with strengths scaled.
struct Bodies<const D: usize> {
    sources: Sorted<D>,
    /// If they are not the sources.
    targets: Option<Sorted<D>>,
    /// What the strengths were multiplied by.
    scale: f64,
}

impl<const D: usize> Bodies<D> {
    fn new(plan: &Plan<D>, sources: &[[f64; D]], strengths: &[f64], targets: Option<&[[f64; D]]>) -> Self {
        let scale = strength_scale(strengths);
        Bodies {
            sources: Sorted::new(sources, Some(strengths), scale, &plan.source_tree().order),
            targets: targets.map(|t| Sorted::new(t, None, 1.0, &plan.targets.order)),
            scale,
        }
    }
}

fn sum<T: Real>(settings: &Settings, plan: &Plan<3>, bodies: &Bodies<3>, times: &mut StageTimes) -> Vec<Sum<3>> {
    let order = plan.choice.order.unwrap_or(1);
    if plan.choice.expansion == Some(Family::Cartesian) {
        let tree = &plan.targets;
        let expansion = Cartesian::<T>::new(order, settings.softening, plan.classes, tree.side, tree.levels());
        execute_sorted(&expansion, &settings.softening, plan, bodies, times)
    } else {
        let expansion = Spherical::<T>::new(order, plan.classes);
        execute_sorted(&expansion, &settings.softening, plan, bodies, times)
    }
}

/// Executes the schedule of a plan; the sums are in the order of the target tree.
pub fn execute<T: Real, E: Expansion<T, D>, K: Pairs<D>, const D: usize>(
    expansion: &E,
    kernel: &K,
    plan: &Plan<D>,
    sources: &[[f64; D]],
    strengths: &[f64],
    targets: Option<&[[f64; D]]>,
    times: &mut StageTimes,
) -> Vec<Sum<D>> {
    let bodies = times.time_more(Stage::Tree, || Bodies::new(plan, sources, strengths, targets));
    execute_sorted(expansion, kernel, plan, &bodies, times)
}

fn execute_sorted<T: Real, E: Expansion<T, D>, K: Pairs<D>, const D: usize>(
    expansion: &E,
    kernel: &K,
    plan: &Plan<D>,
    bodies: &Bodies<D>,
    times: &mut StageTimes,
) -> Vec<Sum<D>> {
    let (target_tree, source_tree, lists) = (&plan.targets, plan.source_tree(), &plan.lists);
    let (sorted, same) = (&bodies.sources, bodies.targets.is_none());
    let at = bodies.targets.as_ref().unwrap_or(sorted);
    let trees = [target_tree, source_tree];
    let mut out = vec![Sum::default(); target_tree.order.len()];
    let far = plan.choice.order.is_some();
    let mut multipoles = vec![T::ZERO; if far { source_tree.len() * expansion.len() } else { 0 }];
    let mut locals = vec![T::ZERO; if far { target_tree.len() * expansion.len() } else { 0 }];
    for &stage in plan.schedule() {
        times.time(stage, || match stage {
            Stage::P2M => far::p2m(expansion, source_tree, sorted, &mut multipoles),
            Stage::M2M => far::m2m(expansion, source_tree, &mut multipoles),
            Stage::M2L => far::m2l(expansion, target_tree, &lists.m2l, plan.classes.len(), &multipoles, &mut locals),
            Stage::P2L => far::p2l(expansion, trees, sorted, &lists.p2l, &mut locals),
            Stage::L2L => far::l2l(expansion, target_tree, &mut locals),
            Stage::L2P => far::l2p(expansion, target_tree, at, &locals, &mut out),
            Stage::M2P => far::m2p(expansion, trees, at, &lists.m2p, &multipoles, &mut out),
            Stage::P2P => {
                let bodies = [at, sorted];
                Near { kernel, trees, bodies, same, list: &lists.p2p, closest: plan.closest }.p2p::<T>(&mut out);
            }
            Stage::Tree | Stage::Lists | Stage::Lattice | Stage::Guard | Stage::Kick | Stage::Drift | Stage::Output => {
                unreachable!("{} is no stage of a sum", stage.name())
            }
        });
    }
    let unscale = 1.0 / bodies.scale;
    out.par_iter_mut().for_each(|s| {
        s.potential *= unscale;
        s.field = s.field.map(|f| f * unscale);
    });
    out
}

/// Executes on the cores of this machine, in rayon's current thread pool.
pub struct CpuExecutor {
    settings: Settings,
    particles: Particles,
    potential: Vec<f64>,
    field: Vec<[f64; 3]>,
    choice: Option<Choice>,
    coincident_pairs: u64,
}

impl CpuExecutor {
    /// An executor without particles.
    ///
    /// # Errors
    /// [`Error::Range`] if a setting lies outside its range.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        Ok(CpuExecutor {
            settings,
            particles: Particles::default(),
            potential: vec![],
            field: vec![],
            choice: None,
            coincident_pairs: 0,
        })
    }
}

impl Executor for CpuExecutor {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        particles.check()?;
        self.particles = particles.clone();
        Ok(())
    }

    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        let sum = evaluate(&self.settings, &self.particles.position, &self.particles.strength, None, times)?;
        self.potential = sum.potential;
        self.field = sum.field;
        self.choice = Some(sum.choice);
        self.coincident_pairs = sum.coincident_pairs;
        Ok(())
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) {
        let Particles { velocity, coupling, .. } = &mut self.particles;
        times.time(Stage::Kick, || {
            velocity.par_iter_mut().zip(&self.field).zip(coupling).for_each(|((v, e), c)| {
                for d in 0..3 {
                    v[d] += h * (*c * e[d]);
                }
            });
        });
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) {
        let Particles { position, velocity, .. } = &mut self.particles;
        times.time(Stage::Drift, || {
            position.par_iter_mut().zip(velocity).for_each(|(x, v)| {
                for d in 0..3 {
                    x[d] += h * v[d];
                }
            });
        });
    }

    fn check(&mut self) -> Result<(), Error> {
        self.particles.check()
    }

    fn particles(&mut self) -> Particles {
        self.particles.clone()
    }

    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>) {
        (self.potential.clone(), self.field.clone())
    }

    fn choice(&self) -> Option<Choice> {
        self.choice.clone()
    }

    fn coincident_pairs(&self) -> u64 {
        self.coincident_pairs
    }
}
