//! From a tolerance to method, order, opening angle and leaf size.
//!
//! The contract: `tolerance` bounds both the rms over targets of e_i = |δa_i|/max(|a_i|, f_i), with f_i a thousandth of the
//! largest single term of target i, and L2 = ‖δa‖/‖a‖. The tables below are measured errors (docs/accuracy.md says on
//! which sets), the worst of their class of sets with a margin; every choice is a pure function of the arguments.

use rayon::prelude::*;

use crate::Error;
use crate::cpu::strength_range;
use crate::expansion::MAX_CARTESIAN_ORDER;
use crate::lists::Rule;
use crate::settings::{Choice, Family, Method, Precision, Settings, Softening};
use crate::tree::Cube;
use crate::tree::key::{levels_per_key, morton};

/// What the choice depends on besides the settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Number of sources.
    pub sources: usize,
    /// Number of targets.
    pub targets: usize,
    /// How the sources lie and which signs they have.
    pub kind: Kind,
    /// Side of the leaves where the sources are dense (the tenth part that has the smallest).
    pub dense_leaf: f64,
    /// The largest strength over the smallest that is not zero.
    pub strength_range: f64,
}

impl Problem {
    /// The problem of `sources` with `strengths` at `targets` points, in `cube`.
    pub fn of<const D: usize>(sources: &[[f64; D]], strengths: &[f64], targets: usize, cube: &Cube<D>) -> Self {
        let kind = Kind::of(sources, strengths, &cube.corner, cube.side);
        Problem {
            sources: sources.len(),
            targets,
            kind,
            dense_leaf: dense_leaf(sources, cube),
            strength_range: strength_range(strengths),
        }
    }
}

/// Bodies of a sample that stand for the whole set.
const SAMPLE: usize = 1 << 16;

/// The side of the cells that hold some hundred bodies, where bodies are dense: bodies that are neighbours by their key share the
/// cell of the key's common part.
fn dense_leaf<const D: usize>(points: &[[f64; D]], cube: &Cube<D>) -> f64 {
    const LEAF: usize = 100;
    let step = points.len().div_ceil(SAMPLE).max(1);
    let mut keys: Vec<u64> = points.par_iter().step_by(step).map(|x| morton(x, &cube.corner, cube.side)).collect();
    keys.par_sort_unstable();
    let apart = (LEAF / step).max(4);
    let bits = levels_per_key(D) * D as u32;
    let mut levels: Vec<u32> = keys
        .iter()
        .zip(keys.iter().skip(apart))
        .map(|(a, b)| ((a ^ b).leading_zeros() - (64 - bits)) / D as u32)
        .collect();
    levels.sort_unstable();
    let level = levels.get(levels.len() * 9 / 10).copied().unwrap_or(0);
    cube.side * 0.5f64.powi(level as i32)
}

/// Classes of sets that err alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One sign, filling the cube about evenly.
    Filling,
    /// One sign, unevenly: clusters, surfaces.
    Clustered,
    /// Both signs: forces cancel, errors do not.
    Cancelling,
    /// One sign, in a plane or on a line: a few bodies feel next to nothing.
    Flat,
}

impl Kind {
    /// The kind of a set in the cube with lower `corner` and `side`, from the signs of all strengths and a
    /// sample of the positions.
    pub fn of<const D: usize>(points: &[[f64; D]], strengths: &[f64], corner: &[f64; D], side: f64) -> Kind {
        const DIVISIONS: usize = 16;
        let sign = |q: &f64| (*q > 0.0, *q < 0.0);
        let (plus, minus) = strengths.par_iter().map(sign).reduce(|| (false, false), |a, b| (a.0 | b.0, a.1 | b.1));
        if plus && minus {
            return Kind::Cancelling;
        }
        let step = points.len().div_ceil(SAMPLE).max(1);
        let mut bins = vec![0.0f64; DIVISIONS.pow(D as u32)];
        let mut n = 0.0f64;
        let (mut low, mut high) = ([f64::INFINITY; D], [f64::NEG_INFINITY; D]);
        for x in points.iter().step_by(step) {
            let place = (0..D).fold(0, |place, d| {
                let i = ((x[d] - corner[d]) / side * DIVISIONS as f64).clamp(0.0, DIVISIONS as f64 - 1.0);
                place * DIVISIONS + i as usize
            });
            bins[place] += 1.0;
            for d in 0..D {
                (low[d], high[d]) = (low[d].min(x[d]), high[d].max(x[d]));
            }
            n += 1.0;
        }
        let extents = || (0..D).map(|d| high[d] - low[d]);
        if extents().fold(f64::INFINITY, f64::min) < 0.02 * extents().fold(0.0, f64::max) {
            return Kind::Flat;
        }
        // N times the mean occupation that a body sees, less the noise: 1 for a filled cube, 1.9 for a ball.
        let crowding = bins.iter().map(|b| b * (b - 1.0)).sum::<f64>() * bins.len() as f64 / (n * n).max(1.0);
        if crowding < 3.0 { Kind::Filling } else { Kind::Clustered }
    }
}

