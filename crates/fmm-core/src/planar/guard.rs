//! The L2 error of a sum in the plane on a sample of its targets.

use rayon::prelude::*;

use super::near::squared_terms;
use super::{Blob, Plan};
use crate::planar::execute::{Bodies, Sum};

/// Targets that are summed directly, some per cent of the time of the sum itself.
fn sample_size(targets: usize) -> usize {
    (4_000_000 / targets.max(1)).clamp(100, 400)
}

/// Sources that one task adds up.
const BLOCK: usize = 1 << 14;

/// A target whose field is below this part of its largest single term counts as having that much.
const FLOOR: f64 = 1e-3;

/// L2 = ‖δ‖/‖G‖ over a sample spread evenly over the leaves; nothing over nothing is no error, and what is no number is one.
pub fn error(plan: &Plan, bodies: &Bodies, blob: Blob, sums: &[Sum]) -> f64 {
    let tree = &plan.targets;
    let n = tree.order.len();
    let step = n.div_ceil(sample_size(n)).max(1);
    // Spread over the set, and not always at the same place of a leaf.
    let places: Vec<usize> = (0..n.div_ceil(step)).map(|k| (k * step + k * 7 % step).min(n - 1)).collect();
    let at: Vec<[f64; 2]> = places.iter().map(|&i| [0, 1].map(|d| tree.x[d][i])).collect();
    let count = plan.source_tree().order.len();
    let blocks: Vec<usize> = (0..count).step_by(BLOCK).collect();
    let parts: Vec<Vec<[f64; 3]>> =
        blocks.par_iter().map(|&b| squared_terms(bodies, b..count.min(b + BLOCK), blob, &at)).collect();
    let (mut wrong, mut right, mut floors) = (0.0, 0.0, 0.0);
    for (k, &i) in places.iter().enumerate() {
        let add =
            |s: [f64; 3], part: &Vec<[f64; 3]>| [s[0] + part[k][0], s[1] + part[k][1], f64::max(s[2], part[k][2])];
        let truth = parts.iter().fold([0.0; 3], add);
        let g = sums[i].g;
        wrong += (g[0] - truth[0]).powi(2) + (g[1] - truth[1]).powi(2);
        right += truth[0] * truth[0] + truth[1] * truth[1];
        floors += FLOOR * FLOOR * truth[2];
    }
    match (wrong / f64::max(right, floors)).sqrt() {
        _ if wrong == 0.0 => 0.0,
        error if error.is_nan() => f64::INFINITY,
        error => error,
    }
}
