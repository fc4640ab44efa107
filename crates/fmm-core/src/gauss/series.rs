//! The two series, and the operators between points and series. Every operator adds to its result.
//!
//! Coefficients of a box and a column of strengths are p rows (the first axis) of p^(D−1) numbers (the others, the last one fastest), each
//! row padded to whole vectors. Points come in blocks: their powers or functions along the first axis are one matrix, the products of those
//! along the other axes another, and both operators are products of matrices.

use std::cell::RefCell;

use super::exp::exp_minus;
use crate::cpu::simd::{Task, Vector, dispatch};
use crate::real::Real;

/// Lanes of a vector.
pub const LANES: usize = f64::WIDTH;

/// Points of a block.
const BLOCK: usize = 32;

/// How the coefficients of one box lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Axes.
    pub dimension: usize,
    /// Terms along each axis, p.
    pub order: usize,
    /// Columns of strengths.
    pub columns: usize,
}

impl Shape {
    /// Numbers of a row that mean something: p^(D−1).
    pub fn rest(self) -> usize {
        self.order.pow(self.dimension as u32 - 1)
    }

    /// Numbers of a row.
    pub fn row(self) -> usize {
        self.rest().next_multiple_of(LANES)
    }

    /// Numbers of a column.
    pub fn column(self) -> usize {
        self.order * self.row()
    }

    /// Numbers of a box.
    pub fn total(self) -> usize {
        self.columns * self.column()
    }
}

/// The functions of the points that a series is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// φ_n(z) = z^n/√n!.
    Powers,
    /// ψ_n(z) = He_n(z) e^(−z²/2)/√n!.
    Hermite,
}

/// Some points and the box whose series they meet.
#[derive(Clone, Copy)]
pub struct Points<'a> {
    /// Coordinates of exactly the points that are meant; unused axes are empty.
    pub x: [&'a [f64]; 3],
    /// Centre of the box.
    pub centre: [f64; 3],
    /// 1/σ.
    pub scale: f64,
}

/// Adds the rank-k product of a (k rows of `lda`, from column `i`) and b (k rows of `ldb`, from column `j`).
#[inline(always)]
pub fn product<V: Vector<Scalar = f64>, const M: usize, const N: usize>(
    a: &[f64],
    (lda, i): (usize, usize),
    b: &[f64],
    (ldb, j): (usize, usize),
    k: usize,
    sums: &mut [[V; N]; M],
) {
    if k == 0 {
        return;
    }
    // So that no bound is checked inside.
    let (a, b) = (&a[i..(k - 1) * lda + i + M], &b[j..(k - 1) * ldb + j + N * LANES]);
    for k in 0..k {
        let a = &a[k * lda..][..M];
        let b = &b[k * ldb..][..N * LANES];
        let mut row = [V::zero(); N];
        for n in 0..N {
            row[n] = V::load(&b[n * LANES..]);
        }
        for m in 0..M {
            let x = V::splat(a[m]);
            for n in 0..N {
                sums[m][n] = x.mul_add(row[n], sums[m][n]);
            }
        }
    }
}

/// What one block of points is turned into.
struct Block {
    /// Functions along each axis and their derivatives: `[axis][term][point]`.
    terms: [Vec<f64>; 3],
    slopes: [Vec<f64>; 3],
    /// Square roots and their inverses.
    roots: Vec<[f64; 2]>,
    /// `[point][term]`, for the first axis and for the last one.
    first: Vec<f64>,
    last: Vec<f64>,
    last_slope: Vec<f64>,
    /// Products along all axes but the first, `[point][row]`, and with a derivative along the axes 1 and 2.
    products: [Vec<f64>; 3],
}

thread_local! {
    /// The last one: boxes with few points would spend their time on its memory.
    static KEPT: RefCell<Option<(Shape, Block)>> = const { RefCell::new(None) };
}

impl Block {
    /// One of this shape. What no operator writes is zero.
    fn take(shape: Shape) -> Self {
        match KEPT.take() {
            Some((kept, block)) if kept == shape => block,
            _ => Block::new(shape),
        }
    }

    /// Leaves it for the next.
    fn keep(self, shape: Shape) {
        KEPT.set(Some((shape, self)));
    }

    fn new(shape: Shape) -> Self {
        let p = shape.order.next_multiple_of(LANES) + LANES;
        let axes = || std::array::from_fn(|d| if d < shape.dimension { vec![0.0; p * BLOCK] } else { vec![] });
        let by_point = || vec![0.0; p * BLOCK];
        let products = || vec![0.0; (shape.row() + LANES) * BLOCK];
        Block {
            terms: axes(),
            slopes: axes(),
            roots: (0..=p).map(|n| [(n as f64).sqrt(), 1.0 / (n as f64).sqrt()]).collect(),
            first: by_point(),
            last: by_point(),
            last_slope: by_point(),
            products: std::array::from_fn(|d| if d < shape.dimension.max(1) { products() } else { vec![] }),
        }
    }

    /// Terms of a row of `first` and `last`.
    fn width(shape: Shape) -> usize {
        shape.order.next_multiple_of(LANES)
    }