/// Errors by order from 1, of the FMM with the rule of 27 near cells.
const FMM_FILLING: [f64; 30] = [
    8.5e-2, 2.1e-2, 6.5e-3, 1.1e-3, 3.0e-4, 1.3e-4, 5.5e-5, 1.9e-5, 8.0e-6, 3.8e-6, 2.0e-6, 8.0e-7, 4.5e-7, 2.0e-7,
    1.0e-7, 5.3e-8, 3.0e-8, 1.7e-8, 1.0e-8, 5.6e-9, 3.6e-9, 2.4e-9, 1.3e-9, 7.5e-10, 4.4e-10, 2.6e-10, 1.6e-10,
    9.5e-11, 5.7e-11, 3.5e-11,
];
const FMM_CLUSTERED: [f64; 30] = [
    1.5e-1, 3.4e-2, 1.0e-2, 3.3e-3, 1.2e-3, 4.7e-4, 1.9e-4, 7.8e-5, 3.4e-5, 1.6e-5, 7.4e-6, 3.4e-6, 1.5e-6, 6.4e-7,
    2.5e-7, 1.0e-7, 4.2e-8, 2.0e-8, 1.1e-8, 6.4e-9, 3.6e-9, 2.3e-9, 1.5e-9, 9.8e-10, 6.6e-10, 4.5e-10, 3.0e-10,
    2.0e-10, 1.3e-10, 8.6e-11,
];
const FMM_CANCELLING: [f64; 30] = [
    1.8e-1, 6.3e-2, 2.2e-2, 9.6e-3, 3.9e-3, 1.6e-3, 7.2e-4, 3.3e-4, 1.5e-4, 6.8e-5, 3.6e-5, 1.8e-5, 7.8e-6, 3.9e-6,
    2.4e-6, 1.4e-6, 7.5e-7, 3.9e-7, 2.4e-7, 1.5e-7, 7.5e-8, 4.0e-8, 3.0e-8, 2.2e-8, 1.8e-8, 8.4e-9, 4.4e-9, 2.2e-9,
    1.4e-9, 8.1e-10,
];

/// The treecode at θ = 0.6, the worst of all kinds.
const TREECODE_SEPARATION2: f64 = 3.0 / 0.36;
const TREECODE: [f64; 30] = [
    3.0e-2, 1.1e-2, 4.0e-3, 1.0e-3, 4.1e-4, 2.0e-4, 9.0e-5, 5.0e-5, 2.5e-5, 1.3e-5, 5.0e-6, 2.0e-6, 1.0e-6, 5.0e-7,
    3.0e-7, 1.5e-7, 9.0e-8, 4.5e-8, 2.3e-8, 1.2e-8, 6.0e-9, 3.5e-9, 1.8e-9, 1.0e-9, 5.5e-10, 3.0e-10, 1.8e-10, 1.0e-10,
    6.0e-11, 3.5e-11,
];

