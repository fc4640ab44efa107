//! Direct sums at some places: what guards and checks compare with.
//!
//! Those of checks are in double precision. A guard's may have pairs in single precision: coordinates and strengths
//! are two numbers each. So a difference is off by about one spacing of single precision, however close the pair, and
//! strengths are not rounded: the sum that is judged may have rounded them in the same way, which no comparison would
//! show. For the same reason lengths are multiplied by a factor that is no power of two: the pairs of the sum that is
//! judged would round as these do, and where terms cancel that is all of its error. Blocks are added up in double.

use rayon::prelude::*;

use super::points::Points;
use crate::Precision;
use crate::guard::{Norms, Sample, split};
use crate::kernel::{Radial, Softening, UseRadial};
use crate::math::scale::{larger, largest, power_of_two_below, strength_scale};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Number, Real};

/// Sources that one task adds up: they stay in the first-level cache while the targets pass.
const BLOCK: usize = 1 << 10;

/// Targets that share each load of sources, and fill the pipelines between them.
const TOGETHER: usize = 2;

/// What lengths are multiplied by in guards' sums in single precision, in addition to a power of two.
pub const OTHER_DIGITS: f64 = 0.739_085_133_215;

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
fn scaled(
    precision: Precision,
    units: Units,
    softening: Softening,
    sources: &[[f64; 3]],
    strengths: &[f64],
    places: &[[f64; 3]],
) -> Vec<[f64; 4]> {
    let parts = parts(precision, units, softening, sources, strengths, places);
    (0..places.len()).map(|k| joined(parts.iter().map(|part| part[k]))).collect()
}

/// The same of each block of [`BLOCK`] sources, with pairs in single precision or in double.
pub(crate) fn parts(
    precision: Precision,
    units: Units,
    softening: Softening,
    sources: &[[f64; 3]],
    strengths: &[f64],
    places: &[[f64; 3]],
) -> Vec<Vec<[f64; 4]>> {
    // Strengths over the squares of lengths are the same.
    let by = if precision == Precision::F32 { OTHER_DIGITS } else { 1.0 };
    let units = [units.length * by, units.strength * by * by];
    let softening = softening.scaled(units[0]);
    let places: Vec<[f64; 3]> = places.iter().map(|x| x.map(|c| c * units[0])).collect();
    let of_block = |(x, q)| {
        let block = Direct { softening, x, q, units, places: &places };
        if precision == Precision::F32 { dispatch::<f32, _>(block) } else { dispatch::<f64, _>(block) }
    };
    sources.par_chunks(BLOCK).zip(strengths.par_chunks(BLOCK)).map(of_block).collect_vec()
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
    let sums = scaled(Precision::F64, units, softening.simplified(), sources, strengths, places);
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
    precision: Precision,
) -> Norms {
    let (strengths, at) = (points.columns[0], points.at());
    let units = Units::of(points.sources, strengths, at);
    let places: Vec<[f64; 3]> = sample.places().map(|i| at[i]).collect();
    let exact = scaled(precision, units, softening, points.sources, strengths, &places).into_iter().map(split);
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

impl<T: Real> Task<T> for Direct<'_> {
    type Out = Vec<[f64; 4]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> Self::Out {
        self.softening.with_radial::<V, _>(1.0, self)
    }
}

/// A number in precision `T`, and what that rounds off.
#[inline(always)]
fn two_parts<T: Number>(x: f64) -> [T; 2] {
    let high = T::from_f64(x);
    [high, T::from_f64(x - high.to_f64())]
}

