//! Which method a sum on the device has, and its leaves: what differs from the CPU because pairs are cheap here.

use fmm_core::accuracy::{self, Kind, Problem};
use fmm_core::lists::Rule;
use fmm_core::mesh::Recipe;
use fmm_core::mesh::recipe::{self, Rates};
use fmm_core::{Choice, Error, Family, Method, PeriodicBox, Precision, Settings};

/// The most bodies of a direct sum: the number of keys, a power of two, is a 32-bit number.
const MOST_BODIES: usize = 1 << 31;

/// The most pairs that are summed directly in less time than a tree takes.
const CHEAP_PAIRS: f64 = 4e9;

/// The most bodies that have leaves of the fastest size.
const MANY: usize = 1 << 28;

/// The settings with method and leaf size resolved for the device.
///
/// # Errors
/// [`Error::Unsupported`] for direct sums of more particles than the device's numbers hold, and those of [`accuracy::choose`].
pub fn choose(settings: &Settings, problem: Problem) -> Result<Settings, Error> {
    if settings.uniform.is_some() {
        if settings.boundary.periodic().is_some() {
            let why = "trees of a given depth in periodic boxes are on the cores alone; use device cpu";
            return Err(Error::Unsupported(why.into()));
        }
        // Nothing is left to be chosen.
        accuracy::choose(settings, problem)?;
        return Ok(Settings { method: Method::Fmm, ..settings.clone() });
    }
    let Problem { sources, targets, .. } = problem;
    let pairs = sources as f64 * targets as f64;
    let fixed = settings.order.is_some() || settings.theta.is_some();
    let auto = settings.method == Method::Auto;
    let with = |method| Settings { method, ..settings.clone() };
    let direct = || {
        if sources.max(targets) > MOST_BODIES {
            return Err(Error::Unsupported(format!(
                "more than {MOST_BODIES} particles do not fit a GPU's direct sum; use device cpu, or method fmm"
            )));
        }
        let settings = with(Method::Direct);
        accuracy::choose(&settings, problem)?;
        Ok(settings)
    };
    let boxed = settings.boundary.periodic().is_some();
    let expands = accuracy::check_expansions(settings.softening, problem).is_ok();
    let cheap = !boxed && !fixed && pairs <= CHEAP_PAIRS;
    if settings.method == Method::Direct || auto && (cheap || !expands) {
        return direct();
    }
    if settings.method == Method::Mesh {
        accuracy::choose(settings, problem)?;
        return Ok(settings.clone());
    }
    let method = if auto { Method::Fmm } else { settings.method };
    // Ewald's sum costs far more than so many pairs: where it gains on expansions is where it gains on the cores.
    if let (Some(cell), true) = (settings.boundary.periodic(), auto) {
        let others = accuracy::choose(settings, problem.with_mesh(None))?;
        let ewald = others.method == Method::Direct;
        let crowding = accuracy::crowding_in(cell, &problem);
        let time = if ewald { ewald_time(problem) } else { expansion_time(&others, problem, crowding) };
        let meshed = accuracy::cheaper_mesh(settings, problem, others.precision, settings.tolerance, time);
        let points = meshed.as_ref().and_then(|mesh| mesh_points(cell, &problem, mesh));
        // Where nothing but Ewald's sum is left, the longest lines that a GPU transforms are good enough.
        let times = if meshed.as_ref().is_some_and(|mesh| mesh.precision == Precision::F32) { 2 } else { 1 };
        let serves = |points: [usize; 3]| match ewald {
            true => points.iter().zip(LONGEST_LINES).all(|(&n, longest)| n <= times * longest),
            false => crowding <= MOST_CROWDED && points.iter().all(|&n| n <= MOST_LINE),
        };
        if !fixed && points.is_some_and(serves) {
            return Ok(with(Method::Mesh));
        }
        if ewald {
            return direct();
        }
    }
    let choice = accuracy::choose(&with(method), problem)?;
    // Beyond so many bodies the lists of small leaves fill any memory.
    let least = if sources.max(targets) > MANY { 1024 } else { 0 };
    let most = leaf_size(&choice).max(least);
    // The root of a box cannot be widened to fit the leaves: between two levels, in double precision, rather fuller ones.
    let most = if boxed && choice.precision != Precision::F32 { most + most / 2 } else { most };
    let leaf_size = settings.leaf_size.or(Some(most));
    Ok(Settings { leaf_size, ..with(method) })
}

