//! The stages that work on expansions, for any expansion.
//!
//! Coefficients are stored cell after cell. A translation handles as many pairs at once as a vector
//! has lanes: the pairs of one class (one octant) in a block of target cells share the operator.
//! Each target adds its sources in the order of their classes, so the result does not depend on the
//! blocks or threads.

use std::ops::Range;

use rayon::prelude::*;

use super::near::Scratch;
use super::sorted::{Buffer, Sorted, Sum, by_leaf};
use crate::Cancel;
use crate::expansion::Expansion;
use crate::expansion::dense::Multiply;
use crate::lists::{ByClass, Shifted};
use crate::math::Real;
use crate::math::simd::{Task, Vector, dispatch};
use crate::plan::OctreePlan;
use crate::tree::Tree;

/// Bodies to coefficients.
pub(super) struct Gather<'a, T, E, const D: usize> {
    pub expansion: &'a E,
    pub sources: &'a Buffer<T, D>,
    pub local: bool,
    pub unit: f64,
    pub coefficients: &'a mut [T],
}

impl<T: Real, E: Expansion<T, D>, const D: usize> Task<T> for Gather<'_, T, E, D> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        if self.local {
            self.expansion.p2l::<V>(self.unit, self.sources.points(), self.coefficients);
        } else {
            self.expansion.p2m::<V>(self.sources.points(), self.coefficients);
        }
    }
}

/// Coefficients to bodies.
pub(super) struct Spread<'a, T, E, const D: usize> {
    pub expansion: &'a E,
    pub local: bool,
    pub unit: f64,
    pub coefficients: &'a [T],
    pub scratch: &'a mut Scratch<T, D>,
}

impl<T: Real, E: Expansion<T, D>, const D: usize> Task<T> for Spread<'_, T, E, D> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let (targets, mut sums) = (self.scratch.targets.points(), self.scratch.totals.sums());
        if self.local {
            self.expansion.l2p::<V>(self.coefficients, targets, &mut sums);
        } else {
            self.expansion.m2p::<V>(self.unit, self.coefficients, targets, &mut sums);
        }
    }
}

/// Which translation.
#[derive(Clone, Copy)]
pub(super) enum Shift {
    M2M,
    M2L,
    L2L,
}

/// Translations of one block of target cells.
pub(super) struct Translate<'a, T, E, const D: usize> {
    pub expansion: &'a E,
    pub shift: Shift,
    pub level: usize,
    /// By class, or by octant.
    pub pairs: &'a ByClass,
    pub sources: &'a [T],
    /// The cell whose coefficients come first in `sources`.
    pub first_source: usize,
    pub targets: &'a mut [T],
}

impl<T: Real, E: Expansion<T, D>, const D: usize> Task<T> for Translate<'_, T, E, D> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let (n, w) = (self.expansion.len(), T::WIDTH);
        let mut lanes = vec![V::zero(); n];
        let mut scratch = vec![];
        for (class, same_class) in self.pairs.runs() {
            for batch in same_class.chunks(w) {
                let mut from = [&self.sources[..n]; 16];
                for lane in 0..w {
                    // Idle lanes repeat the first pair: any finite numbers would do.
                    let source = batch[if lane < batch.len() { lane } else { 0 }].1 as usize - self.first_source;
                    from[lane] = &self.sources[source * n..(source + 1) * n];
                }
                gather(&from[..w], &mut lanes);
                match self.shift {
                    Shift::M2M => self.expansion.m2m(class as u8, &mut lanes, &mut scratch),
                    Shift::M2L => self.expansion.m2l(class, self.level, &mut lanes, &mut scratch),
                    Shift::L2L => self.expansion.l2l(class as u8, &mut lanes, &mut scratch),
                }
                scatter(&mut lanes, batch, self.targets);
            }
        }
    }
}

/// Coefficients of as many expansions as there are lanes, one a lane.
#[inline(always)]
fn gather<T: Real, V: Vector<Scalar = T>>(from: &[&[T]], lanes: &mut [V]) {
    let (n, w) = (lanes.len(), T::WIDTH);
    let whole = n / w * w;
    for k in (0..whole).step_by(w) {
        for lane in 0..w {
            lanes[k + lane] = V::load(&from[lane][k..]);
        }
        V::transpose(&mut lanes[k..k + w]);
    }
    let mut one = [T::ZERO; 16];
    for k in whole..n {
        for lane in 0..w {
            one[lane] = from[lane][k];
        }
        lanes[k] = V::load(&one);
    }
}

/// Adds the lanes to the targets of a batch; they are not the same afterwards.
#[inline(always)]
fn scatter<T: Real, V: Vector<Scalar = T>>(lanes: &mut [V], batch: &[Shifted], targets: &mut [T]) {
    let (n, w) = (lanes.len(), T::WIDTH);
    let whole = n / w * w;
    for k in (0..whole).step_by(w) {
        V::transpose(&mut lanes[k..k + w]);
        for (lane, pair) in batch.iter().enumerate() {
            let target = &mut targets[pair.0 as usize * n + k..][..w];
            V::load(target).add(lanes[k + lane]).store(target);
        }
    }
    let mut one = [T::ZERO; 16];
    for k in whole..n {
        lanes[k].store(&mut one);
        for (lane, pair) in batch.iter().enumerate() {
            targets[pair.0 as usize * n + k] += one[lane];
        }
    }
}

