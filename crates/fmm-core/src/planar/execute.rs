//! The schedule of a plan in the plane, stage by stage.

use rayon::prelude::*;

use super::bodies::{Bodies, Sum, by_leaf};
use super::near::Near;
use super::points::{Batch, Gather, Spread, Units};
use super::pyramid::power;
use super::series::Series;
use super::shifts::{L2l, M2l, M2m};
use super::{Blob, Kernel, Plan, Pyramid};
use crate::math::simd::dispatch;
use crate::math::{CollectVec, Real};
use crate::{Stage, StageTimes};

impl<T: Real> Batch<T> {
    /// Adds points relative to `center`; subtraction and scaling are in double precision.
    pub fn push(
        &mut self,
        x: &[Vec<f64>; 2],
        q: &[Vec<f64>],
        range: std::ops::Range<usize>,
        center: [f64; 2],
        scale: f64,
    ) {
        for d in 0..2 {
            self.x[d].extend(x[d][range.clone()].iter().map(|c| T::from_f64((c - center[d]) * scale)));
        }
        for (to, q) in self.q.iter_mut().zip(q) {
            to.extend(q[range.clone()].iter().map(|&q| T::from_f64(q)));
        }
    }

    /// Replaces the contents by the points of a box of `of`, relative to the center of `cell` of `tree` and in the
    /// larger unit of the two, padded. Returns the exponent of that unit: in the smaller one squares of distances may
    /// be no numbers.
    fn load(&mut self, tree: &Pyramid, q: &[Vec<f64>], points: usize, cell: usize, of: &Pyramid) -> i32 {
        self.clear();
        let center = [tree.center[0][cell], tree.center[1][cell]];
        let larger = tree.exponent[cell].max(of.exponent[points]);
        self.push(&of.x, q, of.range(points), center, power(-larger));
        self.pad();
        larger
    }
}

/// Boxes of one task, whole families and whole vectors of them.
const TASK: usize = 64;

/// What the stages of one sum share.
pub(super) struct Execution<'a, T> {
    pub series: &'a Series<T>,
    pub plan: &'a Plan,
    /// Its length is in scaled units.
    pub blob: Blob,
    bodies: &'a Bodies<'a>,
}

/// What a plan gives, in the order of the target pyramid and in scaled units.
pub struct Executed {
    /// Potential and G.
    pub sums: Vec<Sum>,
    /// The estimated error of G by truncation; empty if no expansion was used or if it was not asked for.
    pub error: Vec<f64>,
}

/// Executes the schedule of a plan, and estimates the errors of its sums if they are asked for.
pub fn execute<T: Real>(
    kernel: Kernel,
    blob: Blob,
    closest: f64,
    plan: &Plan,
    bodies: &Bodies,
    errors: bool,
    times: &mut StageTimes,
) -> Executed {
    let series = Series::<T>::new(kernel, plan.choice.order.unwrap_or(1));
    let run = Execution { series: &series, plan, blob, bodies };
    let (targets, sources) = (&plan.targets, plan.source_tree());
    let expansions = |tree: &Pyramid| {
        if plan.choice.order.is_some() { vec![T::ZERO; tree.len() * series.len()] } else { vec![] }
    };
    let mut out = vec![Sum::default(); targets.order.len()];
    let [mut multipoles, mut locals] = [vec![], vec![]];
    let cancel = times.cancel().clone();
    for &stage in plan.schedule() {
        times.time(stage, || match stage {
            _ if cancel.is_set() => {}
            Stage::P2M => {
                multipoles = expansions(sources);
                locals = expansions(targets);
                run.p2m(&mut multipoles);
            }
            Stage::M2M => run.m2m(&mut multipoles),
            Stage::M2L => run.m2l(&multipoles, &mut locals),
            Stage::P2L => run.p2l(&mut locals),
            Stage::L2L => run.l2l(&mut locals),
            Stage::L2P => run.l2p(&locals, &mut out),
            Stage::M2P => run.m2p(&multipoles, &mut out),
            Stage::P2P => Near { plan, bodies, kernel, blob, closest, cancel: &cancel }.p2p::<T>(&mut out),
            other => unreachable!("{} is no stage of a sum", other.name()),
        });
    }
    let estimated = errors && plan.choice.order.is_some() && !cancel.is_set();
    let error = || run.squared_errors(&multipoles, &locals).into_par_iter().map(f64::sqrt).collect_vec();
    let error = if estimated { times.time_more(Stage::Guard, error) } else { vec![] };
    Executed { sums: out, error }
}

