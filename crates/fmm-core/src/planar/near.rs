//! P2P: each leaf of the targets against the points of its list. Sources fill the lanes, so that small leaves waste none.

use rayon::prelude::*;

use super::bodies::{Bodies, Sum, by_leaf};
use super::logarithm::{each_lane, exp_minus, exponential_integral, inverse_and_log};
use super::missed::make_good;
use super::points::Batch;
use super::pyramid::power;
use super::shifts::add_up;
use super::{Blob, Kernel, Plan};
use crate::Cancel;
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{Number, Real};

/// Sources that are gathered before they meet the targets: they stay in the first-level cache, and single precision adds no more
/// terms than this before the sum goes on in double.
const GATHER: usize = 1024;

/// Squared distances below this count as zero: their inverse would overflow.
pub fn smallest<T: Number>() -> f64 {
    if T::WIDTH > f64::WIDTH { 1e-36 } else { 1e-290 }
}

/// The unit of a leaf, moved to where squares of the core and of other lengths are both numbers: the core is 10 binary digits long at most, and
/// 2⁻²³² at least, whose inverse square times that of the farthest distance is one too.
fn in_reach_of(core: f64, exponent: i32) -> i32 {
    let own = core.log2() as i32;
    exponent.clamp(own - 10, own + 232)
}

/// A pair in units of a leaf: f with K' = f d, and twice the potential of a unit strength.
pub trait Pair<V: Vector>: Copy {
    /// Whether pairs at distance zero contribute nothing at all.
    const POINT: bool;
    /// f, and twice the potential where it is asked for.
    fn eval<const LOG: bool>(&self, r2: V, shift: V) -> (V, V);
}

/// A point.
#[derive(Clone, Copy)]
pub struct Point;

impl<V: Vector> Pair<V> for Point {
    const POINT: bool = true;

    #[inline(always)]
    fn eval<const LOG: bool>(&self, r2: V, shift: V) -> (V, V) {
        let limit = V::constant(smallest::<V::Scalar>());
        if LOG {
            let (inverse, log) = inverse_and_log(r2, shift);
            (inverse.keep_where_at_least(r2, limit), log.keep_where_at_least(r2, limit))
        } else {
            (V::constant(1.0).div(r2).keep_where_at_least(r2, limit), V::zero())
        }
    }
}

/// With ε².
#[derive(Clone, Copy)]
pub struct Algebraic<V>(pub V);

impl<V: Vector> Pair<V> for Algebraic<V> {
    const POINT: bool = false;

    #[inline(always)]
    fn eval<const LOG: bool>(&self, r2: V, shift: V) -> (V, V) {
        let sum = r2.add(self.0);
        let (inverse, log) = if LOG { inverse_and_log(sum, shift) } else { (V::constant(1.0).div(sum), sum) };
        let e = self.0.mul(inverse);
        // (r² + 2 ε²)/(r² + ε²)² = (1 + ε²/(r² + ε²))/(r² + ε²)
        (e.mul_add(inverse, inverse), if LOG { log.sub(e) } else { V::zero() })
    }
}

/// With σ and 1/(2 σ²).
#[derive(Clone, Copy)]
pub struct Gaussian<V>(pub f64, pub V);

/// Beyond this x, e^(−x) is negligible compared with 1.
const FAR: f64 = 40.0;

/// log x + E₁(x), entire.
fn smooth_log(x: f64) -> f64 {
    if x >= FAR {
        // It will not be used.
        return 0.0;
    }
    if x > 1.0 {
        return x.ln() + exponential_integral(x);
    }
    const GAMMA: f64 = 0.577_215_664_901_532_9;
    let (mut term, mut sum) = (1.0, -GAMMA);
    for k in 1..=20 {
        term *= -x / f64::from(k);
        sum -= term / f64::from(k);
    }
    sum
}

impl<V: Vector> Pair<V> for Gaussian<V> {
    const POINT: bool = false;

