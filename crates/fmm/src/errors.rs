//! The norms of errors.

use fmm_core::math::blocked::added;

use crate::sample::Draws;

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
///
/// Targets are drawn evenly, or by their estimated errors and then weighted, so that rms and L2 are
/// estimates for all targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Root of the mean of e².
    pub rms: f64,
    /// The interval that holds the rms of all targets with a probability of about 95 %; both ends are
    /// `rms` where all targets were compared.
    pub rms_interval: [f64; 2],
    /// Half of the targets have at most this e.
    pub median: f64,
    /// 99 % of the targets have at most this e.
    pub p99: f64,
    /// The largest e that was seen.
    pub max: f64,
    /// ‖δa‖/max(‖a‖, ‖f‖).
    pub l2: f64,
    /// The interval of `l2`, likewise.
    pub l2_interval: [f64; 2],
    /// Compared targets whose |a_i| is below f_i.
    pub floored: usize,
    /// Targets compared, each counted once.
    pub sample: usize,
    /// ‖δφ‖/‖φ‖ of the potential, in periodic boxes.
    pub potential: Option<f64>,
}

impl Errors {
    /// Whether the tolerance is kept by all norms that it bounds.
    pub fn keep(&self, tolerance: f64) -> bool {
        self.rms <= tolerance && self.l2 <= tolerance && self.potential.is_none_or(|e| e <= tolerance)
    }
}

/// A target that is compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    /// The vector that was found.
    pub found: [f64; 3],
    /// The vector as it should be.
    pub truth: Truth,
    /// How often the target was drawn.
    pub draws: Draws,
}

/// All targets, of which some are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Population {
    /// How many they are.
    pub targets: usize,
    /// How often one was drawn.
    pub draws: usize,
    /// The root mean square of the vectors found, over all; if targets were drawn by their estimated
    /// errors. Those draws hold too few of the other targets to say how large their vectors are.
    pub rms: Option<f64>,
}

/// Standard errors on either side that hold 95 % of a normal distribution.
const NORMAL_95: f64 = 1.96;

impl Population {
    /// The mean over all draws of terms of the targets that are compared.
    fn plain_mean(&self, compared: &[Compared], terms: &[f64]) -> f64 {
        compared.iter().zip(terms).map(|(c, term)| c.draws.count * term).sum::<f64>() / self.draws.max(1) as f64
    }

    /// The mean of terms and the interval that holds it with a probability of 95 %. Where the mean is
    /// part of a ratio, `residual` holds what its scatter is judged by in place of the terms.
    ///
    /// The upper end is that of a log-normal distribution: squares of errors are skewed, and a sample
    /// that misses the largest has too small a mean and too small a scatter.
    fn mean(&self, compared: &[Compared], terms: &[f64], residual: impl Fn(usize) -> f64) -> (f64, [f64; 2]) {
        let (n, mean) = (self.draws.max(1) as f64, self.plain_mean(compared, terms));
        let all = self.rms.is_none() && self.draws >= self.targets;
        if all || mean == 0.0 || !mean.is_finite() {
            return (mean, [mean; 2]);
        }
        // What is certain has no scatter.
        let scatters = compared.iter().enumerate().filter(|(_, c)| !c.draws.certain);
        let of = |(k, c): (usize, &Compared)| [1.0, residual(k), residual(k).powi(2)].map(|x| c.draws.count * x);
        let [drawn, sum, squares] = added(scatters.map(of));
        // Without replacement the scatter ends where all targets are drawn.
        let rest = if self.rms.is_some() { 1.0 } else { 1.0 - n / self.targets as f64 };
        let of_drawn = f64::max(squares - sum * sum / drawn, 0.0) / (drawn - 1.0) * drawn;
        let variance = if drawn == 0.0 { 0.0 } else { of_drawn / (n * n) * rest };
        let margin = NORMAL_95 * variance.sqrt();
        if margin.is_nan() {
            // One draw says nothing of the scatter.
            return (mean, [0.0, f64::INFINITY]);
        }
        (mean, [f64::max(mean - margin, 0.0), mean * (margin / mean).exp()])
    }
}

