//! P2P: each leaf of the targets against the bodies of its list.

use rayon::prelude::*;

use super::simd::{Task, Vector, dispatch};
use super::sorted::{Buffer, Sorted, Sum, Totals, by_leaf, power_of_two_below};
use crate::expansion::Expansion;
use crate::lists::Csr;
use crate::real::Real;
use crate::tree::Tree;

/// Sources that are gathered before they meet the targets: they stay in the first-level cache, and single
/// precision adds no more terms than this before the sum goes on in double.
const GATHER: usize = 512;

/// What one thread keeps between leaves.
pub struct Scratch<T, const D: usize> {
    pub targets: Buffer<T, D>,
    pub sources: Buffer<T, D>,
    pub totals: Totals<T, D>,
}

impl<T: Real, const D: usize> Default for Scratch<T, D> {
    fn default() -> Self {
        Scratch { targets: Buffer::default(), sources: Buffer::default(), totals: Totals::default() }
    }
}

struct Meet<'a, T: Real, E, const D: usize> {
    expansion: &'a E,
    unit: f64,
    same: Option<isize>,
    scratch: &'a mut Scratch<T, D>,
}

impl<T: Real, E: Expansion<T, D>, const D: usize> Task<T> for Meet<'_, T, E, D> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let Scratch { targets, sources, totals } = self.scratch;
        self.expansion.p2p::<V>(self.unit, self.same, targets.points(), sources.points(), &mut totals.sums());
    }
}

/// Adds the direct sums to `out`. With `same`, targets and sources are the same bodies and none sees itself; with `split`,
/// distances in single precision keep the digits that rounding the coordinates would lose.
pub fn p2p<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    trees: [&Tree<D>; 2],
    bodies: [&Sorted<D>; 2],
    same: bool,
    split: bool,
    list: &Csr,
    out: &mut [Sum<D>],
) {
    let [target_tree, source_tree] = trees;
    let [target_bodies, source_bodies] = bodies;
    let levels = target_tree.level_of();
    let leaves = target_tree.leaves.iter().map(|&l| (l as usize, target_tree.count(l as usize)));
    by_leaf(out, leaves).into_par_iter().for_each_init(Scratch::<T, D>::default, |scratch, (leaf, out)| {
        if out.is_empty() {
            return;
        }
        // Double precision subtracts the coordinates as they are, so that no pair loses a digit; single precision
        // subtracts the centre of the leaf first, in double.
        let unit = power_of_two_below(target_tree.half(levels[leaf] as usize));
        let centre = if T::WIDTH == f64::WIDTH { [0.0; D] } else { target_tree.centre[leaf] };
        let targets = target_tree.body_range(leaf);
        (scratch.targets.split, scratch.sources.split) = (split, split);
        // Bodies at one place all feel the same: one of them stands for all, but for what each would feel of itself.
        let one_place = target_tree.is_one_place(leaf);
        let standing = if one_place { targets.start..targets.start + 1 } else { targets.clone() };
        scratch.targets.load(target_bodies, standing.clone(), &centre, 1.0 / unit);
        let mut flush = |scratch: &mut Scratch<T, D>, own: Option<isize>| {
            scratch.totals.reset(scratch.targets.len());
            dispatch(Meet { expansion, unit, same: own, scratch });
            scratch.totals.add_to(&mut out[..standing.len()], unit);
            scratch.sources.clear();
        };
        let mut own = None;
        let mut met = false;
        for pair in list.row(leaf) {
            let source = pair.source as usize;
            let mut range = source_tree.body_range(source);
            if source_tree.is_one_place(source) && !(same && source == leaf) {
                if scratch.sources.len() == GATHER {
                    flush(scratch, own.take());
                }
                let (x, _) = source_bodies.body(range.start);
                scratch.sources.push_one(x, source_bodies.total(range), &centre, 1.0 / unit);
                continue;
            }
            if one_place && same && source == leaf {
                continue;
            }
            while !range.is_empty() {
                if scratch.sources.len() == GATHER {
                    flush(scratch, own.take());
                }
                let room = GATHER - scratch.sources.len();
                let part = range.start..range.end.min(range.start + room);
                if same && part.start < targets.end && targets.start < part.end {
                    met = true;
                    own = Some(scratch.sources.len() as isize + targets.start as isize - part.start as isize);
                }
                range.start = part.end;
                scratch.sources.push(source_bodies, part, &centre, 1.0 / unit);
            }
        }
        if scratch.sources.len() > 0 {
            flush(scratch, own);
        }
        if one_place {
            out.fill(out[0]);
            if same {
                // Each feels K(0) of all the others here, and their forces vanish. Where the list had them within a larger
                // cell, the one that stood for all has felt the others already.
                let here = if met { source_bodies.body(targets.start).1 } else { source_bodies.total(targets.clone()) };
                let at_zero = expansion.potential_at_zero();
                for (o, i) in out.iter_mut().zip(targets) {
                    o.potential += (here - source_bodies.body(i).1) * at_zero;
                }
            }
        }
    });
}
