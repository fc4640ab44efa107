//! Sums in space as the formulas stand, and the norms of errors.

use fmm_core::ewald::{self, At, EXACT};
use fmm_core::{PeriodicBox, Softening};

/// Potential, field and largest single term at target `x`, term by term as the formulas stand.
pub fn reference(
    x: &[f64; 3],
    skip: Option<usize>,
    sources: &[[f64; 3]],
    q: &[f64],
    s: Softening,
) -> (f64, [f64; 3], f64) {
    let (mut potential, mut field, mut largest) = (0.0, [0.0; 3], 0.0f64);
    for (j, y) in sources.iter().enumerate() {
        let d: [f64; 3] = std::array::from_fn(|k| x[k] - y[k]);
        let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        if Some(j) == skip || (r2 == 0.0 && s == Softening::None) {
            continue;
        }
        let (k, f) = softened(r2, s);
        potential += q[j] * k;
        for c in 0..3 {
            field[c] += q[j] * f * d[c];
        }
        largest = largest.max((q[j] * f).abs() * r2.sqrt());
    }
    (potential, field, largest)
}

/// [`reference()`] at every source, each pair formed once.
pub fn all_pairs(points: &[[f64; 3]], q: &[f64], s: Softening) -> Vec<(f64, [f64; 3], f64)> {
    let mut sums = vec![(0.0, [0.0; 3], 0.0f64); points.len()];
    for (i, x) in points.iter().enumerate() {
        let (before, rest) = sums.split_at_mut(i);
        let (potential, field, largest) = &mut rest[0];
        for (j, (y, other)) in points.iter().zip(before).enumerate() {
            let d: [f64; 3] = std::array::from_fn(|k| x[k] - y[k]);
            let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if r2 == 0.0 && s == Softening::None {
                continue;
            }
            let (k, f) = softened(r2, s);
            let force = f.abs() * r2.sqrt();
            *potential += q[j] * k;
            other.0 += q[i] * k;
            for c in 0..3 {
                field[c] += q[j] * f * d[c];
                other.1[c] -= q[i] * f * d[c];
            }
            *largest = largest.max(q[j].abs() * force);
            other.2 = other.2.max(q[i].abs() * force);
        }
    }
    sums
}

/// K and −K'/r.
pub fn softened(r2: f64, s: Softening) -> (f64, f64) {
    match s {
        Softening::None => (1.0 / r2.sqrt(), 1.0 / (r2 * r2.sqrt())),
        Softening::Plummer(e) => softened(r2 + e * e, Softening::None),
        Softening::Yukawa(length) => {
            let x = r2.sqrt() / length;
            let k = (-x).exp() / r2.sqrt();
            (k, (1.0 + x) * k / r2)
        }
        Softening::P1(e) => {
            let u = r2 + e * e;
            let cube = u * u.sqrt();
            ((r2 + 1.5 * e * e) / cube, (r2 + 2.5 * e * e) / (cube * u))
        }
        Softening::Spline(e) => {
            let h = 2.8 * e;
            let u = r2.sqrt() / h;
            let (w, g) = if u < 0.5 {
                (
                    14.0 / 5.0 - 16.0 / 3.0 * u.powi(2) + 48.0 / 5.0 * u.powi(4) - 32.0 / 5.0 * u.powi(5),
                    32.0 / 3.0 - 192.0 / 5.0 * u.powi(2) + 32.0 * u.powi(3),
                )
            } else if u < 1.0 {
                (
                    16.0 / 5.0 - 1.0 / (15.0 * u) - 32.0 / 3.0 * u.powi(2) + 16.0 * u.powi(3) - 48.0 / 5.0 * u.powi(4)
                        + 32.0 / 15.0 * u.powi(5),
                    64.0 / 3.0 - 48.0 * u + 192.0 / 5.0 * u.powi(2) - 32.0 / 3.0 * u.powi(3) - 1.0 / (15.0 * u.powi(3)),
                )
            } else {
                (1.0 / u, u.powi(-3))
            };
            (w / h, g / h.powi(3))
        }
    }
}

