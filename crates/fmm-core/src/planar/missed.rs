//! What the vectors of [`near`](super::near) miss: pairs whose squared distance underflows (see
//! [`underflow`](super::underflow)).

use super::Kernel;
use super::bodies::{Bodies, Sum};
use super::underflow::SMALL;

/// Adds what the pairs of the targets `at` and the sources `from`, places in the order of their
/// pyramids, have missed: those that are not at distance zero and whose squared distance times
/// `scale`² is below `limit`. `out` has one sum a target.
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
