//! Where single precision ends, and where softening does.

use super::problem::CROWDED;
use super::{Kind, Problem};
use crate::kernel::Softening;
use crate::settings::{Method, Precision, Settings};
use crate::{Boundary, Error};

/// The tightest tolerance of sums in single precision, but for those with a mesh.
pub const F32_FLOOR: f64 = 1e-5;

/// The same of sums with a mesh: with 9 and 10 points of a window the rms error of a million ions is 1.7e-6 and 9e-7
/// (docs/performance.md).
const MESH_F32_FLOOR: f64 = 4e-6;

/// The tightest tolerance of sums in single precision by a method.
pub fn f32_floor(method: Method) -> f64 {
    if method == Method::Mesh { MESH_F32_FLOOR } else { F32_FLOOR }
}

/// The same where only pairs of near bodies are in single precision: charges of both signs have rms
/// errors of 5e-7 from the rounding of their places (docs/accuracy.md).
pub const MIXED_FLOOR: f64 = 1e-6;

/// The tightest tolerance at which rounding to single precision is left to the guard where forces of both signs
/// cancel: it makes rms errors of 6e-7 of random charges and of 3e-6 of ions in a lattice (docs/accuracy.md).
const CANCELLING_FLOOR: f64 = 5e-6;

/// Whether what is in single precision keeps the tolerance by expansions, where it keeps `floor` of forces of one
/// sign. Of flat sets nobody knows, nor of charges in a box, where the guard judges potentials as well.
pub(super) fn in_single(floor: f64, settings: &Settings, kind: Kind) -> bool {
    match kind {
        Kind::Filling | Kind::Clustered => settings.tolerance >= floor,
        Kind::Cancelling => settings.boundary == Boundary::Open && settings.tolerance >= floor.max(CANCELLING_FLOOR),
        Kind::Flat => false,
    }
}

/// The longest distance, in screening lengths, whose exponential single precision holds with strengths
/// of any size.
const SCREENED: f64 = 60.0;

/// The longest set, in screening lengths from end to end, that expansions serve where no particle is
/// far from all others: where double precision ends.
const EXPANDED: f64 = 700.0;

/// The same of sets that are crowded somewhere and thin elsewhere. The forces on a particle far outside
/// fall exponentially across its large cell, and no series about the middle of the cell follows them.
const EXPANDED_CROWDED: f64 = 30.0;

/// Screening lengths from one corner of the cube around all bodies to the opposite one; 0 without screening.
fn screening_lengths(softening: Softening, problem: &Problem) -> f64 {
    3f64.sqrt() * problem.side / softening.screening_length()
}

/// Checks that expansions serve the kernel over the whole set.
///
/// # Errors
/// [`Error::Unsupported`] for screened charges of a set that is more than 700 screening lengths from end
/// to end, or 30 where it is crowded.
pub fn check_expansions(softening: Softening, problem: Problem) -> Result<(), Error> {
    let most = if problem.crowding < CROWDED { EXPANDED } else { EXPANDED_CROWDED };
    if screening_lengths(softening, &problem) <= most {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "expansions of screened charges serve such sets up to {most} screening lengths from end to end; method direct \
         or auto"
    )))
}

/// Why sums in single precision cannot serve, if so; with expansions of `order`, if there are any.
pub(super) fn beyond_f32(settings: &Settings, problem: Problem, order: Option<usize>) -> Option<String> {
    // (2p)! overflows.
    let large = order.filter(|&p| p > 26).map(|p| format!("order {p} needs precision f64: f32 goes to order 26"));
    let has_mesh = settings.boundary.periodic().is_some() && settings.method != Method::Mesh;
    let and_mesh = |why| if has_mesh { format!("{why}, and {MESH_F32_FLOOR:e} with method mesh") } else { why };
    let tight = tighter("sums", settings.tolerance, f32_floor(settings.method)).map(and_mesh);
    tight.or(large).or_else(|| pairs_beyond_f32(settings, problem))
}

