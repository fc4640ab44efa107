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
const FMM_CANCELLING: [f64; 30] = [
    1.8e-1, 6.3e-2, 2.2e-2, 9.6e-3, 3.9e-3, 1.6e-3, 7.2e-4, 3.3e-4, 1.5e-4, 6.8e-5, 3.6e-5, 1.8e-5, 7.8e-6, 3.9e-6,
    2.4e-6, 1.4e-6, 7.5e-7, 3.9e-7, 2.4e-7, 1.5e-7, 7.5e-8, 4.0e-8, 3.0e-8, 2.2e-8, 1.8e-8, 8.4e-9, 4.4e-9, 2.2e-9,
    1.4e-9, 1.1e-9,
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
        Kind::Flat => (&FMM_CANCELLING, 0.3 * tolerance),
    };
    match order_for(table, tolerance) {
        Some(p) => (Family::Spherical, 4.0, adjust(4.0, p)),
        // Beyond the table: more near cells, errors like θ^(p+1).
        None => {
            let separation2 = more_near(4.0, tolerance / table[29], Settings::MAX_ORDER);
            (Family::Spherical, separation2, adjust(separation2, Settings::MAX_ORDER))
        }
    }
}

/// The separation at which errors of `order` are `part` of those at `separation2`: they go like θ^(order + 1).
fn more_near(separation2: f64, part: f64, order: usize) -> f64 {
    let theta = (3.0 / separation2).sqrt() * part.powf(1.0 / (order + 1) as f64);
    (3.0 / (theta * theta)).ceil()
}
