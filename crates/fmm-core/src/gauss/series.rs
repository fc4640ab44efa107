//! The two series: how coefficients lie, and the functions of points that they are multiplied with.
//!
//! Coefficients of a box and a column of strengths are p rows (the first axis) of p^(D−1) numbers (the others, the last one fastest), each
//! row padded to whole vectors. Points come in blocks: their powers or functions along the first axis are one matrix, the products of those
//! along the other axes another, and both operators are products of matrices.

use std::cell::RefCell;

use crate::math::Number;
use crate::math::exp::exp_minus;
use crate::math::simd::Vector;

/// Lanes of a vector.
pub const LANES: usize = f64::WIDTH;

/// Points of a block.
pub(super) const BLOCK: usize = 32;

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
    /// Center of the box.
    pub center: [f64; 3],
    /// 1/σ.
    pub scale: f64,
}

/// What one block of points is turned into.
pub(super) struct Block {
    /// Functions along each axis: `[axis][term][point]`.
    pub(super) terms: [Vec<f64>; 3],
    /// The derivatives.
    pub(super) slopes: [Vec<f64>; 3],
    /// Square roots and their inverses.
    roots: Vec<[f64; 2]>,
    /// Functions along the first axis, `[point][term]`.
    pub(super) first: Vec<f64>,
    /// The same for the last axis.
    pub(super) last: Vec<f64>,
    /// The derivatives along the last axis.
    pub(super) last_slope: Vec<f64>,
    /// Products along all axes but the first, `[point][row]`, and with a derivative along the axes 1 and 2.
    pub(super) products: [Vec<f64>; 3],
}

thread_local! {
    /// The last one: boxes with few points would spend their time on its memory.
    static KEPT: RefCell<Option<(Shape, Block)>> = const { RefCell::new(None) };
}

impl Block {
    /// One of this shape. What no operator writes is zero.
    pub(super) fn take(shape: Shape) -> Self {
        match KEPT.take() {
            Some((kept, block)) if kept == shape => block,
            _ => Block::new(shape),
        }
    }

    /// Leaves it for the next.
    pub(super) fn keep(self, shape: Shape) {
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
    pub(super) fn width(shape: Shape) -> usize {
        shape.order.next_multiple_of(LANES)
    }

    /// The functions of `count` points from `begin` on along every axis; places without a point are as at the center.
    #[inline(always)]
    pub(super) fn functions<V: Vector<Scalar = f64>, const D: usize, const SLOPE: bool>(
        &mut self,
        basis: Basis,
        order: usize,
        points: &Points,
        begin: usize,
        count: usize,
    ) {
        let scale = V::splat(points.scale);
        for d in 0..D {
            let center = V::splat(points.center[d]);
            for group in (0..count).step_by(LANES) {
                let mut lanes = [points.center[d]; LANES];
                let here = LANES.min(count - group);
                lanes[..here].copy_from_slice(&points.x[d][begin + group..][..here]);
                let z = V::load(&lanes).sub(center).mul(scale);
                let mut term = V::constant(1.0);
                if basis == Basis::Hermite {
                    term = exp_minus(z.mul(z).mul(V::constant(0.5)));
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
    pub(super) fn turn<V: Vector<Scalar = f64>>(
        from: &[f64],
        to: &mut [f64],
        order: usize,
        width: usize,
        count: usize,
    ) {
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
    pub(super) fn outer<V: Vector<Scalar = f64>>(
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
