//! Real space: sources in cells, and the images of cells around each target.

use std::ops::Range;

use rayon::prelude::*;

use super::{Split, Sums};
use crate::kernel::Softening;
use crate::kernel::{Radial, Spline};
use crate::math::Real;
use crate::math::erfc::erfc_and_gaussian;
use crate::math::simd::{Task, Vector, dispatch};

/// Bodies that a cell holds at least, on average.
const FEWEST: f64 = 8.0;

/// Targets that one task serves.
const TARGETS: usize = 8;

/// Sources by cell.
pub struct Cells {
    sides: [f64; 3],
    count: [usize; 3],
    /// First source of each cell, z fastest, and one past the last.
    start: Vec<u32>,
    /// Coordinates and strengths in the order of cells, and a vector more.
    x: [Vec<f64>; 3],
    q: Vec<f64>,
}

impl Cells {
    /// Of wrapped positions in a box from the origin.
    pub fn new(sides: [f64; 3], split: &Split, position: &[[f64; 3]], strength: &[f64]) -> Self {
        let volume: f64 = sides.iter().product();
        let fewest = (FEWEST * volume / position.len().max(1) as f64).cbrt();
        let wanted = f64::max(split.cutoff / 4.0, fewest);
        let count = sides.map(|s| ((s / wanted) as usize).clamp(1, 512));
        let cell_of = |x: &[f64; 3]| {
            (0..3).fold(0, |cell, d| {
                let i = (x[d] / sides[d] * count[d] as f64) as usize;
                cell * count[d] + i.min(count[d] - 1)
            })
        };
        let cells: Vec<usize> = position.par_iter().map(cell_of).collect();
        let mut start = vec![0u32; count.iter().product::<usize>() + 1];
        cells.iter().for_each(|&c| start[c + 1] += 1);
        for c in 1..start.len() {
            start[c] += start[c - 1];
        }
        let (mut place, padded) = (start.clone(), position.len() + f64::WIDTH);
        let (mut x, mut q) = ([(); 3].map(|()| vec![0.0; padded]), vec![0.0; padded]);
        for (i, &c) in cells.iter().enumerate() {
            let k = place[c] as usize;
            place[c] += 1;
            (0..3).for_each(|d| x[d][k] = position[i][d]);
            q[k] = strength[i];
        }
        Cells { sides, count, start, x, q }
    }

    /// The part of real space at wrapped `targets`.
    pub fn sums(&self, softening: Softening, split: &Split, targets: &[[f64; 3]]) -> Sums {
        let parts: Vec<Vec<[f64; 5]>> = targets
            .par_chunks(TARGETS)
            .map(|targets| dispatch(Near { cells: self, softening, split, targets }))
            .collect();
        let all = || parts.iter().flatten();
        Sums {
            potential: all().map(|s| s[0]).collect(),
            field: all().map(|s| [s[1], s[2], s[3]]).collect(),
            largest: all().map(|s| s[4]).collect(),
        }
    }

    /// Finds the places of the sources of each run of cells that may be closer to `target` than `cutoff`, and the target as these images
    /// see it.
    fn around(&self, target: &[f64; 3], cutoff: f64, runs: &mut Vec<(Range<usize>, [f64; 3])>) {
        runs.clear();
        let size: [f64; 3] = std::array::from_fn(|d| self.sides[d] / self.count[d] as f64);
        let range = |d: usize, reach: f64| {
            ((target[d] - reach) / size[d]).floor() as i64..=((target[d] + reach) / size[d]).floor() as i64
        };
        // The distance of the target from a slab of cells.
        let gap = |d: usize, i: i64| {
            let low = i as f64 * size[d];
            (low - target[d]).max(target[d] - low - size[d]).max(0.0)
        };
        let count = self.count.map(|c| c as i64);
        for i in range(0, cutoff) {
            for j in range(1, cutoff) {
                let left = cutoff * cutoff - gap(0, i).powi(2) - gap(1, j).powi(2);
                if left < 0.0 {
                    continue;
                }
                let row = (i.rem_euclid(count[0]) * count[1] + j.rem_euclid(count[1])) * count[2];
                let depth = range(2, left.sqrt());
                let (first, last) = (*depth.start(), *depth.end());
                for image in first.div_euclid(count[2])..=last.div_euclid(count[2]) {
                    let low = (first - image * count[2]).max(0);
                    let high = (last - image * count[2]).min(count[2] - 1);
                    let images = [i.div_euclid(count[0]), j.div_euclid(count[1]), image];
                    let seen = std::array::from_fn(|d| target[d] - images[d] as f64 * self.sides[d]);
                    let places = [row + low, row + high + 1].map(|cell| self.start[cell as usize] as usize);
                    runs.push((places[0]..places[1], seen));
                }
            }
        }
    }
}

struct Near<'a> {
    cells: &'a Cells,
    softening: Softening,
    split: &'a Split,
    targets: &'a [[f64; 3]],
}

impl Task<f64> for Near<'_> {
    type Out = Vec<[f64; 5]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        let alpha = self.split.alpha;
        match self.softening {
            Softening::Spline(e) => self.all::<V, _>(Soft { alpha, kernel: Spline(V::constant(1.0 / (2.8 * e))) }),
            _ => self.all::<V, _>(Bare { alpha }),
        }
    }
}