    #[inline(always)]
    fn eval<const LOG: bool>(&self, r2: V, shift: V) -> (V, V) {
        let (one, half) = (V::constant(1.0), V::constant(0.5));
        let x = r2.mul(self.1);
        // (1 − e^(−x))/r², by the series of (1 − e^(−x))/x where the difference cancels; r² is a number where x no longer is.
        let mut series = V::constant(SERIES[14]);
        let small = x.min(half);
        for k in (0..14).rev() {
            series = series.mul_add(small, V::constant(SERIES[k]));
        }
        let series = series.mul(self.1);
        // Beyond 1000 the exponential is 0, and x may be infinite.
        let bounded = x.min(V::constant(1000.0));
        let quotient = one.sub(exp_minus(bounded)).div(r2.max(V::constant(smallest::<V::Scalar>())));
        let f = series.sub(series.keep_where_at_least(x, half)).add(quotient.keep_where_at_least(x, half));
        let log = if LOG {
            let far = V::constant(FAR);
            let (_, log) = inverse_and_log(r2, shift);
            let near = each_lane(x.min(far), smooth_log).add(V::constant((2.0 * self.0 * self.0).ln()));
            let near = shift.mul_add(V::constant(std::f64::consts::LN_2), near);
            near.sub(near.keep_where_at_least(x, far)).add(log.keep_where_at_least(x, far))
        } else {
            V::zero()
        };
        (f, log)
    }
}

/// (−1)^k/(k + 1)!
const SERIES: [f64; 15] = {
    let mut c = [1.0; 15];
    let mut k = 1;
    while k < 15 {
        c[k] = -c[k - 1] / (k + 1) as f64;
        k += 1;
    }
    c
};

/// What is found out about pairs in single precision.
#[derive(Clone, Copy)]
struct Found {
    /// Smallest distance of a pair that is not at distance zero.
    nearest: f64,
    /// Pairs that are not at distance zero, padding included.
    apart: u64,
}

/// Targets against gathered sources; adds potential and G at each target.
struct Meet<'a, T> {
    kernel: Kernel,
    blob: Blob,
    shift: f64,
    targets: &'a Batch<T>,
    sources: &'a Batch<T>,
    count: usize,
    to: &'a mut [Vec<T>; 3],
}

impl<T: Real> Task<T> for Meet<'_, T> {
    type Out = Found;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> Found {
        match self.blob {
            Blob::Point => self.with::<V, _>(Point),
            Blob::Algebraic(e) => self.with::<V, _>(Algebraic(V::constant(e * e))),
            Blob::Gaussian(s) => self.with::<V, _>(Gaussian(s, V::constant(0.5 / (s * s)))),
        }
    }
}

