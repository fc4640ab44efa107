//! A single sum in space on this machine's cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::boxed::{self, InBox, Reference};
use super::direct::direct_field;
use super::points::{Points, Summed};
use super::schedule::{Bodies, Expansions, See, execute_sorted};
use super::sorted::Sum;
use super::{direct, hessian, vortex};
use crate::accuracy::{self, Problem};
use crate::boundary::Background;
use crate::expansion::{Cartesian, Expansion, Spherical};
use crate::guard::{self, Look, Norms};
use crate::math::{CollectVec, Real};
use crate::mesh::recipe::Rates;
use crate::plan::OctreePlan;
use crate::solve::{Evaluation, Quantity, Solved, Trial, solve};
use crate::tree::Cube;
use crate::{Cancel, Choice, Error, Family, Kept, Method, Precision, Settings, Stage, StageTimes, Weights};
use crate::{bodies, error_model};

/// The field of `sources` with `strengths` at `targets`; without targets at the sources themselves, where none sees
/// itself. Pairs at distance zero contribute nothing unsoftened. In a periodic box every source has images, those of a source among
/// what it sees; `direct` is Ewald's sum there.
///
/// # Errors
/// Settings out of range or that cannot be met, values that are not finite, coordinates and distances outside
/// 1e-100 to 1e100 or below 1e-98 of the largest coordinate, more than 2³² − 2 bodies, a charged box in surroundings that
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
    solve_in_space(settings, Points { sources, columns: &[strengths], targets }, Quantity::Potential, times)
}

/// A sum with its second derivatives.
#[derive(Debug, Clone, PartialEq)]
pub struct WithHessian {
    /// Potential and field.
    pub sum: Evaluation,
    /// ∂²/∂x_i∂x_j of the potential for xx, yy, zz, xy, xz, yz. `[targets]`
    pub hessian: Vec<[f64; 6]>,
}

