//! From a tolerance to method, order and leaf size in the plane: a pure function of its arguments.
//!
//! The contract: `tolerance` bounds L2 = ‖δ‖/‖G‖ over the targets, of the field (log) or of Φ (harmonic).

use super::Kernel;
use crate::accuracy::F32_FLOOR;
use crate::settings::{Choice, Method, Precision, Settings};
use crate::{Error, accuracy::Problem};

/// The opening angle unless another is asked for.
pub const THETA: f64 = 0.5;

/// The largest order.
pub const MAX_ORDER: usize = 60;

/// L2 errors by order at θ = 1/2, the worst of uniform, normal and layer sets with a margin for samples that miss the closest pairs,
/// which make much of the norm (docs/accuracy.md).
const ERRORS: [(usize, f64); 12] = [
    (1, 8e-2),
    (4, 4e-3),
    (6, 5e-4),
    (8, 7e-5),
    (10, 1.2e-5),
    (12, 2.2e-6),
    (14, 4.5e-7),
    (17, 3.2e-8),
    (20, 2.8e-9),
    (24, 8e-11),
    (28, 3.2e-12),
    (34, 4e-14),
];

/// The order at which the error is at most `target_error`.
fn order_for(target_error: f64, theta: f64) -> usize {
    let mut order = ERRORS[0].0 as f64;
    for pair in ERRORS.windows(2) {
        let [(p, high), (next, low)] = [pair[0], pair[1]];
        if target_error < high {
            // On a straight line between logarithms, and on beyond the last.
            let beyond = next == ERRORS[ERRORS.len() - 1].0;
            let share = (high / target_error).ln() / (high / low).ln();
            order = p as f64 + (next - p) as f64 * if beyond { share } else { share.min(1.0) };
        }
    }
    // Errors go like θ^p. An order of the log kernel has one term more.
    let order = order * THETA.ln() / theta.ln();
    (order.ceil() as usize).clamp(1, MAX_ORDER)
}

/// Nanoseconds of one thread for a pair of points, measured on an AVX-512 EPYC (Zen 4).
fn pair_cost(kernel: Kernel, precision: Precision) -> f64 {
    let double = if kernel == Kernel::Log { 1.3 } else { 0.46 };
    if precision == Precision::F32 { 0.5 * double } else { double }
}

/// Nanoseconds for one M2L.
fn m2l_cost(order: usize, precision: Precision) -> f64 {
    let p = order as f64;
    let double = 12.0 + 1.3 * p + 0.11 * p * p;
    if precision == Precision::F32 { 0.6 * double } else { double }
}

/// M2L of a leaf, and of its ancestors by its share.
const M2L_PER_LEAF: f64 = 45.0;

/// Leaves that a leaf meets directly.
const NEIGHBOURS: f64 = 10.5;

/// Nanoseconds for the other operators of a leaf.
const LEAF_COST: f64 = 700.0;

/// The largest number of points in a leaf. Leaves hold a quarter of it to all of it, half in the geometric mean, and at half of it direct
/// sums cost as much as expansions.
fn leaf_size(kernel: Kernel, precision: Precision, order: usize) -> usize {
    let leaf = M2L_PER_LEAF * m2l_cost(order, precision) + LEAF_COST;
    let best = (leaf / (NEIGHBOURS * pair_cost(kernel, precision))).sqrt();
    (2.0 * best).clamp(8.0, 400.0) as usize
}

/// Levels of splits: the fewest that leave at most `leaf_size` points in a leaf (Eq. 5.2 with N_d = 5/8 of it). Of unequal numbers of
/// sources and targets their geometric mean counts, as in the cost of meeting directly.
pub fn levels(sources: usize, targets: usize, leaf_size: usize) -> usize {
    let n = (sources as f64 * targets as f64).sqrt();
    let mut levels = 0;
    while n > leaf_size as f64 * (1u64 << (2 * levels)) as f64 && levels < 14 {
        levels += 1;
    }
    levels
}

/// Points of the smaller leaf from which on an expansion at the points of the larger one is cheaper than their pairs.
pub fn swap_min_points(order: usize) -> usize {
    order
}

/// Direct sums of no more pairs, a millisecond's work, are in double precision unless single is asked for.
const FEW_PAIRS: f64 = 1e6;

/// Checks every number against its range in the plane.
///
/// # Errors
/// [`Error::Range`], and [`Error::Unsupported`] for what there is in three dimensions alone.
pub fn check(settings: &Settings) -> Result<(), Error> {
    let unsupported = |what: &str| Err(Error::Unsupported(what.to_string()));
    if let Some(p) = settings.order.filter(|p| !(1..=MAX_ORDER).contains(p)) {
        return Err(Error::Range { what: "order", value: p as f64, range: "1 to 60" });
    }
    Settings { order: None, ..settings.clone() }.check()?;
    if let Some(t) = settings.theta.filter(|&t| t > 0.8) {
        return Err(Error::Range { what: "theta", value: t, range: "0.2 to 0.8 in the plane" });
    }
    if matches!(settings.method, Method::Treecode | Method::Mesh) {
        let name = settings.method.name();
        return unsupported(&format!("in the plane sums are direct or by fmm, there is no {name}"));
    }
    if settings.boundary.periodic().is_some() {
        return unsupported("there are no periodic boxes in the plane");
    }
    if settings.uniform.is_some() {
        return unsupported("in the plane trees have no given depth");
    }
    Ok(())
}

