//! Direct sums in the plane at chosen targets, and the norms of the errors there.

use rayon::prelude::*;

use super::bodies::{Bodies, Sum};
use super::missed::make_good;
use super::near::{Algebraic, Gaussian, Pair, Point, smallest};
use super::points::Batch;
use super::{Blob, Kernel, Plan, underflow};
use crate::guard::{Norms, Sample};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Number};

/// Sources and places that one task adds up.
const BLOCK: usize = 1 << 14;
const PLACES: usize = 32;

/// The norms of the errors of `sums` at the places of a sample, all in the order of the tree. `rms` is the root mean
/// square of G over all targets, for a predicted sample.
pub fn errors(plan: &Plan, bodies: &Bodies, blob: Blob, sums: &[Sum], sample: &Sample, rms: Option<f64>) -> Norms {
    let places: Vec<usize> = sample.places().collect();
    sample.weigh(direct(plan, bodies, blob, &places), places.iter().map(|&i| sums[i].g), rms)
}

/// Direct sums of G at some places in the order of the tree, and their largest squared terms.
pub fn direct(plan: &Plan, bodies: &Bodies, blob: Blob, places: &[usize]) -> Vec<([f64; 2], f64)> {
    // In units of the extent of the set the squares of shorter cores underflow, and the fields are
    // those of points.
    let blob = if blob.length() < underflow::SHORT { Blob::Point } else { blob };
    let tree = &plan.targets;
    let at: Vec<[f64; 2]> = places.iter().map(|&i| [0, 1].map(|d| tree.x[d][i])).collect();
    let count = plan.source_tree().order.len();
    let blocks: Vec<usize> = (0..count).step_by(BLOCK).collect();
    let block = |&b: &usize| -> Vec<[f64; 3]> {
        let terms = |at: &[[f64; 2]]| squared_terms(bodies, b..count.min(b + BLOCK), blob, at);
        at.par_chunks(PLACES).flat_map_iter(terms).collect()
    };
    let parts: Vec<Vec<[f64; 3]>> = blocks.par_iter().map(block).collect_vec();
    let close = |i: usize| {
        let mut sum = [Sum::default()];
        if bodies.may_underflow && blob == Blob::Point {
            make_good(Kernel::Harmonic, bodies, i..i + 1, 0..count, (1.0, smallest::<f64>()), &mut sum);
        }
        sum[0].g
    };
    let sum = |(k, &i): (usize, &usize)| {
        let add =
            |s: [f64; 3], part: &Vec<[f64; 3]>| [s[0] + part[k][0], s[1] + part[k][1], f64::max(s[2], part[k][2])];
        let ([x, y, largest], near) = (parts.iter().fold([0.0; 3], add), close(i));
        let largest = f64::max(largest, near[0] * near[0] + near[1] * near[1]);
        ([x + near[0], y + near[1]], largest)
    };
    places.iter().enumerate().map(sum).collect()
}

/// Direct sums of G at some places over a range of the sources, and the largest squared term, in scaled units.
fn squared_terms(bodies: &Bodies, range: std::ops::Range<usize>, blob: Blob, places: &[[f64; 2]]) -> Vec<[f64; 3]> {
    let mut sources = Batch::<f64>::default();
    sources.push(bodies.sources.x, bodies.sources.strengths(), range, [0.0; 2], 1.0);
    sources.pad_apart();
    dispatch(Terms { blob, sources: &sources, places })
}

/// The task of [`squared_terms`].
struct Terms<'a> {
    blob: Blob,
    sources: &'a Batch<f64>,
    places: &'a [[f64; 2]],
}

impl Task<f64> for Terms<'_> {
    type Out = Vec<[f64; 3]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        match self.blob {
            Blob::Point => self.sum::<V, _>(Point),
            Blob::Algebraic(e) => self.sum::<V, _>(Algebraic(V::constant(e * e))),
            Blob::Gaussian(s) => self.sum::<V, _>(Gaussian(s, V::constant(0.5 / (s * s)))),
        }
    }
}

impl Terms<'_> {
    #[inline(always)]
    fn sum<V: Vector<Scalar = f64>, P: Pair<V>>(self, pair: P) -> Vec<[f64; 3]> {
        let Terms { sources, places, .. } = self;
        let complex = !sources.q[1].is_empty();
        let mut out = Vec::with_capacity(places.len());
        for place in places {
            let at = [V::splat(place[0]), V::splat(place[1])];
            let (mut re, mut im, mut largest) = (V::zero(), V::zero(), V::zero());
            for j in (0..sources.len()).step_by(f64::WIDTH) {
                let (dx, dy) = (at[0].sub(V::load(&sources.x[0][j..])), at[1].sub(V::load(&sources.x[1][j..])));
                let g = V::load(&sources.q[0][j..]);
                let h = if complex { V::load(&sources.q[1][j..]) } else { V::zero() };
                let r2 = dx.mul_add(dx, dy.mul(dy));
                let (f, _) = pair.eval::<false>(r2, V::zero());
                let (fx, fy) = (f.mul(dx), f.mul(dy));
                re = h.mul_add(fy, g.mul_add(fx, re));
                im = h.mul_add(fx, g.neg_mul_add(fy, im));
                let strength = g.mul_add(g, h.mul(h));
                largest = largest.max(strength.mul(f.mul(r2).mul(f)));
            }
            let mut lanes = [0.0; 16];
            largest.store(&mut lanes);
            out.push([re.sum(), im.sum(), lanes.into_iter().fold(0.0, f64::max)]);
        }
        out
    }
}
