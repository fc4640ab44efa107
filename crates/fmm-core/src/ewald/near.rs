//! Real space: sources in cells, and the images of cells around each target.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::{Hessians, Split, Sums};
use crate::kernel::{AXES, Hessian, Radial, Softening, Spline};
use crate::math::erfc::erfc_and_gaussian;
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Number};

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
        let cells: Vec<usize> = position.par_iter().map(cell_of).collect_vec();
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
        let all = self.all::<Field>(softening, split, targets);
        Sums {
            potential: all.iter().map(|(s, _)| s[0]).collect(),
            field: all.iter().map(|(s, _)| [s[1], s[2], s[3]]).collect(),
            largest: all.iter().map(|(_, largest)| *largest).collect(),
        }
    }

    /// The same of second derivatives.
    pub fn hessians(&self, softening: Softening, split: &Split, targets: &[[f64; 3]]) -> Hessians {
        let all = self.all::<Second>(softening, split, targets);
        Hessians {
            hessian: all.iter().map(|(s, _)| Hessian::combine(s[0], std::array::from_fn(|k| s[k + 1]))).collect(),
            largest: all.iter().map(|(_, largest)| *largest).collect(),
        }
    }

    /// The sums at `targets`, and the size of the largest term.
    fn all<Q: Terms>(&self, softening: Softening, split: &Split, targets: &[[f64; 3]]) -> Vec<(Q::Sums, f64)> {
        let task = |targets| dispatch(Near { cells: self, softening, split, targets, terms: PhantomData::<Q> });
        targets.par_chunks(TARGETS).flat_map_iter(task).collect()
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

struct Near<'a, Q> {
    cells: &'a Cells,
    softening: Softening,
    split: &'a Split,
    targets: &'a [[f64; 3]],
    terms: PhantomData<Q>,
}

impl<Q: Terms> Task<f64> for Near<'_, Q> {
    type Out = Vec<(Q::Sums, f64)>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        let alpha = self.split.alpha;
        match self.softening {
            Softening::Spline(e) => self.all::<V, _>(Soft { alpha, kernel: Spline(V::constant(1.0 / (2.8 * e))) }),
            _ => self.all::<V, _>(Bare { alpha }),
        }
    }
}

impl<Q: Terms> Near<'_, Q> {
    #[inline(always)]
    fn all<V: Vector<Scalar = f64>, S: Screened<V>>(self, screened: S) -> Vec<(Q::Sums, f64)> {
        let Cells { x, q, .. } = self.cells;
        // Ones, then zeros: the sources of a vector that belong to a run.
        let mut kept = [0.0; 16];
        kept[..8].fill(1.0);
        let (mut out, mut runs) = (Vec::with_capacity(self.targets.len()), vec![]);
        for target in self.targets {
            let (mut sums, mut largest) = ([V::zero(); 7], V::zero());
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
                    largest = largest.max(Q::meet(screened, d, r2, strength, &mut sums));
                    j += f64::WIDTH;
                }
            }
            let mut lanes = [0.0; 16];
            largest.store(&mut lanes);
            out.push((Q::of(sums.map(|s| s.sum())), lanes.into_iter().fold(0.0, f64::max).sqrt()));
        }
        out
    }
}

/// What is summed.
trait Terms: Sync {
    type Sums: Copy + Send;

    /// Adds the terms of sources of a `strength` at a difference `d` to the first of `sums`. Returns the square of the bare terms' size.
    fn meet<V: Vector<Scalar = f64>>(screened: impl Screened<V>, d: [V; 3], r2: V, strength: V, sums: &mut [V; 7])
    -> V;

    fn of(sums: [f64; 7]) -> Self::Sums;
}

/// Potential and field.
struct Field;

impl Terms for Field {
    type Sums = [f64; 4];

    #[inline(always)]
    fn meet<V: Vector<Scalar = f64>>(
        screened: impl Screened<V>,
        d: [V; 3],
        r2: V,
        strength: V,
        sums: &mut [V; 7],
    ) -> V {
        let (potential, force, bare) = screened.eval(r2);
        let force = force.mul(strength);
        sums[0] = potential.mul_add(strength, sums[0]);
        for k in 0..3 {
            sums[k + 1] = force.mul_add(d[k], sums[k + 1]);
        }
        let bare = bare.mul(strength);
        bare.mul(bare).mul(r2)
    }

    fn of(sums: [f64; 7]) -> [f64; 4] {
        std::array::from_fn(|k| sums[k])
    }
}

/// Second derivatives, as [`Hessian`] has them: Σ q g, and Σ q h x_i x_j.
struct Second;

impl Terms for Second {
    type Sums = [f64; 7];

    #[inline(always)]
    fn meet<V: Vector<Scalar = f64>>(
        screened: impl Screened<V>,
        d: [V; 3],
        r2: V,
        strength: V,
        sums: &mut [V; 7],
    ) -> V {
        let [g, h, bare_g, bare_h] = screened.second(r2);
        sums[0] = g.mul_add(strength, sums[0]);
        let h = h.mul(strength);
        for (k, [i, j]) in AXES.into_iter().enumerate() {
            sums[k + 1] = h.mul(d[i]).mul_add(d[j], sums[k + 1]);
        }
        // Eigenvalues along and across the line to the source.
        let (along, across) = (bare_h.mul(r2).sub(bare_g).mul(strength), bare_g.mul(strength));
        along.mul_add(along, across.mul(across).mul(V::constant(2.0)))
    }

    fn of(sums: [f64; 7]) -> [f64; 7] {
        sums
    }
}

/// A kernel less erf(αr)/r, which the waves have.
trait Screened<V: Vector>: Copy {
    /// Of r²: the potential, the force over r, and the kernel's own force over r.
    fn eval(&self, r2: V) -> (V, V, V);

