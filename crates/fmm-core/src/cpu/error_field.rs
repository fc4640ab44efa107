//! The error field: how much of the field of each target the truncation of the expansions loses, estimated.
//!
//! Expansions of order p lose degrees p + 1 and beyond on both sides of a translation. What is lost is estimated from degree p,
//! whose mean square over directions is known for every cell:
//! - a local expansion loses |∇Φ_p|², continued to the distance of the target from the center of the cell;
//! - a multipole loses the field of its degree p, continued to the distance of the target from the center of the sources.
//!
//! The first is evaluated at each target for its own leaf, and at the centers of the leaf's octants for the cells above. The second
//! is one number a pair of cells and octant of the target cell: the squared norm of the source times a factor of the offset.
//! Squares add, since errors of different cells have no common sign. Cost: a few operations a pair of cells and a target.

use rayon::prelude::*;

use super::schedule::Expansions;
use super::sorted::by_leaf;
use crate::expansion::Expansion;
use crate::math::{CollectVec, Real};

/// What the square of the last degree of a local expansion counts next to that of a multipole: measured, so that at orders 2 to 18
/// most errors are within a factor of 4 of their estimate up to one common factor (docs/accuracy.md).
const LOCAL: f64 = 0.1;

/// Multipoles nearer than this to the center of a leaf, in its half sides, are looked at from each target: no octant is small there.
const NEAR: f64 = 5.0;

/// One value for each octant of a cell.
type Octants = [f64; 8];

impl<T: Real, E: Expansion<T, 3>> Expansions<'_, T, E, 3> {
    /// The estimated square of the error of the field at each target, in the order of the tree, with the strengths of the
    /// expansions. Empty if no expansion was used.
    pub fn squared_errors(&self) -> Vec<f64> {
        let Some(p) = self.plan.choice.order else { return vec![] };
        let (targets, sources, space) = (&self.plan.targets, self.plan.source_tree(), &self.plan.geometry.space);
        let [of_local, of_multipole] =
            [(true, self.locals), (false, self.multipoles)].map(|(l, c)| self.norms(l, p, c));
        let aspect = space.aspect();
        let corner = |o: usize| -> [f64; 3] {
            std::array::from_fn(|d| if o >> d & 1 == 1 { 0.5 * aspect[d] } else { -0.5 * aspect[d] })
        };
        let corners: [[f64; 3]; 8] = std::array::from_fn(corner);
        // What reaches a target at `at` from the last degree of a multipole at the origin, both in half sides of the source.
        let fall = |at: [f64; 3]| power(1.0 / square(&at), p + 3);
        let classes = self.plan.geometry.classes;
        let by_class: Vec<Octants> = (0..classes.len() as u32)
            .map(|c| {
                let offset = classes.offset(c);
                let from = |o: usize| std::array::from_fn(|d| corners[o][d] - 2.0 * f64::from(offset[d]) * aspect[d]);
                std::array::from_fn(|o| fall(from(o)))
            })
            .collect();
        let levels = targets.level_of();
        let unit = |level: usize| power(1.0 / targets.half(level), 4);
        let mut octants: Vec<Octants> = (0..targets.len())
            .into_par_iter()
            .with_min_len(64)
            .map(|cell| {
                let mut sum = [0.0; 8];
                for pair in self.plan.lists.m2l.row(cell) {
                    let (norm, factors) = (of_multipole[pair.source as usize], &by_class[pair.class as usize]);
                    (0..8).for_each(|o| sum[o] += norm * factors[o]);
                }
                let unit = unit(levels[cell] as usize);
                sum.map(|s| s * unit)
            })
            .collect_vec();
        // The octants of a child, in half sides of its parent from the parent's center, with the weights of the parent's octants there.
        let child_octants: [[([f64; 3], Octants); 8]; 8] = std::array::from_fn(|child| {
            std::array::from_fn(|o| {
                let at = [0, 1, 2].map(|d| corners[child][d] + 0.5 * corners[o][d]);
                (at, interpolation([0, 1, 2].map(|d| at[d] / aspect[d])))
            })
        });
        for level in 1..targets.levels() {
            let strength = LOCAL * unit(level - 1);
            let (above, here) = octants.split_at_mut(targets.level(level).start);
            here[..targets.level(level).len()].par_iter_mut().enumerate().with_min_len(64).for_each(|(k, octants)| {
                let cell = targets.level(level).start + k;
                let parent = targets.parent[cell] as usize;
                let logarithms = logarithms(&above[parent]);
                let local = strength * of_local[parent];
                for (o, (at, weights)) in child_octants[usize::from(targets.octant[cell])].iter().enumerate() {
                    octants[o] += exponential(&logarithms, weights) + local * power(square(at), p);
                }
            });
        }
        let source_levels = sources.level_of();
        let mut out = vec![0.0; targets.order.len()];
        let leaves = targets.leaves.iter().map(|&l| (l as usize, targets.count(l as usize)));
        by_leaf(&mut out, leaves).into_par_iter().with_min_len(16).for_each(|(leaf, out)| {
            let level = levels[leaf] as usize;
            let (center, half) = (&targets.center[leaf], targets.half(level));
            let mut octants = octants[leaf];
            for pair in self.plan.lists.m2p.row(leaf) {
                let source = pair.source as usize;
                let scale = 1.0 / sources.half(source_levels[source] as usize);
                let c = space.place(pair.class, &sources.center[source]);
                let strength = of_multipole[source] * power(scale, 4);
                let at = |x: [f64; 3]| strength * fall([0, 1, 2].map(|d| (x[d] - c[d]) * scale));
                if square(&[0, 1, 2].map(|d| center[d] - c[d])) < (NEAR * half).powi(2) {
                    for (out, i) in out.iter_mut().zip(targets.body_range(leaf)) {
                        *out += at(self.bodies[0].position(i));
                    }
                } else {
                    (0..8).for_each(|o| octants[o] += at([0, 1, 2].map(|d| center[d] + half * corners[o][d])));
                }
            }
            let own = LOCAL * of_local[leaf] * unit(level);
            let logarithms = logarithms(&octants);
            let scale = 1.0 / half;
            for (out, i) in out.iter_mut().zip(targets.body_range(leaf)) {
                let x = self.bodies[0].position(i);
                let at = [0, 1, 2].map(|d| (x[d] - center[d]) * scale);
                let weights = interpolation([0, 1, 2].map(|d| at[d] / aspect[d]));
                *out += exponential(&logarithms, &weights) + own * power(square(&at), p);
            }
        });
        out
    }

    /// The mean square over directions, at one half side from the center, of the field of degree `p` of every cell.
    fn norms(&self, local: bool, p: usize, coefficients: &[T]) -> Vec<f64> {
        let (range, weights) = (self.expansion.degree(p), self.expansion.degree_weights(local, p));
        let norm = |c: &[T]| c[range.clone()].iter().zip(&weights).map(|(c, w)| w * c.to_f64() * c.to_f64()).sum();
        coefficients.par_chunks(self.expansion.len()).with_min_len(64).map(norm).collect_vec()
    }
}

