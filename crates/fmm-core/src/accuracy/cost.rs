//! What operators cost, for the choice of leaf sizes and between methods. Never a timing of the present run.

use super::problem::CROWDED;
use super::{Kind, Problem};
use crate::boundary::PeriodicBox;
use crate::ewald::{EXACT, Split};
use crate::settings::{Choice, Family, Method, Precision};

/// Nanoseconds of one thread that a pair of bodies takes: the unit of the cost model, measured on an
/// AVX-512 EPYC (Zen 4). With both precisions a quarter more than in single, for targets with close
/// pairs, which are summed again in double.
pub(super) fn pair_cost(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 0.33,
        Precision::Mixed => 0.42,
        Precision::Auto | Precision::F64 => 0.86,
    }
}

/// Nanoseconds of one M2L, as measured when orders up to 8, in double precision up to 7, were matrices on the cores.
/// Rotations take two thirds of this since then; leaves have kept their sizes.
pub(super) fn m2l_cost(family: Family, precision: Precision, order: usize) -> f64 {
    let terms = (order + 1) as f64;
    let single = precision == Precision::F32;
    match family {
        Family::Spherical if order <= if single { 8 } else { 7 } => {
            let coefficients = (order + 1) * (order + 1);
            10.0 + 0.28 * (coefficients * coefficients.div_ceil(if single { 16 } else { 8 })) as f64
        }
        Family::Spherical if single => 40.0 * (terms / 5.0).powf(1.9),
        Family::Spherical => 400.0 * (terms / 12.0).powf(2.3),
        Family::Cartesian => {
            // binom(p+6, 6) products.
            let products = (1..=6).map(|k| (order + k) as f64 / k as f64).product::<f64>();
            30.0 + products * if single { 0.08 } else { 0.16 }
        }
    }
}

/// The share of their largest size that leaves hold on average.
pub(super) const LEAF_SHARE: f64 = 0.4;

/// Leaves of the size at which direct sums and translations of a filled octree cost the same.
pub(super) fn leaf_size(method: Method, family: Family, precision: Precision, order: usize) -> usize {
    if method == Method::Treecode {
        return 100;
    }
    let best = (8.0 * m2l_cost(family, precision, order) / pair_cost(precision)).sqrt();
    (best / LEAF_SHARE) as usize
}

/// Nanoseconds of one thread for the direct sum.
pub(super) fn direct_cost(problem: Problem, precision: Precision) -> f64 {
    problem.pairs() * pair_cost(precision)
}

/// How many targets may be summed again directly before half the time of the sum with `choice` has passed.
pub fn repairs(problem: Problem, choice: &Choice) -> usize {
    let one = problem.sources as f64 * pair_cost(Precision::F64);
    (0.5 * fast_cost(problem, choice, None) / one.max(1.0)) as usize
}

/// Nanoseconds of one thread for Ewald's sum over a box.
pub(super) fn ewald_cost(volume: f64, problem: Problem) -> f64 {
    Split::cheapest(volume, problem.sources, problem.targets, EXACT).cost(volume, problem.sources, problem.targets)
}

/// Leaves that are near a leaf in a filled octree, itself included.
fn near_cells(theta: f64) -> f64 {
    27.0 * (0.75f64.sqrt() / theta).powi(3).max(1.0)
}

/// Bodies in a leaf of the octree of a box, whose root no cube around the bodies replaces: of cells that bodies fill, an
/// eighth of those of a level above.
fn leaf_in_box(problem: Problem, leaf_size: usize, cell: &PeriodicBox) -> f64 {
    let most = leaf_size.max(1) as f64;
    let mut held = problem.sources as f64 * cell.longest().powi(3) / cell.volume();
    while held > most {
        held /= 8.0;
    }
    held.max(1.0)
}

/// Nanoseconds of one thread for the FMM or treecode of a filled octree, or of a box.
pub(super) fn fast_cost(problem: Problem, choice: &Choice, cell: Option<&PeriodicBox>) -> f64 {
    let (Some(family), Some(order), Some(theta)) = (choice.expansion, choice.order, choice.theta) else {
        return f64::INFINITY;
    };
    let leaf = match cell {
        Some(cell) if problem.crowding < CROWDED => leaf_in_box(problem, choice.leaf_size, cell),
        _ => LEAF_SHARE * choice.leaf_size as f64,
    };
    let near = near_cells(theta);
    let (targets, bodies) = (problem.targets as f64, (problem.targets + problem.sources) as f64);
    let translations = 8.0 * near / leaf * m2l_cost(family, choice.precision, order);
    let evaluation = ((order + 1) * (order + 1)) as f64 * pair_cost(choice.precision);
    let per_target = near * leaf * pair_cost(choice.precision) + translations;
    let clustered = if problem.kind == Kind::Clustered { 1.5 } else { 1.0 };
    clustered * targets * per_target + bodies * (100.0 + evaluation) + 1e6
}