/// P2M in all leaves whose bodies are owned.
pub fn p2m<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    tree: &Tree<D>,
    bodies: &Sorted<D>,
    multipoles: &mut [T],
) {
    let levels = tree.level_of();
    multipoles.par_chunks_mut(expansion.len()).enumerate().for_each_init(Buffer::default, |sources, (cell, m)| {
        if tree.is_leaf(cell) && tree.count(cell) > 0 && tree.owns(cell) {
            let half = tree.half(levels[cell] as usize);
            sources.load(bodies, tree.body_range(cell), &tree.center[cell], 1.0 / half);
            dispatch(Gather { expansion, sources, local: false, unit: half, coefficients: m });
        }
    });
}

/// Number of target cells whose translations are sorted by class together: enough pairs a class to fill the lanes, few
/// enough coefficients to stay in the second-level cache.
fn block_len(coefficients: usize, bytes: usize) -> usize {
    (512 * 1024 / (coefficients * bytes)).clamp(32, 1024)
}

/// M2M from the deepest level to the root, to the cells that are `wanted`.
pub fn m2m<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    tree: &Tree<D>,
    wanted: &(dyn Fn(usize) -> bool + Sync),
    multipoles: &mut [T],
) {
    let n = expansion.len();
    for level in (0..tree.levels() - 1).rev() {
        let parents = tree.level(level);
        let (above, children) = multipoles.split_at_mut(parents.end * n);
        let above = &mut above[parents.start * n..];
        let block = block_len(n, size_of::<T>());
        above.par_chunks_mut(block * n).enumerate().for_each(|(b, targets)| {
            let first = parents.start + b * block;
            let octant = |c: usize| u32::from(tree.octant[c]);
            let of = |t: usize| tree.child_range(first + t).map(move |c| (octant(c), t as u32, c as u32));
            let here = |&t: &usize| wanted(first + t);
            let pairs = ByClass::new(1 << D, || (0..targets.len() / n).filter(here).flat_map(of));
            let (shift, sources) = (Shift::M2M, &*children);
            dispatch(Translate { expansion, shift, level, pairs: &pairs, sources, first_source: parents.end, targets });
        });
    }
}

/// Σq² of the cells that are `included`, from the bodies of leaves and from the children of others.
pub fn sum_squares<const D: usize>(
    tree: &Tree<D>,
    bodies: &Sorted<D>,
    included: impl Fn(usize) -> bool + Sync,
    squares: &mut [f32],
) {
    for level in (0..tree.levels()).rev() {
        let cells = tree.level(level);
        let (here, below) = squares[cells.start..].split_at_mut(cells.len());
        here.par_iter_mut().enumerate().with_min_len(64).filter(|(k, _)| included(cells.start + k)).for_each(
            |(k, sum)| {
                let cell = cells.start + k;
                *sum = if tree.is_leaf(cell) {
                    bodies.total_square(tree.body_range(cell)) as f32
                } else {
                    tree.child_range(cell).map(|child| below[child - cells.end]).sum()
                };
            },
        );
    }
}

/// L2L from the root to the deepest level, to cells with targets.
pub fn l2l<T: Real, E: Expansion<T, D>, const D: usize>(expansion: &E, tree: &Tree<D>, locals: &mut [T]) {
    let n = expansion.len();
    for level in 1..tree.levels() {
        let children = tree.level(level);
        let first_source = tree.level(level - 1).start;
        let (above, below) = locals.split_at_mut(children.start * n);
        let sources = &above[first_source * n..];
        let block = block_len(n, size_of::<T>());
        below[..children.len() * n].par_chunks_mut(block * n).enumerate().for_each(|(b, targets)| {
            let first = children.start + b * block;
            let of = |t: usize| (u32::from(tree.octant[first + t]), t as u32, tree.parent[first + t]);
            let wanted = |&t: &usize| tree.has_targets(first + t);
            let pairs = ByClass::new(1 << D, || (0..targets.len() / n).filter(wanted).map(of));
            dispatch(Translate { expansion, shift: Shift::L2L, level, pairs: &pairs, sources, first_source, targets });
        });
    }
}