/// As [`evaluate`], with the second derivatives of the potential: minus the gradient of the field.
/// The tolerance bounds them as it does the field, in the Frobenius norm.
///
/// # Errors
/// Those of [`evaluate`].
///
/// ```
/// use fmm_core::{Settings, StageTimes, evaluate_hessian};
/// let at = [[1.0, 0.0, 0.0]];
/// let sum = evaluate_hessian(&Settings::default(), &[[0.0; 3]], &[2.0], Some(&at), &mut StageTimes::default())?;
/// assert_eq!(sum.hessian[0], [4.0, -2.0, -2.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), fmm_core::Error>(())
/// ```
pub fn evaluate_hessian(
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<WithHessian, Error> {
    let points = Points { sources, columns: &[strengths], targets };
    let Solved { choice, sums, .. } = solve_points(settings, None, points, Quantity::Hessian, times)?;
    let Summed { potential, field, error, hessian, coincident_pairs, .. } = sums;
    Ok(WithHessian { sum: Evaluation { potential, field, error, choice, coincident_pairs }, hessian })
}

/// u(x) = −1/(4π) Σ g(r) (x − x_j) × ω_j with g = 1/r³, or (r² + 5/2 ε²)(r² + ε²)^(−5/2) with
/// [`Softening::P1`](crate::Softening::P1), the high-order algebraic regularisation (Winckelmans &
/// Leonard 1993). Strengths ω are vorticities times volumes, one array a component; without targets
/// the field is at the sources. `tolerance` bounds rms and L2 of the velocity as it does those of a
/// force.
///
/// # Errors
/// Those of [`evaluate`]; [`Error::Unsupported`] for other softenings.
///
/// ```
/// use fmm_core::{Settings, StageTimes, biot_savart};
/// // A particle of strength 4π along z at the origin turns (1, 0, 0) towards y.
/// let strengths: [&[f64]; 3] = [&[0.0], &[0.0], &[4.0 * std::f64::consts::PI]];
/// let at = [[1.0, 0.0, 0.0]];
/// let u = biot_savart(&Settings::default(), &[[0.0; 3]], strengths, Some(&at), &mut StageTimes::default())?;
/// assert_eq!(u.field[0], [0.0, 1.0, 0.0]);
/// # Ok::<(), fmm_core::Error>(())
/// ```
pub fn biot_savart(
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: [&[f64]; 3],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<Evaluation, Error> {
    solve_in_space(settings, Points { sources, columns: &strengths, targets }, Quantity::Velocity, times)
}

/// The sum of `quantity` over `points`, checked.
pub(super) fn solve_in_space(
    settings: &Settings,
    points: Points,
    quantity: Quantity,
    times: &mut StageTimes,
) -> Result<Evaluation, Error> {
    solve_points(settings, None, points, quantity, times).map(evaluation)
}

/// Without second derivatives and what a run keeps.
pub(super) fn evaluation(Solved { choice, sums, .. }: Solved<Summed>) -> Evaluation {
    let Summed { potential, field, error, coincident_pairs, .. } = sums;
    Evaluation { potential, field, error, choice, coincident_pairs }
}

/// The same with all that is summed, beginning with what an earlier sum of a run has `kept`.
pub(super) fn solve_points(
    settings: &Settings,
    kept: Option<Kept>,
    points: Points,
    quantity: Quantity,
    times: &mut StageTimes,
) -> Result<Solved<Summed>, Error> {
    let targets = points.targets.unwrap_or(&[]);
    bodies::check_sources(points.sources, points.columns)?;
    bodies::check_positions(targets)?;
    bodies::check_reach(&[points.sources, targets])?;
    let settings = settings.clone().simplified();
    quantity.check(&settings)?;
    let frame = match settings.boundary.periodic() {
        Some(cell) => {
            settings.check()?;
            cell.check_charge(points.columns[0])?;
            times.time_more(Stage::Tree, || Frame::Box(InBox::new(*cell, points)))
        }
        None => times.time_more(Stage::Tree, || Frame::Open(Cube::around(&[points.sources, targets]))),
    };
    let problem = times.time_more(Stage::Tree, || match &frame {
        Frame::Open(cube) => Problem::of(points.sources, points.columns, points.at().len(), cube),
        Frame::Box(within) => {
            within.problem(points).with_mesh((quantity == Quantity::Potential).then_some(Rates::CORES))
        }
    });
    let mut trial =
        SpaceTrial { settings: &settings, points, quantity, frame, problem, reference: None, norms: None, times };
    let Solved { choice, mut sums, kept } = solve(&settings, kept, &mut trial)?;
    if settings.errors {
        if !choice.is_exact() && trial.norms.is_none() {
            trial.error(&sums, Look::First)?;
        }
        let norms = trial.norms.filter(|_| !choice.is_exact());
        sums.error = sums.prediction().calibrated(norms.map_or(0.0, |n| n.of_vectors));
    } else {
        sums.error = vec![];
    }
    Ok(Solved { choice, sums, kept })
}

/// Where the points lie.
enum Frame {
    /// In open space, all within this cube.
    Open(Cube<3>),
    /// In a periodic box.
    Box(InBox),
}

/// A sum in space on the cores.
struct SpaceTrial<'a> {
    /// As they were asked for.
    settings: &'a Settings,
    points: Points<'a>,
    quantity: Quantity,
    frame: Frame,
    problem: Problem,
    /// What sums in a box are measured by, once it is wanted.
    reference: Option<Reference<'a>>,
    /// What the guard has found of the last sums.
    norms: Option<Norms>,
    times: &'a mut StageTimes,
}

impl Trial for SpaceTrial<'_> {
    type Sums = Summed;

    fn problem(&self) -> Problem {
        self.problem
    }

    fn cancel(&self) -> &Cancel {
        self.times.cancel()
    }

    fn look(&mut self) {
        let SpaceTrial { settings, points, quantity, .. } = *self;
        if let Frame::Box(within) = &self.frame
            && self.problem.is_worth_a_look(settings)
        {
            self.reference = self.times.time_more(Stage::Guard, || InBox::reference(settings, points, quantity, 1.0));
            let field = |r: &Reference| self.times.time_more(Stage::Guard, || within.field(&r.sum, points));
            self.problem.field = self.reference.as_ref().map(field);
        }
    }

    fn choose(&self, settings: &Settings, target_error: f64) -> Result<Choice, Error> {
        accuracy::choose_for(settings, self.problem, self.quantity.table_error(target_error))
    }

    fn execute(&mut self, settings: &Settings, choice: &Choice) -> Result<Summed, Error> {
        let (points, times, hessian) = (self.points, &mut *self.times, self.quantity == Quantity::Hessian);
        Ok(match &self.frame {
            Frame::Open(cube) => {
                // The root cell is widened so that leaves get their best size.
                let given = self.settings.leaf_size.is_some() || self.settings.uniform.is_some();
                let fits = self.quantity != Quantity::Velocity && !given;
                let fitted = || accuracy::fit(*cube, &self.problem, accuracy::best_leaf(choice), choice.leaf_size);
                let cube = if fits { fitted() } else { *cube };
                let plan = OctreePlan::new(settings, choice.clone(), cube, points.sources, points.targets, times);
                let open = Background::default();
                match self.quantity {
                    Quantity::Velocity => vortex::velocity(
                        points.columns.iter().map(|q| Summed::of(settings, &plan, points, (q, open), false, times)),
                    ),
                    _ => Summed::of(settings, &plan, points, (points.columns[0], open), hessian, times),
                }
            }
            Frame::Box(within) if choice.method == Method::Direct => {
                within.direct(settings.softening, points, hessian, times)
            }
            Frame::Box(within) if choice.method == Method::Mesh => within.mesh(settings, choice, points, times),
            Frame::Box(within) => {
                let inside = within.points(points);
                let plan = OctreePlan::in_box(
                    settings,
                    choice.clone(),
                    within.cell.side,
                    inside.sources,
                    inside.targets,
                    times,
                );
                let moments = times.time_more(Stage::Lattice, || within.moments(points));
                let background = Background::of(&within.cell, &moments[0], &moments[1]);
                let strengths = (inside.columns[0], background);
                let mut summed = Summed::of(settings, &plan, inside, strengths, hessian, times);
                times.time_more(Stage::Lattice, || within.finish(points, &moments, &mut summed));
                summed
            }
        })
    }

    fn weights(&mut self, sums: &Summed) -> Result<Option<Weights>, Error> {
        let Frame::Box(within) = &self.frame else { return Ok(None) };
        Ok(Some(self.times.time_more(Stage::Guard, || sums.weights(within.field_of_ions()))))
    }

    fn looks_closer(&self) -> bool {
        matches!(self.frame, Frame::Open(_))
    }

    fn error(&mut self, sums: &Summed, look: Look) -> Result<f64, Error> {
        let SpaceTrial { settings, points, quantity, .. } = *self;
        let sample = self.times.time_more(Stage::Guard, || sums.prediction().sample(settings.tolerance, look));
        let (softening, rms) = (settings.softening, Some(sums.prediction().rms()));
        let field = || {
            guard::judged(settings, sums.epsilon, |p| direct::errors(&sample, softening, points, &sums.field, rms, p))
        };
        if let Frame::Box(within) = &self.frame {
            self.times.time_more(Stage::Guard, || {
                let sharper = sums.weights(within.field_of_ions()).sharper(within.potential_of_ions());
                if self.reference.as_ref().is_none_or(|known| known.sharper < sharper) {
                    self.reference = InBox::reference(settings, points, quantity, sharper);
                }
            });
        }
        let (norms, more) = self.times.time(Stage::Guard, || match (&self.reference, quantity) {
            (Some(reference), _) => boxed::errors(&sample, &reference.sum, points, sums),
            (_, Quantity::Potential) => (field(), 0.0),
            (_, Quantity::Hessian) => (field(), hessian::error(&sample, softening, points, &sums.hessian)),
            (_, Quantity::Velocity) => (vortex::errors(&sample, softening, points, &sums.field, rms), 0.0),
        });
        self.norms = Some(norms);
        Ok(norms.judged().max(more))
    }

    fn repair(&mut self, sums: &mut Summed, choice: &Choice) -> Result<bool, Error> {
        let SpaceTrial { settings, points, quantity, .. } = *self;
        let repairs = quantity != Quantity::Hessian && matches!(self.frame, Frame::Open(_));
        let Some(norms) = self.norms.filter(|_| repairs) else { return Ok(false) };
        Ok(self.times.time_more(Stage::Guard, || {
            let most = accuracy::repairs(self.problem, choice);
            let worst = sums.prediction().worst(norms, settings.tolerance, most);
            let places: Vec<[f64; 3]> = worst.iter().map(|&i| points.at()[i as usize]).collect();
            let exact: Vec<[f64; 3]> = if quantity == Quantity::Velocity {
                vortex::direct(settings.softening, points, &places).into_iter().map(|(u, _)| u).collect()
            } else {
                let sums = direct_field(settings.softening, points.sources, points.columns[0], &places);
                sums.into_iter().map(|(e, _)| e).collect()
            };
            for (&i, field) in worst.iter().zip(exact) {
                sums.field[i as usize] = field;
                sums.error[i as usize] = 0.0;
            }
            !worst.is_empty()
        }))
    }
}