/// Errors as a distribution: e_i = |δa_i|/max(|a_i|, 1e-3 × the largest single term), and L2 = ‖δa‖/‖a‖.
#[derive(Debug, Clone, Copy)]
pub struct Errors {
    /// Root mean square of e_i.
    pub rms: f64,
    /// 99 % of e_i are at most this.
    pub p99: f64,
    /// The largest e_i.
    pub max: f64,
    /// L2 of the field.
    pub l2: f64,
    /// L2 of the potential.
    pub potential_l2: f64,
}

impl Errors {
    /// Whether the errors that a tolerance bounds are at most `tolerance`: rms and L2 of the field.
    pub fn keep(&self, tolerance: f64) -> bool {
        self.rms <= tolerance && self.l2 <= tolerance
    }
}

/// The reference at some of the targets.
pub struct Reference {
    targets: Vec<usize>,
    values: Vec<(f64, [f64; 3], f64)>,
}

impl Reference {
    /// At about `sample` targets spread over all; without `targets` at the sources themselves.
    pub fn new(sources: &[[f64; 3]], q: &[f64], targets: Option<&[[f64; 3]]>, s: Softening, sample: usize) -> Self {
        let n = targets.unwrap_or(sources).len();
        let at: Vec<usize> = (0..n).step_by((n / sample).max(1)).collect();
        if targets.is_none() && at.len() == n {
            return Reference { values: all_pairs(sources, q, s), targets: at };
        }
        let value =
            |&i: &usize| reference(&targets.unwrap_or(sources)[i], targets.is_none().then_some(i), sources, q, s);
        Reference { values: at.iter().map(value).collect(), targets: at }
    }

    /// Sums at all targets that were formed elsewhere: potential, field, and the size of the largest term of the field.
    pub fn of(values: impl IntoIterator<Item = (f64, [f64; 3], f64)>) -> Self {
        let values: Vec<_> = values.into_iter().collect();
        Reference { targets: (0..values.len()).collect(), values }
    }

    /// Ewald's sums at every source, or at `targets`.
    pub fn in_box(
        cell: &PeriodicBox,
        softening: Softening,
        sources: &[[f64; 3]],
        q: &[f64],
        targets: Option<&[[f64; 3]]>,
    ) -> Self {
        let sums = ewald::evaluate(cell, softening, EXACT, sources, q, targets.map_or(At::Sources, At::Points));
        let each = sums.potential.iter().zip(sums.field).zip(sums.largest);
        Reference::of(each.map(|((&potential, field), largest)| (potential, field, largest)))
    }

    /// The potential at one of its targets.
    pub fn potential(&self, k: usize) -> f64 {
        self.values[k].0
    }

    /// The errors of sums at all targets.
    ///
    /// # Panics
    /// If a field is no number.
    pub fn errors(&self, potential: &[f64], field: &[[f64; 3]]) -> Errors {
        let norm = |v: [f64; 3]| v[0].hypot(v[1]).hypot(v[2]);
        // In a unit of the set, so that squares are numbers where forces are.
        let unit = self.values.iter().map(|v| norm(v.1)).fold(f64::MIN_POSITIVE, f64::max);
        let mut all = vec![];
        let (mut num, mut den, mut pnum, mut pden) = (0.0, 0.0, 0.0, 0.0);
        for (&i, (p, f, largest)) in self.targets.iter().zip(&self.values) {
            let (wrong, right) = (norm(std::array::from_fn(|c| field[i][c] - f[c])), norm(*f));
            assert!(wrong.is_finite(), "target {i}: {:?} against {f:?}", field[i]);
            all.push(if wrong == 0.0 { 0.0 } else { wrong / right.max(1e-3 * largest) });
            num += (wrong / unit).powi(2);
            den += (right / unit).powi(2);
            pnum += (potential[i] - p).powi(2);
            pden += p * p;
        }
        all.sort_by(f64::total_cmp);
        let ratio = |a: f64, b: f64| if a == 0.0 { 0.0 } else { (a / b).sqrt() };
        Errors {
            rms: (all.iter().map(|e| e * e).sum::<f64>() / all.len() as f64).sqrt(),
            p99: all[(all.len() - 1) * 99 / 100],
            max: all[all.len() - 1],
            l2: ratio(num, den),
            potential_l2: ratio(pnum, pden),
        }
    }
}
