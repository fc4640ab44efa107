//! The plan of a summation: trees, lists and the order of the stages, without any mathematics.

use crate::accuracy;
use crate::lists::{Classes, Lists};
use crate::settings::{Choice, Method, Settings};
use crate::stage::{Stage, StageTimes};
use crate::tree::{Cube, Tree};

/// Which cells do what, and in which order.
#[derive(Debug, Clone)]
pub struct Plan<const D: usize> {
    /// What was chosen.
    pub choice: Choice,
    /// The tree of the targets; that of the sources too if there is no other.
    pub targets: Tree<D>,
    /// The tree of the sources, if they are not the targets.
    pub sources: Option<Tree<D>>,
    /// Who meets whom.
    pub lists: Lists,
    /// Pairs closer than this, in half sides of the targets' leaf, are summed in double precision.
    pub closest: f64,
    /// The numbering of the M2L offsets.
    pub classes: Classes<D>,
}

impl<const D: usize> Plan<D> {
    /// Plans the sum of `sources` at `targets`, or at themselves, all within `cube`.
    pub fn new(
        settings: &Settings,
        choice: Choice,
        cube: Cube<D>,
        sources: &[[f64; D]],
        targets: Option<&[[f64; D]]>,
        times: &mut StageTimes,
    ) -> Self {
        let rule = accuracy::rule(settings, &choice);
        let classes = Classes::new(rule.separation2);
        let tree = |points| Tree::octree(points, cube, choice.leaf_size);
        let (target_tree, source_tree) = times.time(Stage::Tree, || match targets {
            None => (tree(sources), None),
            Some(targets) => (tree(targets), Some(tree(sources))),
        });
        let lists = times.time(Stage::Lists, || {
            let from = source_tree.as_ref().unwrap_or(&target_tree);
            match choice.method {
                Method::Fmm => Lists::fmm(&target_tree, from, rule, classes),
                Method::Treecode => Lists::treecode(&target_tree, from, rule),
                Method::Direct | Method::Auto => Lists::direct(&target_tree),
            }
        });
        Plan {
            choice,
            targets: target_tree,
            sources: source_tree,
            lists,
            closest: accuracy::closest_pair(settings.tolerance),
            classes,
        }
    }

    /// The tree of the sources.
    pub fn source_tree(&self) -> &Tree<D> {
        self.sources.as_ref().unwrap_or(&self.targets)
    }

    /// The stages after tree and lists, in order.
    pub fn schedule(&self) -> &'static [Stage] {
        schedule(self.choice.method)
    }
}

/// The stages of a method after tree and lists, in order, in space and in the plane. One page that reads as the algorithm.
///
/// P2P needs no other stage: it may run at any time before the expansions add to its sums.
pub fn schedule(method: Method) -> &'static [Stage] {
    match method {
        Method::Fmm => {
            &[Stage::P2M, Stage::M2M, Stage::M2L, Stage::P2L, Stage::L2L, Stage::P2P, Stage::L2P, Stage::M2P]
        }
        Method::Treecode => &[Stage::P2M, Stage::M2M, Stage::P2P, Stage::M2P],
        Method::Direct | Method::Auto => &[Stage::P2P],
    }
}