impl<T: Real> Meet<'_, T> {
    #[inline(always)]
    fn with<V: Vector<Scalar = T>, P: Pair<V>>(self, pair: P) -> Found {
        match (self.kernel, self.sources.q[1].is_empty()) {
            (Kernel::Log, _) => self.sum::<V, P, true, false>(pair),
            (Kernel::Harmonic, true) => self.sum::<V, P, false, false>(pair),
            (Kernel::Harmonic, false) => self.sum::<V, P, false, true>(pair),
        }
    }

    #[inline(always)]
    fn sum<V: Vector<Scalar = T>, P: Pair<V>, const LOG: bool, const COMPLEX: bool>(self, pair: P) -> Found {
        /// Targets that share the loads of the sources.
        const TOGETHER: usize = 2;
        let Meet { shift, targets, sources, count, to, .. } = self;
        let single = size_of::<T>() == 4;
        let (n, shift) = (sources.len(), V::constant(shift));
        let [sx, sy] = [&sources.x[0][..n], &sources.x[1][..n]];
        let (q, qi) = (&sources.q[0][..n], if COMPLEX { &sources.q[1][..n] } else { &[][..] });
        let (mut closest, mut apart) = (V::zero(), V::zero());
        let limit = V::constant(smallest::<T>());
        let one = V::constant(1.0);
        for begin in (0..count).step_by(T::WIDTH) {
            let mut rows = [[V::zero(); 16]; 3];
            let here = T::WIDTH.min(count - begin);
            for k in (0..here).step_by(TOGETHER) {
                let (mut at, mut sums) = ([[V::zero(); 2]; TOGETHER], [[V::zero(); 3]; TOGETHER]);
                for t in 0..TOGETHER {
                    // A last one alone is summed twice.
                    let i = begin + if k + t < here { k + t } else { k };
                    at[t] = [V::splat(targets.x[0][i]), V::splat(targets.x[1][i])];
                }
                for j in (0..n).step_by(T::WIDTH) {
                    let (x, y, g) = (V::load(&sx[j..]), V::load(&sy[j..]), V::load(&q[j..]));
                    let h = if COMPLEX { V::load(&qi[j..]) } else { V::zero() };
                    for t in 0..TOGETHER {
                        let (dx, dy) = (at[t][0].sub(x), at[t][1].sub(y));
                        let r2 = dx.mul_add(dx, dy.mul(dy));
                        let (f, log) = pair.eval::<LOG>(r2, shift);
                        if single && P::POINT {
                            closest = closest.max(f);
                            if k + t < here {
                                apart = apart.add(one.keep_where_at_least(r2, limit));
                            }
                        }
                        let [fx, fy] = [f.mul(dx), f.mul(dy)];
                        // Γ/d = Γ (dx − i dy)/r².
                        sums[t][1] = g.mul_add(fx, sums[t][1]);
                        sums[t][2] = g.neg_mul_add(fy, sums[t][2]);
                        if COMPLEX {
                            sums[t][1] = h.mul_add(fy, sums[t][1]);
                            sums[t][2] = h.mul_add(fx, sums[t][2]);
                        }
                        if LOG {
                            sums[t][0] = g.mul_add(log, sums[t][0]);
                        }
                    }
                }
                for t in 0..TOGETHER.min(here - k) {
                    for c in 0..3 {
                        rows[c][k + t] = sums[t][c];
                    }
                }
            }
            for c in usize::from(!LOG)..3 {
                let sum = add_up(&mut rows[c][..T::WIDTH]);
                let sum = if c == 0 { sum.mul(V::constant(0.5)) } else { sum };
                V::load(&to[c][begin..]).add(sum).store(&mut to[c][begin..]);
            }
        }
        let mut lanes = [T::ZERO; 16];
        closest.store(&mut lanes);
        let largest = lanes.into_iter().fold(0.0, |m, f| f64::max(m, f.to_f64()));
        apart.store(&mut lanes);
        Found { nearest: (1.0 / largest).sqrt(), apart: lanes.into_iter().map(|l| l.to_f64() as u64).sum() }
    }
}

/// What one thread keeps between leaves.
#[derive(Default)]
struct Scratch<T> {
    targets: Batch<T>,
    sources: Batch<T>,
    totals: [Vec<T>; 3],
}

/// The direct sums of a plan.
pub struct Near<'a> {
    pub plan: &'a Plan,
    pub bodies: &'a Bodies<'a>,
    pub kernel: Kernel,
    pub blob: Blob,
    /// Pairs closer than this, in units of the leaf, are too close for single precision.
    pub closest: f64,
    /// What ends the sum early.
    pub cancel: &'a Cancel,
}

