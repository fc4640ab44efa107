//! Sums of Gaussians as the formula stands, and their errors.

use fmm_core::gauss::{Evaluation, Settings};
use fmm_core::math::Compensated;

/// G, as exact as its terms, and e at a point, term by term.
fn direct<const D: usize>(sigma: f64, sources: &[[f64; D]], q: &[f64], y: &[f64; D]) -> (f64, [f64; D]) {
    let (mut g, mut e) = (Compensated::default(), [0.0; D]);
    for (x, q) in sources.iter().zip(q) {
        let u: [f64; D] = std::array::from_fn(|d| (y[d] - x[d]) / sigma);
        let term = q * (-0.5 * u.iter().map(|u| u * u).sum::<f64>()).exp();
        g.add(term);
        for d in 0..D {
            e[d] += term * u[d] / sigma;
        }
    }
    (g.value(), e)
}

/// The largest errors of G and of σ e at up to 300 targets, as parts of Σ|q|.
pub fn errors<const D: usize>(
    settings: &Settings,
    sources: &[[f64; D]],
    q: &[f64],
    targets: Option<&[[f64; D]]>,
    sum: &Evaluation<D>,
) -> [f64; 2] {
    let at = targets.unwrap_or(sources);
    let scale: f64 = q.iter().map(|q| q.abs()).sum();
    let mut worst = [0.0f64; 2];
    for i in (0..at.len()).step_by(at.len().div_ceil(300)) {
        let (g, e) = direct(settings.sigma, sources, q, &at[i]);
        worst[0] = worst[0].max((g - sum.potential[0][i]).abs() / scale);
        if settings.gradient {
            // Strengths may be so large that squares of fields are no numbers.
            let off = |d: usize| (e[d] - sum.field[0][i][d]) * (settings.sigma / scale);
            worst[1] = worst[1].max((0..D).map(|d| off(d).powi(2)).sum::<f64>().sqrt());
        }
    }
    worst
}
