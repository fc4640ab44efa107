//! The error field in the plane: how much of G the truncation of the expansions loses at each target, estimated.
//!
//! As in space ([`error_model`](crate::error_model)) squares add, and the loss is continued from the last coefficients
//! that are kept. With R the radius of a box and N the first power that is lost:
//! - a multipole loses |a_N| u^N/d^(N+1) at the distance d from its center, where |a_k| falls as R^k;
//! - a local expansion loses |b_N| (r/u)^N/u at the distance r from its center, where |b_k| falls as D^−k, with D the
//!   distance of the nearest sources, about R/θ.
//!
//! The mean over the last four coefficients stands for all: where a box is symmetric some of them are zero. Losses
//! are kept for the four quadrants of the bounding rectangle of each target box. Within a box, and from a box to its
//! children, logarithms are interpolated linearly between the centers of the quadrants.

use rayon::prelude::*;

use super::bodies::by_leaf;
use super::execute::Execution;
use super::{Kernel, Pyramid};
use crate::error_model::{exponential, logarithms, power};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Real};

/// What the square of the last coefficients of a local expansion counts next to that of a multipole:
/// measured, see `examples/planar_errors.rs`.
const LOCAL: f64 = 1.0;

/// The distance of the sources that make the last coefficients of a local expansion, in radii over θ.
const NEAREST: f64 = 1.25;

/// The last coefficients that are looked at.
const LAST: usize = 4;

/// Boxes of one task.
const TASK: usize = 64;

/// One value for each quadrant of a box: bit d is set in the upper half of axis d.
type Quadrants = [f64; 4];

/// The loss of an expansion of a box: at the distance d it is square·x^power with x = `unit2`/d² for
/// multipoles and d²/`unit2` for local expansions.
#[derive(Clone, Copy, Default)]
struct Loss {
    center: [f64; 2],
    unit2: f64,
    square: f64,
}

/// A rectangle.
#[derive(Clone, Copy, Default)]
struct Rectangle {
    center: [f64; 2],
    half: [f64; 2],
}

impl Rectangle {
    /// The center of a quadrant.
    #[inline(always)]
    fn quadrant(&self, q: usize) -> [f64; 2] {
        [0, 1].map(|d| self.center[d] + if q >> d & 1 == 1 { 0.5 * self.half[d] } else { -0.5 * self.half[d] })
    }

    /// The weights of the quadrants at a place, linear along each axis.
    #[inline(always)]
    fn weights(&self, at: [f64; 2]) -> Quadrants {
        let [x, y] = [0, 1].map(|d| {
            let x = if self.half[d] > 0.0 { ((at[d] - self.center[d]) / self.half[d]).clamp(-1.0, 1.0) } else { 0.0 };
            [0.5 - x, 0.5 + x]
        });
        std::array::from_fn(|q| x[q & 1] * y[q >> 1])
    }
}

/// The squared distance of two places.
#[inline(always)]
fn distance2(a: [f64; 2], b: [f64; 2]) -> f64 {
    let [x, y] = [a[0] - b[0], a[1] - b[1]];
    x * x + y * y
}

