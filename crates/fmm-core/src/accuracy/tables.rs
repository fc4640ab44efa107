//! Measured errors by order, and the family, angle and order that keep a tolerance.

use super::{Kind, Problem};
use crate::expansion::Cartesian;
use crate::expansion::MAX_CARTESIAN_ORDER;
use crate::lists::Rule;
use crate::settings::{Family, Method, Settings};

/// Errors by order from 1, of the FMM with the rule of 27 near cells.
const FMM_FILLING: [f64; 30] = [
    8.5e-2, 2.1e-2, 6.5e-3, 1.1e-3, 3.0e-4, 1.3e-4, 5.5e-5, 1.9e-5, 8.0e-6, 3.8e-6, 2.0e-6, 8.0e-7, 4.5e-7, 2.0e-7,
    1.0e-7, 5.3e-8, 3.0e-8, 1.7e-8, 1.0e-8, 5.6e-9, 3.6e-9, 2.4e-9, 1.3e-9, 7.5e-10, 4.4e-10, 2.6e-10, 1.6e-10,
    9.5e-11, 5.7e-11, 3.5e-11,
];
const FMM_CLUSTERED: [f64; 30] = [
    1.5e-1, 3.4e-2, 1.1e-2, 3.3e-3, 1.2e-3, 4.7e-4, 1.9e-4, 7.8e-5, 3.4e-5, 1.6e-5, 7.4e-6, 3.4e-6, 1.5e-6, 6.4e-7,
    2.5e-7, 1.0e-7, 4.2e-8, 2.0e-8, 1.1e-8, 6.4e-9, 3.6e-9, 2.3e-9, 1.5e-9, 9.8e-10, 6.6e-10, 4.5e-10, 3.0e-10,
    2.0e-10, 1.3e-10, 8.6e-11,
];
/// The same, of 10⁵ bodies of both signs. Where few targets err more, repairs are cheaper than orders
/// that serve these too.
const FMM_CANCELLING: [f64; 30] = [
    1.8e-1, 6.3e-2, 2.6e-2, 9.0e-3, 3.6e-3, 1.5e-3, 6.2e-4, 2.6e-4, 1.2e-4, 5.5e-5, 2.7e-5, 1.3e-5, 6.2e-6, 3.0e-6,
    1.6e-6, 9.0e-7, 5.0e-7, 2.7e-7, 1.5e-7, 9.0e-8, 5.5e-8, 3.3e-8, 2.1e-8, 1.3e-8, 8.5e-9, 5.3e-9, 3.5e-9, 2.0e-9,
    1.4e-9, 1.1e-9,
];
/// The same, of 10⁵ bodies in planes.
const FMM_FLAT: [f64; 30] = [
    3.0e-1, 1.4e-1, 8.0e-2, 5.0e-2, 7.0e-3, 4.8e-3, 1.1e-3, 2.6e-4, 1.5e-4, 7.0e-5, 4.0e-5, 1.1e-5, 6.1e-6, 5.9e-6,
    4.4e-6, 2.2e-6, 8.0e-7, 6.0e-7, 5.5e-7, 4.5e-7, 2.4e-7, 1.2e-7, 8.0e-8, 6.0e-8, 5.0e-8, 2.5e-8, 8.5e-9, 5.5e-9,
    5.4e-9, 5.4e-9,
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

/// Family, `separation2` and order that keep the tolerance.
pub(super) fn expansion(settings: &Settings, problem: Problem, method: Method, tolerance: f64) -> (Family, f64, usize) {
    // A softened kernel that is not yet 1/r at the distance of the smallest cells wants its own Taylor series.
    let newtonian_beyond = settings.softening.newtonian_beyond(settings.tolerance);
    let soft = Cartesian::<f64>::serves(settings.softening) && newtonian_beyond > problem.dense_leaf;
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
        if newtonian_beyond.is_infinite() {
            // No other family holds.
            let (separation2, order, table) = &CARTESIAN[2];
            let separation2 = more_near(*separation2, share * cancelling / table[order - 1], *order);
            return (Family::Cartesian, separation2, adjust(separation2, *order).min(MAX_CARTESIAN_ORDER));
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
        // Few targets make the error, and their estimates fail most.
        Kind::Flat => (&FMM_FLAT, 0.3 * tolerance),
    };
    let (separation2, order) = match order_for(table, tolerance) {
        Some(p) => (4.0, p),
        // Beyond the table: more near cells, and the order that is enough with these.
        None => {
            let separation2 = more_near(4.0, tolerance / table[29], Settings::MAX_ORDER);
            let error = |p: usize| table[p - 1] * (4.0 / separation2).powf((p + 1) as f64 / 2.0);
            (separation2, (1..Settings::MAX_ORDER).find(|&p| error(p) <= tolerance).unwrap_or(Settings::MAX_ORDER))
        }
    };
    (Family::Spherical, separation2, adjust(separation2, order))
}

/// The separation at which errors of `order` are `part` of those at `separation2`: they go like θ^(order + 1).
fn more_near(separation2: f64, part: f64, order: usize) -> f64 {
    let theta = (3.0 / separation2).sqrt() * part.powf(1.0 / (order + 1) as f64);
    (3.0 / (theta * theta)).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::accuracy::{Spread, Strengths, choose_for};
    use crate::tree::Cube;

    /// The choice for `n` bodies of both signs or of one, spread over these extents.
    fn choice(extents: [f64; 3], mixed: bool, tolerance: f64) -> crate::Choice {
        let n = 1000;
        // Steps that fill the unit cube evenly.
        let place = |i: usize| [0.754877666, 0.569840291, 0.362437038].map(|step| (step * i as f64).fract());
        let points: Vec<[f64; 3]> = (0..n).map(|i| std::array::from_fn(|d| extents[d] * place(i)[d])).collect();
        let cube = Cube::around(&[&points]);
        let strengths = Strengths { mixed, largest: 1.0, smallest: 1.0 };
        let problem = Problem::new(100_000, 100_000, strengths, &Spread::of(&points, &cube), &cube);
        choose_for(&Settings { method: Method::Fmm, tolerance, ..Settings::default() }, problem, tolerance).unwrap()
    }

    #[test]
    fn beyond_the_table_there_are_more_near_cells_and_no_more_order_than_needed() {
        let [within, beyond, far] = [1e-8, 1e-9, 1e-10].map(|tolerance| choice([1.0; 3], true, tolerance));
        assert!(within.theta == Some(0.75f64.sqrt()) && within.order == Some(25), "{within:?}");
        assert!(beyond.theta < within.theta && beyond.order < within.order, "{beyond:?}");
        assert!(far.theta == beyond.theta && far.order > beyond.order, "{far:?}");
    }

    #[test]
    fn sets_in_a_plane_have_a_table_of_their_own_and_f32_serves_down_to_its_floors() {
        for mixed in [false, true] {
            let [space, plane] = [[1.0; 3], [1.0, 1.0, 0.01]].map(|extents| choice(extents, mixed, 1e-3));
            assert!(space.order < plane.order, "{space:?} {plane:?}");
        }
        // Down to what single precision keeps, alone and in pairs; for both signs pairs keep less.
        let precisions = |mixed: bool, tolerances: [f64; 4]| tolerances.map(|t| choice([1.0; 3], mixed, t).precision);
        let one = precisions(false, [1e-5, 0.99e-5, 1e-6, 0.99e-6]);
        assert_eq!(one, [Precision::F32, Precision::Mixed, Precision::Mixed, Precision::F64]);
        let both = precisions(true, [1e-5, 0.99e-5, 5e-6, 4.9e-6]);
        assert_eq!(both, [Precision::F32, Precision::Mixed, Precision::Mixed, Precision::F64]);
        let flat = [2e-5, 1.98e-5].map(|t| choice([1.0, 1.0, 0.01], true, t).precision);
        assert_eq!(flat, [Precision::F32, Precision::F64]);
    }
}
