//! Shifts of expansions between boxes, many pairs at a time: one pair a lane.
//!
//! With multipoles scaled by the distance r of a pair, Algorithm 3.6 of Goude & Engblom is one real matrix for all pairs: its two
//! Pascal triangles multiplied out. That costs as many multiply-adds as the triangles cost additions, and they run from registers.
//! M2M and L2L, of which there is one a box, are triangles in units of the parent, without division by the shift: zero is a shift
//! like any other.

use super::series::Series;
use super::{Kernel, Pyramid};
use crate::math::simd::{Task, Vector};
use crate::math::{Number, Real};
use crate::planar::accuracy::MAX_ORDER;
use crate::planar::logarithm::inverse_and_log;
use crate::planar::pyramid::power;

/// Terms of the longest expansion, up to whole vectors.
pub const MOST: usize = (MAX_ORDER + 1).next_multiple_of(16);

/// One expansion a lane: real and imaginary parts by term.
type Lanes<V> = [[V; 2]; MOST];

/// Reads one expansion into each lane; lanes without a box are zero.
#[inline(always)]
fn gather<T: Real, V: Vector<Scalar = T>>(series: &Series<T>, all: &[T], cells: &[u32], to: &mut Lanes<V>) {
    let (n, width) = (series.len(), T::WIDTH);
    for side in 0..2 {
        for block in (0..series.part).step_by(width) {
            let mut rows = [V::zero(); 16];
            for lane in 0..cells.len() {
                rows[lane] = V::load(&all[cells[lane] as usize * n + side * series.part + block..]);
            }
            V::transpose(&mut rows[..width]);
            for k in 0..width {
                to[block + k][side] = rows[k];
            }
        }
    }
}

/// Multiplies term k by w^k, and by `first`.
#[inline(always)]
fn scale<V: Vector>(x: &mut [[V; 2]], w: [V; 2], first: [V; 2]) {
    let mut factor = first;
    for x in x {
        let [re, im] = *x;
        *x = [im.neg_mul_add(factor[1], re.mul(factor[0])), im.mul_add(factor[0], re.mul(factor[1]))];
        let [a, b] = factor;
        factor = [b.neg_mul_add(w[1], a.mul(w[0])), b.mul_add(w[0], a.mul(w[1]))];
    }
}

/// M2L: adds what the boxes of `rows` give to the local expansions of a run of target boxes.
pub struct M2l<'a, T> {
    /// The series.
    pub series: &'a Series<T>,
    /// Targets and sources.
    pub trees: [&'a Pyramid; 2],
    /// Sources of each target.
    pub rows: &'a crate::Csr<u32>,
    /// The unit of length is 2^this of the caller's.
    pub global: i32,
    /// First target box.
    pub first: usize,
    /// All multipoles.
    pub multipoles: &'a [T],
    /// The targets' local expansions.
    pub locals: &'a mut [T],
}

impl<T: Real> Task<T> for M2l<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let M2l { series, trees, rows, global, first, multipoles, locals } = self;
        let (terms, width) = (series.terms, T::WIDTH);
        let [mut x, mut total]: [Lanes<V>; 2] = [[[V::zero(); 2]; MOST]; 2];
        for (i, local) in locals.chunks_exact_mut(series.len()).enumerate() {
            let row = rows.row(first + i);
            if row.is_empty() {
                continue;
            }
            total[..series.part].fill([V::zero(); 2]);
            for cells in row.chunks(width) {
                let pair = Pairs::<V>::new(trees, first + i, cells, global);
                gather(series, multipoles, cells, &mut x);
                let strength = x[0][0];
                scale(&mut x[..terms], pair.source, [V::constant(1.0), V::zero()]);
                let first_factor = match series.kernel {
                    Kernel::Log => [pair.lanes, V::zero()],
                    Kernel::Harmonic => [V::zero().sub(pair.target[0]), V::zero().sub(pair.target[1])],
                };
                multiply(&series.matrix, &x[..terms], &mut total[..terms], pair.target, first_factor);
                if series.kernel == Kernel::Log {
                    total[0][0] = strength.mul_add(pair.log, total[0][0]);
                }
            }
            for side in 0..2 {
                for block in (0..series.part).step_by(width) {
                    let to = &mut local[side * series.part + block..][..width];
                    let mut part = [V::zero(); 16];
                    for k in 0..width {
                        part[k] = total[block + k][side];
                    }
                    V::load(to).add(add_up(&mut part[..width])).store(to);
                }
            }
        }
    }
}

/// The sums of the lanes of each of [`Number::WIDTH`] vectors, in a fixed order.
#[inline(always)]
pub fn add_up<V: Vector>(rows: &mut [V]) -> V {
    V::transpose(rows);
    let mut half = rows.len() / 2;
    while half > 0 {
        for i in 0..half {
            rows[i] = rows[i].add(rows[i + half]);
        }
        half /= 2;
    }
    rows[0]
}

