//! The work of a sum, counted in pairs of bodies: what cuts are weighted by.

use crate::math::CollectVec;
use crate::plan::OctreePlan;
use rayon::prelude::*;

/// The work of each target of the plan, in the order of its tree, in pairs of bodies. Integers, and no clock: the same on every run.
pub(super) fn of_targets(plan: &OctreePlan<3>, translation: usize) -> Vec<u32> {
    let (tree, lists) = (&plan.targets, &plan.lists);
    let terms = plan.choice.order.map_or(0, |p| (p + 1) * (p + 1));
    // Translations to a cell and those above it, shared among their bodies.
    let mut shared = vec![0.0; tree.len()];
    for cell in 0..tree.len() {
        let above = if cell == 0 { 0.0 } else { shared[tree.parent[cell] as usize] };
        let bodies: usize = lists.p2l.row(cell).iter().map(|pair| tree.count(pair.source as usize)).sum();
        let own = lists.m2l.row(cell).len() * translation + bodies * terms + 2 * translation;
        shared[cell] = above + own as f64 / tree.count(cell).max(1) as f64;
    }
    let of_leaf = |&leaf: &u32| {
        let leaf = leaf as usize;
        let sources: usize = lists.p2p.row(leaf).iter().map(|pair| tree.count(pair.source as usize)).sum();
        let work = sources + terms * (2 + lists.m2p.row(leaf).len()) + shared[leaf] as usize;
        vec![u32::try_from(work).unwrap_or(u32::MAX); tree.count(leaf)]
    };
    tree.leaves.par_iter().map(of_leaf).collect_vec().concat()
}