/// What the table of orders is read at to keep `target_error`. Where targets are not the sources, few of them may stand where nearly all of the error
/// is, and an even sample miss them: of sources over twelve decades at evenly spread targets L2 was 2.8 times what the table says.
pub fn table_error(apart: bool, target_error: f64) -> f64 {
    if apart { (0.2 * target_error).max(Settings::TIGHTEST) } else { target_error }
}

/// Resolves everything that `settings` leaves open, for an error of about `target_error`.
///
/// # Errors
/// [`Error::Range`], and [`Error::Unsupported`] where single precision cannot keep the tolerance.
pub fn choose(kernel: Kernel, settings: &Settings, problem: Problem, target_error: f64) -> Result<Choice, Error> {
    check(settings)?;
    let theta = settings.theta.unwrap_or(THETA);
    let order = settings.order.unwrap_or_else(|| order_for(target_error, theta));
    let spread = problem.strength_range > 1e30;
    let single = settings.tolerance >= F32_FLOOR && !spread && order <= 30;
    let precision = match settings.precision {
        Precision::Auto if single && settings.tolerance >= 2.0 * F32_FLOOR => Precision::F32,
        Precision::Auto => Precision::F64,
        Precision::Mixed => {
            return Err(Error::Unsupported("precision mixed is of sums in space; in the plane: auto, f32, f64".into()));
        }
        Precision::F32 if !single => {
            let t = settings.tolerance;
            return Err(Error::Unsupported(if spread {
                format!("strengths that differ by a factor of {:e} need precision f64", problem.strength_range)
            } else {
                format!(
                    "tolerance {t:e} with order {order} needs precision f64: sums in f32 keep {F32_FLOOR:e} at best"
                )
            }));
        }
        given => given,
    };
    let pairs = problem.sources as f64 * problem.targets as f64;
    let few = settings.precision == Precision::Auto && pairs <= FEW_PAIRS;
    let direct = Choice {
        method: Method::Direct,
        precision: if few { Precision::F64 } else { precision },
        expansion: None,
        order: None,
        theta: None,
        leaf_size: settings.leaf_size.unwrap_or(64),
    };
    if settings.method == Method::Direct {
        return Ok(direct);
    }
    let leaf_size = settings.leaf_size.unwrap_or_else(|| leaf_size(kernel, precision, order));
    let (order, theta) = (Some(order), Some(theta));
    let fast = Choice { method: Method::Fmm, precision, expansion: None, order, theta, leaf_size };
    let cheaper = settings.method == Method::Auto && settings.order.is_none() && settings.theta.is_none();
    let direct_cost = pairs * pair_cost(kernel, direct.precision);
    Ok(if cheaper && direct_cost <= fast_cost(kernel, problem, &fast) { direct } else { fast })
}

/// Targets that the guard sums directly, some per cent of the time of the sum itself: on a GPU, and in the model of
/// costs. The cores draw fewer, by their error field.
pub fn sample_size(targets: usize) -> usize {
    (4_000_000 / targets.max(1)).clamp(100, 400)
}

/// How many targets may be summed again directly before half the time of the sum with `choice` has passed.
pub fn repairs(kernel: Kernel, problem: Problem, choice: &Choice) -> usize {
    let one = problem.sources as f64 * pair_cost(Kernel::Harmonic, Precision::F64);
    (0.5 * fast_cost(kernel, problem, choice) / one.max(1.0)) as usize
}

/// Nanoseconds of one thread for the fast multipole method.
fn fast_cost(kernel: Kernel, problem: Problem, choice: &Choice) -> f64 {
    let order = choice.order.unwrap_or(1);
    let levels = levels(problem.sources, problem.targets, choice.leaf_size);
    let leaves = (1u64 << (2 * levels)) as f64;
    let pairs = problem.sources as f64 * problem.targets as f64 * (NEIGHBOURS / leaves).min(1.0);
    let bodies = (problem.sources + problem.targets) as f64;
    let sampled = sample_size(problem.targets) as f64 * problem.sources as f64;
    // Sets that are not uniform have half as many M2L again.
    pairs * pair_cost(kernel, choice.precision)
        + leaves * (1.5 * M2L_PER_LEAF * m2l_cost(order, choice.precision) + LEAF_COST)
        + bodies * (60.0 + 15.0 * levels as f64 + 0.5 * order as f64)
        + sampled * pair_cost(Kernel::Harmonic, Precision::F64)
        + 2e4
}
