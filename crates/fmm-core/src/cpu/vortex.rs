//! The velocity of vortex particles (Biot & Savart): three sums of 1/r over one tree and one set of lists.

use rayon::prelude::*;

use super::points::{Points, Summed};
use crate::Softening;
use crate::guard::{Norms, Sample, split};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Number, cross};

const FOUR_PI: f64 = 4.0 * std::f64::consts::PI;

/// The velocity of the fields of the three components.
pub(super) fn velocity(mut columns: impl Iterator<Item = Summed>) -> Summed {
    let mut total = columns.next().expect("three columns");
    total.potential = vec![];
    let mut velocity = vec![[0.0; 3]; total.field.len()];
    add_component(0, &total.field, &mut velocity);
    for (k, column) in columns.enumerate() {
        add_component(k + 1, &column.field, &mut velocity);
        // A component of the error field makes the velocity err by its two components across the axis.
        total.error.iter_mut().zip(column.error).for_each(|(a, b)| *a = a.hypot(b));
    }
    let part = (2.0f64 / 3.0).sqrt() / FOUR_PI;
    total.error.iter_mut().for_each(|e| *e *= part);
    Summed { field: velocity, largest_term: vec![], ..total }
}

/// −1/(4π) E × (unit vector k), the part of the velocity that ω_k with the field E makes.
pub fn velocity_of(k: usize, field: [f64; 3]) -> [f64; 3] {
    let mut axis = [0.0; 3];
    axis[k] = -1.0 / FOUR_PI;
    cross(field, axis)
}

fn add_component(k: usize, field: &[[f64; 3]], velocity: &mut [[f64; 3]]) {
    for (u, e) in velocity.iter_mut().zip(field) {
        let part = velocity_of(k, *e);
        (0..3).for_each(|d| u[d] += part[d]);
    }
}

/// The errors of `found` at the targets of `sample`; `rms` is the root mean square of all of it, for
/// a predicted sample.
pub(super) fn errors(
    sample: &Sample,
    softening: Softening,
    points: Points,
    found: &[[f64; 3]],
    rms: Option<f64>,
) -> Norms {
    let places: Vec<[f64; 3]> = sample.places().map(|i| points.at()[i]).collect();
    sample.weigh(direct(softening, points, &places), sample.places().map(|i| found[i]), rms)
}

/// The velocity at `places`, pair by pair in double precision, and the square of its largest term.
pub(super) fn direct(softening: Softening, points: Points, places: &[[f64; 3]]) -> Vec<([f64; 3], f64)> {
    let sources = Sources::new(points.sources, points.columns);
    let core = if let Softening::P1(e) = softening { e } else { 0.0 };
    let direct = |&at: &[f64; 3]| split(dispatch(Direct { at, sources: &sources, core2: core * core }));
    places.par_iter().map(direct).collect_vec()
}

/// Sources by component, up to whole vectors; padding has no strength.
struct Sources {
    x: [Vec<f64>; 3],
    w: [Vec<f64>; 3],
}

impl Sources {
    fn new(position: &[[f64; 3]], strengths: &[&[f64]]) -> Self {
        let padded = |mut values: Vec<f64>, with: f64| {
            values.resize(values.len().next_multiple_of(f64::WIDTH), with);
            values
        };
        let place = |d: usize| position.first().map_or(0.0, |x| x[d]);
        Sources {
            x: [0, 1, 2].map(|d| padded(position.iter().map(|x| x[d]).collect(), place(d))),
            w: [0, 1, 2].map(|k| padded(strengths[k].to_vec(), 0.0)),
        }
    }
}

/// The direct sum at one place, and the square of its largest term.
struct Direct<'a> {
    at: [f64; 3],
    sources: &'a Sources,
    /// ε².
    core2: f64,
}

impl Task<f64> for Direct<'_> {
    type Out = [f64; 4];

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> [f64; 4] {
        let Direct { at, sources: Sources { x, w }, core2 } = self;
        let at = [V::splat(at[0]), V::splat(at[1]), V::splat(at[2])];
        let (core2, more) = (V::constant(core2), V::constant(2.5 * core2));
        let tiny = V::constant(f64::MIN_POSITIVE);
        let (mut sum, mut largest) = ([V::zero(); 3], V::zero());
        for j in (0..x[0].len()).step_by(f64::WIDTH) {
            let mut d = [V::zero(); 3];
            let mut q = [V::zero(); 3];
            for k in 0..3 {
                d[k] = at[k].sub(V::load(&x[k][j..]));
                q[k] = V::load(&w[k][j..]);
            }
            let r2 = d[2].mul_add(d[2], d[1].mul_add(d[1], d[0].mul(d[0])));
            let s = r2.add(core2);
            // Nothing acts at distance zero.
            let g = r2.add(more).div(s.mul(s).mul(s.sqrt())).keep_where_at_least(r2, tiny);
            let mut square = V::zero();
            for k in 0..3 {
                let (a, b) = ((k + 1) % 3, (k + 2) % 3);
                let term = g.mul(d[b].neg_mul_add(q[a], d[a].mul(q[b])));
                sum[k] = sum[k].sub(term);
                square = term.mul_add(term, square);
            }
            largest = largest.max(square);
        }
        let mut lanes = [0.0; 16];
        largest.store(&mut lanes);
        let [u, v, w] = [sum[0].sum(), sum[1].sum(), sum[2].sum()].map(|s| s / FOUR_PI);
        [u, v, w, lanes.into_iter().fold(0.0, f64::max) / (FOUR_PI * FOUR_PI)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_sums_as_the_formula_stands() {
        let number = |i: usize, k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0 - 0.4;
        // A number of sources that fills no vector, the place of one of them among the targets.
        let position: Vec<[f64; 3]> = (0..13).map(|i| [1, 2, 3].map(|k| number(i, k))).collect();
        let w: Vec<[f64; 3]> = (0..13).map(|i| [4, 5, 6].map(|k| number(i, k))).collect();
        let columns: [Vec<f64>; 3] = [0, 1, 2].map(|k| w.iter().map(|w| w[k]).collect());
        let sources = Sources::new(&position, &[&columns[0], &columns[1], &columns[2]]);
        for core in [0.0, 0.3] {
            for at in [position[4], [0.7, -0.2, 0.1]] {
                let mut exact = [0.0; 4];
                for (x, w) in position.iter().zip(&w) {
                    let d = [0, 1, 2].map(|k: usize| at[k] - x[k]);
                    let (r2, c2) = (d.iter().map(|d| d * d).sum::<f64>(), core * core);
                    if r2 > 0.0 {
                        let g = (r2 + 2.5 * c2) * (r2 + c2).powf(-2.5) / FOUR_PI;
                        let term = cross(d, *w).map(|c| -g * c);
                        (0..3).for_each(|k| exact[k] += term[k]);
                        exact[3] = f64::max(exact[3], term.iter().map(|t| t * t).sum());
                    }
                }
                let found = dispatch(Direct { at, sources: &sources, core2: core * core });
                for k in 0..4 {
                    assert!((found[k] - exact[k]).abs() < 1e-13 * (1.0 + exact[k].abs()), "{found:?} {exact:?}");
                }
            }
        }
    }
}
