//! The error field in the plane: how much of G the truncation of the expansions loses at each target, estimated.
//!
//! As in space ([`error_model`](crate::error_model)) squares add, and the loss is continued from the last coefficients
//! that are kept. With R the radius of a box, u its unit and N the first power that is lost:
//! - a multipole loses |a_N| u^N/d^(N+1) at the distance d from its center, where |a_k| u^k rises as R^k;
//! - a local expansion loses |b_N| (r/u)^N/u at the distance r from its center, where |b_k|/u^k falls as D^−k with
//!   D about R/θ, the distance of the nearest sources;
//! - a multipole of algebraic blobs has those of points: |a_0| ε⁴/d⁵ (Gaussian ones are points where expansions act).
//!
//! Losses are kept for the four quadrants of the bounding rectangle of each target box: the square at the center of the
//! quadrant, and its gradient. Within a quadrant the logarithm is linear. Children add what their parent has there.

use rayon::prelude::*;

use super::accuracy::THETA;
use super::bodies::by_leaf;
use super::execute::Execution;
use super::{Blob, Kernel, Pyramid};
use crate::error_model::power;
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Real};

/// What the square of the last coefficients of a local expansion counts next to that of a multipole:
/// measured, so that most errors are within a factor of 4 of their estimate (docs/accuracy.md).
const LOCAL: f64 = 3.0;

/// The distance of the sources that make the last coefficients of a local expansion, in R/θ.
const NEAREST: f64 = 1.25;

/// The last coefficients whose mean is continued.
const LAST: usize = 2;

/// What is added to the square of a distance from the center of a local expansion, in squares of the half diagonal
/// of the box that it is handed down to, over the power that is lost: it then changes little but small distances.
const SMOOTH: f64 = 1.0;

/// Boxes of one task.
const TASK: usize = 64;

/// The power of 1/d² that the square of a blob's difference from a point falls with.
const OF_BLOB: usize = 5;

/// What expansions of one box lose: the square is `square`·(`unit2`/d²)^n + `blob`/d^10 at the distance d of a
/// multipole, and `square`·(d²/`unit2`)^n of a local expansion.
#[derive(Clone, Copy)]
struct Loss {
    center: [f64; 2],
    unit2: f64,
    square: f64,
    blob: f64,
}

/// A squared error and its gradient.
#[derive(Clone, Copy, Default)]
struct Slope {
    value: f64,
    gradient: [f64; 2],
}

/// The squared error in each quadrant of a box, at its center: bit d is set in the upper half of axis d.
type Quadrants = [Slope; 4];

/// A rectangle.
#[derive(Clone, Copy)]
struct Rectangle {
    center: [f64; 2],
    half: [f64; 2],
}

impl Rectangle {
    /// The centers of the quadrants.
    #[inline(always)]
    fn quadrants(&self) -> [[f64; 2]; 4] {
        let at = |q: usize, d: usize| {
            if q >> d & 1 == 1 { self.center[d] + 0.5 * self.half[d] } else { self.center[d] - 0.5 * self.half[d] }
        };
        std::array::from_fn(|q| [at(q, 0), at(q, 1)])
    }

    /// The quadrant of a place.
    #[inline(always)]
    fn quadrant(&self, at: [f64; 2]) -> usize {
        usize::from(at[0] > self.center[0]) + 2 * usize::from(at[1] > self.center[1])
    }
}

/// A squared error as the bits of a number, which are its logarithm but for a linear mantissa: at
/// `at`, and what is added for each step along the axes.
#[derive(Clone, Copy)]
struct Logarithm {
    at: [f64; 2],
    bits: f64,
    slope: [f64; 2],
}

/// The bits between a number and e times it.
const E: f64 = (1u64 << 52) as f64 * std::f64::consts::LOG2_E;

impl Logarithm {
    #[inline(always)]
    fn new(at: [f64; 2], Slope { value, gradient }: Slope) -> Self {
        if value < f64::MIN_POSITIVE {
            return Logarithm { at, bits: 0.0, slope: [0.0; 2] };
        }
        let slope = E / value;
        Logarithm { at, bits: value.to_bits() as f64, slope: [slope * gradient[0], slope * gradient[1]] }
    }

    /// The squared error at a place.
    #[inline(always)]
    fn exponential(&self, at: [f64; 2]) -> f64 {
        let steps = self.slope[0] * (at[0] - self.at[0]) + self.slope[1] * (at[1] - self.at[1]);
        f64::from_bits((self.bits + steps) as u64)
    }
}

