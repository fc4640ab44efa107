//! Bodies in the order of their tree, and their copies in the units of a cell.

use std::ops::Range;

use rayon::prelude::*;

use crate::accuracy::Strengths;
use crate::kernel::{Points, Sums};
use crate::math::{CollectVec, Real};

/// Coordinates and strengths in tree order, one array each. Where some bodies of the tree are not here, those that are make
/// runs.
pub struct Sorted<const D: usize> {
    x: [Vec<f64>; D],
    q: Vec<f64>,
    /// The sorted place of the first body of each run, and its place in the arrays.
    runs: Vec<[usize; 2]>,
}

impl<const D: usize> Sorted<D> {
    /// Bodies in `order`; strengths are multiplied by `scale`. Targets have none.
    pub fn new(points: &[[f64; D]], strengths: Option<&[f64]>, scale: f64, order: &[u32]) -> Self {
        let pick = |d: usize| order.par_iter().map(|&i| points[i as usize][d]).collect_vec();
        Sorted {
            x: std::array::from_fn(pick),
            q: strengths.map_or(vec![], |q| order.par_iter().map(|&i| q[i as usize] * scale).collect_vec()),
            runs: vec![[0, 0]],
        }
    }

    /// The bodies of some sorted places: `runs` in ascending order, none of which begins where another ends, and the bodies of all
    /// runs, each with its strength, which is multiplied by `scale`.
    pub fn of_runs(bodies: &[([f64; D], f64)], scale: f64, runs: impl Iterator<Item = Range<u32>>) -> Self {
        let mut here = 0;
        let run = |run: Range<u32>| {
            let place = [run.start as usize, here];
            here += run.len();
            place
        };
        Sorted {
            runs: runs.map(run).collect(),
            x: std::array::from_fn(|d| bodies.par_iter().map(|b| b.0[d]).collect_vec()),
            q: bodies.par_iter().map(|b| b.1 * scale).collect_vec(),
        }
    }

    /// Where the body of a sorted place is in the arrays.
    #[inline]
    fn at(&self, place: usize) -> usize {
        let run = self.runs.partition_point(|run| run[0] <= place) - 1;
        place - self.runs[run][0] + self.runs[run][1]
    }

    /// The same for bodies of one run.
    #[inline]
    fn range(&self, places: Range<usize>) -> Range<usize> {
        let start = if places.is_empty() { 0 } else { self.at(places.start) };
        start..start + places.len()
    }

    /// Position of one body.
    pub fn position(&self, i: usize) -> [f64; D] {
        let i = self.at(i);
        std::array::from_fn(|d| self.x[d][i])
    }

    /// Strength of one body.
    pub fn strength(&self, i: usize) -> f64 {
        self.q[self.at(i)]
    }

    /// The sum of the strengths of a run of bodies.
    pub fn total(&self, range: Range<usize>) -> f64 {
        self.q[self.range(range)].iter().sum()
    }

    /// Whether strengths have both signs.
    pub fn is_mixed(&self) -> bool {
        Strengths::of_column(&self.q).mixed
    }

    /// The sum of the squares of the strengths of a run of bodies.
    pub fn total_square(&self, range: Range<usize>) -> f64 {
        self.q[self.range(range)].iter().map(|q| q * q).sum()
    }

    /// The sum of the sizes of the strengths of a run of bodies.
    pub fn total_size(&self, range: Range<usize>) -> f64 {
        self.q[self.range(range)].iter().map(|q| q.abs()).sum()
    }
}

/// Bodies relative to a center and in units of a length.
pub struct Buffer<T, const D: usize> {
    x: [Vec<T>; D],
    q: Vec<T>,
}

impl<T: Real, const D: usize> Default for Buffer<T, D> {
    fn default() -> Self {
        Buffer { x: std::array::from_fn(|_| vec![]), q: vec![] }
    }
}

impl<T: Real, const D: usize> Buffer<T, D> {
    /// Removes all bodies.
    pub fn clear(&mut self) {
        self.x.iter_mut().for_each(Vec::clear);
        self.q.clear();
    }

    /// Number of bodies, padding included.
    pub fn len(&self) -> usize {
        self.x[0].len()
    }