impl<T: Real> Execution<'_, T> {
    /// The estimated square of the error of G at each target, in the order of the pyramid and in scaled units.
    pub fn squared_errors(&self, multipoles: &[T], locals: &[T]) -> Vec<f64> {
        let (targets, sources) = (&self.plan.targets, self.plan.source_tree());
        let (of_multipole, of_local) =
            (self.losses::<false>(sources, multipoles), self.losses::<true>(targets, locals));
        let rectangles = rectangles(targets);
        let [far, near] = [self.lost(false) + 1, self.lost(true)];
        let mut quadrants = vec![[0.0; 4]; targets.len()];
        quadrants.par_chunks_mut(TASK).enumerate().for_each(|(i, out)| {
            let rows = (TASK * i..TASK * i + out.len()).map(|cell| self.plan.lists.m2l.row(cell));
            let boxes = &rectangles[TASK * i..][..out.len()];
            dispatch(Pairs { rows, boxes, losses: &of_multipole, power: far, out });
        });
        for level in 1..=targets.levels {
            let (above, here) = quadrants.split_at_mut(targets.level(level).start);
            here[..targets.level(level).len()].par_chunks_mut(4).enumerate().with_min_len(16).for_each(
                |(k, family)| {
                    let parent = targets.level(level - 1).start + k;
                    let (from, loss, logarithms) = (&rectangles[parent], &of_local[parent], logarithms(&above[parent]));
                    for (child, quadrants) in (4 * parent + 1..).zip(family) {
                        for (q, sum) in quadrants.iter_mut().enumerate() {
                            let at = rectangles[child].quadrant(q);
                            *sum += exponential(&logarithms, &from.weights(at)) + loss.at(at, near);
                        }
                    }
                },
            );
        }
        let mut out = vec![0.0; targets.order.len()];
        by_leaf(&mut out, targets).into_par_iter().with_min_len(16).for_each(|(leaf, out)| {
            let (rectangle, logarithms) = (&rectangles[leaf], logarithms(&quadrants[leaf]));
            let at = |i: usize| [targets.x[0][i], targets.x[1][i]];
            for (sum, i) in out.iter_mut().zip(targets.range(leaf)) {
                *sum = exponential(&logarithms, &rectangle.weights(at(i))) + of_local[leaf].at(at(i), near);
            }
            for &c in self.plan.lists.m2p.row(leaf) {
                let loss = &of_multipole[c as usize];
                for (sum, i) in out.iter_mut().zip(targets.range(leaf)) {
                    *sum += loss.square * power(loss.unit2 / distance2(at(i), loss.center), far);
                }
            }
        });
        out
    }

    /// The first power of u/d (but for one factor of 1/d), or of r/u, that expansions of G have lost.
    fn lost(&self, local: bool) -> usize {
        let terms = self.series.terms;
        if self.series.kernel == Kernel::Log && local { terms - 1 } else { terms }
    }

    /// What the expansions of all boxes lose.
    fn losses<const OF_LOCAL: bool>(&self, tree: &Pyramid, all: &[T]) -> Vec<Loss> {
        let (series, lost) = (self.series, self.lost(OF_LOCAL));
        let log = series.kernel == Kernel::Log;
        let reach = NEAREST / self.plan.choice.theta.unwrap_or(super::accuracy::THETA);
        let of_box = |(cell, c): (usize, &[T])| {
            let (radius, unit) = (tree.radius[cell], tree.unit(cell));
            // From one coefficient to the next.
            let ratio = if OF_LOCAL { unit / (reach * radius) } else { radius / unit };
            let count = lost.min(LAST);
            let (mut square, mut fall) = (0.0, 1.0);
            for k in (lost - count..lost).rev() {
                fall *= ratio * ratio;
                // G of the log kernel has its coefficients times their power.
                let (term, factor) = match (log, OF_LOCAL) {
                    (true, true) => (k + 1, (k + 1) as f64),
                    (true, false) => (k, k.max(1) as f64),
                    _ => (k, 1.0),
                };
                let [re, im] = [c[term].to_f64() * factor, c[series.part + term].to_f64() * factor];
                square += (re * re + im * im) * fall;
            }
            let local = if OF_LOCAL { LOCAL } else { 1.0 };
            let center = [tree.center[0][cell], tree.center[1][cell]];
            Loss { center, unit2: unit * unit, square: local * square / (count as f64 * unit * unit) }
        };
        all.par_chunks(series.len()).enumerate().with_min_len(TASK).map(of_box).collect_vec()
    }
}

impl Loss {
    /// The square of what a local expansion loses at a place.
    #[inline(always)]
    fn at(&self, at: [f64; 2], n: usize) -> f64 {
        self.square * power(distance2(at, self.center) / self.unit2, n)
    }
}

/// The bounding rectangles of all boxes.
fn rectangles(tree: &Pyramid) -> Vec<Rectangle> {
    let of_leaf = |leaf: usize| {
        [0, 1].map(|d| {
            let grow = |[low, high]: [f64; 2], &x: &f64| [low.min(x), high.max(x)];
            tree.x[d][tree.range(leaf)].iter().fold([f64::INFINITY, f64::NEG_INFINITY], grow)
        })
    };
    let mut bounds = vec![[[f64::INFINITY, f64::NEG_INFINITY]; 2]; tree.leaves().start];
    bounds.par_extend(tree.leaves().into_par_iter().with_min_len(TASK).map(of_leaf));
    for cell in (1..tree.len()).rev() {
        let (child, parent) = (bounds[cell], &mut bounds[(cell - 1) / 4]);
        for d in 0..2 {
            parent[d] = [parent[d][0].min(child[d][0]), parent[d][1].max(child[d][1])];
        }
    }
    let half = |[low, high]: [f64; 2]| if low < high { 0.5 * (high - low) } else { 0.0 };
    let rectangle = |(cell, bounds): (usize, &[[f64; 2]; 2])| Rectangle {
        center: [tree.center[0][cell], tree.center[1][cell]],
        half: bounds.map(half),
    };
    bounds.par_iter().enumerate().map(rectangle).collect_vec()
}

/// What multipoles lose at the quadrants of a run of boxes.
struct Pairs<'a, R> {
    rows: R,
    boxes: &'a [Rectangle],
    losses: &'a [Loss],
    power: usize,
    out: &'a mut [Quadrants],
}

impl<'r, R: Iterator<Item = &'r [u32]>> Task<f64> for Pairs<'_, R> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        let Pairs { rows, boxes, losses, power: n, out } = self;
        for ((row, rectangle), out) in rows.zip(boxes).zip(out) {
            let at: [[f64; 2]; 4] = std::array::from_fn(|q| rectangle.quadrant(q));
            let mut sum = [0.0; 4];
            for &c in row {
                let loss = &losses[c as usize];
                for q in 0..4 {
                    sum[q] += loss.square * power(loss.unit2 / distance2(at[q], loss.center), n);
                }
            }
            *out = sum;
        }
    }
}
