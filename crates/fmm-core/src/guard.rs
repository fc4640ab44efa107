//! The guard: what the errors of a sample of targets say of all.

mod sample;

use crate::ewald::{Hessians, Sums};
use crate::math::scale::power_of_two_below;
use crate::{Precision, Settings};
pub use sample::{Drawn, EVEN, ROUNDS, Sample, step};

/// Targets that are summed directly in space, some per cent of the time of the sum itself: fewer of large sets.
pub fn sample_size(targets: usize) -> usize {
    (4_000_000 / targets.max(1)).clamp(128, 400)
}

/// How many targets are summed directly where the error of each is predicted: fewer than an even sample needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Enough for most sums.
    First,
    /// More, where an error leaves a doubt whether it is small enough: where few targets make it and their
    /// predictions fail, most small samples say too little.
    Closer,
    /// Most, before a sum is refused: another one takes far longer than this look.
    Last,
}

impl Look {
    /// The size of the sample of so many targets. A closer look has more than the first at 4,100 to
    /// 300,000 targets, at most 790: a sixteenth of a small set, and no more than costs a few hundredths of a large sum.
    /// The last has more at all above 4,100, and may cost a tenth of a sum
    /// and eight bytes a source.
    pub fn size(self, targets: usize) -> usize {
        let first = (2_500_000 / targets.max(1)).clamp(32, 256);
        match self {
            Look::First => first,
            Look::Closer => (10_000_000 / targets.max(1)).min(targets / 16).max(first),
            Look::Last => (8 * first).min(targets / 16).max(first),
        }
    }

    /// The look with a larger sample of so many targets that follows one which has found an error of this many
    /// tolerances, if that leaves a doubt.
    pub fn next(self, error: f64, targets: usize) -> Option<Self> {
        let next = match self {
            Look::First if (DOUBTED..=TRUSTED).contains(&error) => Look::Closer,
            Look::First | Look::Closer if error > TRUSTED && error <= REFUSED => Look::Last,
            _ => return None,
        };
        (next.size(targets) > self.size(targets)).then_some(next)
    }
}

/// The share of the tolerance up to which a sampled error is taken to be below it: samples scatter.
pub const TRUSTED: f64 = 0.8;

/// From this share of the tolerance on a first look is doubted.
const DOUBTED: f64 = 0.5;

/// Beyond so many tolerances a sum is refused without another look.
const REFUSED: f64 = 2.0;

/// What repairs aim at, in tolerances.
const AIM: f64 = 0.7;

/// Norms of the error of a sample. A vector smaller than a thousandth of its largest single term counts as having that much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norms {
    /// Root mean square of the relative error of a target.
    pub rms: f64,
    /// It with twice the standard error of its square.
    pub rms_bound: f64,
    /// ‖δ‖/‖a‖.
    pub l2: f64,
    /// L2 with twice its standard error: squared errors that differ much from target to target, as next to a ring, say
    /// less of those that were not looked at.
    pub l2_bound: f64,
    /// ‖δ‖/‖a‖, by which estimated errors are scaled: largest terms do not count.
    pub of_vectors: f64,
    /// What is known of rms and of L2 for certain.
    pub certain: [Certain; 2],
}

/// The targets that are in a sample for certain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Certain {
    /// Their part of the square of a norm, in the units of that.
    pub square: f64,
    /// Their part of the sum of the predicted squares.
    pub predicted: f64,
}

impl Norms {
    /// The larger of rms and L2.
    pub fn error(&self) -> f64 {
        self.rms.max(self.l2)
    }

    /// The squares of predicted errors, relative and absolute, from which on targets must be exact
    /// so that these norms come well below the tolerance; infinite where none must. None if those are
    /// more than `most`. `counts` has the number of targets in each of [`BINS`] by both squares.
    pub fn worst(&self, counts: [&[u32]; 2], tolerance: f64, most: usize) -> Option<[f64; 2]> {
        let mut from = [f64::INFINITY; 2];
        for (k, [norm, bound]) in [[self.rms, self.rms_bound], [self.l2, self.l2_bound]].into_iter().enumerate() {
            if norm.max(TRUSTED * bound) <= TRUSTED * tolerance {
                continue;
            }
            // The last bins are of what is no number.
            let sum = |bin: usize| match counts[k][bin] {
                0 => 0.0,
                count => f64::from(count) * (1.0 + 1.0 / 32.0) * square_of(bin),
            };
            // As much of the predicted sum leaves as those targets have whose errors are known,
            // which are the first by prediction or nearly; of the others as much as they still have
            // too much.
            let known = self.certain[k];
            let unknown = f64::max(bound.powi(2) - known.square, 0.0);
            let part = f64::max(1.0 - (AIM * tolerance).powi(2) / unknown, 0.0);
            let part = known.predicted + (1.0 - known.predicted) * part;
            let mut left = part * (0..BINS).map(sum).sum::<f64>();
            let mut count = 0;
            let reached = (0..BINS).rev().find(|&bin| {
                count += counts[k][bin] as usize;
                left -= sum(bin);
                left <= 0.0 || count > most
            });
            from[k] = reached.filter(|_| count <= most).map(square_of)?;
        }
        Some(from)
    }