pub(crate) fn errors(compared: &[Compared], population: Population) -> Errors {
    let relative = |c: &Compared| {
        let difference = length(std::array::from_fn(|d| c.found[d] - c.truth.vector[d]));
        let (magnitude, floor) = (length(c.truth.vector), FLOOR * c.truth.largest);
        (ratio(difference, magnitude.max(floor)), [difference, magnitude, floor, length(c.found)])
    };
    let all: Vec<(f64, [f64; 4])> = compared.iter().map(relative).collect();
    let max = all.iter().map(|e| e.0).fold(0.0, f64::max);

    // Squares of lengths over the largest, which are numbers.
    let unit = |largest: f64| if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
    let weighted = |value: &dyn Fn(usize) -> f64, unit: f64| -> Vec<f64> {
        let term = |(k, c): (usize, &Compared)| c.draws.weight * (value(k) / unit).powi(2);
        compared.iter().enumerate().map(term).collect()
    };
    let mean = |terms: &[f64]| population.plain_mean(compared, terms);

    let unit_of_e = unit(max);
    let squares = weighted(&|k| all[k].0, unit_of_e);
    let (rms, rms_interval) = population.mean(compared, &squares, |k| squares[k]);
    let root = |square: f64| square.sqrt() * unit_of_e;

    let largest = |k: usize| all.iter().map(|e| e.1[k]).fold(0.0, f64::max);
    let unit_of_wrong = unit(largest(0));
    let unit_of_right = unit([1, 2, 3].map(largest).into_iter().fold(population.rms.unwrap_or(0.0), f64::max));
    let wrong = weighted(&|k| all[k].1[0], unit_of_wrong);
    let [right, floors, found] = [1, 2, 3].map(|j| weighted(&|k| all[k].1[j], unit_of_right));
    let whole = match population.rms {
        // What was found, corrected by the difference to what it should be.
        Some(rms) => (rms / unit_of_right).powi(2) + mean(&right) - mean(&found),
        None => mean(&right),
    };
    let by_floor = mean(&floors) > whole;
    let whole = f64::max(whole, mean(&floors));
    let part = mean(&wrong) / whole;
    // L2 of an even sample is a ratio of two means, whose scatters are not independent.
    let (wrongs, wholes) = population.mean(compared, &wrong, |k| match population.rms {
        Some(_) => wrong[k],
        None => wrong[k] - part * if by_floor { floors[k] } else { right[k] },
    });
    let l2 = |square: f64| ratio(square.sqrt() * unit_of_wrong, whole.sqrt() * unit_of_right);

    let mut by_size: Vec<(f64, f64)> =
        all.iter().zip(compared).map(|(e, c)| (e.0, c.draws.count * c.draws.weight)).collect();
    by_size.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = by_size.iter().map(|e| e.1).sum();
    // The smallest value that at least this part of all does not exceed.
    let quantile = |percent: f64| {
        let mut reached = 0.0;
        let found = by_size.iter().find(|e| {
            reached += e.1;
            100.0 * reached >= percent * total
        });
        found.or(by_size.last()).map_or(0.0, |e| e.0)
    };
    Errors {
        rms: root(rms),
        rms_interval: rms_interval.map(root),
        median: quantile(50.0),
        p99: quantile(99.0),
        max,
        l2: l2(wrongs),
        l2_interval: wholes.map(l2),
        floored: all.iter().filter(|(_, [_, magnitude, floor, _])| magnitude < floor).count(),
        sample: compared.len(),
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
    use crate::sample::Sample;

    /// All of these targets, compared.
    fn all(pairs: &[([f64; 3], Truth)]) -> Errors {
        let each = |&(found, truth)| Compared { found, truth, draws: Draws::ONE };
        let compared: Vec<Compared> = pairs.iter().map(each).collect();
        errors(&compared, Population { targets: pairs.len(), draws: pairs.len(), rms: None })
    }

    fn truth(vector: [f64; 3], largest: f64) -> Truth {
        Truth { vector, largest }
    }

    #[test]
    fn norms_are_those_of_their_definition() {
        // e: 0.1; 0 (exact); 0.5 × 10⁻³ / 10⁻² = 0.05, where |a| is below f.
        let e = all(&[
            ([3.0, 4.5, 0.0], truth([3.0, 4.0, 0.0], 9.0)),
            ([1.0, 0.0, 0.0], truth([1.0, 0.0, 0.0], 1.0)),
            ([0.0, 0.0, 5e-4], truth([0.0; 3], 10.0)),
        ]);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-14;
        assert!(near(e.rms, (0.0125f64 / 3.0).sqrt()) && near(e.median, 0.05), "{e:?}");
        assert!(near(e.p99, 0.1) && near(e.max, 0.1), "{e:?}");
        assert!(near(e.l2, ((0.25 + 2.5e-7) / 26.0f64).sqrt()), "{e:?}");
        assert_eq!((e.floored, e.sample), (1, 3));
        assert_eq!((e.rms_interval, e.l2_interval), ([e.rms; 2], [e.l2; 2]));
        assert!(e.keep(0.1) && !e.keep(0.05));
    }

    #[test]
    fn nothing_and_what_is_no_number() {
        let e = all(&[]);
        assert_eq!([e.rms, e.median, e.p99, e.max, e.l2, e.rms_interval[1], e.l2_interval[1]], [0.0; 7]);
        let e = all(&[([f64::NAN, 0.0, 0.0], truth([1.0; 3], 1.0))]);
        assert!(!e.keep(1e300), "{e:?}");
        // A field where the truth has none at all.
        let e = all(&[([1e-9, 0.0, 0.0], Truth::default())]);
        assert!(!e.keep(0.1), "{e:?}");
        // Lengths whose squares are beyond the range.
        let e = all(&[([1.1e200, 0.0, 0.0], truth([1e200, 0.0, 0.0], 1e200))]);
        assert!((e.l2 - 0.1).abs() < 1e-12 && (e.rms - 0.1).abs() < 1e-12, "{e:?}");
        // One of many targets says nothing of the others.
        let one = Compared { found: [1.1, 0.0, 0.0], truth: truth([1.0, 0.0, 0.0], 1.0), draws: Draws::ONE };
        let e = errors(&[one], Population { targets: 9, draws: 1, rms: None });
        assert_eq!([e.rms_interval, e.l2_interval], [[0.0, f64::INFINITY]; 2], "{e:?}");
    }

    /// A set of targets with fields along x: what was found, what it should be, and what was estimated.
    struct Made {
        found: Vec<[f64; 3]>,
        exact: Vec<f64>,
        estimate: Vec<f64>,
    }

    /// `n` targets whose errors are spread over two decades, whose fields are spread over one and whose
    /// estimates are off by up to a factor of 3 either way.
    fn made(n: usize, seed: u64) -> Made {
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut made = Made { found: vec![], exact: vec![], estimate: vec![] };
        for _ in 0..n {
            let exact = 10f64.powf(random());
            let error = exact * 10f64.powf(-3.0 - 2.0 * random());
            made.estimate.push(error * 3f64.powf(2.0 * random() - 1.0));
            made.found.push([exact + error, 0.0, 0.0]);
            made.exact.push(exact);
        }
        made
    }

    impl Made {
        fn measured(&self, sample: &Sample) -> Errors {
            let compared = |(k, &i): (usize, &usize)| {
                let truth = truth([self.exact[i], 0.0, 0.0], self.exact[i]);
                Compared { found: self.found[i], truth, draws: sample.draws(k) }
            };
            let compared: Vec<Compared> = sample.targets.iter().enumerate().map(compared).collect();
            let n = self.found.len();
            let squares: f64 = self.found.iter().map(|v| v[0] * v[0]).sum();
            let rms = sample.is_predicted().then(|| (squares / n as f64).sqrt());
            errors(&compared, Population { targets: n, draws: sample.size, rms })
        }
    }

    #[test]
    fn intervals_hold_the_norms_of_all_targets_in_nineteen_of_twenty_samples() {
        let (n, size, times) = (4000, 200, 400);
        let mut held = [[0; 2]; 2];
        let mut widths = [0.0; 2];
        for seed in 0..times {
            let made = made(n, seed);
            let whole = made.measured(&Sample::even(n, n));
            let samples = [Sample::even(n, size), Sample::predicted(&made.found, &made.estimate, size, 1e-3)];
            for (k, sample) in samples.iter().enumerate() {
                assert_eq!(sample.is_predicted(), k == 1);
                let e = made.measured(sample);
                let within = |v: f64, [low, high]: [f64; 2]| usize::from(low <= v && v <= high);
                held[k][0] += within(whole.rms, e.rms_interval);
                held[k][1] += within(whole.l2, e.l2_interval);
                widths[k] += (e.rms_interval[1] - e.rms_interval[0]) / whole.rms / times as f64;
            }
        }
        println!("held of {times}: {held:?}, mean widths {widths:?}");
        assert!(held.as_flattened().iter().all(|&h| h * 10 >= 9 * times as usize), "{held:?}");
        // Neither by being so wide that they say nothing, and the predicted sample says more.
        assert!(widths[1] < widths[0] && widths[0] < 0.5, "{widths:?}");
    }

    #[test]
    fn weighted_estimates_have_no_bias() {
        let (n, size, times) = (4000, 100, 200);
        let mut ratios = [0.0; 4];
        for seed in 0..times {
            let made = made(n, 1000 + seed);
            let whole = made.measured(&Sample::even(n, n));
            let e = made.measured(&Sample::predicted(&made.found, &made.estimate, size, 1e-3));
            let pairs = [(e.rms, whole.rms), (e.l2, whole.l2), (e.median, whole.median), (e.p99, whole.p99)];
            for (ratio, (found, exact)) in ratios.iter_mut().zip(pairs) {
                *ratio += (found / exact).powi(2) / times as f64;
            }
        }
        println!("mean square over its true value: {ratios:?}");
        assert!(ratios[..2].iter().all(|r| (r - 1.0).abs() < 0.03), "{ratios:?}");
        // Quantiles scatter more: few draws fall among the small errors.
        assert!(ratios[2..].iter().all(|r| (0.8..1.8).contains(r)), "{ratios:?}");
    }

    #[test]
    fn few_targets_that_make_the_error_are_seen_by_prediction() {
        // Five of 20,000 make the rms; the even sample has none of them and an interval that misses.
        let mut made = made(20_000, 7);
        for k in 0..5 {
            let i = 4_000 * k + 77;
            made.found[i] = [made.exact[i] * 1.3, 0.0, 0.0];
            made.estimate[i] = made.exact[i] * 0.2;
        }
        let whole = made.measured(&Sample::even(20_000, 20_000));
        let even = made.measured(&Sample::even(20_000, 400));
        let predicted = made.measured(&Sample::predicted(&made.found, &made.estimate, 400, 1e-3));
        assert!(even.rms_interval[1] < 0.2 * whole.rms, "{even:?} of {}", whole.rms);
        let [low, high] = predicted.rms_interval;
        assert!(low <= whole.rms && whole.rms <= high && high < 2.0 * whole.rms, "{predicted:?} of {}", whole.rms);
    }
}
