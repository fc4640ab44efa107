//! Cartesian Taylor expansions of softened and screened kernels.
//!
//! Plummer's kernel, P1 and Yukawa's are not harmonic, so solid harmonics hold for them only where they have become 1/r. A Taylor
//! series holds at any distance: with g the kernel, D^n its derivatives and moments M_n = Σ q u^n/n!,
//! φ(x) = Σ_n (−1)^|n| M_n D^n g(x−c) and L_k = Σ_{|n| ≤ p−|k|} (−1)^|n| M_n D^(n+k) g(z−c) (Dehnen 2002). The softening
//! only replaces r² by r² + ε² in the recurrence of the derivatives; screening adds a second series, that of exp(−κr)
//! (Li, Johnston & Krasny 2009). The triangular truncation makes the forces
//! of a pair of cells on each other exactly opposite.

mod indices;

use std::ops::Range;
use std::sync::OnceLock;

pub(super) use indices::{Indices, count};

use super::{Expansion, Points, Sums, add_weighted};
use crate::kernel::Softening;
use crate::lists::Classes;
use crate::math::Real;
use crate::math::exp::{exp_minus, last};
use crate::math::simd::{Array, Vector};

/// Columns of M2L that are worked on together.
const GROUP: usize = 4;

/// One step of the recurrence of the derivatives: the places of n − e_i and of n − 2e_i; where there is none, that of a
/// zero.
#[derive(Debug, Clone, Copy)]
struct Step {
    one: [u16; 3],
    two: [u16; 3],
}

/// Moments and Taylor coefficients up to degree p, for 1/r, Plummer's kernel, P1 or Yukawa's.
#[derive(Debug)]
pub struct Cartesian<T> {
    p: usize,
    softening: Softening,
    classes: Classes<3>,
    /// Side of the root cube.
    side: f64,
    /// To degree p + 1.
    indices: Indices,
    steps: Vec<Step>,
    /// n! to degree p + 1.
    factorial: Vec<f64>,
    /// For each group of up to [`GROUP`] coefficients k of one degree: (first k, how many), and for each n the places of
    /// n + k.
    groups: Vec<(usize, usize)>,
    sums: Vec<u16>,
    /// D^m g to degree p by level and class, made when first needed.
    derivatives: Vec<OnceLock<Vec<T>>>,
    /// 2^−j/j!.
    shift: Vec<f64>,
}

/// The largest order: beyond it solid harmonics at a distance are cheaper.
pub const MAX_ORDER: usize = 16;

impl<T: Real> Cartesian<T> {
    /// Expansions of order `p` for the offsets of `classes` in a tree of `levels` levels under a cube of side `side`.
    ///
    /// # Panics
    /// If p is 0 or above [`MAX_ORDER`] + 1, which derivatives of multipoles have, or for the
    /// spline, which has no Taylor series across its knots.
    pub fn new(p: usize, softening: Softening, classes: Classes<3>, side: f64, levels: usize) -> Self {
        assert!((1..=MAX_ORDER + 1).contains(&p), "order {p}");
        assert!(Self::serves(softening), "the spline has no Taylor series across its knots");
        let indices = Indices::new(p + 1);
        let n = indices.all.len();
        let place = |k: usize, d: usize, by: usize| indices.less(k, d, by).unwrap_or(n) as u16;
        let steps = (0..n)
            .map(|k| Step { one: [0, 1, 2].map(|d| place(k, d, 1)), two: [0, 1, 2].map(|d| place(k, d, 2)) })
            .collect();
        let mut groups = vec![];
        let mut sums = vec![];
        for degree in 0..=p {
            let first = if degree == 0 { 0 } else { count(degree - 1) };
            for k in (first..count(degree)).step_by(GROUP) {
                let size = GROUP.min(count(degree) - k);
                groups.push((k, size));
                for n in 0..count(p - degree) {
                    for i in k..k + size {
                        let sum = std::array::from_fn(|d| indices.all[n][d] + indices.all[i][d]);
                        sums.push(indices.place(sum) as u16);
                    }
                }
            }
        }
        let mut value = 1.0;
        let shift = (1..=p + 1).map(|j| {
            let here = value;
            value *= 0.5 / j as f64;
            here
        });
        Cartesian {
            p,
            softening,
            classes,
            side,
            steps,
            factorial: (0..n).map(|k| indices.factorial(k)).collect(),
            groups,
            sums,
            derivatives: (0..levels * classes.len()).map(|_| OnceLock::new()).collect(),
            shift: shift.collect(),
            indices,
        }
    }

    /// Whether the kernel has a Taylor series at every distance; 1/r has, and is its own far field in other expansions.
    pub fn serves(softening: Softening) -> bool {
        match softening {
            Softening::None | Softening::Plummer(_) | Softening::P1(_) | Softening::Yukawa(_) => true,
            Softening::Spline(_) => false,
        }
    }