/// From b to a, and the square of the distance.
#[inline(always)]
fn step(a: [f64; 2], b: [f64; 2]) -> ([f64; 2], f64) {
    let [x, y] = [a[0] - b[0], a[1] - b[1]];
    ([x, y], x * x + y * y)
}

impl Loss {
    /// What a multipole loses at a place.
    #[inline(always)]
    fn of_multipole(&self, at: [f64; 2], n: usize) -> f64 {
        let d2 = step(at, self.center).1;
        self.square * power(self.unit2 / d2, n) + self.blob * power(1.0 / d2, OF_BLOB)
    }

    /// What a local expansion loses at a place.
    #[inline(always)]
    fn of_local(&self, at: [f64; 2], n: usize) -> f64 {
        self.square * power(step(at, self.center).1 / self.unit2, n)
    }
}

impl<T: Real> Execution<'_, T> {
    /// The estimated square of the error of G at each target, in the order of the pyramid and in scaled units.
    pub fn squared_errors(&self, multipoles: &[T], locals: &[T]) -> Vec<f64> {
        let (targets, sources, lists) = (&self.plan.targets, self.plan.source_tree(), &self.plan.lists);
        let of_multipole = self.losses::<false>(sources, multipoles);
        let of_local = self.losses::<true>(targets, locals);
        let rectangles = rectangles(targets);
        let [far, near] = [self.lost::<false>() + 1, self.lost::<true>()];
        let mut quadrants = vec![Quadrants::default(); targets.len()];
        quadrants.par_chunks_mut(TASK).enumerate().for_each(|(i, out)| {
            let rows = (TASK * i..).map(|cell| lists.m2l.row(cell));
            let boxes = &rectangles[TASK * i..][..out.len()];
            let losses = &of_multipole[..];
            match self.blob {
                Blob::Algebraic(_) => dispatch(Pairs::<_, true> { rows, boxes, losses, n: far, out }),
                _ => dispatch(Pairs::<_, false> { rows, boxes, losses, n: far, out }),
            }
        });
        for level in 0..targets.levels {
            let (above, below) = quadrants.split_at_mut(targets.level(level + 1).start);
            let parents = targets.level(level);
            below[..4 * parents.len()].par_chunks_mut(4).zip(parents).with_min_len(TASK).for_each(
                |(family, parent)| {
                    let (from, loss, n) = (&rectangles[parent], &of_local[parent], near as f64);
                    let centers = from.quadrants();
                    let logarithms: [Logarithm; 4] =
                        std::array::from_fn(|q| Logarithm::new(centers[q], above[parent][q]));
                    for (child, quadrants) in (4 * parent + 1..).zip(family) {
                        // A loss that vanishes at the center has a logarithm of any slope there, which would be
                        // continued beyond all bounds.
                        let wide = SMOOTH / n * rectangles[child].half.iter().map(|h| h * h).sum::<f64>();
                        for (at, sum) in rectangles[child].quadrants().into_iter().zip(quadrants) {
                            let inherited = &logarithms[from.quadrant(at)];
                            let (value, (d, d2)) = (inherited.exponential(at), step(at, loss.center));
                            let d2 = d2 + wide;
                            let local = loss.square / loss.unit2 * power(d2 / loss.unit2, near - 1);
                            sum.value += value + local * d2;
                            for k in 0..2 {
                                sum.gradient[k] += value / E * inherited.slope[k] + 2.0 * n * local * d[k];
                            }
                        }
                    }
                },
            );
        }
        let mut out = vec![0.0; targets.order.len()];
        by_leaf(&mut out, targets).into_par_iter().with_min_len(16).for_each(|(leaf, out)| {
            let (rectangle, own) = (&rectangles[leaf], &of_local[leaf]);
            let centers = rectangle.quadrants();
            let logarithms: [Logarithm; 4] = std::array::from_fn(|q| Logarithm::new(centers[q], quadrants[leaf][q]));
            let at = |i: usize| [targets.x[0][i], targets.x[1][i]];
            for (sum, at) in out.iter_mut().zip(targets.range(leaf).map(at)) {
                *sum = logarithms[rectangle.quadrant(at)].exponential(at) + own.of_local(at, near);
            }
            for &c in lists.m2p.row(leaf) {
                for (sum, at) in out.iter_mut().zip(targets.range(leaf).map(at)) {
                    *sum += of_multipole[c as usize].of_multipole(at, far);
                }
            }
        });
        out
    }

    /// The first coefficient of G that multipoles, or local expansions, have lost.
    fn lost<const OF_LOCAL: bool>(&self) -> usize {
        let terms = self.series.terms;
        if self.series.kernel == Kernel::Log && OF_LOCAL { terms - 1 } else { terms }
    }

    /// What the multipoles, or the local expansions, of all boxes lose.
    fn losses<const OF_LOCAL: bool>(&self, tree: &Pyramid, all: &[T]) -> Vec<Loss> {
        let (series, lost) = (self.series, self.lost::<OF_LOCAL>());
        let log = series.kernel == Kernel::Log;
        let reach = NEAREST / self.plan.choice.theta.unwrap_or(THETA);
        let core8 = if let Blob::Algebraic(e) = self.blob { e.powi(8) } else { 0.0 };
        // Half of the coefficients at most: the first, of sources of one sign, are no measure.
        let count = LAST.min(lost.div_ceil(2));
        let of_box = |(cell, c): (usize, &[T])| {
            let (radius, unit) = (tree.radius[cell], tree.unit(cell));
            // From one coefficient to the next, squared.
            let ratio = (if OF_LOCAL { unit / (reach * radius) } else { radius / unit }).powi(2);
            let (mut square, mut fall) = (0.0, 1.0);
            for k in (lost - count..lost).rev() {
                fall *= ratio;
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
            let square = local * square / (count as f64 * unit * unit);
            let [re, im] = [c[0].to_f64(), c[series.part].to_f64()];
            let blob = if OF_LOCAL { 0.0 } else { (re * re + im * im) * core8 };
            Loss { center, unit2: unit * unit, square, blob }
        };
        all.par_chunks(series.len()).enumerate().with_min_len(TASK).map(of_box).collect_vec()
    }
}

