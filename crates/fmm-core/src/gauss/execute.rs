//! The stages of a plan on the cores of this machine.

use rayon::prelude::*;

use super::boxes::{Occupied, Sorted};
use super::near::{Batch, COLUMNS, GATHER, Meet, meet};
use super::plan::Plan;
use super::points::{Gather, Spread, gather, spread};
use super::series::{Basis, Points};
use super::translate::{Term, Translate, translate, translation};
use crate::{Cancel, Stage, StageTimes};

/// Executes a plan for `points`: sources, and targets or the sources again. `strengths` are in the order of its sources; the result is in the
/// order of its targets, `[target][column][value, derivatives in units of 1/σ]`.
pub fn execute<const D: usize>(
    plan: &Plan<D>,
    sigma: f64,
    points: [&Sorted<D>; 2],
    strengths: &[Vec<f64>],
    times: &mut StageTimes,
) -> Vec<f64> {
    let values = strengths.len() * if plan.geometry.demand.gradient { 1 + D } else { 1 };
    let [sources, targets] = points.map(|p| &p.x);
    let run = Execution { plan, sources, targets, strengths, sigma, values, cancel: times.cancel().clone() };
    let mut out = vec![0.0; points[1].order.len() * values];
    if !plan.geometry.expanded.is_empty() {
        let multipoles = times.time(Stage::P2M, || run.p2m());
        let locals =
            if plan.geometry.passes.is_empty() { vec![] } else { times.time(Stage::M2L, || run.m2l(&multipoles)) };
        if !plan.lists.m2p.is_empty() {
            times.time(Stage::M2P, || run.m2p(&multipoles, &mut out));
        }
        drop(multipoles);
        run.local(locals, &mut out, times);
    } else {
        run.local(vec![], &mut out, times);
    }
    if !plan.lists.p2p.is_empty() {
        times.time(Stage::P2P, || run.p2p(&mut out));
    }
    out
}

/// Some points, along three axes of which the last ones may be empty.
fn slices<const D: usize>(x: &[Vec<f64>; D], range: std::ops::Range<usize>) -> [&[f64]; 3] {
    std::array::from_fn(|d| x.get(d).map_or(&[][..], |x| &x[range.clone()]))
}

/// What the stages share.
struct Execution<'a, const D: usize> {
    plan: &'a Plan<D>,
    /// Coordinates in the order of boxes.
    sources: &'a [Vec<f64>; D],
    targets: &'a [Vec<f64>; D],
    strengths: &'a [Vec<f64>],
    sigma: f64,
    /// Numbers of a target.
    values: usize,
    /// What ends the sum early.
    cancel: Cancel,
}