    /// D^n g/n! for every n of degree ≤ `degree`, at x in `unit`, into `out`.
    #[inline(always)]
    fn derivatives<V: Vector>(&self, degree: usize, unit: f64, x: [V; 3], out: &mut Vec<V>) {
        // No kernel gets the series of 1/r because nobody thought of it.
        let (epsilon, p1) = match self.softening {
            Softening::Yukawa(length) => return self.screened(degree, unit / length, x, out),
            // `new` refuses the spline.
            Softening::None | Softening::Spline(_) => (0.0, false),
            Softening::Plummer(length) => (length / unit, false),
            Softening::P1(length) => (length / unit, true),
        };
        let epsilon2 = epsilon * epsilon;
        let u = x[0].mul_add(x[0], x[1].mul_add(x[1], x[2].mul_add(x[2], V::constant(epsilon2))));
        let inverse = V::constant(1.0).div(u);
        let root = inverse.sqrt();
        self.gegenbauer(degree, 0.5, root, inverse, x, out);
        if p1 {
            // g = u^(−1/2) + ε²/2 u^(−3/2).
            let mut second = vec![];
            self.gegenbauer(degree, 1.5, root.mul(inverse), inverse, x, &mut second);
            for (b, c) in out.iter_mut().zip(&second) {
                *b = V::constant(0.5 * epsilon2).mul_add(*c, *b);
            }
        }
    }

    /// The Taylor coefficients of (u + 2 x·t + t²)^(−λ) in t: |n| u b_n = −(2|n|+2λ−2) Σ x_i b_{n−e_i} −
    /// (|n|+2λ−2) Σ b_{n−2e_i}.
    #[inline(always)]
    fn gegenbauer<V: Vector>(&self, degree: usize, lambda: f64, first: V, inverse: V, x: [V; 3], b: &mut Vec<V>) {
        b.clear();
        b.resize(self.steps.len() + 1, V::zero());
        b[0] = first;
        for n in 1..=degree {
            let scale = |a: f64| -(a + 2.0 * lambda - 2.0) / n as f64;
            let (a, c) = (V::constant(scale(2.0 * n as f64)).mul(inverse), V::constant(scale(n as f64)).mul(inverse));
            for k in count(n - 1)..count(n) {
                let (first, second) = self.below(k, x, b);
                b[k] = a.mul_add(first, c.mul(second));
            }
        }
    }

    /// The Taylor coefficients a of exp(−κr)/r and b of exp(−κr): |n| b_n = −κ Σ (x_i a_{n−e_i} + a_{n−2e_i}) and
    /// |n| r² a_n = −(2|n|−1) Σ x_i a_{n−e_i} − (|n|−1) Σ a_{n−2e_i} − κ Σ (x_i b_{n−e_i} + b_{n−2e_i}).
    #[inline(always)]
    fn screened<V: Vector>(&self, degree: usize, kappa: f64, x: [V; 3], a: &mut Vec<V>) {
        let r2 = x[0].mul_add(x[0], x[1].mul_add(x[1], x[2].mul(x[2])));
        let (inverse, kappa) = (V::constant(1.0).div(r2), V::constant(kappa));
        let argument = kappa.mul(r2.sqrt());
        let mut b = vec![V::zero(); self.steps.len() + 1];
        a.clear();
        a.resize(self.steps.len() + 1, V::zero());
        b[0] = exp_minus(argument).keep_where_at_least(last(), argument);
        a[0] = b[0].mul(inverse.sqrt());
        for n in 1..=degree {
            let part = 1.0 / n as f64;
            let (one, two) = (V::constant((1 - 2 * n as i64) as f64 * part), V::constant((1 - n as i64) as f64 * part));
            let kappa = kappa.mul(V::constant(part));
            for k in count(n - 1)..count(n) {
                let (first, second) = self.below(k, x, a);
                let (first_b, second_b) = self.below(k, x, &b);
                let sum = one.mul_add(first, two.mul(second));
                a[k] = kappa.neg_mul_add(first_b.add(second_b), sum).mul(inverse);
                b[k] = V::zero().sub(kappa.mul(first.add(second)));
            }
        }
    }

    /// Σ x_i c_{n−e_i} and Σ c_{n−2e_i} for the n at place `k`.
    #[inline(always)]
    fn below<V: Vector>(&self, k: usize, x: [V; 3], c: &[V]) -> (V, V) {
        let Step { one, two } = self.steps[k];
        let first = x[0].mul(c[one[0] as usize]);
        let first = x[2].mul_add(c[one[2] as usize], x[1].mul_add(c[one[1] as usize], first));
        (first, c[two[0] as usize].add(c[two[1] as usize]).add(c[two[2] as usize]))
    }