    /// What the driver compares with [`TRUSTED`] times the tolerance: the larger of rms and L2, so
    /// that each is trusted up to that part of the tolerance, and with twice its standard error up
    /// to the tolerance itself.
    pub fn judged(&self) -> f64 {
        self.error().max(TRUSTED * self.rms_bound.max(self.l2_bound))
    }
}

/// The tightest tolerance whose guard may round pairs to single precision.
const SINGLE: f64 = 1e-5;

/// The `errors` that a guard finds by direct sums of a precision, of a sum with this spacing of numbers
/// next to 1. One that was rounded to single precision itself is compared with such sums first, where
/// these are enough to accept it.
pub(crate) fn judged(settings: &Settings, epsilon: f64, mut errors: impl FnMut(Precision) -> Norms) -> Norms {
    let rounded = epsilon == Precision::F32.epsilon();
    if settings.guarded().is_some() && rounded && settings.tolerance >= SINGLE {
        let norms = errors(Precision::F32);
        if norms.judged() <= TRUSTED * settings.tolerance {
            return norms;
        }
    }
    errors(Precision::F64)
}

/// A sum of terms, and what its scatter follows from.
#[derive(Default)]
struct Mean {
    sum: f64,
    /// The part of it that is certain.
    certain: f64,
    /// The sum, the sum of squares and the number of the terms that were drawn.
    drawn: [f64; 3],
}

impl Mean {
    fn add(&mut self, term: f64, certain: bool) {
        self.sum += term;
        if certain {
            self.certain += term;
        } else {
            self.drawn = [self.drawn[0] + term, self.drawn[1] + term * term, self.drawn[2] + 1.0];
        }
    }

    /// Twice the standard error of the sum.
    fn margin(&self) -> f64 {
        let [sum, squares, count] = self.drawn;
        2.0 * f64::max(squares - sum * sum / count, 0.0).sqrt()
    }
}

/// Bins of squares: sixteenths of the binades of single precision.
pub const BINS: usize = 1 << 12;

/// The bits of a number in single precision that are of one bin.
const BIN_BITS: u32 = 19;

/// The bin of a square, which is not negative.
pub fn bin_of(square: f64) -> usize {
    // What is no number may have a sign.
    ((square as f32).to_bits() >> BIN_BITS) as usize % BINS
}

/// The smallest number of a bin.
fn square_of(bin: usize) -> f64 {
    f64::from(f32::from_bits((bin as u32) << BIN_BITS))
}

/// The square of the part of its largest term that a vector has at least.
pub const FLOOR: f64 = 1e-6;

impl Sample {
    /// The errors of vectors `found` at the sample's targets, one by one, where `exact` holds the
    /// direct sum and the square of its largest term, in the units of `found`. Nothing over nothing
    /// is no error; what is no number is an infinite one. `rms` is the root mean square of `found`
    /// over all targets; a predicted sample needs it, since it draws too few of the targets whose
    /// errors are small to say how large their vectors are.
    pub fn weigh<const R: usize>(
        &self,
        exact: impl IntoIterator<Item = ([f64; R], f64)>,
        found: impl IntoIterator<Item = [f64; R]>,
        rms: Option<f64>,
    ) -> Norms {
        let (mut relative, mut wrong, mut right, mut floors) = (Mean::default(), Mean::default(), 0.0, 0.0);
        let (mut weight, mut count) = (0.0, 0.0);
        for ((&Drawn { weight: w, certain, .. }, (sum, largest2)), found) in self.targets.iter().zip(exact).zip(found) {
            let delta2: f64 = (0..R).map(|d| (found[d] - sum[d]).powi(2)).sum();
            let (a2, floor2) = (sum.iter().map(|a| a * a).sum::<f64>(), FLOOR * largest2);
            relative.add(if delta2 == 0.0 { 0.0 } else { w * (delta2 / a2.max(floor2)) }, certain);
            wrong.add(w * delta2, certain);
            right += w * a2;
            floors += w * floor2;
            weight += w;
            count += 1.0;
        }
        let norm = |square: f64, of: f64| match (square / of).sqrt() {
            _ if square == 0.0 => 0.0,
            norm if norm.is_nan() => f64::INFINITY,
            norm => norm,
        };
        // Weights of a predicted sample are those of an unbiased mean.
        let (weight, right) = rms.map_or((weight, right), |rms| (count, count * rms * rms));
        let whole = f64::max(right, floors);
        Norms {
            rms: norm(relative.sum, weight),
            rms_bound: norm(relative.sum + relative.margin(), weight),
            l2: norm(wrong.sum, whole),
            l2_bound: norm(wrong.sum + wrong.margin(), whole),
            of_vectors: norm(wrong.sum, right),
            certain: [(relative.certain / weight, self.certain[0]), (wrong.certain / whole, self.certain[1])]
                .map(|(square, predicted)| Certain { square, predicted }),
        }
    }

