//! P2P at the points of a brick: Ψ and u of single cells.
//!
//! With d = x − x_j, s = |d|² + ε² and y = s^(−1/2): 4πK = y (1 + ε²y²/2), and u = −1/(4π) Σ g d × α, g = y³ (1 + 3ε²y²/2). Points of a
//! brick share coordinates: d_x is one vector for all rows of points, and what belongs to a plane is computed once for it.

use std::ops::Range;

use super::green::Green;
use super::plan::{Brick, POINTS, SIDE};
use super::sources::Sources;
use crate::math::Real;
use crate::math::scale::power_of_two_below;
use crate::math::simd::{Task, Vector, dispatch};

/// Sums of a brick: three components of 4πΨ and three of 4πu, each at all of its points, x fastest.
pub const SUMS: usize = 6 * POINTS;

/// Sources that meet a brick together: they stay in the first-level cache, and single precision adds no more terms than this before
/// the sum goes on in double.
pub const CHUNK: usize = 512;

/// Vectors of points whose sums are in registers together.
const GROUP: usize = 4;

/// What one thread keeps between bricks.
pub struct Scratch<T> {
    x: [Vec<T>; 3],
    strength: [Vec<T>; 3],
    core2: Vec<T>,
    sums: Vec<T>,
}

impl<T: Real> Default for Scratch<T> {
    fn default() -> Self {
        Scratch {
            x: std::array::from_fn(|_| vec![]),
            strength: std::array::from_fn(|_| vec![]),
            core2: vec![],
            sums: vec![T::ZERO; SUMS],
        }
    }
}

impl<T: Real> Scratch<T> {
    /// Adds sources, relative to a center and in units of 1/`scale`.
    fn push(&mut self, sources: &Sources, range: Range<usize>, center: &[f64; 3], scale: f64) {
        for d in 0..3 {
            let c = center[d];
            self.x[d].extend(sources.x[d][range.clone()].iter().map(|x| T::from_f64((x - c) * scale)));
            self.strength[d].extend(sources.strength[d][range.clone()].iter().map(|&q| T::from_f64(q)));
        }
        self.core2.extend(sources.core2[range].iter().map(|e2| T::from_f64(e2 * (scale * scale))));
    }

    fn clear(&mut self) {
        self.x.iter_mut().chain(&mut self.strength).for_each(Vec::clear);
        self.core2.clear();
    }

    fn len(&self) -> usize {
        self.core2.len()
    }
}

/// Adds what the sources of `runs` do at the points of `brick` to `out`, [`SUMS`] numbers; strengths are [scaled](Sources::scale).
pub fn brick<T: Real>(
    green: Green,
    brick: &Brick,
    sources: &Sources,
    runs: impl Iterator<Item = Range<usize>>,
    scratch: &mut Scratch<T>,
    out: &mut [f64],
) {
    let unit = power_of_two_below(4.0 * brick.spacing);
    let (center, scale) = (brick.center(), 1.0 / unit);
    let at: [[T; SIDE]; 3] = std::array::from_fn(|d| brick.at[d].map(|x| T::from_f64((x - center[d]) * scale)));
    // Centers of cells that do not overlap are at least 3/4 h apart, so a nearer center is the cell
    // itself.
    let own2 = T::from_f64((0.5 * brick.spacing * scale).powi(2));
    let flush = |scratch: &mut Scratch<T>, out: &mut [f64]| {
        scratch.sums.fill(T::ZERO);
        dispatch(Meet { singular: green == Green::Singular, at: &at, own2, scratch });
        for (c, (out, sums)) in out.chunks_exact_mut(POINTS).zip(scratch.sums.chunks_exact(POINTS)).enumerate() {
            let factor = if c < 3 { scale } else { -scale * scale };
            out.iter_mut().zip(sums).for_each(|(o, s)| *o += s.to_f64() * factor);
        }
        scratch.clear();
    };
    scratch.clear();
    for mut range in runs {
        while !range.is_empty() {
            let part = range.start..range.end.min(range.start + CHUNK - scratch.len());
            range.start = part.end;
            scratch.push(sources, part, &center, scale);
            if scratch.len() == CHUNK {
                flush(scratch, out);
            }
        }
    }
    if scratch.len() > 0 {
        flush(scratch, out);
    }
}

/// Sources of the scratch at the points of a brick.
pub(super) struct Meet<'a, T> {
    singular: bool,
    at: &'a [[T; SIDE]; 3],
    own2: T,
    scratch: &'a mut Scratch<T>,
}