impl Near<'_> {
    #[inline(always)]
    fn all<V: Vector<Scalar = f64>, S: Screened<V>>(self, screened: S) -> Vec<[f64; 5]> {
        let Cells { x, q, .. } = self.cells;
        // Ones, then zeros: the sources of a vector that belong to a run.
        let mut kept = [0.0; 16];
        kept[..8].fill(1.0);
        let (mut out, mut runs) = (Vec::with_capacity(self.targets.len()), vec![]);
        for target in self.targets {
            let mut sums = [V::zero(); 5];
            self.cells.around(target, self.split.cutoff, &mut runs);
            for (places, seen) in &runs {
                let at = [V::splat(seen[0]), V::splat(seen[1]), V::splat(seen[2])];
                let (mut j, to) = (places.start, places.end);
                while j < to {
                    let d = [
                        at[0].sub(V::load(&x[0][j..])),
                        at[1].sub(V::load(&x[1][j..])),
                        at[2].sub(V::load(&x[2][j..])),
                    ];
                    let mut strength = V::load(&q[j..]);
                    if to - j < f64::WIDTH {
                        strength = strength.mul(V::load(&kept[8 - (to - j)..]));
                    }
                    let r2 = d[0].mul_add(d[0], d[1].mul_add(d[1], d[2].mul(d[2])));
                    let (potential, force, bare) = screened.eval(r2);
                    let force = force.mul(strength);
                    sums[0] = potential.mul_add(strength, sums[0]);
                    sums[1] = force.mul_add(d[0], sums[1]);
                    sums[2] = force.mul_add(d[1], sums[2]);
                    sums[3] = force.mul_add(d[2], sums[3]);
                    let bare = bare.mul(strength);
                    sums[4] = sums[4].max(bare.mul(bare).mul(r2));
                    j += f64::WIDTH;
                }
            }
            let mut lanes = [0.0; 16];
            sums[4].store(&mut lanes);
            let largest = lanes.into_iter().fold(0.0, f64::max).sqrt();
            out.push([sums[0].sum(), sums[1].sum(), sums[2].sum(), sums[3].sum(), largest]);
        }
        out
    }
}

/// A kernel less erf(αr)/r, which the waves have.
trait Screened<V: Vector>: Copy {
    /// Of r²: the potential, the force over r, and the kernel's own force over r.
    fn eval(&self, r2: V) -> (V, V, V);
}

/// 2/√π.
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// 1/r.
#[derive(Clone, Copy)]
struct Bare {
    alpha: f64,
}

impl<V: Vector<Scalar = f64>> Screened<V> for Bare {
    #[inline(always)]
    fn eval(&self, r2: V) -> (V, V, V) {
        let inverse = r2.rsqrt();
        let (erfc, gaussian) = erfc_and_gaussian(V::constant(self.alpha).mul(r2.mul(inverse)));
        let own = V::constant(self.alpha * SLOPE);
        // At distance zero erfc(αr)/r without its 1/r.
        let at_zero = own.sub(own.keep_where_at_least(r2, V::splat(f64::TINY)));
        let screened = erfc.mul(inverse);
        let square = inverse.mul(inverse);
        (screened.sub(at_zero), own.mul_add(gaussian, screened).mul(square), inverse.mul(square))
    }
}

/// A softened kernel.
#[derive(Clone, Copy)]
struct Soft<K> {
    alpha: f64,
    kernel: K,
}

impl<V: Vector<Scalar = f64>, K: Radial<V>> Screened<V> for Soft<K> {
    #[inline(always)]
    fn eval(&self, r2: V) -> (V, V, V) {
        let (potential, force) = self.kernel.eval::<false>(r2);
        let inverse = r2.rsqrt();
        let a2 = self.alpha * self.alpha;
        let x2 = V::constant(a2).mul(r2);
        let (erfc, gaussian) = erfc_and_gaussian(V::constant(self.alpha).mul(r2.mul(inverse)));
        // erf(x)/x · √π/2 = 1 − x²/3 + x⁴/10 − x⁶/42 + x⁸/216 − x¹⁰/1320 where x is small, and minus twice its derivative by x².
        let (mut series, mut slope) = (V::constant(-1.0 / 1320.0), V::constant(10.0 / 1320.0));
        let terms = [1.0 / 216.0, -1.0 / 42.0, 1.0 / 10.0, -1.0 / 3.0];
        for (k, c) in terms.into_iter().enumerate() {
            series = series.mul_add(x2, V::constant(c));
            slope = slope.mul_add(x2, V::constant(-2.0 * (4 - k) as f64 * c));
        }
        let series = series.mul_add(x2, V::constant(1.0));
        let small = V::constant(0.01);
        let own = V::constant(self.alpha * SLOPE);
        let smooth = inverse.sub(erfc.mul(inverse));
        let pull = smooth.sub(own.mul(gaussian)).mul(inverse.mul(inverse));
        let (near, near_pull) = (own.mul(series), own.mul(V::constant(a2)).mul(slope));
        let smooth = near.sub(near.keep_where_at_least(x2, small)).add(smooth.keep_where_at_least(x2, small));
        let pull = near_pull.sub(near_pull.keep_where_at_least(x2, small)).add(pull.keep_where_at_least(x2, small));
        (potential.sub(smooth), force.sub(pull), force)
    }
}
