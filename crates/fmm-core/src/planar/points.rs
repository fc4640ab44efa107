//! Points and expansions: P2M and P2L are sums of powers, L2P and M2P evaluate a polynomial. One point a lane.

use super::Kernel;
use super::logarithm::inverse_and_log;
use super::series::Series;
use super::shifts::{MOST, add_up};
use crate::math::simd::{Task, Vector};
use crate::math::{Number, Real};

/// Points relative to the center of an expansion and in its unit, with strengths (empty for targets), up to whole vectors.
/// Padding stands at (1, 0) and has strength zero.
#[derive(Debug, Default)]
pub struct Batch<T> {
    /// Coordinates.
    pub x: [Vec<T>; 2],
    /// Real and imaginary parts of strengths.
    pub q: [Vec<T>; 2],
}

impl<T: Real> Batch<T> {
    /// Removes all points.
    pub fn clear(&mut self) {
        self.x.iter_mut().chain(&mut self.q).for_each(Vec::clear);
    }

    /// Number of points, with padding after [`pad`](Batch::pad).
    pub fn len(&self) -> usize {
        self.x[0].len()
    }

    /// Fills up to whole vectors for direct sums: no padding is at distance zero, or further from a target than points are.
    pub fn pad_apart(&mut self) {
        let n = self.len().next_multiple_of(T::WIDTH);
        // Single precision counts pairs at distance zero. Double precision may be in units in which a square overflows out there.
        let place = |first: &T| if T::WIDTH > f64::WIDTH { T::from_f64(1e9) } else { *first };
        for x in &mut self.x {
            let at = x.first().map_or(T::ZERO, place);
            x.resize(n, at);
        }
        for q in &mut self.q {
            if !q.is_empty() {
                q.resize(n, T::ZERO);
            }
        }
    }

    /// Fills up to whole vectors.
    pub fn pad(&mut self) {
        let n = self.len().next_multiple_of(T::WIDTH);
        self.x[0].resize(n, T::ONE);
        self.x[1].resize(n, T::ZERO);
        for q in &mut self.q {
            if !q.is_empty() {
                q.resize(n, T::ZERO);
            }
        }
    }
}

/// The units of a batch and of the expansion of a box that meets it.
#[derive(Clone, Copy)]
pub struct Units {
    /// Added to the logarithms of squared distances in the unit of the batch, by log 2.
    pub shift: f64,
    /// The unit of the expansion in that of the batch: 1 but for P2L and M2P, where it may be less.
    pub own: f64,
}

/// P2M, or P2L with `LOCAL`: adds the expansion of a batch.
pub struct Gather<'a, T, const LOCAL: bool> {
    /// The series.
    pub series: &'a Series<T>,
    /// Padded sources.
    pub batch: &'a Batch<T>,
    /// Those of the batch and of the expansion.
    pub units: Units,
    /// One expansion.
    pub to: &'a mut [T],
}

impl<T: Real, const LOCAL: bool> Task<T> for Gather<'_, T, LOCAL> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let Gather { series, batch, units, to } = self;
        let (shift, own) = (V::constant(units.shift), V::constant(units.own));
        let (terms, width, n) = (series.terms, T::WIDTH, batch.len());
        let mut sums = [[V::zero(); 2]; MOST];
        let complex = !batch.q[1].is_empty();
        for i in (0..n).step_by(width) {
            let [x, y] = [V::load(&batch.x[0][i..]), V::load(&batch.x[1][i..])];
            let mut w = [V::load(&batch.q[0][i..]), if complex { V::load(&batch.q[1][i..]) } else { V::zero() }];
            let mut ratio = [x, y];
            if LOCAL {
                let (inverse, log) = inverse_and_log(x.mul_add(x, y.mul(y)), shift);
                let inverse = inverse.mul(own);
                ratio = [x.mul(inverse), V::zero().sub(y.mul(inverse))];
                if series.kernel == Kernel::Log {
                    sums[0][0] = w[0].mul(V::constant(0.5)).mul_add(log, sums[0][0]);
                } else {
                    let [a, b] = [V::zero().sub(w[0]), V::zero().sub(w[1])];
                    w = [b.neg_mul_add(ratio[1], a.mul(ratio[0])), b.mul_add(ratio[0], a.mul(ratio[1]))];
                }
            }
            let skip = usize::from(LOCAL && series.kernel == Kernel::Log);
            for k in 0..terms {
                if k >= skip {
                    sums[k] = [sums[k][0].add(w[0]), sums[k][1].add(w[1])];
                }
                let [a, b] = w;
                w = [b.neg_mul_add(ratio[1], a.mul(ratio[0])), b.mul_add(ratio[0], a.mul(ratio[1]))];
            }
        }
        for side in 0..2 {
            for block in (0..series.part).step_by(width) {
                let mut rows = [V::zero(); 16];
                for k in 0..width.min(terms.saturating_sub(block)) {
                    rows[k] = sums[block + k][side].mul(V::splat(series.weights[block + k]));
                }
                let to = &mut to[side * series.part + block..][..width];
                V::load(to).add(add_up(&mut rows[..width])).store(to);
            }
        }
    }
}

