//! Reciprocal space: structure factors of the sources, and their waves at the targets.
//!
//! e^(ikx) is a product over the axes of powers of e^(2πix/L). Waves along z are lanes; those of one pair of numbers along x and y make a row. Of k and −k one
//! stands for both.

use std::f64::consts::PI;
use std::ops::Range;

use rayon::prelude::*;

use super::structure::Structure;
use super::{Part, Sums};
use crate::kernel::AXES;
use crate::math::Number;
use crate::math::simd::{Task, Vector, dispatch};

/// Targets that one task serves.
const TARGETS: usize = 16;

/// Waves k = 2π(a/L_x, b/L_y, c/L_z) with |c| ≤ `most`.
struct Row {
    a: usize,
    b: i32,
    most: usize,
    /// In whole vectors.
    places: Range<usize>,
    /// The row of the same a, |b| among those of one octant.
    octant: usize,
}

/// The waves of a box.
pub struct Waves {
    sides: [f64; 3],
    rows: Vec<Row>,
    /// The largest numbers along each axis.
    most: [usize; 3],
    /// 2 (4π/V) f(k)/k² S(k) with the factor f of the smooth part, row after row, real and imaginary parts.
    factors: [Vec<f64>; 2],
}

impl Waves {
    /// Of sources in a box from the origin.
    pub fn new(sides: [f64; 3], part: &Part, position: &[[f64; 3]], strength: &[f64]) -> Self {
        let highest = part.highest();
        let most = sides.map(|s| (highest * s / (2.0 * PI)) as usize);
        let wave = sides.map(|s| 2.0 * PI / s);
        let (mut octant, mut rows, mut end) = (vec![], vec![], 0);
        for a in 0..=most[0] {
            let left = |b: i32| highest.powi(2) - (a as f64 * wave[0]).powi(2) - (f64::from(b) * wave[1]).powi(2);
            let most_along_z = |b: i32| ((left(b).sqrt() / wave[2]) as usize).min(most[2]);
            let first = octant.len();
            octant.extend((0..=most[1]).filter(|&b| left(b as i32) >= 0.0).map(|b| (a, b, most_along_z(b as i32) + 1)));
            let highest_b = (octant.len() - first) as i32 - 1;
            for b in if a == 0 { 0 } else { -highest_b }..=highest_b {
                let (most, start) = (most_along_z(b), end);
                end += (2 * most + 1).next_multiple_of(f64::WIDTH);
                rows.push(Row { a, b, most, places: start..end, octant: first + b.unsigned_abs() as usize });
            }
        }
        let structure = Structure::new(sides, &octant, position, strength);
        let mut factors = [vec![0.0; end], vec![0.0; end]];
        let volume: f64 = sides.iter().product();
        for row in &rows {
            for (i, place) in row.places.clone().enumerate() {
                let c = i as i32 - row.most as i32;
                // One of k and −k, none of 0, and nothing beyond the row.
                if c > row.most as i32 || row.a == 0 && row.b == 0 && c <= 0 {
                    continue;
                }
                let k = [row.a as f64 * wave[0], f64::from(row.b) * wave[1], f64::from(c) * wave[2]];
                let k2 = k.iter().map(|k| k * k).sum::<f64>();
                let weight = 8.0 * PI / volume * part.factor(k2) / k2;
                let sums = structure.of(row.octant, row.b < 0, c);
                (0..2).for_each(|i| factors[i][place] = weight * sums[i]);
            }
        }
        Waves { sides, rows, most, factors }
    }

    /// Adds the waves at `targets`.
    pub fn add_to(&self, sums: &mut Sums, targets: &[[f64; 3]]) {
        let fields = sums.field.par_chunks_mut(TARGETS);
        targets.par_chunks(TARGETS).zip(sums.potential.par_chunks_mut(TARGETS)).zip(fields).for_each(
            |((targets, potential), field)| {
                for (i, s) in dispatch(AtTargets::<false> { waves: self, targets }).into_iter().enumerate() {
                    potential[i] += s[0];
                    (0..3).for_each(|d| field[i][d] += s[d + 1]);
                }
            },
        );
    }

    /// Adds the second derivatives of the waves at `targets`.
    pub fn add_hessians_to(&self, hessian: &mut [[f64; 6]], targets: &[[f64; 3]]) {
        targets.par_chunks(TARGETS).zip(hessian.par_chunks_mut(TARGETS)).for_each(|(targets, hessian)| {
            for (h, s) in hessian.iter_mut().zip(dispatch(AtTargets::<true> { waves: self, targets })) {
                (0..6).for_each(|k| h[k] += s[4 + k]);
            }
        });
    }

