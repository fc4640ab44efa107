//! The targets that the guard sums directly, and what each stands for.

use std::ops::Range;

use rayon::prelude::*;

use crate::comm::{self, Comm};
use crate::math::blocked::{added, blocks};
use crate::math::{CollectVec, mix};

/// Targets that one thread draws from.
const BLOCK: usize = 4096;

/// The part of a predicted sample that is drawn evenly.
pub const EVEN: f64 = 0.2;

/// How often the targets that are in a sample for certain are looked for: those that were found
/// before leave their draws to the others.
pub const ROUNDS: usize = 2;

/// A target of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// Which.
    pub target: usize,
    /// The number of targets that it stands for, in any unit. Over a predicted sample the mean of a
    /// quantity times this weight is its unbiased mean over all targets.
    pub weight: f64,
    /// Whether it is in every such sample, so that what it adds to a mean has no scatter.
    pub certain: bool,
}

/// Targets to be summed directly.
pub struct Sample {
    pub(super) targets: Vec<Drawn>,
    /// The part of the sums of both predicted squares that those have which are in it for certain.
    pub(super) certain: [f64; 2],
}

/// The targets that are not in a sample for certain: how many they are, the sums of their squares,
/// and the number of the others.
#[derive(Clone, Copy)]
struct Rest {
    count: f64,
    squares: [f64; 2],
    certain: f64,
}

impl Rest {
    /// All targets but those that are drawn once or more by `draws`.
    fn of(comm: &dyn Comm, squares: &[[f64; 2]], draws: &Draws) -> Self {
        let of_target = |i: usize| match draws.of(&squares[i]) {
            often if often >= 1.0 => [0.0, 0.0, 0.0, 1.0],
            _ => [1.0, squares[i][0], squares[i][1], 0.0],
        };
        let [count, relative, absolute, certain] = added(comm::gathered(comm, &blocks(squares.len(), of_target)));
        Rest { count, squares: [relative, absolute], certain }
    }
}

/// How often a target is expected to be drawn: evenly, and in proportion to its squares.
#[derive(Clone, Copy)]
struct Draws {
    even: f64,
    by_squares: [f64; 2],
}

impl Draws {
    /// No target is drawn.
    const NONE: Draws = Draws { even: 0.0, by_squares: [0.0; 2] };

    /// Of the rest, all that those that are there for certain leave of a sample of `size`. The even
    /// part stays what it is without them: it finds what is not predicted.
    fn of_rest(rest: &Rest, size: usize) -> Self {
        let left = size as f64 - rest.certain;
        let by_squares = f64::max(left - EVEN * size as f64, 0.0);
        let share = rest.squares.map(|s| if s > 0.0 { 0.5 * by_squares } else { 0.0 });
        let even = (left - share[0] - share[1]) / rest.count;
        Draws { even, by_squares: [0, 1].map(|k| if share[k] > 0.0 { share[k] / rest.squares[k] } else { 0.0 }) }
    }

    fn of(&self, [relative, absolute]: &[f64; 2]) -> f64 {
        self.even + (relative * self.by_squares[0] + absolute * self.by_squares[1])
    }
}

impl Sample {
    /// A deterministic sample of about `size` of `count` targets, spread over all.
    pub fn spread(count: usize, size: usize) -> Self {
        let step = step(count, size);
        // Spread over the set, and not on any regular structure of its order.
        let place = |k: usize| (k * step + k * 7 % step).min(count - 1);
        let drawn = |k| Drawn { target: place(k), weight: 1.0, certain: false };
        Sample::drawn((0..count.div_ceil(step)).map(drawn).collect(), [0.0; 2])
    }

    /// A deterministic sample of about `size` targets, drawn by the squares of their predicted
    /// errors, relative and absolute: two fifths in proportion to each, and one fifth evenly, so
    /// that what is not predicted is found as well. Weights make averages over the sample those over
    /// all targets; see `rms` of [`Self::weigh`].
    ///
    /// Targets that would be drawn once or more are there once for certain, and leave their other
    /// draws to the rest: one target whose prediction is far too large would take the sample for
    /// itself.
    ///
    /// Each rank of `comm` has consecutive targets, whole blocks of them but for the last, and gets
    /// its part of the sample.
    pub fn predicted(comm: &dyn Comm, size: usize, squares: &[[f64; 2]]) -> Self {
        Sample::draw(comm, size, squares).unwrap_or_else(|| {
            let [first, count] = comm::before(comm, squares.len());
            let own = |d: &Drawn| (first..first + squares.len()).contains(&d.target);
            let all = if count == 0 { vec![] } else { Sample::spread(count, size).targets };
            let own = all.into_iter().filter(own).map(|d| Drawn { target: d.target - first, ..d });
            Sample::drawn(own.collect(), [0.0; 2])
        })
    }

