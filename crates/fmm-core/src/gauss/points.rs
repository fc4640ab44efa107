//! The operators between points and series, P2M and P2L, L2P and M2P. Each adds to its result.

use super::products::{Product, product, products};
use super::series::{BLOCK, Basis, Block, LANES, Points, Shape};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::two_sum;

/// Points to coefficients: P2M with powers, P2L with Hermite functions.
pub struct Gather<'a> {
    /// How the coefficients lie.
    pub shape: Shape,
    /// The functions.
    pub basis: Basis,
    /// The points.
    pub points: Points<'a>,
    /// Their strengths, each column as long as there are points.
    pub strengths: &'a [&'a [f64]],
    /// The coefficients.
    pub to: &'a mut [f64],
}

/// Does the work of a [`Gather`].
pub fn gather(work: Gather) {
    dispatch(work);
}

impl Task<f64> for Gather<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        match self.shape.dimension {
            1 => self.along::<V, 1>(),
            2 => self.along::<V, 2>(),
            _ => self.along::<V, 3>(),
        }
    }
}

impl Gather<'_> {
    #[inline(always)]
    fn along<V: Vector<Scalar = f64>, const D: usize>(self) {
        let Gather { shape, basis, points, strengths, to } = self;
        let mut block = Block::take(shape);
        let (p, width, row) = (shape.order, Block::width(shape), shape.row());
        let stride = row + LANES;
        let n = points.x[0].len();
        // Where there are several blocks: the sum of one, and what rounding takes from the sum of all. That may be
        // hundreds of spacings of numbers where one point is heavier than the others.
        let [mut part, mut lost] =
            if n > BLOCK { [vec![0.0; shape.column()], vec![0.0; to.len()]] } else { [vec![], vec![]] };
        for begin in (0..n).step_by(BLOCK) {
            let count = BLOCK.min(n - begin);
            block.functions::<V, D, false>(basis, p, &points, begin, count);
            Block::turn::<V>(&block.terms[0], &mut block.first, p, width, count);
            Block::turn::<V>(&block.terms[D - 1], &mut block.last, p, width, count);
            for (c, (q, to)) in strengths.iter().zip(to.chunks_exact_mut(shape.column())).enumerate() {
                for (j, &q) in q[begin..begin + count].iter().enumerate() {
                    let last = &block.last[j * width..][..width];
                    let middle = (0..p).map(|m| block.terms[1.min(D - 1)][m * BLOCK + j]);
                    Block::outer::<V>(shape, q, middle, last, &mut block.products[0][j * stride..][..stride]);
                }
                let all = std::iter::once(Product { a: &block.first, b: &block.products[0], k: count, rows: p });
                if n <= BLOCK {
                    products::<V, true>(all, (width, stride), to, (p, row));
                } else {
                    products::<V, false>(all, (width, stride), &mut part, (p, row));
                    for ((to, part), lost) in to.iter_mut().zip(&part).zip(&mut lost[c * part.len()..]) {
                        let [sum, rest] = two_sum(*to, *part);
                        *to = sum;
                        *lost += rest;
                    }
                }
            }
        }
        to.iter_mut().zip(&lost).for_each(|(to, lost)| *to += lost);
        block.keep(shape);
    }
}

/// Coefficients to points: L2P with powers, M2P with Hermite functions. Adds, for each column, the value and, if `gradient`, its derivatives
/// along all axes in units of 1/σ.
pub struct Spread<'a> {
    /// How the coefficients lie.
    pub shape: Shape,
    /// The functions.
    pub basis: Basis,
    /// The points.
    pub points: Points<'a>,
    /// The coefficients.
    pub from: &'a [f64],
    /// Whether derivatives are wanted.
    pub gradient: bool,
    /// `[point][column][value, derivatives]`.
    pub out: &'a mut [f64],
}

/// Does the work of a [`Spread`].
pub fn spread(work: Spread) {
    dispatch(work);
}

impl Task<f64> for Spread<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        match (self.shape.dimension, self.gradient) {
            (1, false) => self.along::<V, 1, false>(),
            (1, true) => self.along::<V, 1, true>(),
            (2, false) => self.along::<V, 2, false>(),
            (2, true) => self.along::<V, 2, true>(),
            (_, false) => self.along::<V, 3, false>(),
            (_, true) => self.along::<V, 3, true>(),
        }
    }
}