/// Nanoseconds of a sum with a mesh on an H200, measured (docs/performance.md).
pub const MESH: Rates = Rates {
    width: [8, 8],
    body: 0.15,
    spread: 0.01,
    gather: 0.01,
    near: 0.35,
    pair: [0.0075, 0.018],
    point: [0.04, 0.085],
    fixed: 1.5e5,
};

/// The most points along a side of a mesh that is chosen: a block transforms 1,024 in double precision, and the guard
/// may ask for a smaller error.
const MOST_LINE: usize = 768;

/// The longest lines along x, y and z that a block transforms in double precision; in single they may be twice as long.
pub const LONGEST_LINES: [usize; 3] = [2048, 3072, 1024];

/// Sets that are more crowded than this stay with expansions where these serve: the time of a mesh
/// was measured in droplets of 1e4 to 1e6 ions, 122 times as dense as if they filled their box
/// (docs/performance.md).
const MOST_CROWDED: f64 = 150.0;

/// Points of the mesh of a choice along the sides of a box; none without a mesh.
pub fn mesh_points(cell: &PeriodicBox, problem: &Problem, choice: &Choice) -> Option<[usize; 3]> {
    let order = choice.order.filter(|_| choice.method == Method::Mesh)?;
    Some(Recipe::of(order).counts(recipe::cutoff(cell.volume(), problem.sources, choice.leaf_size), cell.side))
}

/// Nanoseconds that Ewald's sum takes at least on the same: measured, 229 and 289 ms of 1e5
/// charges.
fn ewald_time(problem: Problem) -> f64 {
    (5.0 * (problem.sources.max(problem.targets) as f64).powf(1.5)).max(1e6)
}

/// Sets of more than this crowding take as much longer by expansions.
const CROWDED: (f64, f64) = (16.0, 1.8);

/// Nanoseconds of a sum over all images by expansions on the same, at least: 1e5 ions, in a crystal
/// or a droplet, took 3.5 and 4.8 ms at 1e-3, 7.8 and 13 at 1e-5; 1e6 in a droplet 17 and 93 (docs/performance.md).
fn expansion_time(choice: &Choice, problem: Problem, crowding: f64) -> f64 {
    let order = choice.order.map_or(0.0, |p| p as f64);
    let slower = if choice.precision == Precision::F64 { 4.0 } else { 1.0 };
    let crowded = if crowding > CROWDED.0 { CROWDED.1 } else { 1.0 };
    crowded * (2.5e6 + slower * (1.5 + 0.045 * order * order) * problem.sources.max(problem.targets) as f64)
}

/// Nanoseconds of a sum by expansions in open space on the same, at least, by its tolerance and the
/// number of its bodies (docs/performance.md). Direct sums and meshes are not shared: 0.
pub fn least_time(settings: &Settings, bodies: usize) -> f64 {
    const EACH: [(f64, f64); 5] =
        [(1e-4, 1.8), (accuracy::F32_FLOOR, 2.5), (accuracy::MIXED_FLOOR, 4.4), (1e-8, 6.0), (0.0, 25.0)];
    let each = EACH.iter().find(|each| settings.tolerance >= each.0).map_or(0.0, |each| each.1);
    if matches!(settings.method, Method::Direct | Method::Mesh) { 0.0 } else { each * bodies as f64 }
}