impl Summed {
    /// The sums of `strengths` over `points` by `plan`, with second derivatives if `hessian` asks for them. Errors are
    /// compared with fields that have the background.
    fn of(
        settings: &Settings,
        plan: &OctreePlan<3>,
        points: Points,
        (strengths, background): (&[f64], Background),
        hessian: bool,
        times: &mut StageTimes,
    ) -> Self {
        let Points { sources, targets, .. } = points;
        let mut bodies = times.time_more(Stage::Tree, || Bodies::new(plan, sources, strengths, targets));
        bodies.background = background;
        let (sorted, Finished { squared_errors, hessian }) = match plan.choice.precision {
            Precision::F32 => sum::<f32>(settings, plan, &bodies, hessian, &mut |_, _, _, _| (), times),
            _ => sum::<f64>(settings, plan, &bodies, hessian, &mut |_, _, _, _| (), times),
        };
        let order = &plan.targets.order;
        times.time_more(Stage::Output, || {
            let place = places(order);
            let (mut potential, mut field) = (vec![], vec![]);
            let sums = place.par_iter().map(|&k| &sorted[k as usize]).map(|s| (s.potential, s.field));
            sums.unzip_into_vecs(&mut potential, &mut field);
            let hessian =
                if hessian.is_empty() { vec![] } else { place.par_iter().map(|&k| hessian[k as usize]).collect_vec() };
            let root = plan.targets.half(0);
            let rescale = bodies.scale * root * root;
            let epsilon = error_model::epsilon_of_terms(plan.choice.precision);
            let (mut error, mut largest_term) = (vec![], vec![]);
            if !squared_errors.is_empty() {
                let of_target = |&k: &u32| squared_errors[k as usize].map(|squared| squared.sqrt() / rescale).into();
                place.par_iter().map(of_target).unzip_into_vecs(&mut error, &mut largest_term);
            }
            let coincident_pairs = plan.source_tree().coincident_pairs;
            Summed { potential, field, hessian, error, largest_term, epsilon, coincident_pairs }
        })
    }
}