/// Cartesian expansions with their triangular truncation, at `separation2` = 4, 9 and 12.
const CARTESIAN: [(f64, usize, [f64; MAX_CARTESIAN_ORDER]); 3] = [
    (
        4.0,
        7,
        [
            1.8e-1, 4.7e-2, 1.7e-2, 6.6e-3, 2.9e-3, 1.3e-3, 7.0e-4, 3.6e-4, 2.0e-4, 1.2e-4, 7.2e-5, 4.0e-5, 2.5e-5,
            1.7e-5, 1.2e-5, 8.2e-6,
        ],
    ),
    (
        9.0,
        12,
        [
            8.0e-2, 1.2e-2, 2.4e-3, 5.9e-4, 1.7e-4, 5.5e-5, 2.2e-5, 8.2e-6, 3.2e-6, 1.5e-6, 6.2e-7, 2.6e-7, 1.2e-7,
            6.0e-8, 3.0e-8, 1.3e-8,
        ],
    ),
    (
        12.0,
        MAX_CARTESIAN_ORDER,
        [
            5.0e-2, 6.4e-3, 9.7e-4, 1.8e-4, 3.7e-5, 1.2e-5, 4.2e-6, 1.5e-6, 5.7e-7, 2.1e-7, 8.2e-8, 3.0e-8, 1.2e-8,
            4.5e-9, 1.7e-9, 7.5e-10,
        ],
    ),
];

/// The smallest order whose error in `table` is at most `tolerance`.
fn order_for(table: &[f64], tolerance: f64) -> Option<usize> {
    table.iter().position(|&e| e <= tolerance).map(|k| k + 1)
}

/// The tightest tolerance of sums in single precision.
pub const F32_FLOOR: f64 = 1e-5;

/// Why single precision cannot serve, if so.
fn beyond_f32(settings: &Settings, problem: Problem) -> Option<String> {
    if settings.tolerance < F32_FLOOR {
        let asked = settings.tolerance;
        return Some(format!("tolerance {asked:e} needs precision f64: sums in f32 keep {F32_FLOOR:e} at best"));
    }
    if problem.strength_range > 1e30 {
        let range = problem.strength_range;
        return Some(format!("strengths that differ by a factor of {range:e} need precision f64"));
    }
    // Lengths are in units of a cell, whose squares and cubes must be numbers.
    let length = match settings.softening {
        Softening::None => 0.0,
        Softening::Plummer(e) | Softening::P1(e) | Softening::Spline(e) => e,
    };
    if length > 1e9 * problem.dense_leaf {
        return Some(format!("a softening length of {length:e}, far beyond the particles, needs precision f64"));
    }
    // (2p)! overflows.
    settings.order.filter(|&p| p > 26).map(|p| format!("order {p} needs precision f64: f32 goes to order 26"))
}

/// Resolves everything that `settings` leaves open.
///
/// # Errors
/// [`Error::Unsupported`] where single precision cannot keep the tolerance.
pub fn choose(settings: &Settings, problem: Problem) -> Result<Choice, Error> {
    choose_for(settings, problem, settings.tolerance)
}

/// The same with the tables read at another error, `aim`: where a sample has shown that a set errs more than those of the tables.
///
/// # Errors
/// Those of [`choose`].
pub fn choose_for(settings: &Settings, problem: Problem, aim: f64) -> Result<Choice, Error> {
    settings.check()?;
    let precision = match (settings.precision, beyond_f32(settings, problem)) {
        (Precision::Auto, None) if settings.tolerance >= 2.0 * F32_FLOOR => Precision::F32,
        (Precision::Auto, _) => Precision::F64,
        (Precision::F32, Some(why)) => return Err(Error::Unsupported(why)),
        (given, _) => given,
    };
    let direct = Choice {
        method: Method::Direct,
        precision,
        expansion: None,
        order: None,
        theta: None,
        leaf_size: settings.leaf_size.unwrap_or(256),
    };
    if settings.method == Method::Direct {
        return Ok(direct);
    }
    let method = if settings.method == Method::Treecode { Method::Treecode } else { Method::Fmm };
    let (family, separation2, order) = expansion(settings, problem, method, aim);
    if let (Some(p), Family::Cartesian) = (settings.order, family)
        && p > MAX_CARTESIAN_ORDER
    {
        return Err(Error::Unsupported(format!(
            "order {p} is beyond the {MAX_CARTESIAN_ORDER} of expansions softened by plummer or p1; give a smaller theta instead"
        )));
    }
    let order = settings.order.unwrap_or(order);
    let leaf_size = settings.leaf_size.unwrap_or_else(|| leaf_size(method, family, precision, order));
    let widest = if method == Method::Fmm { 0.75f64.sqrt() } else { 1.0 };
    let theta = settings.theta.unwrap_or((3.0 / separation2).sqrt()).min(widest);
    let choice =
        Choice { method, precision, expansion: Some(family), order: Some(order), theta: Some(theta), leaf_size };
    let cheaper = settings.method == Method::Auto && settings.order.is_none() && settings.theta.is_none();
    if cheaper && direct_cost(problem, precision) <= fast_cost(problem, &choice) { Ok(direct) } else { Ok(choice) }
}