    /// The same; none where the errors say nothing, or where there are no more than `size` targets.
    pub fn draw(comm: &dyn Comm, size: usize, squares: &[[f64; 2]]) -> Option<Self> {
        let [_, count] = comm::before(comm, squares.len());
        let sums = added(comm::gathered(comm, &blocks(squares.len(), |i| squares[i])));
        if count <= size || sums.iter().any(|s| !(*s > 0.0 && s.is_finite())) {
            return None;
        }
        let mut chosen = Draws::NONE;
        let mut rest = Rest { count: count as f64, squares: sums, certain: 0.0 };
        let mut draws = Draws::of_rest(&rest, size);
        for _ in 0..ROUNDS {
            let next = Rest::of(comm, squares, &draws);
            if next.certain == rest.certain || next.count == 0.0 {
                break;
            }
            (chosen, rest) = (draws, next);
            draws = Draws::of_rest(&rest, size);
        }
        let is_certain = |i: usize| chosen.of(&squares[i]) >= 1.0;
        let weight = size as f64 / count as f64;
        // Draws that are expected of blocks of targets, and how many are made before each: blocks
        // agree on where they begin.
        let own = squares.len();
        let blocks: Vec<Range<usize>> = (0..own).step_by(BLOCK).map(|first| first..own.min(first + BLOCK)).collect();
        let others = |block: &Range<usize>| block.clone().filter(|&i| !is_certain(i));
        let expected = |block: &Range<usize>| others(block).map(|i| draws.of(&squares[i])).sum::<f64>();
        let expected: Vec<f64> = blocks.par_iter().map(expected).collect_vec();
        let [earlier, _] = comm::before(comm, expected.len());
        let expected: Vec<f64> = comm::gathered(comm, &expected);
        let mut reached = 0.0;
        let mut starts = vec![0.0];
        starts.extend(expected.iter().map(|own| {
            reached += own;
            reached
        }));
        let left = size - rest.certain as usize;
        let before = |b: usize| if b == expected.len() { left } else { passed(starts[b]).min(left) };
        let of_block = |(b, block): (usize, &Range<usize>)| {
            let b = earlier + b;
            let (mut reached, mut taken, end) = (starts[b], before(b), before(b + 1));
            let last = block.clone().rev().find(|&i| !is_certain(i));
            let (mut drawn, mut place) = (vec![], place_of(taken));
            for i in block.clone() {
                if is_certain(i) {
                    drawn.push(Drawn { target: i, weight, certain: true });
                    continue;
                }
                let often = draws.of(&squares[i]);
                reached += often;
                let is_last = Some(i) == last;
                if !(is_last || reached - taken as f64 > place) {
                    continue;
                }
                let next = if is_last { end } else { passed(reached).min(end) };
                // A target that is drawn several times counts as often.
                let one = Drawn { target: i, weight: weight / often, certain: false };
                drawn.extend((taken..next).map(|_| one));
                taken = next.max(taken);
                place = place_of(taken);
            }
            drawn
        };
        let targets = blocks.par_iter().enumerate().map(of_block).collect_vec().concat();
        Some(Sample::drawn(targets, [0, 1].map(|k| 1.0 - rest.squares[k] / sums[k])))
    }

    /// Targets that were drawn elsewhere by the same rule, and the part of the sums of both
    /// predicted squares that those have which are there for certain.
    pub fn drawn(targets: Vec<Drawn>, certain: [f64; 2]) -> Self {
        Sample { targets, certain }
    }

    /// That part.
    pub fn certain(&self) -> [f64; 2] {
        self.certain
    }

    /// The sample's targets, in the caller's order of targets.
    pub fn places(&self) -> impl ExactSizeIterator<Item = usize> {
        self.targets.iter().map(|d| d.target)
    }

    /// The same with what they stand for.
    pub fn targets(&self) -> &[Drawn] {
        &self.targets
    }
}

/// The draws that are passed at a place of the drawing, where each has an equal part of length 1.
fn passed(reached: f64) -> usize {
    let draw = reached as usize;
    draw + usize::from(reached - draw as f64 > place_of(draw))
}

