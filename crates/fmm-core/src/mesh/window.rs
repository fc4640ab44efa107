//! Between bodies and the points of a mesh: each body has P points along each axis, weighted by a window.
//!
//! The window is ψ_w over the width of P points, with w = 0.98 π P/2 (2 − 1/s) where a mesh is s times
//! as fine as its waves need (Liang, Lu, Barnett, Greengard & Jiang 2025). Weights are polynomials of
//! the place between two points, one for each point.

use std::f64::consts::PI;

use rayon::prelude::*;

use super::{real, sorted_by};
use crate::math::prolate::{Chebyshev, Prolate};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Real};

/// The most points along an axis.
pub const MOST_POINTS: usize = 16;

/// The digits of weights beyond those of the window itself.
const FINER: f64 = 0.01;

/// Planes of the mesh that one task fills.
const PLANES: usize = 4;

/// Targets that one task serves.
const TARGETS: usize = 256;

/// The window of P points.
#[derive(Debug, Clone)]
pub struct Window<T> {
    points: usize,
    prolate: Prolate,
    bandlimit: f64,
    /// Coefficients of the weights by powers of a place in −1 to 1, the highest first, each for
    /// [`MOST_POINTS`] points.
    weights: Vec<[T; MOST_POINTS]>,
}

impl<T: Real> Window<T> {
    /// Of so many points on a mesh that is `oversampling` times as fine as its waves need.
    pub fn new(points: usize, oversampling: f64) -> Self {
        let half = 0.5 * points as f64;
        let bandlimit = 0.98 * PI * half * (2.0 - 1.0 / oversampling);
        let prolate = Prolate::new(bandlimit);
        // The window errs by about its value at the edge.
        let accuracy = FINER * prolate.at(1.0);
        let each: Vec<Vec<f64>> = (0..points)
            .map(|j| {
                let place = |t: f64| (j as f64 + 0.5 * (t + 1.0) - half) / half;
                Chebyshev::fit(|t| prolate.at(place(t)), accuracy).powers(1.0)
            })
            .collect();
        let terms = each.iter().map(Vec::len).max().unwrap_or(1);
        let mut weights = vec![[T::ZERO; MOST_POINTS]; terms];
        for (j, powers) in each.iter().enumerate() {
            for (k, a) in powers.iter().rev().enumerate() {
                weights[terms - 1 - k][j] = real(*a);
            }
        }
        Window { points, prolate, bandlimit, weights }
    }

    /// The weights of the points of a body by powers of t, the highest first: 2 t + 1 is the distance of the first point
    /// from the window's lower end, in spacings. `[powers][MOST_POINTS]`
    pub fn weights(&self) -> &[[T; MOST_POINTS]] {
        &self.weights
    }

    /// The Fourier transform of the window at wave `m` of a mesh of `count` points.
    pub fn transform(&self, m: usize, count: usize) -> f64 {
        let half = 0.5 * self.points as f64;
        let frequency = 2.0 * PI * m as f64 * half / count as f64;
        half * 2.0 * self.prolate.whole() * self.prolate.at(frequency / self.bandlimit)
    }

    /// The weights of the points of a body, of which the first is so far beyond the window's lower
    /// end: 0 to 1 spacings.
    #[inline(always)]
    fn at<V: Vector<Scalar = T>>(&self, beyond: T, out: &mut [T; MOST_POINTS]) {
        let t = V::splat(beyond + beyond - T::ONE);
        let mut first = 0;
        while first < self.points {
            let mut sum = V::zero();
            for row in &self.weights {
                sum = sum.mul_add(t, V::load(&row[first..]));
            }
            sum.store(&mut out[first..]);
            first += T::WIDTH;
        }
    }
}

/// Bodies in the order of the points of a mesh, and where each stands among them.
pub struct Placed<T> {
    /// Points of the mesh along each axis.
    pub counts: [usize; 3],
    /// The body of each place: by blocks of first points along x, then along y, then by the first
    /// point along z, so that those that follow each other share rows of the mesh.
    pub order: Vec<u32>,
    /// The first place of each block along x, and one past the last.
    pub start: Vec<usize>,
    bodies: Vec<Body<T>>,
}