    /// The larger of rms and L2 of symmetric matrices xx, yy, zz, xy, xz, yz, whose sizes are Frobenius norms.
    pub fn error_of_matrices(
        &self,
        exact: impl IntoIterator<Item = ([f64; 6], f64)>,
        found: impl IntoIterator<Item = [f64; 6]>,
    ) -> f64 {
        // Components off the diagonal are there twice.
        let all = |h: [f64; 6]| std::array::from_fn(|k| if k < 3 { h[k] } else { std::f64::consts::SQRT_2 * h[k] });
        self.weigh::<6>(exact.into_iter().map(|(h, largest)| (all(h), largest)), found.into_iter().map(all), None)
            .error()
    }

    /// The errors of a field in a box, and L2 of the potential. There the field does not vouch for the
    /// potential: without its average and with a background it is small where single terms are large.
    /// `rms` is the root mean square of the field over all targets, for a predicted sample.
    pub fn errors_in_box(&self, exact: &Sums, potential: &[f64], field: &[[f64; 3]], rms: Option<f64>) -> (Norms, f64) {
        let scale = unit(exact.field.as_flattened().iter().chain(field.as_flattened()));
        let found = field.iter().map(|e| e.map(|c| c * scale));
        let rms = rms.map(|rms| rms * scale);
        let truth = exact.field.iter().zip(&exact.largest);
        let truth = truth.map(|(e, l)| (e.map(|c| c * scale), (l * scale).powi(2)));
        let scale = unit(exact.potential.iter());
        let potentials = exact.potential.iter().map(|p| ([p * scale], 0.0));
        let potential = self.weigh(potentials, potential.iter().map(|p| [p * scale]), None).l2;
        (self.weigh(truth, found, rms), potential)
    }

    /// The error of second derivatives in a box, as [`Self::error_of_matrices`] defines it.
    pub fn error_of_matrices_in_box(&self, exact: &Hessians, found: impl Iterator<Item = [f64; 6]>) -> f64 {
        let scale = unit(exact.hessian.as_flattened().iter());
        let truth = exact.hessian.iter().zip(&exact.largest);
        let truth = truth.map(|(h, l)| (h.map(|c| c * scale), (l * scale).powi(2)));
        self.error_of_matrices(truth, found.map(|h| h.map(|c| c * scale)))
    }
}

/// A vector and the square of its largest term, from one row.
pub fn split([x, y, z, largest2]: [f64; 4]) -> ([f64; 3], f64) {
    ([x, y, z], largest2)
}

