//! What the error field says of a sum: which targets the guard sums directly, and which are summed
//! again. In space and in the plane.

use rayon::prelude::*;

use crate::comm::{self, Comm};
use crate::error_model::LARGEST;
use crate::guard::{BINS, FLOOR, Look, Norms, Sample, bin_of};
use crate::math::CollectVec;
use crate::math::blocked::{added, blocks};
use crate::math::scale::{larger, power_of_two_below};

/// A sum that has a vector with an error.
pub trait HasVector<const R: usize>: Sync {
    /// That vector.
    fn vector(&self) -> [f64; R];
}

impl<const R: usize> HasVector<R> for [f64; R] {
    fn vector(&self) -> [f64; R] {
        *self
    }
}

/// Relative errors of direct sums by rounding, in spacings of numbers next to 1.
const DIRECT: f64 = 4.0;

/// Sums at targets, in any order, with the estimated errors of their vectors. Ranks have consecutive targets each, whole
/// [blocks] of them but for the last; all of them ask the same.
pub struct Prediction<'a, S, const R: usize> {
    /// Who else has targets.
    pub comm: &'a dyn Comm,
    /// What was summed. `[targets]`
    pub sums: &'a [S],
    /// The estimated sizes of the errors by truncation, and by rounding where vectors are small next to their terms;
    /// empty if no expansion was used. `[targets]`
    pub error: &'a [f64],
    /// The sizes of the largest terms of the vectors as far as they are known, or less; empty if none is. `[targets]`
    pub largest_term: &'a [f64],
    /// The spacing of numbers next to 1 in the precision of the sums, but for what the errors have.
    pub epsilon: f64,
    /// Whether the tolerance bounds the rms of relative errors as well as L2.
    pub relative: bool,
}

impl<S: HasVector<R>, const R: usize> Prediction<'_, S, R> {
    /// The targets that the guard sums directly, drawn by their predicted errors.
    pub fn sample(&self, tolerance: f64, look: Look) -> Sample {
        Sample::predicted(self.comm, look.size(self.targets()), &self.squares(tolerance))
    }

    /// The root mean square of the vectors over all targets.
    pub fn rms(&self) -> f64 {
        let scale = self.scale();
        self.mean_square(scale).sqrt() / scale
    }

    /// The targets of all ranks.
    fn targets(&self) -> usize {
        comm::sum(self.comm, self.sums.len() as u64) as usize
    }

    /// Whether an expansion was used, on any rank.
    fn is_estimated(&self) -> bool {
        comm::sum(self.comm, self.error.len() as u64) > 0
    }

    /// The own targets that are to be summed again, see [`Norms::worst`]; none if there are too many.
    pub fn worst(&self, norms: Norms, tolerance: f64, most: usize) -> Vec<u32> {
        if !self.is_estimated() {
            return vec![];
        }
        let squares = self.squares(tolerance);
        let empty = || [vec![0u32; BINS], vec![0; BINS]];
        let count = |mut counts: [Vec<u32>; 2], s: &[f64; 2]| {
            (0..2).for_each(|k| counts[k][bin_of(s[k])] += 1);
            counts
        };
        let join = |mut counts: [Vec<u32>; 2], more: [Vec<u32>; 2]| {
            (0..2).for_each(|k| counts[k].iter_mut().zip(&more[k]).for_each(|(a, b)| *a += b));
            counts
        };
        let own = squares.par_iter().fold(empty, count).reduce(empty, join);
        let [relative, absolute] = own.map(|counts| {
            let mut all: Vec<u64> = counts.into_iter().map(u64::from).collect();
            self.comm.sum(&mut all);
            all.into_iter().map(|count| count as u32).collect::<Vec<u32>>()
        });
        let Some(from) = norms.worst([&relative, &absolute], tolerance, most) else { return vec![] };
        let places = |(i, s): (usize, &[f64; 2])| (s[0] >= from[0] || s[1] >= from[1]).then_some(i as u32);
        squares.par_iter().enumerate().filter_map(places).collect()
    }

    /// The estimated errors, scaled so that their L2 norm over all targets is the one that was
    /// measured, `l2` over that of the vectors, with rounding added. Without expansions all are this part of the vector.
    pub fn calibrated(&self, l2: f64) -> Vec<f64> {
        let (scale, epsilon) = (self.scale(), self.epsilon);
        let sizes = self.sums.par_iter().map(|s| square(&s.vector(), scale).sqrt() / scale);
        if !self.is_estimated() {
            return sizes.map(|a| l2.max(DIRECT * epsilon) * a).collect_vec();
        }
        let own = blocks(self.error.len(), |i| [(self.error[i] * scale).powi(2)]);
        let [squares] = added(comm::gathered(self.comm, &own));
        let predicted = (squares / self.targets() as f64).sqrt();
        let factor = match l2 * self.rms() * scale / predicted {
            factor if factor.is_finite() => factor,
            _ => 1.0,
        };
        self.error.par_iter().zip(sizes).map(|(e, a)| (e * factor).hypot(epsilon * a)).collect_vec()
    }

    /// The squares of the predicted errors of each target: over its vector, and over an arbitrary
    /// unit. Where the tolerance bounds L2 alone both are the latter. Direct sums have nothing but
    /// rounding: some part of each vector, and the same everywhere in addition, where terms cancel.
    pub fn squares(&self, tolerance: f64) -> Vec<[f64; 2]> {
        let (scale, largest) = (self.scale(), (LARGEST * tolerance).powi(2));
        let rounding = self.epsilon.powi(2);
        let everywhere = if !self.is_estimated() { rounding * self.mean_square(scale) } else { 0.0 };
        let of_target = |(i, sum): (usize, &S)| {
            let a2 = square(&sum.vector(), scale);
            // A target that was summed again has no more than rounding left.
            let e2 = self.error.get(i).map_or(everywhere, |e| (e * scale).powi(2)) + rounding * a2;
            let floor2 = self.largest_term.get(i).map_or(0.0, |term| FLOOR * (term * scale).powi(2));
            let of_vector = if e2 > 0.0 { (e2 / larger(a2, floor2)).min(largest) } else { 0.0 };
            [if self.relative { of_vector } else { e2 }, e2]
        };
        self.sums.par_iter().enumerate().map(of_target).collect_vec()
    }

    /// The mean square of the vectors, whose components are multiplied by `scale`.
    fn mean_square(&self, scale: f64) -> f64 {
        let own = blocks(self.sums.len(), |i| [square(&self.sums[i].vector(), scale)]);
        let [squares] = added(comm::gathered(self.comm, &own));
        squares / self.targets().max(1) as f64
    }

    /// What brings the largest component of the vectors near one.
    fn scale(&self) -> f64 {
        // The components of a vector first: each target waits for the one before it a single time.
        let largest = |m: f64, s: &S| larger(m, s.vector().iter().fold(0.0, |m, c| larger(m, c.abs())));
        let own = self.sums.par_iter().fold(|| 0.0, largest).reduce(|| 0.0, larger);
        power_of_two_below(1.0 / comm::max(self.comm, own))
    }
}

fn square<const R: usize>(a: &[f64; R], scale: f64) -> f64 {
    a.iter().map(|c| (c * scale).powi(2)).sum()
}