    /// The powers of e^(2πix/L) along each axis: from 0 along x, from −most along y and z, and a vector more.
    fn fill(&self, x: &[f64; 3], powers: &mut Powers) {
        for d in 0..3 {
            let (s, c) = (2.0 * PI * x[d] / self.sides[d]).sin_cos();
            let [re, im] = &mut powers[d];
            let zero = if d == 0 { 0 } else { self.most[d] };
            re.resize(zero + self.most[d] + 1 + f64::WIDTH, 0.0);
            im.resize(zero + self.most[d] + 1 + f64::WIDTH, 0.0);
            (re[zero], im[zero]) = (1.0, 0.0);
            for k in 1..=self.most[d] {
                let (r, i) = (re[zero + k - 1], im[zero + k - 1]);
                (re[zero + k], im[zero + k]) = (r * c - i * s, r * s + i * c);
                if d > 0 {
                    (re[zero - k], im[zero - k]) = (re[zero + k], -im[zero + k]);
                }
            }
        }
    }

    /// e^(ikx) of a row but for the factor along z.
    #[inline(always)]
    fn along_row(&self, row: &Row, powers: &Powers) -> [f64; 2] {
        let [x, y, _] = powers;
        let b = (self.most[1] as i32 + row.b) as usize;
        let (xr, xi, yr, yi) = (x[0][row.a], x[1][row.a], y[0][b], y[1][b]);
        [xr * yr - xi * yi, xr * yi + xi * yr]
    }
}

/// Real and imaginary parts of powers, by axis.
type Powers = [[Vec<f64>; 2]; 3];

/// Potential and field of all waves at targets, and with `HESSIAN` second derivatives: xx, yy, zz, xy, xz, yz.
struct AtTargets<'a, const HESSIAN: bool> {
    waves: &'a Waves,
    targets: &'a [[f64; 3]],
}

impl<const HESSIAN: bool> Task<f64> for AtTargets<'_, HESSIAN> {
    type Out = Vec<[f64; 10]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        let Waves { rows, factors, most, sides, .. } = self.waves;
        // Numbers along z, as their powers lie.
        let numbers: Vec<f64> = (0..2 * most[2] + 1 + f64::WIDTH).map(|i| i as f64 - most[2] as f64).collect();
        let mut powers = Powers::default();
        let mut out = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            self.waves.fill(target, &mut powers);
            let [zr, zi] = &powers[2];
            let mut sums = [V::zero(); 10];
            for row in rows {
                let mut z = most[2] - row.most;
                // Σ e^(ik_z z) conj F, and the same times the number along z, and times its square.
                let (mut re, mut im, mut steep_re, mut steep_im) = (V::zero(), V::zero(), V::zero(), V::zero());
                let (mut bent_re, mut bent_im) = (V::zero(), V::zero());
                for place in row.places.clone().step_by(f64::WIDTH) {
                    let (fr, fi) = (V::load(&factors[0][place..]), V::load(&factors[1][place..]));
                    let (er, ei) = (V::load(&zr[z..]), V::load(&zi[z..]));
                    let c = V::load(&numbers[z..]);
                    let (tr, ti) = (er.mul_add(fr, ei.mul(fi)), er.neg_mul_add(fi, ei.mul(fr)));
                    (re, im) = (re.add(tr), im.add(ti));
                    (steep_re, steep_im) = (c.mul_add(tr, steep_re), c.mul_add(ti, steep_im));
                    if HESSIAN {
                        let c2 = c.mul(c);
                        (bent_re, bent_im) = (c2.mul_add(tr, bent_re), c2.mul_add(ti, bent_im));
                    }
                    z += f64::WIDTH;
                }
                let [ar, ai] = self.waves.along_row(row, &powers).map(V::splat);
                let imaginary = ar.mul_add(im, ai.mul(re));
                sums[0] = ar.mul_add(re, ai.neg_mul_add(im, sums[0]));
                sums[1] = V::splat(row.a as f64).mul_add(imaginary, sums[1]);
                sums[2] = V::splat(f64::from(row.b)).mul_add(imaginary, sums[2]);
                sums[3] = ar.mul_add(steep_im, ai.mul_add(steep_re, sums[3]));
                if HESSIAN {
                    let real = |re: V, im: V| ar.mul(re).sub(ai.mul(im));
                    let (a, b) = (V::splat(row.a as f64), V::splat(f64::from(row.b)));
                    let (flat, steep) = (real(re, im), real(steep_re, steep_im));
                    let (flat_a, flat_b) = (a.mul(flat), b.mul(flat));
                    sums[4] = a.mul_add(flat_a, sums[4]);
                    sums[5] = b.mul_add(flat_b, sums[5]);
                    sums[6] = sums[6].add(real(bent_re, bent_im));
                    sums[7] = b.mul_add(flat_a, sums[7]);
                    sums[8] = a.mul_add(steep, sums[8]);
                    sums[9] = b.mul_add(steep, sums[9]);
                }
            }
            let wave = |d: usize| 2.0 * PI / sides[d];
            let mut all = sums.map(|s| s.sum());
            (0..3).for_each(|d| all[d + 1] *= wave(d));
            AXES.iter().zip(&mut all[4..]).for_each(|([i, j], h)| *h *= -wave(*i) * wave(*j));
            out.push(all);
        }
        out
    }
}