/// Family, `separation2` and order that keep the tolerance.
fn expansion(settings: &Settings, problem: Problem, method: Method, tolerance: f64) -> (Family, f64, usize) {
    // A softened kernel that is not yet 1/r at the distance of the smallest cells wants its own Taylor series.
    let soft = matches!(settings.softening, Softening::Plummer(_) | Softening::P1(_))
        && newtonian_beyond(settings.softening, settings.tolerance) > problem.dense_leaf;
    // An angle that is asked for changes the rate: errors go like θ^(p+1).
    let asked = settings.theta.map(Rule::separation2_of);
    let adjust = |separation2: f64, order: usize| match asked {
        None => order,
        Some(other) => {
            let ratio =
                (3.0 / separation2).ln() / (3.0 / other.max(if method == Method::Fmm { 4.0 } else { 3.3 })).ln();
            (((order + 1) as f64 * ratio).ceil() as usize - 1).clamp(1, Settings::MAX_ORDER)
        }
    };
    let cancels = matches!(problem.kind, Kind::Cancelling | Kind::Flat);
    // Cancelling forces are smaller than those that the two tables below were measured with.
    let cancelling = if cancels { tolerance / 30.0 } else { tolerance };
    if soft {
        // A treecode truncates on one side only, which is no better here: narrower, and half the error.
        let (first, share) = if method == Method::Treecode { (1, 0.5) } else { (0, 1.0) };
        for (separation2, most, table) in &CARTESIAN[first..] {
            if let Some(p) = order_for(&table[..*most], share * cancelling) {
                return (Family::Cartesian, *separation2, adjust(*separation2, p).min(MAX_CARTESIAN_ORDER));
            }
        }
    }
    if method == Method::Treecode {
        let p = order_for(&TREECODE, if cancels { tolerance / 2.0 } else { tolerance }).unwrap_or(Settings::MAX_ORDER);
        return (Family::Spherical, TREECODE_SEPARATION2, adjust(TREECODE_SEPARATION2, p));
    }
    let (table, tolerance) = match problem.kind {
        Kind::Filling => (&FMM_FILLING, tolerance),
        Kind::Clustered => (&FMM_CLUSTERED, tolerance),
        Kind::Cancelling => (&FMM_CANCELLING, tolerance),
        Kind::Flat => (&FMM_CANCELLING, 0.3 * tolerance),
    };
    match order_for(table, tolerance) {
        Some(p) => (Family::Spherical, 4.0, adjust(4.0, p)),
        // Beyond the table: more near cells, errors like θ^(p+1).
        None => {
            let wanted = tolerance / table[29];
            let theta = 0.75f64.sqrt() * wanted.powf(1.0 / 31.0);
            let separation2 = (3.0 / (theta * theta)).ceil();
            (Family::Spherical, separation2, adjust(separation2, Settings::MAX_ORDER))
        }
    }
}

/// Nanoseconds of one thread that a pair of bodies takes: the unit of the cost model, measured on an AVX-512 Xeon.
fn pair_cost(precision: Precision) -> f64 {
    if precision == Precision::F32 { 0.3 } else { 0.9 }
}