/// The first point of a body along each axis, and how far it is beyond the window's lower end.
type Body<T> = ([u32; 3], [T; 3]);

impl<T: Real> Placed<T> {
    /// Of positions in a box from the origin.
    pub fn new(counts: [usize; 3], points: usize, sides: [f64; 3], position: &[[f64; 3]]) -> Self {
        let half = 0.5 * points as f64;
        let place = |x: &[f64; 3]| -> Body<T> {
            let at = |d: usize| {
                let low = x[d] / sides[d] * counts[d] as f64 - half;
                let first = low.ceil();
                ((first as i64).rem_euclid(counts[d] as i64) as u32, real(first - low))
            };
            let all = [at(0), at(1), at(2)];
            (all.map(|a| a.0), all.map(|a| a.1))
        };
        let key = |x: &[f64; 3]| {
            let (first, _) = place(x);
            let [x, y, z] = first.map(|f| f as usize);
            let block = x / PLANES * counts[1].div_ceil(PLANES) + y / PLANES;
            block * counts[2] + z
        };
        let order = sorted_by(position, key).par_iter().map(|item| item.index).collect_vec();
        let bodies: Vec<_> = order.par_iter().map(|&i| place(&position[i as usize])).collect_vec();
        let blocks = counts[0].div_ceil(PLANES);
        let start = (0..=blocks).map(|x| bodies.partition_point(|b| (b.0[0] as usize) < x * PLANES)).collect();
        Placed { counts, order, start, bodies }
    }
}

/// A place that is at most once around the box too far.
#[inline(always)]
fn wrapped(place: usize, count: usize) -> usize {
    if place < count { place } else { place - count }
}

/// From a row of the mesh to the next: with room for a window that begins at its last point.
pub fn stride(count: usize) -> usize {
    count + MOST_POINTS
}

/// The strengths of `placed` bodies on the planes of a mesh: of each x, rows along z for each y.
pub fn spread<T: Real>(window: &Window<T>, placed: &Placed<T>, strength: &[f64]) -> Vec<Vec<T>> {
    let first = (0..placed.counts[0]).step_by(PLANES).collect::<Vec<_>>();
    let some = |&first: &usize| dispatch(Spread { window, placed, strength, first });
    first.par_iter().map(some).collect_vec().into_iter().flatten().collect()
}

/// Fills a few planes.
struct Spread<'a, T> {
    window: &'a Window<T>,
    placed: &'a Placed<T>,
    strength: &'a [f64],
    first: usize,
}

impl<T: Real> Task<T> for Spread<'_, T> {
    type Out = Vec<Vec<T>>;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> Self::Out {
        let Spread { window, placed, strength, first } = self;
        let ([nx, ny, nz], points) = (placed.counts, window.points);
        let (stride, planes) = (stride(nz), PLANES.min(nx - first));
        let mut out = vec![vec![T::ZERO; ny * stride]; planes];
        let mut w = [[T::ZERO; MOST_POINTS]; 3];
        // Bodies whose windows reach these planes begin at most P − 1 points before.
        let before = |back: usize| (first + nx - back % nx) % nx / PLANES;
        let mut blocks: Vec<usize> = (0..points + PLANES).map(before).collect();
        blocks.sort_unstable();
        blocks.dedup();
        for block in blocks {
            for place in placed.start[block]..placed.start[block + 1] {
                let (at, beyond) = &placed.bodies[place];
                let begin = at[0] as usize;
                if (0..planes).all(|p| (first + p + nx - begin) % nx >= points) {
                    continue;
                }
                (0..3).for_each(|d| window.at::<V>(beyond[d], &mut w[d]));
                let q: T = real(strength[placed.order[place] as usize]);
                for (p, plane) in out.iter_mut().enumerate() {
                    let along = (first + p + nx - begin) % nx;
                    // In a narrow box a window may meet a plane more than once.
                    for i in (along..points).step_by(nx) {
                        for j in 0..points {
                            let row = wrapped(at[1] as usize + j, ny) * stride + at[2] as usize;
                            let weight = V::splat(q * w[0][i] * w[1][j]);
                            let row = &mut plane[row..];
                            let mut k = 0;
                            while k < points {
                                weight.mul_add(V::load(&w[2][k..]), V::load(&row[k..])).store(&mut row[k..]);
                                k += T::WIDTH;
                            }
                        }
                    }
                }
            }
        }
        for row in out.iter_mut().flat_map(|plane| plane.chunks_exact_mut(stride)) {
            for k in nz..stride {
                let beyond = std::mem::take(&mut row[k]);
                row[k % nz] += beyond;
            }
        }
        out
    }
}