    /// The functions of `count` points from `begin` on along every axis; places without a point are as at the centre.
    #[inline(always)]
    fn functions<V: Vector<Scalar = f64>, const D: usize, const SLOPE: bool>(
        &mut self,
        basis: Basis,
        order: usize,
        points: &Points,
        begin: usize,
        count: usize,
    ) {
        let scale = V::splat(points.scale);
        for d in 0..D {
            let centre = V::splat(points.centre[d]);
            for group in (0..count).step_by(LANES) {
                let mut lanes = [points.centre[d]; LANES];
                let here = LANES.min(count - group);
                lanes[..here].copy_from_slice(&points.x[d][begin + group..][..here]);
                let z = V::load(&lanes).sub(centre).mul(scale);
                let mut term = V::constant(1.0);
                if basis == Basis::Hermite {
                    term = exp_minus::<V, 13>(z.mul(z).mul(V::constant(0.5)));
                }
                let mut last = V::zero();
                let terms = order + usize::from(SLOPE && basis == Basis::Hermite);
                for n in 0..terms {
                    term.store(&mut self.terms[d][n * BLOCK + group..]);
                    if SLOPE {
                        // φ_n' = √n φ_(n−1); ψ_n' = −√(n+1) ψ_(n+1).
                        match basis {
                            Basis::Powers => {
                                let slope = last.mul(V::splat(self.roots[n][0]));
                                slope.store(&mut self.slopes[d][n * BLOCK + group..]);
                            }
                            Basis::Hermite if n > 0 => {
                                let slope = V::zero().sub(term.mul(V::splat(self.roots[n][0])));
                                slope.store(&mut self.slopes[d][(n - 1) * BLOCK + group..]);
                            }
                            Basis::Hermite => {}
                        }
                    }
                    let next = match basis {
                        Basis::Powers => z.mul(term),
                        Basis::Hermite => V::splat(self.roots[n][0]).neg_mul_add(last, z.mul(term)),
                    };
                    (last, term) = (term, next.mul(V::splat(self.roots[n + 1][1])));
                }
            }
        }
    }

    /// `[term][point]` to `[point][term]`; terms beyond the order are zero.
    #[inline(always)]
    fn turn<V: Vector<Scalar = f64>>(from: &[f64], to: &mut [f64], order: usize, width: usize, count: usize) {
        for group in (0..count).step_by(LANES) {
            for block in (0..width).step_by(LANES) {
                let mut rows = [V::zero(); LANES];
                for (n, row) in rows.iter_mut().enumerate().take(order.saturating_sub(block)) {
                    *row = V::load(&from[(block + n) * BLOCK + group..]);
                }
                V::transpose(&mut rows);
                for (lane, row) in rows.into_iter().enumerate() {
                    row.store(&mut to[(group + lane) * width + block..]);
                }
            }
        }
    }

    /// The products along all axes but the first of one point: `middle` and `last` are its functions.
    #[inline(always)]
    fn outer<V: Vector<Scalar = f64>>(
        shape: Shape,
        factor: f64,
        middle: impl Iterator<Item = f64>,
        last: &[f64],
        to: &mut [f64],
    ) {
        match shape.dimension {
            1 => to[0] = factor,
            2 => {
                let factor = V::splat(factor);
                for (to, last) in to.chunks_exact_mut(LANES).zip(last.chunks_exact(LANES)) {
                    V::load(last).mul(factor).store(to);
                }
            }
            // Each row runs over into the next one, which comes after it; what the last leaves is zero.
            _ => {
                for (m, y) in middle.enumerate() {
                    let y = V::splat(y * factor);
                    let to = &mut to[m * shape.order..][..last.len()];
                    for (to, last) in to.chunks_exact_mut(LANES).zip(last.chunks_exact(LANES)) {
                        V::load(last).mul(y).store(to);
                    }
                }
            }
        }
    }
}

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
        for begin in (0..n).step_by(BLOCK) {
            let count = BLOCK.min(n - begin);
            block.functions::<V, D, false>(basis, p, &points, begin, count);
            Block::turn::<V>(&block.terms[0], &mut block.first, p, width, count);
            Block::turn::<V>(&block.terms[D - 1], &mut block.last, p, width, count);
            for (q, to) in strengths.iter().zip(to.chunks_exact_mut(shape.column())) {
                for (j, &q) in q[begin..begin + count].iter().enumerate() {
                    let last = &block.last[j * width..][..width];
                    let middle = (0..p).map(|m| block.terms[1.min(D - 1)][m * BLOCK + j]);
                    Block::outer::<V>(shape, q, middle, last, &mut block.products[0][j * stride..][..stride]);
                }
                multiply::<V>(&block.first, width, &block.products[0], stride, count, to, (p, row));
            }
        }
        block.keep(shape);
    }
}