/// Nanoseconds of one M2L.
fn m2l_cost(family: Family, precision: Precision, order: usize) -> f64 {
    let terms = (order + 1) as f64;
    match (family, precision) {
        (Family::Spherical, Precision::F32) => 54.0 * (terms / 5.0).powf(1.9),
        (Family::Spherical, _) => 940.0 * (terms / 12.0).powf(2.3),
        (Family::Cartesian, precision) => {
            // binom(p+6, 6) products.
            let products = (1..=6).map(|k| (order + k) as f64 / k as f64).product::<f64>();
            30.0 + products * if precision == Precision::F32 { 0.08 } else { 0.16 }
        }
    }
}

/// Leaves of the size at which direct sums and translations of a filled octree cost the same; leaves hold 0.4 of their
/// largest size on average.
fn leaf_size(method: Method, family: Family, precision: Precision, order: usize) -> usize {
    if method == Method::Treecode {
        return 100;
    }
    let best = (8.0 * m2l_cost(family, precision, order) / pair_cost(precision)).sqrt();
    (2.5 * best) as usize
}

/// Nanoseconds of one thread for the direct sum.
fn direct_cost(problem: Problem, precision: Precision) -> f64 {
    problem.sources as f64 * problem.targets as f64 * pair_cost(precision)
}

/// Nanoseconds of one thread for the FMM or treecode of a filled octree.
fn fast_cost(problem: Problem, choice: &Choice) -> f64 {
    let (Some(family), Some(order), Some(theta)) = (choice.expansion, choice.order, choice.theta) else {
        return f64::INFINITY;
    };
    let near = 27.0 * (0.75f64.sqrt() / theta).powi(3).max(1.0);
    let leaf = 0.4 * choice.leaf_size as f64;
    let (targets, bodies) = (problem.targets as f64, (problem.targets + problem.sources) as f64);
    let translations = 8.0 * near / leaf * m2l_cost(family, choice.precision, order);
    let evaluation = ((order + 1) * (order + 1)) as f64 * pair_cost(choice.precision);
    let per_target = near * leaf * pair_cost(choice.precision) + translations;
    let clustered = if problem.kind == Kind::Clustered { 1.5 } else { 1.0 };
    clustered * targets * per_target + bodies * (100.0 + evaluation) + 1e6
}

/// The traversal's rule for a choice.
pub fn rule(settings: &Settings, choice: &Choice) -> Rule {
    let coefficients = choice.order.map_or(1, |p| (p + 1) * (p + 1));
    let pairs = choice.expansion.map_or(0.0, |family| {
        m2l_cost(family, choice.precision, choice.order.unwrap_or(1)) / pair_cost(choice.precision)
    });
    let separation2 = choice.theta.map_or(4.0, Rule::separation2_of);
    let any_distance = choice.expansion == Some(Family::Cartesian);
    Rule {
        separation2: if choice.method == Method::Fmm { separation2.max(4.0 * (1.0 - 1e-12)) } else { separation2 },
        min_distance: if any_distance { 0.0 } else { newtonian_beyond(settings.softening, settings.tolerance) },
        m2l_min_pairs: pairs as usize,
        m2p_min_bodies: 2 * coefficients,
        p2l_min_bodies: 2 * coefficients,
    }
}

/// The distance, in half sides of a leaf, below which single precision cannot tell a pair of bodies apart well enough.
///
/// The closest pairs carry most of the L2 norm of the forces, and the rounding of a coordinate is amplified there by the ratio
/// of the leaf to the distance: 24 bits must leave the tolerance with a margin of 4.
pub fn closest_pair(tolerance: f64) -> f64 {
    4.0 * 0.5f64.powi(24) / tolerance
}

/// The distance beyond which a softened force differs from q/r² by less than half the tolerance.
pub fn newtonian_beyond(softening: Softening, tolerance: f64) -> f64 {
    match softening {
        Softening::None => 0.0,
        // 1 − (1 + ε²/r²)^(−3/2) ≤ 3/2 ε²/r².
        Softening::Plummer(e) => e * (3.0 / tolerance).sqrt(),
        // 1 − (1 + 5/2 ε²/r²)(1 + ε²/r²)^(−5/2) ≤ 15/8 (ε/r)⁴.
        Softening::P1(e) => e * (3.75 / tolerance).powf(0.25),
        Softening::Spline(e) => 2.8 * e,
    }
}