    /// The multi-indices of degree ≤ p + 1, in the order of the coefficients.
    pub fn indices(&self) -> &[[usize; 3]] {
        &self.indices.all
    }

    /// D^m g for the offset of `class` between cells of `level`, in units of their half side, for every m of degree ≤ p.
    pub fn class_derivatives(&self, class: u32, level: usize) -> &[T] {
        self.derivatives[level * self.classes.len() + class as usize].get_or_init(|| {
            // Target minus source, in half sides.
            let x = self.classes.offset(class).map(|o| <Array<f64, 8>>::constant(-2.0 * f64::from(o)));
            let unit = self.side * 0.5f64.powi(level as i32 + 1);
            let mut b = vec![];
            self.derivatives(self.p, unit, x, &mut b);
            (0..count(self.p)).map(|k| T::from_f64(b[k].first() * self.factorial[k])).collect()
        })
    }

    /// u^n/n! for every n of degree ≤ p, into `out`.
    #[inline(always)]
    fn monomials<V: Vector<Scalar = T>>(&self, u: [V; 3], out: &mut Vec<V>) {
        out.clear();
        out.resize(count(self.p), V::constant(1.0));
        for k in 1..count(self.p) {
            let (axis, below) = self.indices.below[k];
            let inverse = V::constant(1.0 / self.indices.all[k][axis] as f64);
            out[k] = out[below].mul(u[axis].mul(inverse));
        }
    }

    /// Shifts along one axis after the other; moments from high to low degree, Taylor coefficients the other way.
    #[inline(always)]
    fn shift_axes<V: Vector<Scalar = T>>(&self, octant: u8, moments: bool, lanes: &mut [V]) {
        let n = count(self.p);
        for axis in 0..3 {
            let sign = if octant >> axis & 1 == 1 { 1.0 } else { -1.0 };
            for i in 0..n {
                let k = if moments { n - 1 - i } else { i };
                let mut sum = lanes[k];
                let (mut power, mut from) = (1.0, k);
                for j in 1..=self.p {
                    let next = if moments { self.indices.less(from, axis, 1) } else { self.indices.above(from, axis) };
                    let Some(next) = next.filter(|&f| f < n) else { break };
                    from = next;
                    power *= sign;
                    sum = V::constant(power * self.shift[j]).mul_add(lanes[from], sum);
                }
                lanes[k] = sum;
            }
        }
    }

    /// Multiplies degree l by `first`·2^−l.
    #[inline(always)]
    fn halve<V: Vector<Scalar = T>>(&self, first: f64, lanes: &mut [V]) {
        for (k, c) in lanes.iter_mut().enumerate() {
            *c = c.mul(V::constant(first * 0.5f64.powi(self.indices.degree(k) as i32)));
        }
    }
}

/// (−1)^degree.
fn sign(degree: usize) -> f64 {
    if degree.is_multiple_of(2) { 1.0 } else { -1.0 }
}

impl<T: Real> Expansion<T, 3> for Cartesian<T> {
    fn len(&self) -> usize {
        count(self.p)
    }

    fn degree(&self, degree: usize) -> Range<usize> {
        if degree == 0 { 0..1 } else { count(degree - 1)..count(degree) }
    }

    #[inline(always)]
    fn p2m<V: Vector<Scalar = T>>(&self, sources: Points<T, 3>, multipole: &mut [T]) {
        let (mut values, mut sums) = (vec![], vec![V::zero(); self.steps.len()]);
        for i in (0..sources.q.len()).step_by(T::WIDTH) {
            self.monomials(sources.load::<V>(i), &mut values);
            let q = V::load(&sources.q[i..]);
            for (s, v) in sums.iter_mut().zip(&values) {
                *s = q.mul_add(*v, *s);
            }
        }
        for (m, s) in multipole.iter_mut().zip(&sums) {
            *m += s.sum();
        }
    }

    #[inline(always)]
    fn p2l<V: Vector<Scalar = T>>(&self, unit: f64, sources: Points<T, 3>, local: &mut [T]) {
        let (mut values, mut sums) = (vec![], vec![V::zero(); count(self.p)]);
        for i in (0..sources.q.len()).step_by(T::WIDTH) {
            // The local center is the origin: derivatives at center minus source.
            let [x, y, z] = sources.load::<V>(i);
            let x = [V::zero().sub(x), V::zero().sub(y), V::zero().sub(z)];
            self.derivatives(self.p, unit, x, &mut values);
            let q = V::load(&sources.q[i..]);
            for (s, v) in sums.iter_mut().zip(&values) {
                *s = q.mul_add(*v, *s);
            }
        }
        for (k, (l, s)) in local.iter_mut().zip(&sums).enumerate() {
            *l += s.sum() * T::from_f64(self.factorial[k]);
        }
    }

