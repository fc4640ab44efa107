//! P2P: pairs of points, directly. Sources fill the lanes.

use super::series::LANES;
use crate::math::exp::exp_minus_of;
use crate::math::simd::{Task, Vector, dispatch};

/// Sources that are gathered before they meet the targets: they stay in the first-level cache.
pub const GATHER: usize = 512;

/// Columns that are summed together; between one and this many are padded.
pub const COLUMNS: usize = 4;

/// Sources side by side: coordinates, and up to [`COLUMNS`] columns of strengths.
#[derive(Debug, Default)]
pub struct Batch {
    /// Coordinates; unused axes are empty.
    pub x: [Vec<f64>; 3],
    /// Strengths.
    pub q: [Vec<f64>; COLUMNS],
}

impl Batch {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.x[0].len()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.x.iter_mut().chain(&mut self.q).for_each(Vec::clear);
    }

    /// Adds points.
    pub fn push(&mut self, x: [&[f64]; 3], q: &[&[f64]]) {
        self.x.iter_mut().zip(x).chain(self.q.iter_mut().zip(q.iter().copied())).for_each(|(to, x)| to.extend(x));
    }

    /// Fills the last vector with copies of the last point that have no strength, and adds columns without any.
    fn pad(&mut self, columns: usize) {
        let n = self.len().next_multiple_of(LANES);
        for x in &mut self.x {
            if let Some(&last) = x.last() {
                x.resize(n, last);
            }
        }
        let columns = if columns == 1 { 1 } else { COLUMNS };
        self.q[..columns].iter_mut().for_each(|q| q.resize(n, 0.0));
    }
}

/// Adds what the sources of a batch give to targets.
pub struct Meet<'a> {
    /// Axes.
    pub dimension: usize,
    /// Targets; unused axes are empty.
    pub targets: [&'a [f64]; 3],
    /// Sources; padded on the way.
    pub sources: &'a mut Batch,
    /// Columns of strengths, 1 to [`COLUMNS`], and the first of them among all.
    pub columns: (usize, usize),
    /// 1/σ.
    pub scale: f64,
    /// Degree of the exponential's series.
    pub terms: usize,
    /// Whether derivatives are wanted.
    pub gradient: bool,
    /// `[target][column][value, derivatives]`, and the numbers of a target.
    pub out: &'a mut [f64],
    /// Numbers of a target in `out`.
    pub stride: usize,
}

/// Does the work of a [`Meet`].
pub fn meet(work: Meet) {
    work.sources.pad(work.columns.0);
    dispatch(work);
}

impl Task<f64> for Meet<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        match self.dimension {
            1 => self.along::<V, 1>(),
            2 => self.along::<V, 2>(),
            _ => self.along::<V, 3>(),
        }
    }
}

impl Meet<'_> {
    #[inline(always)]
    fn along<V: Vector<Scalar = f64>, const D: usize>(self) {
        if self.terms <= 8 { self.with::<V, D, 8>() } else { self.with::<V, D, 13>() }
    }

    // Groups of targets that keep the pipelines busy, by the number of columns.
    #[inline(always)]
    fn with<V: Vector<Scalar = f64>, const D: usize, const TERMS: usize>(self) {
        match (self.columns.0, self.gradient) {
            (1, false) => self.sum::<V, D, 4, TERMS, 1, false>(),
            (_, false) => self.sum::<V, D, 2, TERMS, COLUMNS, false>(),
            (1, true) => self.sum::<V, D, 4, TERMS, 1, true>(),
            (_, true) => self.sum::<V, D, 2, TERMS, COLUMNS, true>(),
        }
    }

    #[inline(always)]
    fn sum<
        V: Vector<Scalar = f64>,
        const D: usize,
        const T: usize,
        const TERMS: usize,
        const C: usize,
        const SLOPE: bool,
    >(
        self,
    ) {
        let Meet { targets, sources, columns, scale, out, stride, .. } = self;
        let n = sources.len();
        let x: [&[f64]; D] = std::array::from_fn(|d| &sources.x[d][..n]);
        let q: [&[f64]; C] = std::array::from_fn(|c| &sources.q[c][..n]);
        let values = if SLOPE { 1 + D } else { 1 };
        let count = targets[0].len();
        let mut add = |first: usize, sums: &[[[f64; 4]; C]]| {
            for (t, sums) in sums.iter().enumerate() {
                for c in 0..columns.0 {
                    let at = (first + t) * stride + (columns.1 + c) * values;
                    for (to, sum) in out[at..at + values].iter_mut().zip(sums[c]) {
                        *to += sum;
                    }
                }
            }
        };
        // Many boxes have fewer targets than a group: the rest comes one by one.
        let groups = count - count % T;
        for first in (0..groups).step_by(T) {
            add(first, &together::<V, D, T, TERMS, C, SLOPE>((targets, first, scale), &x, &q));
        }
        for first in groups..count {
            add(first, &together::<V, D, 1, TERMS, C, SLOPE>((targets, first, scale), &x, &q));
        }
    }
}

/// For T targets from `first` on and each column: the value and the derivatives.
#[inline(always)]
fn together<
    V: Vector<Scalar = f64>,
    const D: usize,
    const T: usize,
    const TERMS: usize,
    const C: usize,
    const SLOPE: bool,
>(
    (targets, first, scale): ([&[f64]; 3], usize, f64),
    x: &[&[f64]; D],
    q: &[&[f64]; C],
) -> [[[f64; 4]; C]; T] {
    let (scale, half) = (V::splat(scale), V::constant(0.5));
    let mut at = [[V::zero(); D]; T];
    for t in 0..T {
        for d in 0..D {
            at[t][d] = V::splat(targets[d][first + t]);
        }
    }
    let mut sums = [[[V::zero(); 4]; C]; T];
    for j in (0..x[0].len()).step_by(LANES) {
        let (mut y, mut g) = ([V::zero(); D], [V::zero(); C]);
        for d in 0..D {
            y[d] = V::load(&x[d][j..]);
        }
        for c in 0..C {
            g[c] = V::load(&q[c][j..]);
        }
        for t in 0..T {
            let mut u = [V::zero(); D];
            let mut r2 = V::zero();
            for d in 0..D {
                u[d] = at[t][d].sub(y[d]).mul(scale);
                r2 = if d == 0 { u[d].mul(u[d]) } else { u[d].mul_add(u[d], r2) };
            }
            let e = exp_minus_of::<V, TERMS>(r2.mul(half));
            for c in 0..C {
                if SLOPE {
                    let term = g[c].mul(e);
                    sums[t][c][0] = sums[t][c][0].add(term);
                    for d in 0..D {
                        sums[t][c][1 + d] = term.neg_mul_add(u[d], sums[t][c][1 + d]);
                    }
                } else {
                    sums[t][c][0] = g[c].mul_add(e, sums[t][c][0]);
                }
            }
        }
    }
    let mut totals = [[[0.0; 4]; C]; T];
    for t in 0..T {
        for c in 0..C {
            for v in 0..if SLOPE { 1 + D } else { 1 } {
                totals[t][c][v] = sums[t][c][v].sum();
            }
        }
    }
    totals
}
