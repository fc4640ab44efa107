//! Direct sums in double precision at some places: what guards and checks compare with.

use rayon::prelude::*;

use super::points::Points;
use crate::guard::{Norms, Sample, split};
use crate::kernel::{Radial, Softening, UseRadial};
use crate::math::scale::{larger, largest, power_of_two_below, strength_scale};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Number};

/// Sources that one task adds up: they stay in the first-level cache while the targets pass.
const BLOCK: usize = 1 << 10;

/// Targets that share each load of sources, and fill the pipelines between them.
const TOGETHER: usize = 2;

/// Units of a set, in which squares of forces neither over- nor underflow.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    /// What coordinates are multiplied by.
    pub length: f64,
    /// What strengths are multiplied by.
    pub strength: f64,
}

impl Units {
    /// Those of `sources` with `strengths` and the places `at`.
    pub fn of(sources: &[[f64; 3]], strengths: &[f64], at: &[[f64; 3]]) -> Self {
        let extent = larger(largest(sources.as_flattened()), largest(at.as_flattened()));
        let length = power_of_two_below(1.0 / extent);
        Units { length, strength: strength_scale(strengths) }
    }

    /// A field in these units.
    pub fn into_scaled(self, field: [f64; 3]) -> [f64; 3] {
        field.map(|f| f * self.strength / self.length / self.length)
    }

    /// A field in these units, or its size, in those of the caller.
    pub fn into_plain(self, field: f64) -> f64 {
        field / self.strength * self.length * self.length
    }
}

/// The field of `sources` at `places`, and the square of its largest term: four numbers a place, in `units`.
pub(crate) fn scaled(
    units: Units,
    softening: Softening,
    sources: &[[f64; 3]],
    strengths: &[f64],
    places: &[[f64; 3]],
) -> Vec<[f64; 4]> {
    let parts = parts(units, softening, sources, strengths, places);
    (0..places.len()).map(|k| joined(parts.iter().map(|part| part[k]))).collect()
}

/// The same of each block of [`BLOCK`] sources.
pub(crate) fn parts(
    units: Units,
    softening: Softening,
    sources: &[[f64; 3]],
    strengths: &[f64],
    places: &[[f64; 3]],
) -> Vec<Vec<[f64; 4]>> {
    let softening = softening.scaled(units.length);
    let places: Vec<[f64; 3]> = places.iter().map(|x| x.map(|c| c * units.length)).collect();
    let units = [units.length, units.strength];
    sources
        .par_chunks(BLOCK)
        .zip(strengths.par_chunks(BLOCK))
        .map(|(x, q)| dispatch(Direct { softening, x, q, units, places: &places }))
        .collect_vec()
}

/// The field of all blocks of sources at a place, from those of each in their order.
pub(crate) fn joined(parts: impl Iterator<Item = [f64; 4]>) -> [f64; 4] {
    parts.fold([0.0; 4], |s, p| [s[0] + p[0], s[1] + p[1], s[2] + p[2], f64::max(s[3], p[3])])
}

/// The field e = −∇Σ q K of `sources` at `places`, pair by pair in double precision, and the size of its
/// largest term. A pair at distance zero adds nothing.
pub fn direct_field(
    softening: Softening,
    sources: &[[f64; 3]],
    strengths: &[f64],
    places: &[[f64; 3]],
) -> Vec<([f64; 3], f64)> {
    let units = Units::of(sources, strengths, places);
    let sums = scaled(units, softening.simplified(), sources, strengths, places);
    let plain =
        |[x, y, z, largest]: [f64; 4]| ([x, y, z].map(|e| units.into_plain(e)), units.into_plain(largest.sqrt()));
    sums.into_iter().map(plain).collect()
}

/// The errors of `field` at the targets of `sample`; `rms` is the root mean square of all of it, for
/// a predicted sample.
pub(super) fn errors(
    sample: &Sample,
    softening: Softening,
    points: Points,
    field: &[[f64; 3]],
    rms: Option<f64>,
) -> Norms {
    let (strengths, at) = (points.columns[0], points.at());
    let units = Units::of(points.sources, strengths, at);
    let places: Vec<[f64; 3]> = sample.places().map(|i| at[i]).collect();
    let exact = scaled(units, softening, points.sources, strengths, &places).into_iter().map(split);
    let rms = rms.map(|rms| units.into_scaled([rms, 0.0, 0.0])[0]);
    sample.weigh(exact, sample.places().map(|i| units.into_scaled(field[i])), rms)
}

/// Field and squared largest single term of a block of sources at every place.
struct Direct<'a> {
    softening: Softening,
    x: &'a [[f64; 3]],
    q: &'a [f64],
    /// What coordinates and strengths are multiplied by.
    units: [f64; 2],
    places: &'a [[f64; 3]],
}

impl Task<f64> for Direct<'_> {
    type Out = Vec<[f64; 4]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        self.softening.with_radial::<V, _>(1.0, self)
    }
}

impl<V: Vector<Scalar = f64>> UseRadial<V> for Direct<'_> {
    type Out = Vec<[f64; 4]>;

    #[inline(always)]
    fn run<K: Radial<V>>(self, kernel: K) -> Vec<[f64; 4]> {
        let n = self.x.len().next_multiple_of(f64::WIDTH);
        let mut arrays = [const { [0.0; BLOCK] }; 4];
        for (i, (x, q)) in self.x.iter().zip(self.q).enumerate() {
            for d in 0..3 {
                arrays[d][i] = x[d] * self.units[0];
            }
            arrays[3][i] = *q * self.units[1];
        }
        let [x, y, z, q] = arrays.each_ref().map(|a| &a[..n]);
        let mut out = Vec::with_capacity(self.places.len());
        for places in self.places.chunks(TOGETHER) {
            // Where the last place has no neighbour, it is summed twice.
            let mut at = [[V::zero(); 3]; TOGETHER];
            for k in 0..TOGETHER {
                let place = places[k.min(places.len() - 1)];
                at[k] = [V::splat(place[0]), V::splat(place[1]), V::splat(place[2])];
            }
            let mut sums = [[V::zero(); 3]; TOGETHER];
            let mut largest = [V::zero(); TOGETHER];
            for j in (0..n).step_by(f64::WIDTH) {
                let (x, y, z, q) = (V::load(&x[j..]), V::load(&y[j..]), V::load(&z[j..]), V::load(&q[j..]));
                for k in 0..TOGETHER {
                    let (dx, dy, dz) = (at[k][0].sub(x), at[k][1].sub(y), at[k][2].sub(z));
                    let r2 = dx.mul_add(dx, dy.mul_add(dy, dz.mul(dz)));
                    let force = kernel.eval::<false>(r2).1.mul(q);
                    sums[k][0] = force.mul_add(dx, sums[k][0]);
                    sums[k][1] = force.mul_add(dy, sums[k][1]);
                    sums[k][2] = force.mul_add(dz, sums[k][2]);
                    largest[k] = largest[k].max(force.mul(force).mul(r2));
                }
            }
            for k in 0..places.len() {
                let mut lanes = [0.0; 16];
                largest[k].store(&mut lanes);
                let largest = lanes.into_iter().fold(0.0, f64::max);
                out.push([sums[k][0].sum(), sums[k][1].sum(), sums[k][2].sum(), largest]);
            }
        }
        out
    }
}