/// The inverse of a permutation: the place of each row in `order`.
fn places(order: &[u32]) -> Vec<u32> {
    // Relaxed stores cost no more than plain ones, and all cores may scatter.
    let place: Vec<AtomicU32> = order.par_iter().map(|_| AtomicU32::new(0)).collect_vec();
    order.par_iter().enumerate().for_each(|(k, &row)| place[row as usize].store(k as u32, Ordering::Relaxed));
    place.into_par_iter().map(AtomicU32::into_inner).collect_vec()
}

/// What is computed from the expansions in addition to the sums, in the order of the target tree.
pub(crate) struct Finished {
    /// See [`Expansions::squared_errors`].
    pub squared_errors: Vec<[f64; 2]>,
    /// Empty unless it is asked for.
    hessian: Vec<[f64; 6]>,
}

/// What a stage left: multipoles, local expansions (both cell after cell) and sums, whose strengths are multiplied by
/// the number that comes last.
pub type Left<'a> = dyn FnMut(Stage, &[f64], &[f64], &[Sum<3>], f64) + 'a;

/// Executes a plan and shows what each stage left. Other executors are compared with it stage by stage.
pub fn watch(
    settings: &Settings,
    plan: &OctreePlan<3>,
    (sources, strengths): (&[[f64; 3]], &[f64]),
    targets: Option<&[[f64; 3]]>,
    see: &mut Left,
) {
    let bodies = Bodies::new(plan, sources, strengths, targets);
    let (scale, times) = (bodies.scale, &mut StageTimes::default());
    if plan.choice.precision == Precision::F32 {
        let wide = |coefficients: &[f32]| coefficients.iter().map(|&c| f64::from(c)).collect::<Vec<_>>();
        let see = &mut |stage, m: &mut [f32], l: &[f32], sums: &[Sum<3>]| see(stage, &wide(m), &wide(l), sums, scale);
        sum::<f32>(settings, plan, &bodies, false, see, times);
    } else {
        let see = &mut |stage, m: &mut [f64], l: &[f64], sums: &[Sum<3>]| see(stage, m, l, sums, scale);
        sum::<f64>(settings, plan, &bodies, false, see, times);
    }
}