/// How much of the strengths of a box may be left over, and the tolerance from which on single precision serves boxes with more.
const BALANCED: f64 = 0.05;
const UNBALANCED: f64 = 5e-4;

/// Replaces single precision by double where the guard would refuse it. If a part `imbalance` of
/// the magnitudes of the strengths in a box does not cancel, single potentials are many times as
/// large as what remains after the background is subtracted.
pub fn choose_precision(settings: Settings, imbalance: f64) -> Settings {
    let double = imbalance > BALANCED && settings.tolerance < UNBALANCED && settings.precision == Precision::Auto;
    if double { Settings { precision: Precision::F64, ..settings } } else { settings }
}

/// A body takes a multipole of a softened kernel as slowly as so many pairs for each of its terms: one thread
/// makes them one after the other.
const PAIRS_PER_TERM: usize = 64;

/// The traversal's rule: that of the cores, but that the bodies of a small cell meet a target leaf in pairs where its multipole
/// would take longer.
pub fn rule(settings: &Settings, choice: &Choice) -> Rule {
    let rule = accuracy::rule(settings, choice);
    let slow = choice.expansion == Some(Family::Cartesian) && choice.method == Method::Fmm;
    let terms = choice.order.map_or(1, |p| (p + 1) * (p + 2) * (p + 3) / 6);
    let least = if slow { PAIRS_PER_TERM * terms } else { 0 };
    Rule { m2p_min_bodies: rule.m2p_min_bodies.max(least), ..rule }
}

/// From how many bodies on clusters err by more than the tables say, at these target errors and below: the
/// parts of them that the tables are read at.
const MANY_CLUSTERED: usize = 4_000_000;
const PARTS: [(f64, f64); 2] = [(1e-7, 0.25), (accuracy::F32_FLOOR, 0.6)];

/// What the tables are read at to keep `target_error` of `problem`. At high orders many bodies far
/// outside of large clusters err by more than those of the sets that the tables were measured on,
/// and more of them than repairs serve (docs/performance.md).
pub fn table_error(problem: &Problem, target_error: f64) -> f64 {
    let clustered = problem.kind == Kind::Clustered && problem.sources.min(problem.targets) >= MANY_CLUSTERED;
    let part = PARTS.into_iter().find(|part| clustered && target_error < part.0);
    part.map_or(1.0, |part| part.1) * target_error
}

/// Leaves of about the fastest size.
fn leaf_size(choice: &Choice) -> usize {
    if choice.method == Method::Treecode || choice.precision == Precision::F32 {
        // Measured (docs/performance.md): 128 beats 64 at every order from 5 to 11, since pairs cost less in larger leaves.
        return 128;
    }
    (2.0 * balanced(choice)).clamp(24.0, 1024.0) as usize
}

/// How many bodies the leaves of `choice`, of which none holds more than its leaf size, hold at best.
pub fn best_leaf(choice: &Choice) -> f64 {
    let most = choice.leaf_size as f64;
    balanced(choice).clamp(0.25 * most, 0.5 * most)
}

/// Bodies of a leaf whose pairs cost what the 189/27 translations a pair of near cells do.
fn balanced(choice: &Choice) -> f64 {
    let cartesian = choice.expansion == Some(Family::Cartesian);
    let coefficients = |p: usize| if cartesian { (p + 1) * (p + 2) * (p + 3) / 6 } else { (p + 1) * (p + 1) };
    let n = choice.order.map_or(1, coefficients) as f64;
    let pairs = if choice.precision == Precision::F32 {
        // Picoseconds of a translation over those of a pair, 0.78, measured: one product in TF32 or three in bf16.
        if n < 50.0 { 1.8 * n / 0.78 } else { 3.2 * n / 0.78 }
    } else {
        // n² products, a pair at the price of 20. In mixed precision both cost less, and smaller leaves than these were
        // slower (docs/performance.md).
        n * n / 20.0
    };
    (7.0 * pairs).sqrt()
}