impl Near<'_> {
    /// Adds the direct sums to `out`.
    pub fn p2p<T: Real>(&self, out: &mut [Sum]) {
        let tree = &self.plan.targets;
        let scratch = || (Scratch::<T>::default(), Scratch::<f64>::default());
        by_leaf(out, tree).into_par_iter().for_each_init(scratch, |(single, double), (leaf, out)| {
            if out.is_empty() || self.cancel.is_set() || self.plan.lists.p2p.row(leaf).is_empty() {
                return;
            }
            let mut sums = vec![Sum::default(); out.len()];
            let exact = self.leaf(leaf, single, &mut sums);
            let finite = |s: &Sum| s.potential.is_finite() && s.g.iter().all(|g| g.is_finite());
            if T::WIDTH > f64::WIDTH && !(exact && sums.iter().all(finite)) {
                sums.fill(Sum::default());
                self.leaf(leaf, double, &mut sums);
            }
            for (o, s) in out.iter_mut().zip(sums) {
                o.potential += s.potential;
                o.g = [o.g[0] + s.g[0], o.g[1] + s.g[1]];
            }
            if self.plan.sources.is_none() && self.kernel == Kernel::Log {
                // No blob sees itself; what it would feel is a potential alone.
                let own = self.blob.at_center_in(self.bodies.global);
                for (o, q) in out.iter_mut().zip(&self.bodies.sources.q[0][tree.range(leaf)]) {
                    o.potential -= own * q;
                }
            }
        });
    }

    /// Sums one leaf in the precision of the scratch. Returns whether that precision could resolve
    /// the distance of all pairs.
    fn leaf<T: Real>(&self, leaf: usize, scratch: &mut Scratch<T>, out: &mut [Sum]) -> bool {
        let (targets, sources) = (&self.plan.targets, self.plan.source_tree());
        let row = self.plan.lists.p2p.row(leaf);
        let single = T::WIDTH > f64::WIDTH;
        // Double precision subtracts coordinates as they are; single precision subtracts the center of the leaf first, in a unit in
        // which no square overflows.
        let widest = row.iter().map(|&c| sources.exponent[c as usize]).fold(targets.exponent[leaf], i32::max);
        let exponent = if single { widest } else { targets.exponent[leaf] };
        let core = self.blob.length();
        let exponent = if core > 0.0 { in_reach_of(core, exponent) } else { exponent };
        let (unit, scale) = (power(exponent), power(-exponent));
        let center = if single { [targets.center[0][leaf], targets.center[1][leaf]] } else { [0.0; 2] };
        let Scratch { targets: at, sources: from, totals } = scratch;
        at.clear();
        at.push(self.bodies.targets().x, &[], targets.range(leaf), center, scale);
        let count = out.len();
        let padded = count.next_multiple_of(T::WIDTH);
        let (mut nearest, mut together) = (f64::INFINITY, 0);
        let mut flush = |from: &mut Batch<T>| {
            from.pad_apart();
            for t in totals.iter_mut() {
                t.clear();
                t.resize(padded, T::ZERO);
            }
            let found = dispatch(Meet {
                kernel: self.kernel,
                blob: self.blob.scaled(scale),
                shift: 2.0 * f64::from(exponent + self.bodies.global),
                targets: at,
                sources: from,
                count,
                to: totals,
            });
            nearest = nearest.min(found.nearest);
            together += (from.len() * count) as u64 - found.apart;
            for (i, o) in out.iter_mut().enumerate() {
                o.potential += totals[0][i].to_f64();
                o.g = [o.g[0] + totals[1][i].to_f64() * scale, o.g[1] + totals[2][i].to_f64() * scale];
            }
            from.clear();
        };
        from.clear();
        let from_bodies = &self.bodies.sources;
        for &c in row {
            let mut range = sources.range(c as usize);
            while !range.is_empty() {
                if from.len() >= GATHER {
                    flush(from);
                }
                let part = range.start..range.end.min(range.start + GATHER - from.len());
                range.start = part.end;
                from.push(from_bodies.x, from_bodies.strengths(), part, center, scale);
            }
        }
        if from.len() > 0 {
            flush(from);
        }
        if !single {
            if self.bodies.may_underflow && core == 0.0 {
                let ranges = row.iter().map(|&c| sources.range(c as usize));
                let seen = (scale, smallest::<f64>());
                ranges.for_each(|from| make_good(self.kernel, self.bodies, targets.range(leaf), from, seen, out));
            }
            return true;
        }
        let close = self.closest * power(targets.exponent[leaf]);
        if core > 0.0 {
            return core >= close;
        }
        // Only a point and itself may be at distance zero.
        let own = if self.plan.sources.is_none() { count as u64 } else { 0 };
        nearest * unit >= close && together == own
    }
}