/// Functions on the mesh: the potential and the components of the field.
pub const FUNCTIONS: usize = 4;

/// The values of all functions on a mesh at `placed` targets, in the order of these. Of each x there
/// is a plane: rows along z for each y, in which the functions of a point follow each other.
pub fn gather<T: Real>(window: &Window<T>, placed: &Placed<T>, planes: &[Vec<T>]) -> Vec<[f64; FUNCTIONS]> {
    let some = |bodies: &[Body<T>]| dispatch(Gather { window, bodies, counts: placed.counts, planes });
    placed.bodies.par_chunks(TARGETS).flat_map_iter(some).collect()
}

/// Values at some targets.
struct Gather<'a, T> {
    window: &'a Window<T>,
    bodies: &'a [Body<T>],
    counts: [usize; 3],
    planes: &'a [Vec<T>],
}

impl<T: Real> Task<T> for Gather<'_, T> {
    type Out = Vec<[f64; FUNCTIONS]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> Self::Out {
        // Vectors of a row of the window.
        match (FUNCTIONS * self.window.points).div_ceil(T::WIDTH) {
            1 => self.with::<V, 1>(),
            2 => self.with::<V, 2>(),
            3 => self.with::<V, 3>(),
            4 => self.with::<V, 4>(),
            5 => self.with::<V, 5>(),
            6 => self.with::<V, 6>(),
            7 => self.with::<V, 7>(),
            _ => self.with::<V, 8>(),
        }
    }
}

impl<T: Real> Gather<'_, T> {
    #[inline(always)]
    fn with<V: Vector<Scalar = T>, const VECTORS: usize>(self) -> Vec<[f64; FUNCTIONS]> {
        let ([nx, ny, nz], points) = (self.counts, self.window.points);
        let stride = FUNCTIONS * stride(nz);
        let mut w = [[T::ZERO; MOST_POINTS]; 3];
        let mut lanes = [T::ZERO; FUNCTIONS * MOST_POINTS];
        let mut out = Vec::with_capacity(self.bodies.len());
        for (at, beyond) in self.bodies {
            for d in 0..3 {
                self.window.at::<V>(beyond[d], &mut w[d]);
            }
            let mut sums = [V::zero(); VECTORS];
            for i in 0..points {
                let plane = &self.planes[wrapped(at[0] as usize + i, nx)][FUNCTIONS * at[2] as usize..];
                for j in 0..points {
                    let row = &plane[wrapped(at[1] as usize + j, ny) * stride..];
                    let weight = V::splat(w[0][i] * w[1][j]);
                    for v in 0..VECTORS {
                        sums[v] = weight.mul_add(V::load(&row[v * T::WIDTH..]), sums[v]);
                    }
                }
            }
            for v in 0..VECTORS {
                sums[v].store(&mut lanes[v * T::WIDTH..]);
            }
            let mut values = [0.0; FUNCTIONS];
            for k in 0..points {
                for f in 0..FUNCTIONS {
                    values[f] += (w[2][k] * lanes[FUNCTIONS * k + f]).to_f64();
                }
            }
            out.push(values);
        }
        out
    }
}