/// c (`rows` of `row`) += aᵀ b, for a of k rows of `lda` and b of k rows of `ldb`.
#[inline(always)]
fn multiply<V: Vector<Scalar = f64>>(
    a: &[f64],
    lda: usize,
    b: &[f64],
    ldb: usize,
    k: usize,
    c: &mut [f64],
    (rows, row): (usize, usize),
) {
    let mut i = 0;
    while i < rows {
        let mut j = 0;
        while j < row {
            let wide = j + 2 * LANES <= row;
            macro_rules! tile {
                ($m:literal, $n:literal) => {{
                    let mut sums = [[V::zero(); $n]; $m];
                    for m in 0..$m {
                        for n in 0..$n {
                            sums[m][n] = V::load(&c[(i + m) * row + j + n * LANES..]);
                        }
                    }
                    product::<V, $m, $n>(a, (lda, i), b, (ldb, j), k, &mut sums);
                    for m in 0..$m {
                        for n in 0..$n {
                            sums[m][n].store(&mut c[(i + m) * row + j + n * LANES..]);
                        }
                    }
                }};
            }
            match (rows - i, wide) {
                (1, true) => tile!(1, 2),
                (2, true) => tile!(2, 2),
                (3, true) => tile!(3, 2),
                (_, true) => tile!(4, 2),
                (1, false) => tile!(1, 1),
                (2, false) => tile!(2, 1),
                (3, false) => tile!(3, 1),
                (_, false) => tile!(4, 1),
            }
            j += if wide { 2 * LANES } else { LANES };
        }
        i += 4;
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

/// The matrix of M2L along one axis between boxes whose centres are `shift` apart (target minus source, in units of σ), transposed: row n holds
/// the terms m of (−1)^m √((n + m)!/(n! m!)) ψ_(n + m)(shift). Of the `order` rows and columns only the first `used` are not zero.
pub fn translation(order: usize, used: usize, shift: f64) -> Vec<f64> {
    let mut psi = vec![0.0; 2 * used];
    let (mut last, mut here) = (0.0, (-0.5 * shift * shift).exp());
    for (n, psi) in psi.iter_mut().enumerate() {
        *psi = here;
        let n = n as f64;
        (last, here) = (here, (shift * here - n.sqrt() * last) / (n + 1.0).sqrt());
    }
    let mut matrix = vec![0.0; order * order];
    for n in 0..used {
        let mut binomial = 1.0;
        for m in 0..used {
            let sign = if m % 2 == 0 { 1.0 } else { -1.0 };
            matrix[n * order + m] = sign * f64::sqrt(binomial) * psi[n + m];
            binomial *= (n + m + 1) as f64 / (m + 1) as f64;
        }
    }
    matrix
}

/// What one source box gives to a sum of translations: its matrix, order and coefficients.
pub type Term<'a> = (&'a [f64], usize, &'a [f64]);

/// M2L along the first axis of the coefficients of one column: the sum over all terms, with the axes turned by one place, so that the next is first.
pub struct Translate<'a> {
    /// How the coefficients lie.
    pub shape: Shape,
    /// Matrices and coefficients.
    pub terms: &'a [Term<'a>],
    /// The result; not added to.
    pub to: &'a mut [f64],
    /// As long as a column.
    pub scratch: &'a mut [f64],
}

/// Does the work of a [`Translate`].
pub fn translate(work: Translate) {
    dispatch(work);
}

impl Task<f64> for Translate<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) {
        let Translate { shape, terms, to, scratch } = self;
        let (p, row, rest) = (shape.order, shape.row(), shape.rest());
        let mut i = 0;
        while i < p {
            let mut j = 0;
            while j < row {
                let wide = j + 2 * LANES <= row;
                macro_rules! tile {
                    ($m:literal, $n:literal) => {{
                        let mut sums = [[V::zero(); $n]; $m];
                        for &(matrix, order, from) in terms {
                            if i < order {
                                product::<V, $m, $n>(matrix, (p, i), from, (row, j), order, &mut sums);
                            }
                        }
                        for m in 0..$m {
                            for n in 0..$n {
                                sums[m][n].store(&mut scratch[(i + m) * row + j + n * LANES..]);
                            }
                        }
                    }};
                }
                match (p - i, wide) {
                    (1, true) => tile!(1, 2),
                    (2, true) => tile!(2, 2),
                    (3, true) => tile!(3, 2),
                    (_, true) => tile!(4, 2),
                    (1, false) => tile!(1, 1),
                    (2, false) => tile!(2, 1),
                    (3, false) => tile!(3, 1),
                    (_, false) => tile!(4, 1),
                }
                j += if wide { 2 * LANES } else { LANES };
            }
            i += 4;
        }
        // [a][b c] to [b][c a]: each number of a row goes to the end of its own run of p.
        if shape.dimension == 1 {
            to.copy_from_slice(scratch);
            return;
        }
        let run = rest / p;
        for b in 0..p {
            for c in 0..run {
                let to = &mut to[b * row + c * p..][..p];
                for (a, to) in to.iter_mut().enumerate() {
                    *to = scratch[a * row + b * run + c];
                }
            }
            to[b * row + rest..(b + 1) * row].fill(0.0);
        }
    }
}
