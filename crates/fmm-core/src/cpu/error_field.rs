//! The error field: how much of the field of each target the truncation of the expansions loses, estimated.
//!
//! [`error_model`](crate::error_model) says how. The loss of local expansions is evaluated at each
//! target for its own leaf, and at the octants of children for the cells above; that of multipoles
//! is one number a pair of cells and octant of the target cell: the squared norm of the source times
//! a factor of the offset. That is a few operations a pair of cells and a target.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::far::sum_squares;
use super::schedule::Expansions;
use super::sorted::{Sum, by_leaf};
use crate::Settings;
use crate::error_model::{
    CORE, DOUBTED, Interpolated, LOCAL, LOOKED_AT, NEAR, Octants, Replaced, centers, epsilon_of_terms, fall,
    far_of_classes, largest_term, least_of_random, of_classes, of_mixed, of_pairs, per_potential, power,
    rounding_of_multipoles, rounding_of_terms, rounds_pairs, softened, square,
};
use crate::expansion::{Expansion, LastDegree};
use crate::lists::Pair;
use crate::math::{CollectVec, Real};

impl<T: Real, E: Expansion<T, 3>> Expansions<'_, T, E, 3> {
    /// The estimated square of the error of the field at each target, in the order of the tree: by truncation and, where
    /// vectors are small next to their terms, by rounding. Where it is [doubted](DOUBTED) also that of the largest term of
    /// its leaf, or else 0. Both with the strengths of the expansions and half the side of the root for a unit of length.
    /// Empty if no expansion was used.
    pub fn squared_errors(&self, settings: &Settings) -> Vec<[f64; 2]> {
        let (Some(p), Some(family)) = (self.plan.choice.order, self.plan.choice.expansion) else { return vec![] };
        let last = LastDegree::new(family, p);
        let (targets, sources, space) = (&self.plan.targets, self.plan.source_tree(), &self.plan.geometry.space);
        let of_local = self.norms(&last, &last.local, self.locals);
        let mut of_multipole = self.norms(&last, &last.multipole, self.multipoles);
        let (classes, aspect) = (self.plan.geometry.classes, space.aspect());
        let least = least_of_random(aspect, p) as f32;
        let squares = self.squares.map_or_else(|| Cow::Owned(self.squares_of_cells()), Cow::Borrowed);
        of_multipole.iter_mut().zip(squares.iter()).for_each(|(norm, square)| *norm = norm.max(least * square));
        let ((by_class, class_unit), corners) = (of_classes(classes, p), centers(aspect));
        let rounding = rounding_of_multipoles(self.plan.choice.precision, !squares.is_empty());
        let (core, core_of_terms) = (settings.softening.core(), settings.softening.core_of_terms());
        let far_by_class = if rounding > 0.0 || core > 0.0 { far_of_classes(classes) } else { vec![] };
        let replaced = Replaced::new(settings.softening, family);
        let charges = replaced.map(Replaced::charge).map_or(vec![], |c| self.norms(&c, &c.multipole, self.multipoles));
        let levels = targets.level_of();
        let root = targets.half(0);
        let unit = |level: usize| power(root / targets.half(level), 4);
        let mut octants: Vec<Octants> = (0..targets.len())
            .into_par_iter()
            .with_min_len(64)
            .map(|cell| {
                // Two sums of every other pair each, so that none waits for the one before it.
                let mut sums = [[0.0f32; 8]; 2];
                let core2 = (core / targets.half(levels[cell] as usize)).powi(2);
                let mut add = |pair: &Pair, sum: usize| {
                    let (mut norm, lost) = (of_multipole[pair.source as usize], &by_class[pair.class as usize]);
                    if core2 > CORE {
                        norm *= softened(far_by_class[pair.class as usize], core2, p + 3) as f32;
                    }
                    (0..8).for_each(|o| sums[sum][o] += norm * lost[o]);
                };
                let row = self.plan.lists.m2l.row(cell);
                let (twos, last) = row.as_chunks::<2>();
                for [a, b] in twos {
                    add(a, 0);
                    add(b, 1);
                }
                last.iter().for_each(|pair| add(pair, 0));
                let of_pair = |pair: &Pair| {
                    let far = far_by_class[pair.class as usize];
                    let part = if core2 > CORE { softened(far, core2, 2) as f32 } else { 1.0 };
                    squares[pair.source as usize] * far * part
                };
                let rounded = if rounding > 0.0 { row.iter().map(of_pair).sum::<f32>() } else { 0.0 };
                let of_kernel = replaced.map_or(0.0, |replaced| {
                    let here = replaced.in_units_of(targets.half(levels[cell] as usize));
                    let of_pair = |pair: &Pair| {
                        let far = f64::from(far_by_class[pair.class as usize]);
                        f64::from(charges[pair.source as usize]) * here.at(far.sqrt().recip())
                    };
                    row.iter().map(of_pair).sum()
                });
                let (unit, all) = (unit(levels[cell] as usize), rounding * f64::from(rounded) + of_kernel);
                std::array::from_fn(|o| (class_unit * f64::from(sums[0][o] + sums[1][o]) + all) * unit)
            })
            .collect_vec();
        // The octants of a child in half sides of its parent from the parent's center, and what its local expansion loses
        // there.
        let child_octants: [[([f64; 3], f64); 8]; 8] = std::array::from_fn(|child| {
            std::array::from_fn(|o| {
                let at = [0, 1, 2].map(|d| corners[child][d] + 0.5 * corners[o][d]);
                ([0, 1, 2].map(|d| at[d] / aspect[d]), power(square(&at), p))
            })
        });
        for level in 1..targets.levels() {
            let strength = LOCAL * unit(level - 1);
            let (above, here) = octants.split_at_mut(targets.level(level).start);
            here[..targets.level(level).len()].par_iter_mut().enumerate().with_min_len(64).for_each(|(k, octants)| {
                let cell = targets.level(level).start + k;
                if !targets.has_targets(cell) {
                    return;
                }
                let parent = targets.parent[cell] as usize;
                let between = Interpolated::new(&above[parent]);
                let local = strength * f64::from(of_local[parent]);
                for (o, (at, lost)) in child_octants[usize::from(targets.octant[cell])].iter().enumerate() {
                    octants[o] += between.at(*at) + local * lost;
                }
            });
        }
        let source_levels = sources.level_of();
        let rounded = rounds_pairs(self.plan.choice.precision, settings.tolerance, !squares.is_empty());
        let of_mixed = of_mixed(self.plan.choice.precision);
        let epsilon = epsilon_of_terms(self.plan.choice.precision);
        let per_potential = per_potential(settings.boundary, self.total_size);
        let sizes = if rounded { self.sizes() } else { vec![] };
        let doubted = (DOUBTED * settings.tolerance).powi(2);
        // Beyond this distance terms are those of point charges.
        let (reach, owned) = (settings.softening.newtonian_beyond(0.0), targets.owned().start as usize);
        let to_root = power(root, 4);
        let mut out = vec![[0.0; 2]; targets.order.len()];
        let leaves = targets.leaves.iter().map(|&l| (l as usize, targets.count(l as usize)));
        by_leaf(&mut out, leaves).into_par_iter().with_min_len(16).for_each(|(leaf, out)| {
            let level = levels[leaf] as usize;
            let (center, half) = (&targets.center[leaf], targets.half(level));
            let mut octants = octants[leaf];
            for pair in self.plan.lists.m2p.row(leaf) {
                let source = pair.source as usize;
                let scale = 1.0 / sources.half(source_levels[source] as usize);
                let c = space.place(pair.class, &sources.center[source]);
                let unit = power(root * scale, 4);
                let strength = f64::from(of_multipole[source]) * unit;
                let rounding = if rounding > 0.0 { rounding * unit * f64::from(squares[source]) } else { 0.0 };
                let core2 = (core * scale).powi(2);
                let of_kernel =
                    replaced.map(|replaced| (replaced.in_units_of(1.0 / scale), unit * f64::from(charges[source])));
                let at = |x: [f64; 3]| {
                    let from = [0, 1, 2].map(|d| (x[d] - c[d]) * scale);
                    let replaced = of_kernel.map_or(0.0, |(replaced, charge)| charge * replaced.at(square(&from)));
                    strength * fall(from, core2, p) + rounding / power(square(&from) + core2, 2) + replaced
                };
                if square(&[0, 1, 2].map(|d| center[d] - c[d])) < (NEAR * half).powi(2) {
                    for (out, i) in out.iter_mut().zip(targets.body_range(leaf)) {
                        out[0] += at(self.bodies[0].position(i));
                    }
                } else {
                    (0..8).for_each(|o| octants[o] += at([0, 1, 2].map(|d| center[d] + half * corners[o][d])));
                }
            }
            let mut of_near = [0.0; 8];
            for pair in rounded.then(|| self.plan.lists.p2p.row(leaf)).into_iter().flatten() {
                let source = pair.source as usize;
                let scale = 1.0 / sources.half(source_levels[source] as usize);
                let c = space.place(pair.class, &sources.center[source]);
                let strength = sizes[source].powi(2) * power(root * scale, 4);
                let side = |d: usize, by: f64| (center[d] + half * by * aspect[d] - c[d]) * scale;
                let lost = of_pairs([0, 1, 2].map(|d| [side(d, -0.5), side(d, 0.5)]), (core_of_terms * scale).powi(2));
                (0..8).for_each(|o| of_near[o] += strength * lost[o]);
            }
            let own = LOCAL * f64::from(of_local[leaf]) * unit(level);
            let (between, of_near) = (Interpolated::new(&octants), rounded.then(|| Interpolated::new(&of_near)));
            let (scale, to_cube) = (1.0 / half, aspect.map(|a| 1.0 / a));
            for (out, i) in out.iter_mut().zip(targets.body_range(leaf)) {
                let x = self.bodies[0].position(i);
                let at = [0, 1, 2].map(|d| (x[d] - center[d]) * scale);
                let in_cube = [0, 1, 2].map(|d| at[d] * to_cube[d]);
                out[0] += between.at(in_cube) + own * power(square(&at), p);
                let Sum { potential, field } = &self.sums[i - owned];
                out[0] += rounding_of_terms(epsilon, per_potential, potential * root).powi(2);
                let field = square(&self.background.added(field, &x)) * to_root;
                if !self.in_double[i - owned] {
                    out[0] += of_mixed * field + of_near.as_ref().map_or(0.0, |of_near| of_near.at(in_cube));
                }
                if out[0] > doubted * field {
                    let nearby = self.sources_next_to(leaf, i, &source_levels);
                    let sources = nearby.map(|k| (self.bodies[1].position(k), self.bodies[1].strength(k)));
                    out[1] = largest_term(&x, sources, reach).powi(2) * to_root;
                }
            }
        });
        out
    }

    /// Σq² of each source cell; empty where all strengths have one sign.
    fn squares_of_cells(&self) -> Vec<f32> {
        let (tree, mixed) = (self.plan.source_tree(), self.bodies[1].is_mixed());
        let mut squares = vec![0.0; if mixed { tree.len() } else { 0 }];
        if mixed {
            sum_squares(tree, self.bodies[1], |_| true, &mut squares);
        }
        squares
    }

    /// The sources that are looked at for the largest term of a target of `leaf`: of the same leaf, or where targets are
    /// not the sources, of the cell of the leaf's list that holds the target.
    fn sources_next_to(&self, leaf: usize, target: usize, source_levels: &[u16]) -> Range<usize> {
        let (all, middle) = if self.plan.sources.is_none() {
            (self.plan.targets.body_range(leaf), target)
        } else {
            let (sources, aspect) = (self.plan.source_tree(), self.plan.geometry.space.aspect());
            let x = self.bodies[0].position(target);
            let holds = |&cell: &usize| {
                let (center, half) = (&sources.center[cell], sources.half(source_levels[cell] as usize));
                (0..3).all(|d| (x[d] - center[d]).abs() <= half * aspect[d])
            };
            let cell = self.plan.lists.p2p.row(leaf).iter().map(|pair| pair.source as usize).find(holds);
            let all = cell.map_or(0..0, |cell| sources.body_range(cell));
            let middle = all.start.midpoint(all.end);
            (all, middle)
        };
        all.start.max(middle.saturating_sub(LOOKED_AT))..all.end.min(middle + LOOKED_AT)
    }

    /// Σ|q| of the cells whose bodies targets meet one by one.
    fn sizes(&self) -> Vec<f64> {
        let sources = self.plan.source_tree();
        let mut met = vec![false; sources.len()];
        self.plan.lists.p2p.items.iter().for_each(|pair| met[pair.source as usize] = true);
        let size = |(cell, &met): (usize, &bool)| {
            if met { self.bodies[1].total_size(sources.body_range(cell)) } else { 0.0 }
        };
        met.par_iter().enumerate().with_min_len(64).map(size).collect_vec()
    }

    /// The mean square over directions, at one half side from the center, of the field of the last
    /// degree of every cell, or what else the weights say. Single precision holds them: strengths are of
    /// order 1, and what underflows is nothing next to any field.
    fn norms(&self, last: &LastDegree, weights: &[f64], coefficients: &[T]) -> Vec<f32> {
        let term = |(c, w): (&T, &f64)| w * c.to_f64() * c.to_f64();
        let norm = |c: &[T]| c[last.places.clone()].iter().zip(weights).map(term).sum::<f64>().min(1e38) as f32;
        coefficients.par_chunks(self.expansion.len()).with_min_len(64).map(norm).collect_vec()
    }
}