/// Why pairs in single precision cannot serve with expansions in double, if so.
pub(super) fn beyond_mixed(settings: &Settings, problem: Problem) -> Option<String> {
    tighter("pairs", settings.tolerance, MIXED_FLOOR).or_else(|| pairs_beyond_f32(settings, problem))
}

/// That what is in single precision keeps no more than `floor`, if more is asked for.
fn tighter(what: &str, asked: f64, floor: f64) -> Option<String> {
    let why = || format!("tolerance {asked:e} needs precision f64: {what} in f32 keep {floor:e} at best");
    (asked < floor).then(why)
}

/// The precision of a mesh, where that of expansions would be `precision`.
pub(super) fn mesh_precision(settings: &Settings, problem: Problem, precision: Precision) -> Precision {
    let single = settings.precision == Precision::Auto
        && settings.tolerance >= MESH_F32_FLOOR
        && pairs_beyond_f32(settings, problem).is_none();
    if single { Precision::F32 } else { precision }
}

/// Why single precision has no numbers for the pairs of a problem, if so.
fn pairs_beyond_f32(settings: &Settings, problem: Problem) -> Option<String> {
    if problem.strength_range > 1e30 {
        let range = problem.strength_range;
        return Some(format!("strengths that differ by a factor of {range:e} need precision f64"));
    }
    // Lengths are in units of a cell, whose squares and cubes must be numbers.
    let length = settings.softening.length();
    if length > 1e9 * problem.dense_leaf {
        return Some(format!("a softening length of {length:e}, far beyond the particles, needs precision f64"));
    }
    if screening_lengths(settings.softening, &problem) > SCREENED {
        return Some(format!("particles more than {SCREENED} screening lengths apart need precision f64"));
    }
    None
}

/// The smallest distance of a pair, in half sides of a leaf, that single precision resolves well
/// enough.
///
/// The closest pairs carry most of the L2 norm of the forces. The ratio of the leaf to the distance
/// amplifies the rounding of a coordinate there, so 24 bits must leave the tolerance with a margin
/// of 8 at the tightest tolerance of expansions in single precision, where one target in 300 has such a
/// pair in space, and still of 1.2 at that of mixed precision, where one in 40 has. The margin is wider at
/// larger tolerances, where such pairs are rarer: the forces of close neighbours on both sides
/// cancel, as along a curve, and their rounding does not.
pub fn closest_pair(tolerance: f64) -> f64 {
    (8.0 * 0.5f64.powi(24) / (F32_FLOOR * tolerance).sqrt()).min(0.075)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_ends_where_its_numbers_do() {
        let problem = |strength_range| Problem {
            sources: 1000,
            targets: 1000,
            kind: Kind::Filling,
            crowding: 1.0,
            dense_leaf: 0.1,
            side: 1.0,
            strength_range,
            mesh: None,
            field: None,
        };
        let message = |tolerance, softening, range, order| {
            beyond_f32(&Settings { tolerance, softening, ..Settings::default() }, problem(range), Some(order))
        };
        assert_eq!(message(F32_FLOOR, Softening::Plummer(9e7), 1e30, 26), None);
        assert_eq!(message(1e-4, Softening::Yukawa(0.03), 1.0, 10), None);
        for (why, words) in [
            (message(0.9 * F32_FLOOR, Softening::None, 1.0, 10), "sums in f32 keep 1e-5 at best"),
            (message(1e-4, Softening::None, 1.1e30, 10), "strengths that differ by a factor of 1.1e30"),
            (message(1e-4, Softening::P1(1.1e8), 1.0, 10), "a softening length of 1.1e8"),
            (message(1e-4, Softening::None, 1.0, 27), "f32 goes to order 26"),
            (message(1e-4, Softening::Yukawa(0.028), 1.0, 10), "60 screening lengths"),
        ] {
            assert!(why.as_ref().is_some_and(|w| w.contains(words)), "{why:?}");
        }
    }
}
