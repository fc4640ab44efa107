//! The error of a sum on a sample of its targets.

use rayon::prelude::*;

use super::simd::{Task, Vector, dispatch};
use crate::kernel::{Newton, P1, Plummer, Radial, Spline};
use crate::real::Real;
use crate::settings::Softening;

/// Targets that are summed directly, some per cent of the time of the sum itself: fewer of large sets.
fn sample_size(targets: usize) -> usize {
    (4_000_000 / targets.max(1)).clamp(128, 400)
}

/// Sources that one task adds up.
const BLOCK: usize = 1 << 14;

/// The larger of rms(e) and L2 (see [`crate::accuracy`]) over a deterministic sample of the targets.
pub fn sampled_error(
    softening: Softening,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
    field: &[[f64; 3]],
) -> f64 {
    let at = targets.unwrap_or(sources);
    let step = at.len().div_ceil(sample_size(at.len())).max(1);
    // Spread over the set, and not on any regular structure of its order.
    let sample: Vec<usize> =
        (0..at.len().div_ceil(step)).map(|k| (k * step + k * 7 % step).min(at.len() - 1)).collect();
    let places: Vec<[f64; 3]> = sample.iter().map(|&i| at[i]).collect();
    let parts: Vec<Vec<[f64; 4]>> = sources
        .par_chunks(BLOCK)
        .zip(strengths.par_chunks(BLOCK))
        .map(|(x, q)| dispatch(Direct { softening, x, q, places: &places }))
        .collect();
    let (mut squares, mut error, mut norm) = (vec![], 0.0, 0.0);
    for (k, &i) in sample.iter().enumerate() {
        let mut sum = [0.0; 4];
        for part in &parts {
            (0..3).for_each(|d| sum[d] += part[k][d]);
            sum[3] = f64::max(sum[3], part[k][3]);
        }
        let delta2: f64 = (0..3).map(|d| (field[i][d] - sum[d]).powi(2)).sum();
        let a2: f64 = sum[..3].iter().map(|a| a * a).sum();
        if delta2 > 0.0 {
            squares.push(delta2 / a2.max(1e-6 * sum[3]));
        }
        error += delta2;
        norm += a2.max(1e-6 * sum[3]);
    }
    // The few bodies that feel next to nothing make most of an rms: in a small sample the worst one would decide alone.
    squares.sort_unstable_by(f64::total_cmp);
    if sample.len() >= 100 && squares.last().is_some_and(|worst| worst.is_finite()) {
        squares.pop();
    }
    let rms = (squares.iter().sum::<f64>() / sample.len().max(1) as f64).sqrt();
    let l2 = if error > 0.0 { (error / norm).sqrt() } else { 0.0 };
    if rms.is_finite() && l2.is_finite() { rms.max(l2) } else { f64::INFINITY }
}

/// Field and squared largest single term of a block of sources at every place.
struct Direct<'a> {
    softening: Softening,
    x: &'a [[f64; 3]],
    q: &'a [f64],
    places: &'a [[f64; 3]],
}

impl Task<f64> for Direct<'_> {
    type Out = Vec<[f64; 4]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        match self.softening {
            Softening::None => self.sum::<V, _>(Newton),
            Softening::Plummer(e) => self.sum::<V, _>(Plummer(V::constant(e * e))),
            Softening::P1(e) => self.sum::<V, _>(P1(V::constant(e * e))),
            Softening::Spline(e) => self.sum::<V, _>(Spline(V::constant(1.0 / (2.8 * e)))),
        }
    }
}

impl Direct<'_> {
    #[inline(always)]
    fn sum<V: Vector<Scalar = f64>, K: Radial<V>>(self, kernel: K) -> Vec<[f64; 4]> {
        let n = self.x.len().next_multiple_of(f64::WIDTH);
        let mut arrays = [const { Vec::new() }; 4];
        for (x, q) in self.x.iter().zip(self.q) {
            for d in 0..3 {
                arrays[d].push(x[d]);
            }
            arrays[3].push(*q);
        }
        for a in &mut arrays {
            a.resize(n, 0.0);
        }
        let mut out = Vec::with_capacity(self.places.len());
        for place in self.places {
            let at = [V::splat(place[0]), V::splat(place[1]), V::splat(place[2])];
            let mut sums = [V::zero(); 3];
            let mut largest = V::zero();
            for j in (0..n).step_by(f64::WIDTH) {
                let d = [
                    at[0].sub(V::load(&arrays[0][j..])),
                    at[1].sub(V::load(&arrays[1][j..])),
                    at[2].sub(V::load(&arrays[2][j..])),
                ];
                let r2 = d[0].mul_add(d[0], d[1].mul_add(d[1], d[2].mul(d[2])));
                let force = kernel.eval(r2).1.mul(V::load(&arrays[3][j..]));
                for c in 0..3 {
                    sums[c] = force.mul_add(d[c], sums[c]);
                }
                largest = largest.max(force.mul(force).mul(r2));
            }
            let mut lanes = [0.0; 16];
            largest.store(&mut lanes);
            out.push([sums[0].sum(), sums[1].sum(), sums[2].sum(), lanes.into_iter().fold(0.0, f64::max)]);
        }
        out
    }
}