/// total_l += τ^l·first·Σ_k matrix_lk x_k.
#[inline(always)]
fn multiply<T: Real, V: Vector<Scalar = T>>(
    matrix: &[T],
    x: &[[V; 2]],
    total: &mut [[V; 2]],
    tau: [V; 2],
    first: [V; 2],
) {
    /// Rows that share the loads of x: two accumulators each.
    const ROWS: usize = 6;
    let n = x.len();
    let mut factor = first;
    let mut l = 0;
    while l < n {
        let rows = ROWS.min(n - l);
        let mut sums = [[V::zero(); 2]; ROWS];
        // An incomplete block repeats its last row.
        let mut row = [&matrix[..n]; ROWS];
        for r in 0..ROWS {
            let at = l + if r < rows { r } else { rows - 1 };
            row[r] = &matrix[at * n..at * n + n];
        }
        for k in 0..n {
            let [re, im] = x[k];
            for r in 0..ROWS {
                let c = V::splat(row[r][k]);
                sums[r][0] = c.mul_add(re, sums[r][0]);
                sums[r][1] = c.mul_add(im, sums[r][1]);
            }
        }
        for r in 0..rows {
            let ([re, im], [a, b]) = (sums[r], factor);
            let [sum_re, sum_im] = total[l + r];
            total[l + r] = [im.neg_mul_add(b, re.mul_add(a, sum_re)), im.mul_add(a, re.mul_add(b, sum_im))];
            factor = [b.neg_mul_add(tau[1], a.mul(tau[0])), b.mul_add(tau[0], a.mul(tau[1]))];
        }
        l += rows;
    }
}

/// The geometry of one target and a source a lane, with t = target center − source center.
struct Pairs<V> {
    /// u_source/t.
    source: [V; 2],
    /// −u_target/t; zero in lanes without a source.
    target: [V; 2],
    /// log|t|.
    log: V,
    /// One in lanes with a source.
    lanes: V,
}

impl<V: Vector> Pairs<V> {
    #[inline(always)]
    fn new([targets, sources]: [&Pyramid; 2], b: usize, cells: &[u32], global: i32) -> Self {
        // Lengths in the larger unit, so that squares stay in the range of numbers.
        let mut lanes = [[V::Scalar::ZERO; 16]; 6];
        lanes[0] = [V::Scalar::ONE; 16];
        for (lane, &c) in cells.iter().enumerate() {
            let c = c as usize;
            let largest = targets.exponent[b].max(sources.exponent[c]);
            let scale = power(-largest);
            let t = [0, 1].map(|d| (targets.center[d][b] - sources.center[d][c]) * scale);
            let units = [power(sources.exponent[c] - largest), power(targets.exponent[b] - largest)];
            for (k, v) in
                [t[0], t[1], units[0], units[1], 2.0 * f64::from(largest + global), 1.0].into_iter().enumerate()
            {
                lanes[k][lane] = V::Scalar::from_f64(v);
            }
        }
        let [x, y, source, target, shift, lanes] = [
            V::load(&lanes[0]),
            V::load(&lanes[1]),
            V::load(&lanes[2]),
            V::load(&lanes[3]),
            V::load(&lanes[4]),
            V::load(&lanes[5]),
        ];
        let (inverse, log) = inverse_and_log(x.mul_add(x, y.mul(y)), shift);
        let [re, im] = [x.mul(inverse), V::zero().sub(y.mul(inverse))];
        let minus = V::zero().sub(target);
        Pairs {
            source: [source.mul(re), source.mul(im)],
            target: [minus.mul(re), minus.mul(im)],
            log: log.mul(V::constant(0.5)).mul(lanes),
            lanes,
        }
    }
}

/// M2M from a run of boxes, whole families, to their parents.
pub struct M2m<'a, T> {
    /// The series.
    pub series: &'a Series<T>,
    /// The boxes.
    pub tree: &'a Pyramid,
    /// First child.
    pub first: usize,
    /// The children's multipoles.
    pub children: &'a [T],
    /// The parents' multipoles.
    pub parents: &'a mut [T],
}

/// Shift of each child relative to its parent in the parent's unit, and the ratio of the units.
#[inline(always)]
fn steps<V: Vector>(tree: &Pyramid, first: usize, count: usize) -> ([V; 2], V) {
    let mut lanes = [[V::Scalar::ZERO; 16]; 3];
    for lane in 0..count {
        let (child, parent) = (first + lane, (first + lane - 1) / 4);
        let scale = power(-tree.exponent[parent]);
        for d in 0..2 {
            lanes[d][lane] = V::Scalar::from_f64((tree.center[d][child] - tree.center[d][parent]) * scale);
        }
        lanes[2][lane] = V::Scalar::from_f64(power(tree.exponent[child] - tree.exponent[parent]));
    }
    ([V::load(&lanes[0]), V::load(&lanes[1])], V::load(&lanes[2]))
}