    /// Of r²: g = −K'/r and h = −g'/r, and those of the kernel itself.
    fn second(&self, r2: V) -> [V; 4];
}

/// 2/√π.
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// Where α²r² is less, the series of erf(αr)/r has more digits than its closed form.
const SMALL: f64 = 0.01;

/// erfc(αr) and e^(−α²r²), with 1/r, its square, and 2α/√π.
struct Screen<V> {
    erfc: V,
    gaussian: V,
    inverse: V,
    square: V,
    own: V,
}

impl<V: Vector<Scalar = f64>> Screen<V> {
    #[inline(always)]
    fn new(alpha: f64, r2: V) -> Self {
        let inverse = r2.rsqrt();
        let (erfc, gaussian) = erfc_and_gaussian(V::constant(alpha).mul(r2.mul(inverse)));
        Screen { erfc, gaussian, inverse, square: inverse.mul(inverse), own: V::constant(alpha * SLOPE) }
    }
}

/// `below` where `x` is less than `bound`, else `above`.
#[inline(always)]
fn by_size<V: Vector<Scalar = f64>>(x: V, bound: V, below: V, above: V) -> V {
    below.sub(below.keep_where_at_least(x, bound)).add(above.keep_where_at_least(x, bound))
}

/// 1/r.
#[derive(Clone, Copy)]
struct Bare {
    alpha: f64,
}

impl<V: Vector<Scalar = f64>> Screened<V> for Bare {
    #[inline(always)]
    fn eval(&self, r2: V) -> (V, V, V) {
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        // At distance zero erfc(αr)/r without its 1/r.
        let at_zero = own.sub(own.keep_where_at_least(r2, V::splat(f64::TINY)));
        let screened = erfc.mul(inverse);
        (screened.sub(at_zero), own.mul_add(gaussian, screened).mul(square), inverse.mul(square))
    }

    #[inline(always)]
    fn second(&self, r2: V) -> [V; 4] {
        let a2 = self.alpha * self.alpha;
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        let g = own.mul_add(gaussian, erfc.mul(inverse)).mul(square);
        let h = g.mul_add(V::constant(3.0), own.mul(V::constant(2.0 * a2)).mul(gaussian)).mul(square);
        // What remains at distance zero: −erf(αr)/r = −2α/√π (1 − α²r²/3 + …).
        let left = V::constant(2.0 / 3.0 * a2 * self.alpha * SLOPE);
        let at_zero = left.sub(left.keep_where_at_least(r2, V::splat(f64::TINY)));
        let cube = inverse.mul(square);
        [g.sub(at_zero), h, cube, cube.mul(square).mul(V::constant(3.0))]
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
        let a2 = self.alpha * self.alpha;
        let x2 = V::constant(a2).mul(r2);
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        // erf(x)/x · √π/2 = 1 − x²/3 + x⁴/10 − x⁶/42 + x⁸/216 − x¹⁰/1320 where x is small, and minus twice its derivative by x².
        let (mut series, mut slope) = (V::constant(-1.0 / 1320.0), V::constant(10.0 / 1320.0));
        let terms = [1.0 / 216.0, -1.0 / 42.0, 1.0 / 10.0, -1.0 / 3.0];
        for (k, c) in terms.into_iter().enumerate() {
            series = series.mul_add(x2, V::constant(c));
            slope = slope.mul_add(x2, V::constant(-2.0 * (4 - k) as f64 * c));
        }
        let series = series.mul_add(x2, V::constant(1.0));
        let smooth = inverse.sub(erfc.mul(inverse));
        let pull = smooth.sub(own.mul(gaussian)).mul(square);
        let (near, near_pull) = (own.mul(series), own.mul(V::constant(a2)).mul(slope));
        let small = V::constant(SMALL);
        let (smooth, pull) = (by_size(x2, small, near, smooth), by_size(x2, small, near_pull, pull));
        (potential.sub(smooth), force.sub(pull), force)
    }

    #[inline(always)]
    fn second(&self, r2: V) -> [V; 4] {
        let (bare_g, bare_h) = self.kernel.second(r2);
        let a2 = self.alpha * self.alpha;
        let x2 = V::constant(a2).mul(r2);
        let Screen { erfc, gaussian, inverse, square, own } = Screen::new(self.alpha, r2);
        // Of erf(αr)/r, whose series in x² = α²r² is 2α/√π Σ (−1)^k x^2k/(k! (2k + 1)): g and h are its first and
        // second derivative.
        let pull = inverse.sub(erfc.mul(inverse)).sub(own.mul(gaussian)).mul(square);
        let bend = pull.mul(V::constant(3.0)).sub(own.mul(V::constant(2.0 * a2)).mul(gaussian)).mul(square);
        let (mut first, mut second) = (V::constant(5.0 / 1320.0), V::constant(20.0 / 1320.0));
        for (k, c) in [(4, 1.0 / 216.0), (3, 1.0 / 42.0), (2, 1.0 / 10.0), (1, 1.0 / 3.0)] {
            let sign = if k % 2 == 0 { -1.0 } else { 1.0 };
            first = first.mul_add(x2, V::constant(sign * f64::from(k) * c));
            if k > 1 {
                second = second.mul_add(x2, V::constant(sign * f64::from(k * (k - 1)) * c));
            }
        }
        let near_pull = own.mul(V::constant(2.0 * a2)).mul(first);
        let near_bend = own.mul(V::constant(-4.0 * a2 * a2)).mul(second);
        let small = V::constant(SMALL);
        let (pull, bend) = (by_size(x2, small, near_pull, pull), by_size(x2, small, near_bend, bend));
        [bare_g.sub(pull), bare_h.sub(bend), bare_g, bare_h]
    }
}