/// The sums of a plan in the order of its targets.
pub(crate) fn sum<T: Real>(
    settings: &Settings,
    plan: &OctreePlan<3>,
    bodies: &Bodies<3>,
    hessian: bool,
    see: &mut See<T, 3>,
    times: &mut StageTimes,
) -> (Vec<Sum<3>>, Finished) {
    let (order, softening) = (plan.choice.order.unwrap_or(1), settings.softening);
    let unscale = 1.0 / bodies.scale;
    if plan.choice.expansion == Some(Family::Cartesian) {
        let tree = &plan.targets;
        let of = |p| Cartesian::<T>::new(p, softening, plan.geometry.classes, tree.side, tree.levels());
        execute_sorted(&of(order), &softening, plan, bodies, times, see, |executed, times| {
            finish(executed, settings, hessian.then_some(|| Arc::new(of(order + 1))), unscale, times)
        })
    } else {
        let of = |p| Spherical::<T>::shared(p, plan.geometry.classes);
        execute_sorted(&*of(order), &softening, plan, bodies, times, see, |executed, times| {
            finish(executed, settings, hessian.then_some(|| of(order + 1)), unscale, times)
        })
    }
}

/// `next` makes the expansion of the next order if second derivatives are asked for; strengths are scaled by
/// 1/`unscale`.
fn finish<T: Real, E: Expansion<T, 3>, N: Expansion<T, 3>>(
    executed: &Expansions<T, E, 3>,
    settings: &Settings,
    next: Option<impl FnOnce() -> Arc<N>>,
    unscale: f64,
    times: &mut StageTimes,
) -> Finished {
    if times.cancel().is_set() {
        return Finished { squared_errors: vec![], hessian: vec![] };
    }
    let squared_errors = if settings.estimates_errors() {
        times.time_more(Stage::Guard, || executed.squared_errors(settings))
    } else {
        vec![]
    };
    let mut hessian = next.map_or(vec![], |next| executed.hessian(settings.softening, next, times));
    hessian.par_iter_mut().flatten().for_each(|h| *h *= unscale);
    Finished { squared_errors, hessian }
}
