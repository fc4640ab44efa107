//! Pairs whose squared distance underflows: closer than 10⁻¹⁴⁵ of a leaf.
//!
//! They arise only between coordinates that are tiny compared with the extent of the set, since the
//! numbers next to a coordinate are 2⁻⁵² of it away. One scan of all coordinates rules them out for
//! ordinary sets. The vectors of `near` treat these pairs as coincident; [`make_good`] adds them
//! one by one.

use rayon::prelude::*;

use super::Kernel;
use super::execute::{Bodies, Sum};

/// The smallest coordinate of a set that cannot have pairs of this kind, as a share of the extent.
/// It has a margin for units and for the distance to the next number.
const SMALL: f64 = 1e-120;

/// Of the extent; what is smaller may be lost when coordinates are put in the unit of the set.
pub const LOST: f64 = 1e-300;

/// Of the extent; the squares of shorter cores of blobs are no numbers in the unit of the set, though they are in that of a leaf.
pub const SHORT: f64 = 1e-140;

/// Of the extent; shorter cores are points: no unit has numbers for their squares and for those of all distances.
pub const POINT: f64 = 1e-200;

/// The smallest coordinate that is not zero; ∞ without any.
pub fn smallest(points: &[[f64; 2]]) -> f64 {
    let of = |x: &[f64; 2]| x.iter().map(|c| c.abs()).filter(|c| *c > 0.0).fold(f64::INFINITY, f64::min);
    points.par_iter().map(of).reduce(|| f64::INFINITY, f64::min)
}

/// Whether points whose smallest coordinate is `smallest` may form pairs of this kind.
pub fn possible(smallest: f64, extent: f64) -> bool {
    smallest < SMALL * extent
}

/// Adds what the pairs of the targets `at` and the sources `from`, places in the order of their pyramids, have missed: those that are not
/// at distance zero and whose squared distance times `scale`² is below `limit`. `out` has one sum a target.
pub fn make_good(
    kernel: Kernel,
    bodies: &Bodies,
    at: std::ops::Range<usize>,
    from: std::ops::Range<usize>,
    (scale, limit): (f64, f64),
    out: &mut [Sum],
) {
    let (targets, sources) = (bodies.targets(), &bodies.sources);
    let small = |x: f64| x.abs() * scale < SMALL;
    for (i, o) in at.zip(out) {
        let [x, y] = [0, 1].map(|d| targets.x[d][i]);
        for j in from.clone() {
            let (dx, dy) = (x - sources.x[0][j], y - sources.x[1][j]);
            let longer = dx.abs().max(dy.abs());
            if longer == 0.0 || !small(longer) {
                continue;
            }
            // What the vectors saw.
            let [sx, sy] = [dx * scale, dy * scale];
            let seen = sx.mul_add(sx, sy * sy);
            if seen >= limit {
                continue;
            }
            let [u, v] = [dx / longer, dy / longer];
            let size = u * u + v * v;
            let [g, h] = [0, 1].map(|k| sources.q.get(k).map_or(0.0, |q| q[j]));
            let inverse = 1.0 / (size * longer);
            // Γ/d = Γ (dx − i dy)/r².
            o.g[0] += (g * u + h * v) * inverse;
            o.g[1] += (h * u - g * v) * inverse;
            if kernel == Kernel::Log {
                let unit = f64::from(bodies.global) * std::f64::consts::LN_2;
                o.potential += g * (longer.ln() + 0.5 * size.ln() + unit);
            }
        }
    }
}
