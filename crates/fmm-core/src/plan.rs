//! The plan of a summation: trees, lists and the order of the stages, without any mathematics.

use crate::accuracy;
use crate::expansion::Lattice;
use crate::lists::{Classes, Lists, Rule, Space};
use crate::settings::{Choice, Method, Settings};
use crate::stage::{Stage, StageTimes};
use crate::tree::{Cube, Growth, Tree};

/// A way to divide the points: cells of octrees, boxes of pyramids, or boxes of one level.
pub trait Geometry {
    /// What is chosen before the points are divided.
    type Choice;
    /// The cells of one set of points.
    type Tree;
    /// Which sources meet which targets by which operator.
    type Lists;
}

/// Which cells do what, and in which order.
#[derive(Debug, Clone)]
pub struct Plan<G: Geometry> {
    /// What was chosen.
    pub choice: G::Choice,
    /// The cells of the targets; those of the sources too if there are no others.
    pub targets: G::Tree,
    /// The cells of the sources, if they are not the targets.
    pub sources: Option<G::Tree>,
    /// Which sources meet which targets.
    pub lists: G::Lists,
    /// What this geometry needs besides.
    pub geometry: G,
}

impl<G: Geometry> Plan<G> {
    /// The cells of the sources.
    pub fn source_tree(&self) -> &G::Tree {
        self.sources.as_ref().unwrap_or(&self.targets)
    }
}

/// Octrees in open space or in a periodic box.
#[derive(Debug, Clone)]
pub struct Octrees<const D: usize> {
    /// Pairs closer than this, in half sides of the targets' leaf, are summed in double precision.
    pub closest: f64,
    /// The numbering of the M2L offsets.
    pub classes: Classes<D>,
    /// The root cell, and its images that the lists know.
    pub space: Space<D>,
    /// The operator of all other images; none in open space.
    pub lattice: Option<Lattice>,
    /// Of a tree that is one rank's part of a whole: the cells whose bodies are on several ranks. Their multipoles are added up
    /// when those of their children have come. `[cells]`, or empty.
    pub shared: Vec<bool>,
}

impl<const D: usize> Geometry for Octrees<D> {
    type Choice = Choice;
    type Tree = Tree<D>;
    type Lists = Lists;
}

/// The plan of a sum in space.
pub type OctreePlan<const D: usize> = Plan<Octrees<D>>;

impl<const D: usize> OctreePlan<D> {
    /// Plans the sum of `sources` at `targets`, or at themselves, all within `cube`.
    pub fn new(
        settings: &Settings,
        choice: Choice,
        cube: Cube<D>,
        sources: &[[f64; D]],
        targets: Option<&[[f64; D]]>,
        times: &mut StageTimes,
    ) -> Self {
        let (rule, leaf_size) = (accuracy::rule(settings, &choice), choice.leaf_size);
        let tree = |points: &[[f64; D]]| match settings.uniform {
            None => Tree::octree(points, cube, leaf_size),
            Some(uniform) => Tree::uniform(points, cube, uniform.depth),
        };
        Self::in_space(settings, choice, (Space::open(cube.side), rule), tree, (sources, targets), times)
    }

    fn in_space(
        settings: &Settings,
        choice: Choice,
        (space, rule): (Space<D>, Rule),
        tree: impl Fn(&[[f64; D]]) -> Tree<D>,
        (sources, targets): (&[[f64; D]], Option<&[[f64; D]]>),
        times: &mut StageTimes,
    ) -> Self {
        let (target_tree, source_tree) = times.time(Stage::Tree, || match targets {
            None => (tree(sources), None),
            Some(targets) => (tree(targets), Some(tree(sources))),
        });
        Self::of_trees(settings, choice, (space, rule), (target_tree, source_tree), times)
    }

    /// Plans the sum over trees that are there.
    pub(crate) fn of_trees(
        settings: &Settings,
        choice: Choice,
        (space, rule): (Space<D>, Rule),
        (target_tree, source_tree): (Tree<D>, Option<Tree<D>>),
        times: &mut StageTimes,
    ) -> Self {
        let classes = Classes::of_space(rule.separation2, &space).with_near(rule.most_near);
        let lists = times.time(Stage::Lists, || {
            let from = source_tree.as_ref().unwrap_or(&target_tree);
            match choice.method {
                Method::Fmm => Lists::fmm_in(&space, &target_tree, from, rule, classes),
                Method::Treecode => Lists::treecode_in(&space, &target_tree, from, rule),
                Method::Direct | Method::Auto | Method::Mesh => Lists::direct(&target_tree),
            }
        });
        Plan {
            choice,
            targets: target_tree,
            sources: source_tree,
            lists,
            geometry: Octrees {
                closest: accuracy::closest_pair(settings.tolerance),
                classes,
                space,
                lattice: None,
                shared: vec![],
            },
        }
    }

    /// The stages after tree and lists, in order.
    pub fn schedule(&self) -> &'static [Stage] {
        match (&self.geometry.lattice, self.choice.method) {
            (None, method) => schedule(method),
            (Some(_), method) => periodic_schedule(method),
        }
    }
}

impl OctreePlan<3> {
    /// Plans the sum of `sources` at `targets`, or at themselves, and of all their images, in a box from the origin with `sides` that
    /// holds them all. Direct sums over images are no matter of lists: see [`crate::ewald`].
    ///
    /// # Panics
    /// If `choice` has no order, or expansions that are not spherical.
    pub fn in_box(
        settings: &Settings,
        choice: Choice,
        sides: [f64; 3],
        sources: &[[f64; 3]],
        targets: Option<&[[f64; 3]]>,
        times: &mut StageTimes,
    ) -> Self {
        let rule = accuracy::rule(settings, &choice);
        let space = Space::periodic(sides, &rule);
        let order = choice.order.expect("expansions");
        let leaf_size = choice.leaf_size;
        let grown = settings.uniform.map_or(Growth::Leaves(leaf_size), |u| Growth::Depth(u.depth));
        let tree = |points: &[[f64; 3]]| Tree::octree_in_box(points, sides, grown);
        let mut plan = Self::in_space(settings, choice, (space, rule), tree, (sources, targets), times);
        let lattice = times.time_more(Stage::Lists, || Lattice::new(order, &plan.geometry.space));
        plan.geometry.lattice = Some(lattice);
        plan
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
        Method::Mesh => unreachable!("a mesh has no lists"),
    }
}

/// The same in a periodic box. The images that lists know meet as in open space; all others reach the root's local expansion through the
/// operator of the lattice, and from there every leaf, of a treecode too.
///
/// # Panics
/// For a method without expansions: direct sums over images are Ewald's.
pub fn periodic_schedule(method: Method) -> &'static [Stage] {
    match method {
        Method::Fmm => &[
            Stage::P2M,
            Stage::M2M,
            Stage::Lattice,
            Stage::M2L,
            Stage::P2L,
            Stage::L2L,
            Stage::P2P,
            Stage::L2P,
            Stage::M2P,
        ],
        Method::Treecode => &[Stage::P2M, Stage::M2M, Stage::Lattice, Stage::L2L, Stage::P2P, Stage::L2P, Stage::M2P],
        Method::Direct | Method::Auto | Method::Mesh => unreachable!("sums over images without lists are Ewald's"),
    }
}