/// The weights of the octants of a cell at a place in half sides from its center: linear along each axis, and beyond the centers of
/// the octants too.
fn interpolation(at: [f64; 3]) -> Octants {
    let [x, y, z] = at.map(|x| [0.5 - x, 0.5 + x]);
    std::array::from_fn(|o| x[o & 1] * y[o >> 1 & 1] * z[o >> 2])
}

/// The bits of a positive number, which are its logarithm but for a linear mantissa. No octant counts less than this part of the
/// largest.
fn logarithms(octants: &Octants) -> Octants {
    const LEAST: f64 = 1e-6;
    let largest = octants.iter().fold(f64::MIN_POSITIVE, |m: f64, &o| m.max(o));
    octants.map(|o| o.max(LEAST * largest).to_bits() as f64)
}

/// The number whose logarithm is this mean of logarithms.
fn exponential(logarithms: &Octants, weights: &Octants) -> f64 {
    f64::from_bits((0..8).map(|o| logarithms[o] * weights[o]).sum::<f64>() as u64)
}

fn square(x: &[f64; 3]) -> f64 {
    x[0] * x[0] + x[1] * x[1] + x[2] * x[2]
}

/// x^n by squaring.
fn power(x: f64, n: usize) -> f64 {
    let (mut result, mut x, mut n) = (1.0, x, n);
    while n > 0 {
        if n & 1 == 1 {
            result *= x;
        }
        x *= x;
        n >>= 1;
    }
    result
}