impl<T: Real> Task<T> for M2m<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let M2m { series, tree, first, children, parents } = self;
        let (terms, n, width) = (series.terms, series.len(), T::WIDTH);
        let mut x: Lanes<V> = [[V::zero(); 2]; MOST];
        let count = children.len() / n;
        let numbers: [u32; 16] = std::array::from_fn(|i| i as u32);
        for begin in (0..count).step_by(width) {
            let lanes = width.min(count - begin);
            let (shift, ratio) = steps::<V>(tree, first + begin, lanes);
            gather(series, &children[begin * n..], &numbers[..lanes], &mut x);
            scale(&mut x[..terms], [ratio, V::zero()], [V::constant(1.0), V::zero()]);
            let strength = x[0];
            // The logarithm's own terms: −a_0 δ^l/l, after the triangle.
            let low = usize::from(series.kernel == Kernel::Log);
            for k in (low + 1..terms).rev() {
                for j in k..terms {
                    let ([a, b], [re, im]) = (x[j - 1], x[j]);
                    x[j] = [
                        b.neg_mul_add(shift[1], a.mul_add(shift[0], re)),
                        b.mul_add(shift[0], a.mul_add(shift[1], im)),
                    ];
                }
            }
            if series.kernel == Kernel::Log {
                let mut term = strength;
                for l in 1..terms {
                    let [a, b] = term;
                    term = [b.neg_mul_add(shift[1], a.mul(shift[0])), b.mul_add(shift[0], a.mul(shift[1]))];
                    let weight = V::splat(series.weights[l]);
                    x[l] = [weight.mul_add(term[0], x[l][0]), weight.mul_add(term[1], x[l][1])];
                }
            }
            for side in 0..2 {
                for block in (0..series.part).step_by(width) {
                    let mut rows = [V::zero(); 16];
                    for k in 0..width.min(terms.saturating_sub(block)) {
                        rows[k] = x[block + k][side];
                    }
                    V::transpose(&mut rows[..width]);
                    for family in 0..lanes / 4 {
                        let to = &mut parents[(begin / 4 + family) * n + side * series.part + block..][..width];
                        let r = &rows[4 * family..4 * family + 4];
                        V::load(to).add(r[0].add(r[1]).add(r[2].add(r[3]))).store(to);
                    }
                }
            }
        }
    }
}

/// L2L to a run of boxes, whole families, from their parents.
pub struct L2l<'a, T> {
    /// The series.
    pub series: &'a Series<T>,
    /// The boxes.
    pub tree: &'a Pyramid,
    /// First child.
    pub first: usize,
    /// The parents' local expansions.
    pub parents: &'a [T],
    /// The children's local expansions.
    pub children: &'a mut [T],
}

impl<T: Real> Task<T> for L2l<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let L2l { series, tree, first, parents, children } = self;
        let (terms, n, width) = (series.terms, series.len(), T::WIDTH);
        let mut x: Lanes<V> = [[V::zero(); 2]; MOST];
        let count = children.len() / n;
        for begin in (0..count).step_by(width) {
            let lanes = width.min(count - begin);
            let (shift, ratio) = steps::<V>(tree, first + begin, lanes);
            let numbers: [u32; 16] = std::array::from_fn(|i| ((begin + i) / 4) as u32);
            gather(series, parents, &numbers[..lanes], &mut x);
            for k in 1..terms {
                for j in terms - 1 - k..terms - 1 {
                    let ([a, b], [re, im]) = (x[j + 1], x[j]);
                    x[j] = [
                        b.neg_mul_add(shift[1], a.mul_add(shift[0], re)),
                        b.mul_add(shift[0], a.mul_add(shift[1], im)),
                    ];
                }
            }
            let first_factor = if series.kernel == Kernel::Log { V::constant(1.0) } else { ratio };
            scale(&mut x[..terms], [ratio, V::zero()], [first_factor, V::zero()]);
            for side in 0..2 {
                for block in (0..series.part).step_by(width) {
                    let mut rows = [V::zero(); 16];
                    for k in 0..width.min(terms.saturating_sub(block)) {
                        rows[k] = x[block + k][side];
                    }
                    V::transpose(&mut rows[..width]);
                    for lane in 0..lanes {
                        let to = &mut children[(begin + lane) * n + side * series.part + block..][..width];
                        V::load(to).add(rows[lane]).store(to);
                    }
                }
            }
        }
    }
}