impl<T: Real> Execution<'_, T> {
    fn p2m(&self, multipoles: &mut [T]) {
        let (tree, n) = (self.plan.source_tree(), self.series.len());
        let leaves = tree.leaves();
        let q = self.bodies.sources.strengths();
        multipoles[leaves.start * n..].par_chunks_mut(n).enumerate().for_each_init(
            Batch::<T>::default,
            |batch, (i, to)| {
                let cell = leaves.start + i;
                batch.load(tree, q, cell, cell, tree);
                let units = self.units(tree, cell, tree.exponent[cell]);
                dispatch(Gather::<T, false> { series: self.series, batch, units, to });
            },
        );
    }

    fn m2m(&self, multipoles: &mut [T]) {
        let (tree, n) = (self.plan.source_tree(), self.series.len());
        for level in (0..tree.levels).rev() {
            let [parents, children] = [tree.level(level), tree.level(level + 1)];
            let (low, high) = multipoles.split_at_mut(children.start * n);
            let low = &mut low[parents.start * n..];
            low.par_chunks_mut(TASK * n).zip(high[..children.len() * n].par_chunks(4 * TASK * n)).enumerate().for_each(
                |(i, (parents, from))| {
                    let first = children.start + 4 * TASK * i;
                    dispatch(M2m { series: self.series, tree, first, children: from, parents });
                },
            );
        }
    }

    fn m2l(&self, multipoles: &[T], locals: &mut [T]) {
        let n = self.series.len();
        let (rows, global) = (&self.plan.lists.m2l, self.bodies.global);
        let trees = [&self.plan.targets, self.plan.source_tree()];
        locals.par_chunks_mut(TASK * n).enumerate().for_each(|(i, locals)| {
            dispatch(M2l { series: self.series, trees, rows, global, first: TASK * i, multipoles, locals });
        });
    }

    fn p2l(&self, locals: &mut [T]) {
        let (targets, sources) = (&self.plan.targets, self.plan.source_tree());
        let (n, rows) = (self.series.len(), &self.plan.lists.p2l);
        let leaves = targets.leaves();
        let q = self.bodies.sources.strengths();
        locals[leaves.start * n..].par_chunks_mut(n).enumerate().for_each_init(
            Batch::<T>::default,
            |batch, (i, to)| {
                let cell = leaves.start + i;
                for &c in rows.row(cell) {
                    let larger = batch.load(targets, q, c as usize, cell, sources);
                    let units = self.units(targets, cell, larger);
                    dispatch(Gather::<T, true> { series: self.series, batch, units, to });
                }
            },
        );
    }

    fn l2l(&self, locals: &mut [T]) {
        let (tree, n) = (&self.plan.targets, self.series.len());
        for level in 0..tree.levels {
            let [parents, children] = [tree.level(level), tree.level(level + 1)];
            let (low, high) = locals.split_at_mut(children.start * n);
            let low = &low[parents.start * n..];
            low.par_chunks(TASK * n).zip(high[..children.len() * n].par_chunks_mut(4 * TASK * n)).enumerate().for_each(
                |(i, (parents, children_of))| {
                    let first = children.start + 4 * TASK * i;
                    dispatch(L2l { series: self.series, tree, first, parents, children: children_of });
                },
            );
        }
    }

    fn l2p(&self, locals: &[T], out: &mut [Sum]) {
        let (tree, n) = (&self.plan.targets, self.series.len());
        let scratch = <(Batch<T>, [Vec<T>; 3])>::default;
        by_leaf(out, tree).into_par_iter().for_each_init(scratch, |(batch, totals), (leaf, out)| {
            let exponent = batch.load(tree, &[], leaf, leaf, tree);
            let from = &locals[leaf * n..(leaf + 1) * n];
            self.spread::<false>((batch, exponent), from, tree, leaf, totals, out);
        });
    }

    fn m2p(&self, multipoles: &[T], out: &mut [Sum]) {
        let (tree, sources, n) = (&self.plan.targets, self.plan.source_tree(), self.series.len());
        let scratch = <(Batch<T>, [Vec<T>; 3])>::default;
        by_leaf(out, tree).into_par_iter().for_each_init(scratch, |(batch, totals), (leaf, out)| {
            for &c in self.plan.lists.m2p.row(leaf) {
                let c = c as usize;
                let larger = batch.load(sources, &[], leaf, c, tree);
                let from = &multipoles[c * n..(c + 1) * n];
                self.spread::<true>((batch, larger), from, sources, c, totals, out);
            }
        });
    }

    /// What points in units of 2^`exponent` need of a box.
    fn units(&self, tree: &Pyramid, cell: usize, exponent: i32) -> Units {
        Units { shift: 2.0 * f64::from(exponent + self.bodies.global), own: power(tree.exponent[cell] - exponent) }
    }

    /// Adds an expansion of a box at the points of a leaf, which are in units of 2^`exponent`.
    fn spread<const MULTIPOLE: bool>(
        &self,
        (batch, exponent): (&Batch<T>, i32),
        from: &[T],
        tree: &Pyramid,
        cell: usize,
        totals: &mut [Vec<T>; 3],
        out: &mut [Sum],
    ) {
        for t in totals.iter_mut() {
            t.clear();
            t.resize(batch.len(), T::ZERO);
        }
        let to = totals.each_mut().map(|t| &mut t[..]);
        let units = self.units(tree, cell, exponent);
        dispatch(Spread::<T, MULTIPOLE> { series: self.series, batch, units, from, to });
        let inverse = power(-tree.exponent[cell]);
        for (i, o) in out.iter_mut().enumerate() {
            o.potential += totals[0][i].to_f64();
            o.g = [o.g[0] + totals[1][i].to_f64() * inverse, o.g[1] + totals[2][i].to_f64() * inverse];
        }
    }
}