/// The bounding rectangles of all boxes.
fn rectangles(tree: &Pyramid) -> Vec<Rectangle> {
    let nothing = [f64::INFINITY, f64::NEG_INFINITY];
    let of_leaf = |leaf: usize| {
        [0, 1].map(|d| {
            let grow =
                |[low, high]: [f64; 2], &x: &f64| [if x < low { x } else { low }, if x > high { x } else { high }];
            tree.x[d][tree.range(leaf)].iter().fold(nothing, grow)
        })
    };
    let mut bounds = vec![[nothing; 2]; tree.leaves().start];
    bounds.par_extend(tree.leaves().into_par_iter().with_min_len(TASK).map(of_leaf));
    for cell in (1..tree.len()).rev() {
        let (child, parent) = (bounds[cell], &mut bounds[(cell - 1) / 4]);
        for d in 0..2 {
            parent[d] = [parent[d][0].min(child[d][0]), parent[d][1].max(child[d][1])];
        }
    }
    let half = |[low, high]: [f64; 2]| if low < high { 0.5 * (high - low) } else { 0.0 };
    let rectangle = |(cell, bounds): (usize, &[[f64; 2]; 2])| {
        let center = [tree.center[0][cell], tree.center[1][cell]];
        Rectangle { center, half: bounds.map(half) }
    };
    bounds.par_iter().enumerate().map(rectangle).collect_vec()
}

/// What multipoles lose at the quadrants of a run of boxes; BLOBS: of algebraic blobs.
struct Pairs<'a, R, const BLOBS: bool> {
    rows: R,
    boxes: &'a [Rectangle],
    losses: &'a [Loss],
    /// The power that is lost.
    n: usize,
    out: &'a mut [Quadrants],
}

impl<'r, R: Iterator<Item = &'r [u32]>, const BLOBS: bool> Task<f64> for Pairs<'_, R, BLOBS> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        let Pairs { rows, boxes, losses, n, out } = self;
        for ((rectangle, out), row) in boxes.iter().zip(out).zip(rows) {
            let centers = rectangle.quadrants();
            let [x, y]: [[f64; 4]; 2] = [0, 1].map(|d| centers.map(|c| c[d]));
            let [mut value, mut along_x, mut along_y] = [[0.0; 4]; 3];
            for &c in row {
                let Loss { center, unit2, square, blob } = losses[c as usize];
                for q in 0..4 {
                    let [dx, dy] = [x[q] - center[0], y[q] - center[1]];
                    let inverse = 1.0 / (dx * dx + dy * dy);
                    let cut = square * power(unit2 * inverse, n);
                    let core = if BLOBS { blob * power(inverse, OF_BLOB) } else { 0.0 };
                    let fall = (n as f64 * cut + OF_BLOB as f64 * core) * inverse;
                    value[q] += cut + core;
                    along_x[q] += fall * dx;
                    along_y[q] += fall * dy;
                }
            }
            *out = std::array::from_fn(|q| Slope { value: value[q], gradient: [-2.0 * along_x[q], -2.0 * along_y[q]] });
        }
    }
}