impl<const D: usize> Execution<'_, D> {
    /// Some points relative to a box of the lattice.
    fn points<'b>(&self, x: &'b [Vec<f64>; D], range: std::ops::Range<usize>, cell: &[i64; D]) -> Points<'b> {
        let (mut center, from) = ([0.0; 3], self.plan.geometry.lattice.center(cell));
        center[..D].copy_from_slice(&from);
        Points { x: slices(x, range), center, scale: 1.0 / self.sigma }
    }

    /// The strengths of some sources.
    fn columns(&self, range: std::ops::Range<usize>) -> Vec<&[f64]> {
        self.strengths.iter().map(|q| &q[range.clone()]).collect()
    }

    /// The pieces of the result, box by box.
    fn by_box<'b>(&self, out: &'b mut [f64]) -> Vec<(usize, &'b mut [f64])> {
        let boxes = &self.plan.targets;
        let mut rest = out;
        let piece = |i: usize| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(boxes.count(i) * self.values);
            rest = tail;
            (i, head)
        };
        (0..boxes.len()).map(piece).collect()
    }

    fn p2m(&self) -> Vec<f64> {
        let (plan, sources) = (self.plan, self.plan.source_tree());
        let mut all = vec![0.0; plan.geometry.expanded.len() * plan.geometry.shape.total()];
        all.par_chunks_mut(plan.geometry.shape.total()).zip(&plan.geometry.expanded).for_each(|(to, &b)| {
            let b = b as usize;
            let points = self.points(self.sources, sources.range(b), &sources.cells[b]);
            let strengths = self.columns(sources.range(b));
            gather(Gather { shape: plan.geometry.shape, basis: Basis::Powers, points, strengths: &strengths, to });
        });
        all
    }

    fn m2l(&self, multipoles: &[f64]) -> Vec<f64> {
        let (plan, shape) = (self.plan, self.plan.geometry.shape);
        // Far boxes need fewer terms: one matrix for each offset, from −reach on.
        let step = plan.geometry.lattice.side / self.sigma;
        let half = 0.5 * step * (1.0 + super::boxes::MARGIN);
        let offsets = -plan.geometry.reach..=plan.geometry.reach;
        let matrices: Vec<(usize, Vec<f64>)> = offsets
            .map(|k| {
                let gap = (k.abs() - 1).max(0) as f64 * step - 2.0 * super::boxes::MARGIN * half;
                let used = plan.geometry.demand.order(half, gap).unwrap_or(shape.order).min(shape.order);
                (used, translation(shape.order, used, k as f64 * step))
            })
            .collect();
        let mut before: Vec<f64> = vec![];
        for pass in &plan.geometry.passes {
            let from = if before.is_empty() { multipoles } else { &before };
            let previous = |i: u32| pass.order[i as usize] as usize;
            // Where the boxes before this pass are along its axis.
            let cells = self.before(pass.axis);
            let mut to = vec![0.0; pass.cells.len() * shape.total()];
            let scratch = || vec![0.0; shape.column()];
            to.par_chunks_mut(shape.total()).enumerate().for_each_init(scratch, |scratch, (i, to)| {
                let here = pass.cells[i][pass.axis];
                for (c, to) in to.chunks_exact_mut(shape.column()).enumerate() {
                    let term = |k: u32| -> Term {
                        let b = previous(k);
                        let (used, matrix) = &matrices[(here - cells(b) + plan.geometry.reach) as usize];
                        (matrix, *used, &from[b * shape.total() + c * shape.column()..][..shape.column()])
                    };
                    let terms: Vec<Term> = pass.rows[i].clone().map(term).collect();
                    translate(Translate { shape, terms: &terms, to, scratch });
                }
            });
            before = to;
        }
        before
    }

    /// Places along an axis of the boxes that the pass along it begins with.
    fn before(&self, axis: usize) -> impl Fn(usize) -> i64 + '_ {
        let plan = self.plan;
        move |i| match axis {
            0 => plan.source_tree().cells[plan.geometry.expanded[i] as usize][0],
            _ => plan.geometry.passes[axis - 1].cells[i][axis],
        }
    }

    /// The stages of Taylor series, which M2L may have begun.
    fn local(&self, mut locals: Vec<f64>, out: &mut [f64], times: &mut StageTimes) {
        let (plan, shape) = (self.plan, self.plan.geometry.shape);
        let (sources, targets): (&Occupied<D>, _) = (plan.source_tree(), &plan.targets);
        if plan.geometry.local.is_empty() || (locals.is_empty() && plan.lists.p2l.is_empty()) {
            return;
        }
        locals.resize(plan.geometry.local.len() * shape.total(), 0.0);
        if !plan.lists.p2l.is_empty() {
            times.time(Stage::P2L, || {
                locals.par_chunks_mut(shape.total()).zip(&plan.geometry.local).for_each(|(to, &c)| {
                    let cell = &targets.cells[c as usize];
                    for &b in plan.lists.p2l.row(c as usize) {
                        let range = sources.range(b as usize);
                        let points = self.points(self.sources, range.clone(), cell);
                        let strengths = self.columns(range);
                        gather(Gather { shape, basis: Basis::Hermite, points, strengths: &strengths, to });
                    }
                });
            });
        }
        times.time(Stage::L2P, || {
            let is_local = |(i, _): &(usize, &mut [f64])| plan.geometry.local.binary_search(&(*i as u32)).is_ok();
            let pieces: Vec<_> = self.by_box(out).into_iter().filter(is_local).collect();
            pieces.into_par_iter().zip(locals.par_chunks(shape.total())).for_each(|((c, out), from)| {
                self.spread(Basis::Powers, c, &targets.cells[c], from, out);
            });
        });
    }

    /// Adds a series about the center of a box of the lattice at the points of a box of targets.
    fn spread(&self, basis: Basis, target: usize, cell: &[i64; D], from: &[f64], out: &mut [f64]) {
        let targets = &self.plan.targets;
        let points = self.points(self.targets, targets.range(target), cell);
        spread(Spread {
            shape: self.plan.geometry.shape,
            basis,
            points,
            from,
            gradient: self.plan.geometry.demand.gradient,
            out,
        });
    }

    fn m2p(&self, multipoles: &[f64], out: &mut [f64]) {
        let (plan, n) = (self.plan, self.plan.geometry.shape.total());
        let slot = |b: u32| plan.geometry.expanded.binary_search(&b).expect("a box with a series");
        self.by_box(out).into_par_iter().for_each(|(c, out)| {
            for &b in plan.lists.m2p.row(c) {
                let from = &multipoles[slot(b) * n..][..n];
                self.spread(Basis::Hermite, c, &plan.source_tree().cells[b as usize], from, out);
            }
        });
    }

    fn p2p(&self, out: &mut [f64]) {
        let plan = self.plan;
        self.by_box(out).into_par_iter().for_each_init(Batch::default, |batch, (c, out)| {
            if self.cancel.is_set() {
                return;
            }
            for first in (0..self.strengths.len()).step_by(COLUMNS) {
                let columns = COLUMNS.min(self.strengths.len() - first);
                batch.clear();
                for run in plan.lists.p2p.row(c) {
                    let mut run = run[0] as usize..run[1] as usize;
                    while !run.is_empty() {
                        let part = run.start..run.end.min(run.start + GATHER - batch.len());
                        run.start = part.end;
                        let all = self.columns(part.clone());
                        batch.push(slices(self.sources, part.clone()), &all[first..first + columns]);
                        if batch.len() == GATHER {
                            self.meet(c, batch, (columns, first), out);
                        }
                    }
                }
                if batch.len() > 0 {
                    self.meet(c, batch, (columns, first), out);
                }
            }
        });
    }

    /// The sources of a batch, which is emptied, and the points of a box of targets.
    fn meet(&self, c: usize, batch: &mut Batch, columns: (usize, usize), out: &mut [f64]) {
        let targets = &self.plan.targets;
        let range = targets.range(c);
        meet(Meet {
            dimension: D,
            targets: slices(self.targets, range),
            sources: batch,
            columns,
            scale: 1.0 / self.sigma,
            terms: self.plan.choice.terms,
            gradient: self.plan.geometry.demand.gradient,
            out,
            stride: self.values,
        });
        batch.clear();
    }
}
