//! Second derivatives as the formulas stand, and the norms of their errors.

use fmm_core::Softening;

use crate::space::softened;

/// The axes of each component: xx, yy, zz, xy, xz, yz.
pub const AXES: [[usize; 2]; 6] = [[0, 0], [1, 1], [2, 2], [0, 1], [0, 2], [1, 2]];

/// ∂²K/∂x_i∂x_j from differences of the slope, to 9 digits.
fn pair(d: [f64; 3], s: Softening) -> [f64; 6] {
    let r = d.iter().map(|c| c * c).sum::<f64>().sqrt();
    let slope = |r: f64| softened(r * r, s).1;
    let step = 1e-5 * r;
    let h = (slope(r - step) - slope(r + step)) / (2.0 * step * r);
    AXES.map(|[i, j]| h * d[i] * d[j] - if i == j { slope(r) } else { 0.0 })
}

/// The square of the Frobenius norm.
pub fn square(h: &[f64; 6]) -> f64 {
    h.iter().enumerate().map(|(k, c)| if k < 3 { c * c } else { 2.0 * c * c }).sum()
}

/// The second derivatives at every target, and the square of the largest term.
pub fn exact(x: &[[f64; 3]], q: &[f64], targets: Option<&[[f64; 3]]>, s: Softening) -> Vec<([f64; 6], f64)> {
    let of = |(i, at): (usize, &[f64; 3])| {
        let (mut sum, mut largest) = ([0.0; 6], 0.0f64);
        for (j, y) in x.iter().enumerate().filter(|&(j, _)| targets.is_some() || j != i) {
            let term = pair([0, 1, 2].map(|k| at[k] - y[k]), s).map(|h| h * q[j]);
            (0..6).for_each(|k| sum[k] += term[k]);
            largest = largest.max(square(&term));
        }
        (sum, largest)
    };
    targets.unwrap_or(x).iter().enumerate().map(of).collect()
}

/// rms, 99 % and largest of |δH| / |H|, where |H| counts as a thousandth of its largest term at
/// least; and L2.
///
/// # Panics
/// Without targets.
pub fn errors(found: &[[f64; 6]], exact: &[([f64; 6], f64)]) -> [f64; 4] {
    let (mut all, mut wrong, mut right) = (vec![], 0.0, 0.0);
    for (found, (exact, largest)) in found.iter().zip(exact) {
        let off = square(&std::array::from_fn(|k| found[k] - exact[k]));
        all.push((off / square(exact).max(1e-6 * largest)).sqrt());
        (wrong, right) = (wrong + off, right + square(exact));
    }
    all.sort_by(f64::total_cmp);
    let rms = (all.iter().map(|e| e * e).sum::<f64>() / all.len() as f64).sqrt();
    [rms, all[all.len() * 99 / 100], *all.last().unwrap(), (wrong / right).sqrt()]
}