    fn derivative(&self, local: bool, coefficients: &[T], axis: usize) -> Vec<T> {
        let value = |k: Option<usize>| k.and_then(|k| coefficients.get(k)).copied().unwrap_or(T::ZERO);
        if local {
            return (0..coefficients.len()).map(|k| value(self.indices.above(k, axis))).collect();
        }
        (0..self.indices.all.len()).map(|k| T::ZERO - value(self.indices.less(k, axis, 1))).collect()
    }

    #[inline(always)]
    fn l2p<V: Vector<Scalar = T>>(&self, local: &[T], targets: Points<T, 3>, sums: &mut Sums<T, 3>) {
        let value = |k: Option<usize>| k.and_then(|k| local.get(k)).copied().unwrap_or(T::ZERO);
        let weights: Vec<[T; 4]> = (0..local.len())
            .map(|k| {
                let above = [0, 1, 2].map(|d| value(self.indices.above(k, d)));
                [local[k], above[0], above[1], above[2]]
            })
            .collect();
        let mut values = vec![];
        for i in (0..sums.potential.len()).step_by(T::WIDTH) {
            self.monomials(targets.load::<V>(i), &mut values);
            add_weighted(i, &weights, &values, sums);
        }
    }

    #[inline(always)]
    fn m2p<V: Vector<Scalar = T>>(&self, unit: f64, multipole: &[T], targets: Points<T, 3>, sums: &mut Sums<T, 3>) {
        // Of D^m g/m!: (−1)^|m| m! M_m in the potential, (−1)^(|m|−1) m! M_{m−e} in the gradient.
        let weights: Vec<[T; 4]> = (0..self.indices.all.len())
            .map(|k| {
                let scale = T::from_f64(sign(self.indices.degree(k)) * self.factorial[k]);
                let below = [0, 1, 2].map(|d| self.indices.less(k, d, 1).map_or(T::ZERO, |j| -(scale * multipole[j])));
                [multipole.get(k).map_or(T::ZERO, |&m| scale * m), below[0], below[1], below[2]]
            })
            .collect();
        let mut values = vec![];
        for i in (0..sums.potential.len()).step_by(T::WIDTH) {
            let x = targets.load::<V>(i);
            self.derivatives(self.p + 1, unit, x, &mut values);
            add_weighted(i, &weights, &values, sums);
        }
    }

    #[inline(always)]
    fn m2m<V: Vector<Scalar = T>>(&self, octant: u8, lanes: &mut [V], _: &mut Vec<V>) {
        self.halve(1.0, lanes);
        self.shift_axes(octant, true, lanes);
    }

    #[inline(always)]
    fn l2l<V: Vector<Scalar = T>>(&self, octant: u8, lanes: &mut [V], _: &mut Vec<V>) {
        self.shift_axes(octant, false, lanes);
        self.halve(0.5, lanes);
    }

    #[inline(always)]
    fn m2l<V: Vector<Scalar = T>>(&self, class: u32, level: usize, lanes: &mut [V], scratch: &mut Vec<V>) {
        let derivatives = self.class_derivatives(class, level);
        scratch.clear();
        scratch.extend_from_slice(lanes);
        for degree in (1..=self.p).step_by(2) {
            for m in &mut scratch[count(degree - 1)..count(degree)] {
                *m = V::zero().sub(*m);
            }
        }
        let mut places = &self.sums[..];
        for &(k, size) in &self.groups {
            let sources = &scratch[..count(self.p - self.indices.degree(k))];
            let (here, rest) = places.split_at(size * sources.len());
            places = rest;
            match size {
                4 => columns::<V, 4>(derivatives, here, sources, &mut lanes[k..]),
                3 => columns::<V, 3>(derivatives, here, sources, &mut lanes[k..]),
                2 => columns::<V, 2>(derivatives, here, sources, &mut lanes[k..]),
                _ => columns::<V, 1>(derivatives, here, sources, &mut lanes[k..]),
            }
        }
    }
}

/// `to[..N]` = Σ_n D^(n+k) M_n for N neighbouring k.
#[inline(always)]
fn columns<V: Vector, const N: usize>(derivatives: &[V::Scalar], places: &[u16], sources: &[V], to: &mut [V]) {
    let mut sums = [V::zero(); N];
    for (m, at) in sources.iter().zip(places.chunks_exact(N)) {
        for i in 0..N {
            sums[i] = V::splat(derivatives[at[i] as usize]).mul_add(*m, sums[i]);
        }
    }
    to[..N].copy_from_slice(&sums);
}