/// Points that share the loads of the coefficients.
const TOGETHER: usize = 4;

impl Spread<'_> {
    #[inline(always)]
    fn along<V: Vector<Scalar = f64>, const D: usize, const SLOPE: bool>(self) {
        let Spread { shape, basis, points, from, out, .. } = self;
        let mut block = Block::take(shape);
        let (p, width, row) = (shape.order, Block::width(shape), shape.row());
        let (stride, values) = (row + LANES, if SLOPE { 1 + D } else { 1 });
        let n = points.x[0].len();
        for begin in (0..n).step_by(BLOCK) {
            let count = BLOCK.min(n - begin);
            block.functions::<V, D, SLOPE>(basis, p, &points, begin, count);
            Block::turn::<V>(&block.terms[D - 1], &mut block.last, p, width, count);
            if SLOPE {
                Block::turn::<V>(&block.slopes[D - 1], &mut block.last_slope, p, width, count);
            }
            for j in 0..count {
                let middle = |m: usize| block.terms[1.min(D - 1)][m * BLOCK + j];
                let middle_slope = |m: usize| block.slopes[1.min(D - 1)][m * BLOCK + j];
                let last = &block.last[j * width..][..width];
                let [plain, one, two] = &mut block.products;
                Block::outer::<V>(shape, 1.0, (0..p).map(middle), last, &mut plain[j * stride..][..stride]);
                if SLOPE && D > 1 {
                    let last_slope = &block.last_slope[j * width..][..width];
                    // The last axis first: for D = 2 it is the only one.
                    Block::outer::<V>(shape, 1.0, (0..p).map(middle), last_slope, &mut one[j * stride..][..stride]);
                    if D > 2 {
                        let slopes = (0..p).map(middle_slope);
                        Block::outer::<V>(shape, 1.0, slopes, last, &mut two[j * stride..][..stride]);
                    }
                }
            }
            for group in (0..count).step_by(TOGETHER) {
                for (c, from) in from.chunks_exact(shape.column()).enumerate() {
                    let mut totals = [[V::zero(); 4]; TOGETHER];
                    for j in (0..row).step_by(2 * LANES) {
                        if j + 2 * LANES <= row {
                            Self::columns::<V, D, SLOPE, 2>(&block, from, (p, row, stride), group, j, &mut totals);
                        } else {
                            Self::columns::<V, D, SLOPE, 1>(&block, from, (p, row, stride), group, j, &mut totals);
                        }
                    }
                    for t in 0..TOGETHER.min(count - group) {
                        let at = (begin + group + t) * shape.columns * values + c * values;
                        for (to, total) in out[at..at + values].iter_mut().zip(totals[t]) {
                            *to += total.sum();
                        }
                    }
                }
            }
        }
        block.keep(shape);
    }

    /// The part of N vectors of every row, for [`TOGETHER`] points.
    #[inline(always)]
    fn columns<V: Vector<Scalar = f64>, const D: usize, const SLOPE: bool, const N: usize>(
        block: &Block,
        from: &[f64],
        (p, row, stride): (usize, usize, usize),
        group: usize,
        j: usize,
        totals: &mut [[V; 4]; TOGETHER],
    ) {
        let mut sums = [[V::zero(); N]; TOGETHER];
        product::<V, TOGETHER, N>(&block.terms[0], (BLOCK, group), from, (row, j), p, &mut sums);
        let mut slopes = [[V::zero(); N]; TOGETHER];
        if SLOPE {
            product::<V, TOGETHER, N>(&block.slopes[0], (BLOCK, group), from, (row, j), p, &mut slopes);
        }
        for t in 0..TOGETHER {
            for n in 0..N {
                let at = (group + t) * stride + j + n * LANES;
                let plain = V::load(&block.products[0][at..]);
                totals[t][0] = sums[t][n].mul_add(plain, totals[t][0]);
                if SLOPE {
                    totals[t][1] = slopes[t][n].mul_add(plain, totals[t][1]);
                    // products[1] has the slope along the last axis, products[2] that along the middle one.
                    if D > 1 {
                        let last = V::load(&block.products[1][at..]);
                        totals[t][D] = sums[t][n].mul_add(last, totals[t][D]);
                    }
                    if D > 2 {
                        let middle = V::load(&block.products[2][at..]);
                        totals[t][2] = sums[t][n].mul_add(middle, totals[t][2]);
                    }
                }
            }
        }
    }
}