impl<T: Real> Task<T> for Meet<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        if self.singular { self.meet::<V, true>() } else { self.meet::<V, false>() }
    }
}

impl<'a, T: Real> Meet<'a, T> {
    /// `count` sources that are somewhere.
    pub(super) fn example(green: Green, count: usize, at: &'a [[T; SIDE]; 3], scratch: &'a mut Scratch<T>) -> Self {
        scratch.clear();
        let number = |i: usize| T::from_f64((i as f64 * 0.754_877_666_246_692_8 + 0.3).fract() * 3.0 + 2.0);
        for i in 0..count {
            for d in 0..3 {
                scratch.x[d].push(number(6 * i + d));
                scratch.strength[d].push(number(6 * i + 3 + d));
            }
            scratch.core2.push(T::from_f64(0.0625));
        }
        Meet { singular: green == Green::Singular, at, own2: T::ZERO, scratch }
    }

    #[inline(always)]
    fn meet<V: Vector<Scalar = T>, const SINGULAR: bool>(self) {
        let Meet { at, own2, scratch: Scratch { x, strength, core2, sums }, .. } = self;
        let n = core2.len();
        let [sx, sy, sz] = [&x[0][..n], &x[1][..n], &x[2][..n]];
        let [qx, qy, qz] = [&strength[0][..n], &strength[1][..n], &strength[2][..n]];
        let own2 = V::splat(own2);
        let (half, one, more) = (V::constant(0.5), V::constant(1.0), V::constant(1.5));
        // A vector is one row of points, or two.
        let rows = T::WIDTH / SIDE;
        let mut lanes = [T::ZERO; 16];
        for i in 0..T::WIDTH {
            lanes[i] = at[0][i % SIDE];
        }
        let ax = V::load(&lanes);
        for plane in 0..SIDE {
            let az = V::splat(at[2][plane]);
            for first in (0..SIDE).step_by(GROUP * rows) {
                let mut ay = [V::zero(); GROUP];
                for k in 0..GROUP {
                    for i in 0..T::WIDTH {
                        lanes[i] = at[1][first + k * rows + i / SIDE];
                    }
                    ay[k] = V::load(&lanes);
                }
                let mut psi = [[V::zero(); 3]; GROUP];
                let mut u = [[V::zero(); 3]; GROUP];
                // No closures in here: they are compiled without the vector instructions unless they happen to be inlined.
                for j in 0..n {
                    let (dx, dz, y) = (ax.sub(V::splat(sx[j])), az.sub(V::splat(sz[j])), V::splat(sy[j]));
                    let (a, b, c) = (V::splat(qx[j]), V::splat(qy[j]), V::splat(qz[j]));
                    let e2 = if SINGULAR { V::zero() } else { V::splat(core2[j]) };
                    let base = dx.mul_add(dx, dz.mul_add(dz, e2));
                    // d × α, but for what d_y makes of it.
                    let minus_zb = dz.neg_mul_add(b, V::zero());
                    let around_y = dx.neg_mul_add(c, dz.mul(a));
                    let xb = dx.mul(b);
                    for k in 0..GROUP {
                        let dy = ay[k].sub(y);
                        let s = dy.mul_add(dy, base);
                        let (potential, g);
                        if SINGULAR {
                            let inverse = s.rsqrt_positive().keep_where_at_least(s, own2);
                            potential = inverse;
                            g = inverse.mul(inverse).mul(inverse);
                        } else {
                            let inverse = s.rsqrt_positive();
                            let square = inverse.mul(inverse);
                            let t = e2.mul(square);
                            potential = half.mul_add(t, one).mul(inverse);
                            g = more.mul_add(t, one).mul(square).mul(inverse);
                        }
                        psi[k][0] = a.mul_add(potential, psi[k][0]);
                        psi[k][1] = b.mul_add(potential, psi[k][1]);
                        psi[k][2] = c.mul_add(potential, psi[k][2]);
                        u[k][0] = g.mul_add(dy.mul_add(c, minus_zb), u[k][0]);
                        u[k][1] = g.mul_add(around_y, u[k][1]);
                        u[k][2] = g.mul_add(dy.neg_mul_add(a, xb), u[k][2]);
                    }
                }
                for k in 0..GROUP {
                    let place = (plane * SIDE + first + k * rows) * SIDE;
                    for c in 0..3 {
                        psi[k][c].store(&mut sums[c * POINTS + place..]);
                        u[k][c].store(&mut sums[(3 + c) * POINTS + place..]);
                    }
                }
            }
        }
    }
}
