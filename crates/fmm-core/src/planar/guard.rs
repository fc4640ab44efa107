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

/// From one target of a sample of `n` to the next, about.
pub fn sample_step(n: usize) -> usize {
    n.div_ceil(sample_size(n)).max(1)
}

/// The places, in the order of the tree, of the targets of a sample of `n`: spread over the set, and not always at the same place of a
/// leaf.
pub fn sample(n: usize) -> impl ExactSizeIterator<Item = usize> {
    let step = sample_step(n);
    (0..n.div_ceil(step)).map(move |k| (k * step + k * 7 % step).min(n - 1))
}

/// L2 = ‖δ‖/‖G‖ over a sample spread evenly over the leaves; nothing over nothing is no error, and what is no number is one.
pub fn error(plan: &Plan, bodies: &Bodies, blob: Blob, sums: &[Sum]) -> f64 {
    let tree = &plan.targets;
    let places: Vec<usize> = sample(tree.order.len()).collect();
    let at: Vec<[f64; 2]> = places.iter().map(|&i| [0, 1].map(|d| tree.x[d][i])).collect();
    let count = plan.source_tree().order.len();
    let blocks: Vec<usize> = (0..count).step_by(BLOCK).collect();
    let parts: Vec<Vec<[f64; 3]>> =
        blocks.par_iter().map(|&b| squared_terms(bodies, b..count.min(b + BLOCK), blob, &at)).collect();
    let pairs = places.iter().enumerate().map(|(k, &i)| {
        let add =
            |s: [f64; 3], part: &Vec<[f64; 3]>| [s[0] + part[k][0], s[1] + part[k][1], f64::max(s[2], part[k][2])];
        (parts.iter().fold([0.0; 3], add), sums[i].g)
    });
    weigh(pairs)
}

/// The error of a sample: G at each target by a direct sum with the largest squared term of it, and G as it was found.
pub fn weigh(sample: impl Iterator<Item = ([f64; 3], [f64; 2])>) -> f64 {
    let (mut wrong, mut right, mut floors) = (0.0, 0.0, 0.0);
    for (truth, g) in sample {
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
