//! The points of a plan in its units, and the sums at them.

use rayon::prelude::*;

use super::{Plan, Pyramid, Request};
use crate::math::CollectVec;
use crate::prediction::HasVector;

/// Potential (log only) and G = Σ Γ/(z − z_j) at one point.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// Σ q log r.
    pub potential: f64,
    /// Real and imaginary part.
    pub g: [f64; 2],
}

impl HasVector<2> for Sum {
    fn vector(&self) -> [f64; 2] {
        self.g
    }
}

/// Coordinates and strengths in the order of a pyramid, scaled.
pub struct Sorted<'a> {
    /// Coordinates.
    pub x: &'a [Vec<f64>; 2],
    /// Real parts, and imaginary parts if there are any; none for targets.
    pub q: Vec<Vec<f64>>,
}

impl Sorted<'_> {
    /// Real and imaginary parts.
    pub fn strengths(&self) -> &[Vec<f64>] {
        &self.q
    }
}

/// The points of a plan.
pub struct Bodies<'a> {
    /// Sources.
    pub sources: Sorted<'a>,
    targets: Option<Sorted<'a>>,
    /// The unit of length is 2^this of the caller's.
    pub global: i32,
    /// Whether there may be pairs whose squared distance is no number.
    pub may_underflow: bool,
}

impl<'a> Bodies<'a> {
    /// The points of `plan`, with the strengths and the units that `request` gives them.
    pub fn new(plan: &'a Plan, strengths: &[Vec<f64>], request: &Request) -> Self {
        let Request { scale, global, may_underflow, .. } = *request;
        let tree = plan.source_tree();
        let pick = |q: &Vec<f64>| tree.order.par_iter().map(|&i| q[i as usize] * scale).collect_vec();
        let sources = Sorted { x: &tree.x, q: strengths.iter().map(pick).collect() };
        let targets = plan.sources.as_ref().map(|_| Sorted { x: &plan.targets.x, q: vec![] });
        Bodies { sources, targets, global, may_underflow }
    }

    /// Targets, which may be the sources.
    pub fn targets(&self) -> &Sorted<'a> {
        self.targets.as_ref().unwrap_or(&self.sources)
    }
}

/// Splits `out`, one row a target, into the parts of the leaves.
pub fn by_leaf<'a, S>(out: &'a mut [S], tree: &Pyramid) -> Vec<(usize, &'a mut [S])> {
    let mut rest = out;
    tree.leaves()
        .map(|leaf| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(tree.count(leaf));
            rest = tail;
            (leaf, head)
        })
        .collect()
}