/// L2P, or M2P with `MULTIPOLE`: adds an expansion at the points of a batch.
pub struct Spread<'a, T, const MULTIPOLE: bool> {
    /// The series.
    pub series: &'a Series<T>,
    /// Padded targets.
    pub batch: &'a Batch<T>,
    /// Those of the batch and of the expansion.
    pub units: Units,
    /// One expansion.
    pub from: &'a [T],
    /// Potential (log only), and real and imaginary part of G times the unit. As long as the batch.
    pub to: [&'a mut [T]; 3],
}

impl<T: Real, const MULTIPOLE: bool> Task<T> for Spread<'_, T, MULTIPOLE> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let Spread { series, batch, units, from, to } = self;
        let (shift, own) = (V::constant(units.shift), V::constant(units.own));
        let (terms, part) = (series.terms, series.part);
        let [potential, re, im] = to;
        let log_kernel = series.kernel == Kernel::Log;
        for i in (0..batch.len()).step_by(T::WIDTH) {
            let [x, y] = [V::load(&batch.x[0][i..]), V::load(&batch.x[1][i..])];
            let (mut w, mut log) = ([x, y], V::zero());
            if MULTIPOLE {
                let (inverse, log_r2) = inverse_and_log(x.mul_add(x, y.mul(y)), shift);
                let inverse = inverse.mul(own);
                w = [x.mul(inverse), V::zero().sub(y.mul(inverse))];
                log = log_r2.mul(V::constant(0.5));
            }
            // Value and derivative by Horner's rule.
            let [mut value, mut slope] = [[V::zero(); 2]; 2];
            for k in (0..terms).rev() {
                if log_kernel {
                    let [a, b] = slope;
                    slope =
                        [b.neg_mul_add(w[1], a.mul_add(w[0], value[0])), b.mul_add(w[0], a.mul_add(w[1], value[1]))];
                }
                let c = if MULTIPOLE && log_kernel && k == 0 {
                    [V::zero(); 2]
                } else {
                    [V::splat(from[k]), V::splat(from[part + k])]
                };
                let [a, b] = value;
                value = [b.neg_mul_add(w[1], a.mul_add(w[0], c[0])), b.mul_add(w[0], a.mul_add(w[1], c[1]))];
            }
            let mut g = if log_kernel { slope } else { value };
            if MULTIPOLE {
                // Harmonic: G u = w P(w). Log: G u = a_0 w − w² P'(w).
                if log_kernel {
                    let strength = V::splat(from[0]);
                    value[0] = strength.mul_add(log, value[0]);
                    g = [
                        w[1].mul_add(g[1], w[0].neg_mul_add(g[0], strength)),
                        V::zero().sub(w[1].mul_add(g[0], w[0].mul(g[1]))),
                    ];
                }
                g = [w[1].neg_mul_add(g[1], w[0].mul(g[0])), w[1].mul_add(g[0], w[0].mul(g[1]))];
            }
            if log_kernel {
                V::load(&potential[i..]).add(value[0]).store(&mut potential[i..]);
            }
            V::load(&re[i..]).add(g[0]).store(&mut re[i..]);
            V::load(&im[i..]).add(g[1]).store(&mut im[i..]);
        }
    }
}
