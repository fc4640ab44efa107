//! Where the truncation of local expansions hurts most.
//!
//! Expansions err most at the few targets that lie in the corner of their cell towards a concentrated source, by orders of
//! magnitude more than in the middle: where such targets make the rms, some hundred direct sums at targets picked evenly miss them.
//! The last degree of the expansions is large at just these targets and costs next to nothing, so it tells where to look.

use rayon::prelude::*;

use super::far::at_targets;
use super::near::Scratch;
use super::sorted::{Sorted, Sum};
use crate::expansion::Expansion;
use crate::real::Real;
use crate::tree::Tree;

/// Targets that are asked, at most about.
const SAMPLE: usize = 1 << 15;

/// The squared force of the last degree p, relative to the whole force in `sums`, at the bodies of a sample of leaves: places in the
/// order of the tree, and shares.
///
/// The last degrees of all cells around a target count: a cell hands its error down, while its last degree fades. Relative to a
/// tenth of the leaf's rms force where that is larger than the whole force.
pub fn last_degree<T: Real, E: Expansion<T, D>, const D: usize>(
    expansion: &E,
    p: usize,
    tree: &Tree<D>,
    bodies: &Sorted<D>,
    locals: &[T],
    sums: &[Sum<D>],
) -> Vec<(u32, f64)> {
    let (n, places) = (expansion.len(), expansion.degree(p));
    let levels = tree.level_of();
    let step = tree.order.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<u32> = tree.leaves.iter().copied().step_by(step).collect();
    let work = || (Scratch::<T, D>::default(), vec![T::ZERO; n], vec![]);
    let of_leaf = |(scratch, coefficients, field): &mut (_, Vec<T>, Vec<Sum<D>>), &leaf: &u32| {
        let range = tree.body_range(leaf as usize);
        let mut shares = vec![0.0; range.len()];
        let (mut cell, mut level) = (leaf as usize, levels[leaf as usize] as usize);
        while level > 0 {
            coefficients[places.clone()].copy_from_slice(&locals[cell * n..(cell + 1) * n][places.clone()]);
            field.clear();
            field.resize(range.len(), Sum::default());
            let frame = (&tree.centre[cell], tree.half(level));
            at_targets(expansion, frame, bodies, range.clone(), coefficients, scratch, field);
            shares.iter_mut().zip(&*field).for_each(|(share, f)| *share += square(&f.field));
            (cell, level) = (tree.parent[cell] as usize, level - 1);
        }
        let sums = &sums[range.clone()];
        let floor = 0.01 * sums.iter().map(|s| square(&s.field)).sum::<f64>() / range.len().max(1) as f64;
        for (share, s) in shares.iter_mut().zip(sums) {
            let whole = square(&s.field).max(floor);
            *share = if whole > 0.0 && share.is_finite() { *share / whole } else { 0.0 };
        }
        range.zip(shares).map(|(i, share)| (i as u32, share)).collect::<Vec<_>>()
    };
    sample.par_iter().map_init(work, of_leaf).flatten_iter().collect()
}

fn square<const D: usize>(x: &[f64; D]) -> f64 {
    x.iter().map(|x| x * x).sum()
}
