//! Which targets are compared with direct sums, and what each stands for.
//!
//! Where a sum carries an estimated error of every target, targets are drawn by it: a few targets
//! whose forces cancel can make the whole error, and an even sample misses them. Each draw has a
//! weight, so that weighted means over the draws are unbiased means over all targets.

use fmm_core::comm::Solo;
use fmm_core::guard::{self, Drawn};
use fmm_core::math::mix;
use fmm_core::prediction::Prediction;

/// Targets to be compared, ascending, each once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    /// The targets.
    pub targets: Vec<usize>,
    /// The draws of each by its estimated error; empty where all were drawn evenly, each at most once.
    draws: Vec<Draws>,
    /// The number of all draws.
    pub size: usize,
}

/// The draws of one target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Draws {
    /// How often it was drawn.
    pub count: f64,
    /// What a draw counts in a mean over all draws: 1 over the number of targets, over its probability.
    pub weight: f64,
    /// Whether the target is in every sample of this size, so that what it adds to a mean has no
    /// scatter.
    pub certain: bool,
}

impl Draws {
    /// Of a target that was drawn evenly.
    pub const ONE: Draws = Draws { count: 1.0, weight: 1.0, certain: false };
}

impl Sample {
    /// `size` of `n` targets, evenly.
    pub fn even(n: usize, size: usize) -> Self {
        Sample::of(choose(n, size))
    }

    /// `size` of the targets whose fields have these estimated errors: two fifths by the square of
    /// the relative error, two fifths by that of the absolute one, one fifth evenly; all targets if
    /// there are no more. Evenly where no errors are estimated.
    pub fn predicted(field: &[[f64; 3]], error: &[f64], size: usize, tolerance: f64) -> Self {
        let n = field.len();
        if error.len() != n {
            return Sample::even(n, size);
        }
        // Estimates include rounding.
        let squares = Prediction { comm: &Solo, sums: field, error, largest_term: &[], epsilon: 0.0, relative: true }
            .squares(tolerance);
        let Some(drawn) = guard::Sample::draw(&Solo, size, &squares) else { return Sample::even(n, size) };
        let (mut targets, mut draws): (Vec<usize>, Vec<Draws>) = (vec![], vec![]);
        for &Drawn { target, weight, certain } in drawn.targets() {
            if targets.last() != Some(&target) {
                targets.push(target);
                draws.push(Draws { count: 0.0, weight, certain });
            }
            if let Some(last) = draws.last_mut() {
                last.count += 1.0;
            }
        }
        Sample { targets, draws, size }
    }

    /// These targets, drawn evenly.
    pub fn of(targets: Vec<usize>) -> Self {
        Sample { size: targets.len(), draws: vec![], targets }
    }

    /// Whether targets were drawn by their estimated errors.
    pub fn is_predicted(&self) -> bool {
        !self.draws.is_empty()
    }

    /// Target `k` of the sample: how often it was drawn and what each draw counts.
    pub fn draws(&self, k: usize) -> Draws {
        self.draws.get(k).copied().unwrap_or(Draws::ONE)
    }
}

/// `sample` of the numbers below `n`, ascending: one from each of `sample` equal parts, at a place that depends on
/// nothing but its number. Equal steps could follow the rows of a lattice.
fn choose(n: usize, sample: usize) -> Vec<usize> {
    if sample >= n {
        return (0..n).collect();
    }
    let edge = |k: usize| (k as u128 * n as u128 / sample as u128) as usize;
    (0..sample).map(|k| edge(k) + (mix(k as u64) % (edge(k + 1) - edge(k)) as u64) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn targets_whose_errors_are_estimated_large_are_drawn() {
        let field = vec![[1.0, 0.0, 0.0]; 20_000];
        let mut error = vec![1e-7; 20_000];
        [77, 4_077, 16_000].into_iter().for_each(|i| error[i] = 1e-2);
        let sample = Sample::predicted(&field, &error, 500, 1e-3);
        assert!([77, 4_077, 16_000].iter().all(|i| sample.targets.contains(i)), "{sample:?}");
        assert!(sample.targets.windows(2).all(|w| w[0] < w[1]));
        assert!(sample.is_predicted() && sample.draws.len() == sample.targets.len());
        assert!(sample.draws.iter().all(|d| d.weight > 0.0 && d.count >= 1.0), "{sample:?}");
        // All targets, and none that nothing is known of.
        assert_eq!(Sample::predicted(&field, &error, 20_000, 1e-3), Sample::even(20_000, 20_000));
        assert_eq!(Sample::predicted(&field, &[], 500, 1e-3), Sample::even(20_000, 500));
        assert_eq!(Sample::predicted(&field, &[0.0; 20_000], 500, 1e-3), Sample::even(20_000, 500));
        error[5] = f64::NAN;
        assert_eq!(Sample::predicted(&field, &error, 500, 1e-3), Sample::even(20_000, 500));
    }
}