/// M2L in all cells, until it is cancelled.
pub fn m2l<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    plan: &OctreePlan<D>,
    multipoles: &[T],
    locals: &mut [T],
    cancel: &Cancel,
) {
    let (tree, list, n) = (&plan.targets, &plan.lists.m2l, expansion.len());
    let most = block_len(n, size_of::<T>());
    let mut blocks: Vec<(usize, Range<usize>, &mut [T])> = vec![];
    let mut rest = locals;
    for level in 0..tree.levels() {
        // A dozen of blocks a level at least, if they fill the lanes: threads that end together.
        let block = (tree.level(level).len() / 12).clamp(64.min(most), most);
        for start in tree.level(level).step_by(block) {
            let cells = start..tree.level(level).end.min(start + block);
            let (head, tail) = rest.split_at_mut(cells.len() * n);
            rest = tail;
            blocks.push((level, cells, head));
        }
    }
    let operators = if list.is_empty() { None } else { expansion.matrices() };
    blocks.into_par_iter().with_max_len(1).for_each(|(level, cells, targets)| {
        if cancel.is_set() {
            return;
        }
        let row = |(t, cell)| list.row(cell).iter().map(move |pair| (pair.class, t, pair.source));
        let pairs = ByClass::new(plan.geometry.classes.len(), || (0..).zip(cells.clone()).flat_map(row));
        if let Some(operators) = operators.as_deref() {
            return dispatch(Multiply { operators, pairs: &pairs, sources: multipoles, targets });
        }
        let (shift, sources) = (Shift::M2L, multipoles);
        dispatch(Translate { expansion, shift, level, pairs: &pairs, sources, first_source: 0, targets });
    });
}

/// P2L: the bodies of large leaves to the local expansions of small cells.
pub fn p2l<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    plan: &OctreePlan<D>,
    bodies: &Sorted<D>,
    locals: &mut [T],
) {
    let (targets, source_tree, space) = (&plan.targets, plan.source_tree(), &plan.geometry.space);
    let levels = targets.level_of();
    locals.par_chunks_mut(expansion.len()).enumerate().for_each_init(Buffer::default, |sources, (cell, l)| {
        let half = targets.half(levels[cell] as usize);
        for pair in plan.lists.p2l.row(cell) {
            let range = source_tree.body_range(pair.source as usize);
            let center = space.seen_from(pair.class, &targets.center[cell]);
            sources.load(bodies, range, &center, 1.0 / half);
            dispatch(Gather { expansion, sources, local: true, unit: half, coefficients: &mut *l });
        }
    });
}

/// L2P in all leaves.
pub fn l2p<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    tree: &Tree<D>,
    bodies: &Sorted<D>,
    locals: &[T],
    out: &mut [Sum<D>],
) {
    let n = expansion.len();
    let levels = tree.level_of();
    let leaves = tree.leaves.iter().map(|&l| (l as usize, tree.count(l as usize)));
    by_leaf(out, leaves).into_par_iter().for_each_init(Scratch::<T, D>::default, |scratch, (leaf, out)| {
        let (half, coefficients) = (tree.half(levels[leaf] as usize), &locals[leaf * n..(leaf + 1) * n]);
        let cell = Cell { local: true, center: &tree.center[leaf], half, coefficients };
        at_targets(expansion, cell, bodies, tree.body_range(leaf), scratch, out);
    });
}

/// An expansion of one cell, local or multipole.
#[derive(Clone, Copy)]
pub struct Cell<'a, T, const D: usize> {
    /// Local expansion, or else multipole.
    pub local: bool,
    /// Center.
    pub center: &'a [f64; D],
    /// Half the side.
    pub half: f64,
    /// Of one cell.
    pub coefficients: &'a [T],
}

/// The expansion of a cell at a run of bodies.
pub fn at_targets<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    cell: Cell<T, D>,
    bodies: &Sorted<D>,
    range: Range<usize>,
    scratch: &mut Scratch<T, D>,
    out: &mut [Sum<D>],
) {
    let Cell { local, center, half, coefficients } = cell;
    scratch.targets.load(bodies, range, center, 1.0 / half);
    scratch.totals.reset(scratch.targets.len());
    dispatch(Spread { expansion, local, unit: half, coefficients, scratch });
    scratch.totals.add_to(0..out.len(), out, [1.0 / half, 1.0 / (half * half)]);
}

/// M2P: the multipoles of small cells at the bodies of large leaves, each in the units of the source; until it is cancelled.
pub fn m2p<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    plan: &OctreePlan<D>,
    bodies: &Sorted<D>,
    multipoles: &[T],
    out: &mut [Sum<D>],
    cancel: &Cancel,
) {
    let n = expansion.len();
    let (targets, sources, space) = (&plan.targets, plan.source_tree(), &plan.geometry.space);
    let levels = sources.level_of();
    let leaves = targets.leaves.iter().map(|&l| (l as usize, targets.count(l as usize)));
    by_leaf(out, leaves).into_par_iter().for_each_init(Scratch::<T, D>::default, |scratch, (leaf, out)| {
        if cancel.is_set() {
            return;
        }
        for pair in plan.lists.m2p.row(leaf) {
            let source = pair.source as usize;
            let (half, coefficients) =
                (sources.half(levels[source] as usize), &multipoles[source * n..(source + 1) * n]);
            let center = space.place(pair.class, &sources.center[source]);
            let cell = Cell { local: false, center: &center, half, coefficients };
            at_targets(expansion, cell, bodies, targets.body_range(leaf), scratch, out);
        }
    });
}