/// Where a draw lies in its part, anywhere in it: equal steps could follow the rows of a lattice, and miss or meet the
/// same targets of each.
fn place_of(draw: usize) -> f64 {
    mix(draw as u64) as f64 / 2f64.powi(64)
}

/// From one target of a sample of about `size` of `count` to the next, about.
pub fn step(count: usize, size: usize) -> usize {
    count.div_ceil(size).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Solo;

    #[test]
    fn draws_follow_no_row_and_count_as_often_as_they_are_made() {
        // Half of each row of 100 errs, and a draw has as many targets as a row.
        let rows = Sample::predicted(&Solo, 64, &vec![[1.0; 2]; 6400]);
        let wrong = rows.places().filter(|i| i % 100 < 50).count();
        assert!((20..=44).contains(&wrong), "{wrong} of 64");
    }

    #[test]
    fn a_target_that_would_take_the_sample_is_in_it_once() {
        // Target 500 is expected to have nearly all of the squared error and has as much as any
        // other; eight more have a thousand times what is expected of them.
        let expected = |i: usize| match i {
            500 => 1e6,
            _ if i % 1000 == 77 => 30.0,
            _ => 1.0,
        };
        let true_square = |i: usize| -> f64 { if i % 1000 == 77 { 3e4 } else { 1.0 } };
        let squares: Vec<[f64; 2]> = (0..8000).map(|i| [expected(i); 2]).collect();
        let sample = Sample::predicted(&Solo, 256, &squares);
        assert_eq!(sample.places().len(), 256);
        assert!(sample.places().is_sorted());
        assert_eq!(sample.places().filter(|&i| i == 500).count(), 1);
        let certain: Vec<usize> = sample.targets().iter().filter(|d| d.certain).map(|d| d.target).collect();
        assert_eq!(certain, [500]);
        let exact = sample.places().map(|_| ([1.0, 0.0, 0.0], 1.0));
        let found = sample.places().map(|i| [1.0 + true_square(i).sqrt(), 0.0, 0.0]);
        let norms = sample.weigh(exact, found, Some(1.0));
        let truth = ((0..8000).map(true_square).sum::<f64>() / 8000.0).sqrt();
        assert!((norms.rms / truth - 1.0).abs() < 0.3 && norms.rms_bound > norms.rms, "{norms:?} {truth}");
        // What is certain has no scatter.
        let one = |i: usize| if i == 500 { 1e8 } else { 1e-6 };
        let exact = sample.places().map(|_| ([1.0, 0.0, 0.0], 1.0));
        let found = sample.places().map(|i| [1.0 + f64::sqrt(one(i)), 0.0, 0.0]);
        let norms = sample.weigh(exact, found, Some(1.0));
        let truth = (1e8f64 / 8000.0).sqrt();
        assert!((norms.rms / truth - 1.0).abs() < 1e-6 && (norms.rms_bound / truth - 1.0).abs() < 1e-6, "{norms:?}");
    }

    #[test]
    fn what_is_not_predicted_keeps_its_even_part() {
        // Fifty large targets and eleven of a hundredth would leave three draws to all others.
        let expected = |i: usize| match i % 160 {
            7 if i < 8000 => 1.0,
            9 if i < 1760 => 1e-2,
            _ => 1e-12,
        };
        let squares: Vec<[f64; 2]> = (0..10_000).map(|i| [expected(i); 2]).collect();
        let sample = Sample::predicted(&Solo, 64, &squares);
        let others: Vec<&Drawn> = sample.targets().iter().filter(|d| expected(d.target) < 1e-3).collect();
        assert!(others.len() >= 12, "{}", others.len());
        assert!(others.iter().all(|d| d.weight < 5.1), "{others:?}");
    }

    #[test]
    fn weights_undo_the_preference() {
        // One target in 128, at no regular distances, has nearly all of the predicted error.
        let errs = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 == 0;
        let squares: Vec<[f64; 2]> = (0..20_000).map(|i| [if errs(i) { 1.0 } else { 1e-4 }; 2]).collect();
        let sample = Sample::predicted(&Solo, 200, &squares);
        let preferred = sample.targets.iter().filter(|d| errs(d.target));
        let [count, weight] = [preferred.clone().count() as f64, preferred.map(|d| d.weight).sum()];
        let [all, whole] = [sample.targets.len() as f64, sample.targets.iter().map(|d| d.weight).sum()];
        assert!(count / all > 0.45, "{count} of {all}");
        assert!((0.005..0.02).contains(&(weight / whole)), "{weight} of {whole}");
    }
}
