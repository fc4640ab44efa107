//! The norms of errors.

/// A vector smaller than this part of its largest single contribution is not asked for its own relative error:
/// forces vanish exactly in crystals.
pub(crate) const FLOOR: f64 = 1e-3;

/// The vector at one target as it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Truth {
    /// Components that the kernel does not have are 0.
    pub vector: [f64; 3],
    /// The largest contribution of a single source to it.
    pub largest: f64,
}
/// Errors at the sampled targets: e_i = |δa_i|/max(|a_i|, f_i) with f_i = 10⁻³ × the largest single-pair term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Root of the mean of e².
    pub rms: f64,
    /// Half of the targets have at most this e.
    pub median: f64,
    /// 99 % of the targets have at most this e.
    pub p99: f64,
    /// The largest e.
    pub max: f64,
    /// ‖δa‖/max(‖a‖, ‖f‖) over the sample.
    pub l2: f64,
    /// Targets whose |a_i| is below f_i.
    pub floored: usize,
    /// Targets compared.
    pub sample: usize,
    /// ‖δφ‖/‖φ‖ of the potential over the sample, in periodic boxes.
    pub potential: Option<f64>,
}

impl Errors {
    /// Whether the tolerance is kept by all norms that it bounds.
    pub fn keep(&self, tolerance: f64) -> bool {
        self.rms <= tolerance && self.l2 <= tolerance && self.potential.is_none_or(|e| e <= tolerance)
    }
}

/// `sample` of the numbers below `n`, ascending: one from each of `sample` equal parts, at a place that depends on
/// nothing but its number. Equal steps could follow the rows of a lattice.
pub(crate) fn choose(n: usize, sample: usize) -> Vec<usize> {
    if sample >= n {
        return (0..n).collect();
    }
    let edge = |k: usize| (k as u128 * n as u128 / sample as u128) as usize;
    (0..sample).map(|k| edge(k) + (mix(k as u64) % (edge(k + 1) - edge(k)) as u64) as usize).collect()
}

/// SplitMix64's finalizer.
fn mix(k: u64) -> u64 {
    let mut z = (k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(crate) fn errors(pairs: impl Iterator<Item = ([f64; 3], Truth)>) -> Errors {
    let (mut all, mut wrong, mut right, mut floors) = (vec![], vec![], vec![], vec![]);
    let mut floored = 0;
    for (vector, Truth { vector: truth, largest }) in pairs {
        let difference = length(std::array::from_fn(|d| vector[d] - truth[d]));
        let (magnitude, floor) = (length(truth), FLOOR * largest);
        floored += usize::from(magnitude < floor);
        all.push(ratio(difference, magnitude.max(floor)));
        wrong.push(difference);
        right.push(magnitude);
        floors.push(floor);
    }
    all.sort_by(f64::total_cmp);
    // The smallest value that at least this part of all does not exceed.
    let quantile = |percent: usize| match all.len() {
        0 => 0.0,
        n => all[(n * percent).div_ceil(100) - 1],
    };
    Errors {
        rms: norm(&all) / (all.len().max(1) as f64).sqrt(),
        median: quantile(50),
        p99: quantile(99),
        max: quantile(100),
        l2: ratio(norm(&wrong), norm(&right).max(norm(&floors))),
        floored,
        sample: all.len(),
        potential: None,
    }
}

/// A ratio of lengths; 0/0 is no error, and what is not a number is an infinite one.
fn ratio(a: f64, b: f64) -> f64 {
    match a / b {
        _ if a == 0.0 => 0.0,
        r if r.is_nan() => f64::INFINITY,
        r => r,
    }
}

/// |v|, also where the squares would leave the range of numbers.
pub(crate) fn length(v: [f64; 3]) -> f64 {
    let square: f64 = v.iter().map(|c| c * c).sum();
    if (1e-250..1e250).contains(&square) { square.sqrt() } else { v[0].hypot(v[1]).hypot(v[2]) }
}

/// The Euclidean norm, likewise.
pub(crate) fn norm(values: &[f64]) -> f64 {
    let scale = values.iter().copied().fold(0.0, f64::max);
    if scale == 0.0 || !scale.is_finite() {
        return scale;
    }
    values.iter().map(|v| (v / scale).powi(2)).sum::<f64>().sqrt() * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_norm() {
        let truth = |vector, largest| Truth { vector, largest };
        // e: 0.1; 0 (exact); 0.5 × 10⁻³ / 10⁻² = 0.05, where |a| is below f.
        let e = errors(
            [
                ([3.0, 4.5, 0.0], truth([3.0, 4.0, 0.0], 9.0)),
                ([1.0, 0.0, 0.0], truth([1.0, 0.0, 0.0], 1.0)),
                ([0.0, 0.0, 5e-4], truth([0.0; 3], 10.0)),
            ]
            .into_iter(),
        );
        let near = |a: f64, b: f64| (a - b).abs() < 1e-14;
        assert!(near(e.rms, (0.0125f64 / 3.0).sqrt()) && near(e.median, 0.05), "{e:?}");
        assert!(near(e.p99, 0.1) && near(e.max, 0.1), "{e:?}");
        assert!(near(e.l2, ((0.25 + 2.5e-7) / 26.0f64).sqrt()), "{e:?}");
        assert_eq!((e.floored, e.sample), (1, 3));
        assert!(e.keep(0.1) && !e.keep(0.05));
    }

    #[test]
    fn nothing_and_what_is_no_number() {
        assert_eq!(
            errors(std::iter::empty()),
            Errors { rms: 0.0, median: 0.0, p99: 0.0, max: 0.0, l2: 0.0, floored: 0, sample: 0, potential: None }
        );
        let e = errors([([f64::NAN, 0.0, 0.0], Truth { vector: [1.0; 3], largest: 1.0 })].into_iter());
        assert!(!e.keep(1e300), "{e:?}");
        // A field where the truth has none at all.
        let e = errors([([1e-9, 0.0, 0.0], Truth::default())].into_iter());
        assert!(!e.keep(0.1), "{e:?}");
        // Lengths whose squares are beyond the range.
        let e = errors([([1.1e200, 0.0, 0.0], Truth { vector: [1e200, 0.0, 0.0], largest: 1e200 })].into_iter());
        assert!((e.l2 - 0.1).abs() < 1e-12 && (e.rms - 0.1).abs() < 1e-12, "{e:?}");
    }

    #[test]
    fn the_sample_is_spread_and_always_the_same() {
        let chosen = choose(1_000_003, 1000);
        assert_eq!(chosen, choose(1_000_003, 1000));
        assert!(chosen.len() == 1000 && chosen.windows(2).all(|w| w[0] < w[1]));
        assert!((0..1000).all(|k| (k * 1000..=(k + 1) * 1001).contains(&chosen[k])));
        let steps: std::collections::HashSet<usize> = chosen.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(steps.len() > 500, "{}", steps.len());
        assert_eq!(choose(3, 3), [0, 1, 2]);
        assert!(choose(0, 5).is_empty());
    }
}