impl<V: Vector> UseRadial<V> for Direct<'_> {
    type Out = Vec<[f64; 4]>;

    #[inline(always)]
    fn run<K: Radial<V>>(self, kernel: K) -> Vec<[f64; 4]> {
        let width = V::Scalar::WIDTH;
        let two = size_of::<V::Scalar>() < size_of::<f64>();
        let n = self.x.len().next_multiple_of(width);
        // Coordinates and strengths, and what is rounded off them.
        let mut arrays = [const { [V::Scalar::ZERO; BLOCK] }; 8];
        for (i, (x, q)) in self.x.iter().zip(self.q).enumerate() {
            for d in 0..3 {
                [arrays[d][i], arrays[4 + d][i]] = two_parts(x[d] * self.units[0]);
            }
            [arrays[3][i], arrays[7][i]] = two_parts(*q * self.units[1]);
        }
        let arrays = arrays.each_ref().map(|a| &a[..n]);
        let mut out = Vec::with_capacity(self.places.len());
        for places in self.places.chunks(TOGETHER) {
            // Where the last place has no neighbour, it is summed twice.
            let mut at = [[V::zero(); 6]; TOGETHER];
            for k in 0..TOGETHER {
                let place = places[k.min(places.len() - 1)];
                for d in 0..3 {
                    let [high, low] = two_parts(place[d]);
                    [at[k][d], at[k][3 + d]] = [V::splat(high), V::splat(low)];
                }
            }
            let mut sums = [[V::zero(); 3]; TOGETHER];
            let mut largest = [V::zero(); TOGETHER];
            for j in (0..n).step_by(width) {
                let (x, y, z) = (V::load(&arrays[0][j..]), V::load(&arrays[1][j..]), V::load(&arrays[2][j..]));
                let q = V::load(&arrays[3][j..]);
                for k in 0..TOGETHER {
                    let (mut dx, mut dy, mut dz) = (at[k][0].sub(x), at[k][1].sub(y), at[k][2].sub(z));
                    if two {
                        dx = dx.add(at[k][3].sub(V::load(&arrays[4][j..])));
                        dy = dy.add(at[k][4].sub(V::load(&arrays[5][j..])));
                        dz = dz.add(at[k][5].sub(V::load(&arrays[6][j..])));
                    }
                    let r2 = dx.mul_add(dx, dy.mul_add(dy, dz.mul(dz)));
                    let slope = kernel.eval::<false>(r2).1;
                    let mut force = slope.mul(q);
                    if two {
                        force = slope.mul_add(V::load(&arrays[7][j..]), force);
                    }
                    sums[k][0] = force.mul_add(dx, sums[k][0]);
                    sums[k][1] = force.mul_add(dy, sums[k][1]);
                    sums[k][2] = force.mul_add(dz, sums[k][2]);
                    // The square of a force over its distance may be beyond single precision.
                    largest[k] = largest[k].max(force.mul(r2).mul(force));
                }
            }
            for k in 0..places.len() {
                let mut lanes = [V::Scalar::ZERO; 16];
                largest[k].store(&mut lanes);
                let largest = lanes.into_iter().map(Number::to_f64).fold(0.0, f64::max);
                let [x, y, z] = sums[k].map(|s| s.sum().to_f64());
                // Beyond single precision the sum is no number either, which the guard refuses.
                let x = if two && !largest.is_finite() { f64::NAN } else { x };
                out.push([x, y, z, largest]);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Drawn;
    use testkit::sets::{alternating, uniform};

    #[test]
    fn pairs_in_single_precision_are_those_of_double_or_are_refused() {
        // Two strengths that single precision does not hold, which are rounded all alike.
        let strengths: Vec<f64> = (0..3000).map(|i| if i % 7 == 0 { 4.2 } else { -0.7 }).collect();
        let mut points = uniform(3000, 3);
        let errors = |points: &[[f64; 3]], precision| {
            let units = Units::of(points, &strengths, &points[..20]);
            let [exact, sums] = [Precision::F64, precision]
                .map(|p| scaled(p, units, Softening::None, points, &strengths, &points[..20]));
            let sample = Sample::drawn(vec![Drawn { target: 0, weight: 1.0, certain: false }; 20], [0.0; 2]);
            sample.weigh(sums.into_iter().map(split), exact.into_iter().map(|[x, y, z, _]| [x, y, z]), None)
        };
        // Two floats hold the difference of neighbours at 1e-6, and no term is rounded but to single precision.
        points[1] = points[0].map(|c| c + 1e-6);
        let norms = errors(&points, Precision::F32);
        assert!(norms.rms > 0.0 && norms.error() < 1e-6, "{norms:?}");
        // Where squares of forces over distances are beyond single precision, those of forces are not.
        points[1] = points[0].map(|c| c + 1e-8);
        assert!(errors(&points, Precision::F32).error() < 1e-6);
        // At 1e-12 terms are numbers of single precision, but not their squares.
        points[1] = points[0].map(|c| c + 1e-12);
        assert_eq!(errors(&points, Precision::F32).error(), f64::INFINITY);
        assert_eq!(errors(&points, Precision::F64).error(), 0.0);
    }

    #[test]
    fn pairs_in_single_precision_round_otherwise_than_those_of_sums() {
        // All in one leaf, whose pairs are summed one by one, at places that single precision holds.
        let points: Vec<[f64; 3]> = uniform(800, 5).iter().map(|x| x.map(|c| (c * 256.0).round() / 256.0)).collect();
        let strengths = alternating(800);
        let settings = crate::Settings {
            precision: Precision::F32,
            order: Some(4),
            leaf_size: Some(1000),
            ..crate::Settings::default()
        };
        let sum = crate::evaluate(&settings, &points, &strengths, None, &mut crate::StageTimes::default()).unwrap();
        let units = Units::of(&points, &strengths, &points);
        let of = |precision| scaled(precision, units, Softening::None, &points, &strengths, &points);
        let (exact, guard) = (of(Precision::F64), of(Precision::F32));
        let mut products = [0.0; 3];
        for ((exact, guard), field) in exact.iter().zip(&guard).zip(&sum.field) {
            let field = units.into_scaled(*field);
            let [of_sum, of_guard] = [0, 1].map(|k| (0..3).map(move |d| [field[d], guard[d]][k] - exact[d]));
            let size = exact[..3].iter().map(|e| e * e).sum::<f64>();
            for (a, b) in of_sum.zip(of_guard) {
                [a * a, b * b, a * b].iter().zip(&mut products).for_each(|(p, sum)| *sum += p / size);
            }
        }
        let [of_sum, of_guard, both] = products;
        let in_common = both / (of_sum * of_guard).sqrt();
        assert!(of_sum > 0.0 && of_guard > 0.0 && in_common.abs() < 0.2, "{products:?}: {in_common}");
    }
}