/// What brings `values` near one, so that their squares are numbers.
fn unit<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    power_of_two_below(1.0 / values.fold(0.0, |m: f64, v| m.max(v.abs())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Solo;

    /// The error of targets whose forces along x are `exact`, whose largest terms are `largest` and that were found so far off.
    fn weighed(targets: &[(f64, f64, f64)]) -> f64 {
        let sample = Sample::drawn(vec![Drawn { target: 0, weight: 1.0, certain: false }; targets.len()], [0.0; 2]);
        let exact = targets.iter().map(|&(f, largest, _)| ([f, 0.0, 0.0], largest * largest));
        let found = targets.iter().map(|&(f, _, off)| [f + off, 0.0, 0.0]);
        sample.weigh(exact, found, None).error()
    }

    #[test]
    fn the_error_is_the_larger_of_rms_and_l2_over_a_floor() {
        let near = |error: f64, expected: f64| assert!((error / expected - 1.0).abs() < 1e-9, "{error} {expected}");
        // rms, where the weak forces are wrong; L2, where the strong ones are.
        near(weighed(&[(1.0, 1.0, 0.1), (100.0, 100.0, 0.0)]), 0.1 / 2f64.sqrt());
        near(weighed(&[(100.0, 100.0, 10.0), (1.0, 1.0, 0.0), (1.0, 1.0, 0.0)]), (100.0f64 / 10_002.0).sqrt());
        // A force that vanishes counts as a thousandth of its largest term.
        near(weighed(&[(0.0, 1.0, 1e-5)]), 1e-2);
        assert_eq!(weighed(&[(0.0, 0.0, 0.0)]), 0.0);
        assert_eq!(weighed(&[]), 0.0);
        for off in [f64::NAN, f64::INFINITY] {
            assert_eq!(weighed(&[(1.0, 1.0, off), (1.0, 1.0, 0.0)]), f64::INFINITY);
        }
    }

    #[test]
    fn predicted_samples_are_unbiased_and_find_the_few_that_make_the_error() {
        // Five of 50,000 targets make nearly all of the rms; predictions are off by up to a factor of 3.
        let n = 50_000;
        let error = |i: usize| if i % 10_000 == 77 { 0.3 } else { 1e-4 * (1.0 + (i % 7) as f64) };
        let predicted = |i: usize| error(i) * [0.4, 1.0, 2.5][i % 3];
        let squares: Vec<[f64; 2]> = (0..n).map(|i| [predicted(i).powi(2), (i % 5) as f64]).collect();
        let sample = Sample::predicted(&Solo, 64, &squares);
        assert_eq!(sample.places().len(), 64);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let again = pool.install(|| Sample::predicted(&Solo, 64, &squares));
            assert_eq!(again.targets(), sample.targets());
        }
        let exact = sample.places().map(|_| ([1.0, 0.0, 0.0], 1.0));
        let found = sample.places().map(|i| [1.0 + error(i), 0.0, 0.0]);
        let norms = sample.weigh(exact, found, Some(1.0));
        let truth = ((0..n).map(|i| error(i).powi(2)).sum::<f64>() / n as f64).sqrt();
        assert!((norms.rms / truth - 1.0).abs() < 0.3, "{norms:?} {truth:e}");
        assert!(norms.rms_bound > norms.rms && norms.judged() >= norms.error());
        // The largest of those five are what has to be summed again.
        let counts = |k: usize| {
            let mut counts = vec![0; BINS];
            squares.iter().for_each(|s| counts[bin_of(s[k])] += 1);
            counts
        };
        let (counts, none) = (counts(0), vec![0; BINS]);
        let of_rms = Norms { l2: 0.0, l2_bound: 0.0, ..norms };
        let worst = |tolerance: f64, most: usize| {
            let [from, of_l2] = of_rms.worst([&counts, &none], tolerance, most)?;
            assert_eq!(of_l2, f64::INFINITY);
            Some((0..n).filter(|&i| squares[i][0] >= from).collect::<Vec<_>>())
        };
        let few = worst(0.5 * truth, 100).unwrap();
        assert!(few.len() > 1 && few.iter().all(|i| i % 10_000 == 77), "{few:?}");
        // Not if there are more than may be summed, nor if nothing is wrong.
        assert!(worst(0.5 * truth, 1).is_none() && worst(2.0 * truth, 100).unwrap().is_empty());
    }

    #[test]
    fn what_single_precision_would_refuse_is_judged_in_double() {
        let [single, double] = [Precision::F32, Precision::F64].map(Precision::epsilon);
        let judge = |settings: Settings, epsilon: f64, rms: f64| {
            let mut asked = vec![];
            let of = |precision| {
                asked.push(precision);
                Norms { rms, rms_bound: rms, l2: 0.0, l2_bound: 0.0, of_vectors: 0.0, certain: Default::default() }
            };
            judged(&settings, epsilon, of);
            asked
        };
        let at = |tolerance| Settings { tolerance, ..Settings::default() };
        assert_eq!(judge(at(1e-5), single, 0.7e-5), [Precision::F32]);
        assert_eq!(judge(at(1e-5), single, 0.9e-5), [Precision::F32, Precision::F64]);
        // Tighter tolerances are not left to it, nor sums in double precision, nor errors of a given order.
        assert_eq!(judge(at(0.9e-5), single, 0.0), [Precision::F64]);
        assert_eq!(judge(at(1e-5), double, 0.0), [Precision::F64]);
        assert_eq!(judge(Settings { order: Some(8), ..at(1e-5) }, single, 0.0), [Precision::F64]);
    }
}