    /// Adds bodies; subtraction and scaling are in `f64`, then the result is rounded.
    pub fn push(&mut self, bodies: &Sorted<D>, range: Range<usize>, center: &[f64; D], scale: f64) {
        let range = bodies.range(range);
        for d in 0..D {
            let c = center[d];
            let scaled = bodies.x[d][range.clone()].iter().map(|x| (x - c) * scale);
            self.x[d].extend(scaled.map(T::from_f64));
        }
        if !bodies.q.is_empty() {
            self.q.extend(bodies.q[range].iter().map(|&q| T::from_f64(q)));
        }
    }

    /// Adds one body with its own strength.
    pub fn push_one(&mut self, x: [f64; D], q: f64, center: &[f64; D], scale: f64) {
        for d in 0..D {
            self.x[d].push(T::from_f64((x[d] - center[d]) * scale));
        }
        self.q.push(T::from_f64(q));
    }

    /// Repeats the first body, with strength 0, up to a whole number of vectors.
    pub fn pad(&mut self) {
        let n = self.len().next_multiple_of(T::WIDTH);
        for x in &mut self.x {
            let first = x.first().copied().unwrap_or(T::ZERO);
            x.resize(n, first);
        }
        if !self.q.is_empty() {
            self.q.resize(n, T::ZERO);
        }
    }

    /// Replaces the contents by bodies as targets of direct sums: padded far from everything, since a copy
    /// of a body would be a pair at distance zero.
    pub fn load_targets(
        &mut self,
        bodies: &Sorted<D>,
        runs: impl Iterator<Item = Range<usize>>,
        center: &[f64; D],
        scale: f64,
    ) {
        self.clear();
        runs.for_each(|run| self.push(bodies, run, center, scale));
        let n = self.len().next_multiple_of(T::WIDTH);
        for x in &mut self.x {
            x.resize(n, T::from_f64(1e9));
        }
    }

    /// Replaces the contents by the padded bodies of `range`.
    pub fn load(&mut self, bodies: &Sorted<D>, range: Range<usize>, center: &[f64; D], scale: f64) {
        self.clear();
        self.push(bodies, range, center, scale);
        self.pad();
    }

    /// What the expansions read.
    pub fn points(&self) -> Points<'_, T, D> {
        Points { x: self.x.each_ref().map(|x| &x[..]), q: &self.q }
    }
}

/// Potential and field at one body.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Zeroable)]
pub struct Sum<const D: usize> {
    /// Σ q K.
    pub potential: f64,
    /// −∇ of it.
    pub field: [f64; D],
}

impl<const D: usize> Default for Sum<D> {
    fn default() -> Self {
        Sum { potential: 0.0, field: [0.0; D] }
    }
}

/// Sums at a run of bodies in the units of a cell.
pub struct Totals<T, const D: usize> {
    potential: Vec<T>,
    field: [Vec<T>; D],
}

impl<T: Real, const D: usize> Default for Totals<T, D> {
    fn default() -> Self {
        Totals { potential: vec![], field: std::array::from_fn(|_| vec![]) }
    }
}

impl<T: Real, const D: usize> Totals<T, D> {
    /// Zeros for `n` bodies (a whole number of vectors).
    pub fn reset(&mut self, n: usize) {
        for a in std::iter::once(&mut self.potential).chain(&mut self.field) {
            a.clear();
            a.resize(n, T::ZERO);
        }
    }

    /// What the expansions write.
    pub fn sums(&mut self) -> Sums<'_, T, D> {
        Sums { potential: &mut self.potential, field: self.field.each_mut().map(|f| &mut f[..]) }
    }

    /// Adds the totals, times a number for the potential and one for the field, to the sums at the places `which`.
    pub fn add_to(&self, which: impl Iterator<Item = usize>, out: &mut [Sum<D>], [p, f]: [f64; 2]) {
        for (i, place) in which.enumerate() {
            let o = &mut out[place];
            o.potential += self.potential[i].to_f64() * p;
            for d in 0..D {
                o.field[d] += self.field[d][i].to_f64() * f;
            }
        }
    }
}

/// Cuts `out` into the pieces of the leaves, which partition it in order.
pub fn by_leaf<S>(out: &mut [S], leaves: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, &mut [S])> {
    let mut rest = out;
    leaves
        .map(|(leaf, n)| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(n);
            rest = tail;
            (leaf, head)
        })
        .collect()
}
