//! The plan of a sum in the plane: pyramids and lists.

use super::{Blob, Lists, Pyramid, Rule, accuracy};
use crate::plan::{self, Geometry};
use crate::settings::{Choice, Method};
use crate::stage::{Stage, StageTimes};

/// Pyramids of boxes that are split at medians.
#[derive(Debug, Clone)]
pub struct Pyramids;

impl Geometry for Pyramids {
    type Choice = Choice;
    type Tree = Pyramid;
    type Lists = Lists;
}

/// The plan of a sum in the plane.
pub type Plan = plan::Plan<Pyramids>;

impl Plan {
    /// Plans the sum of `sources` at `targets`, or at themselves. Coordinates are multiplied by `scale`; lengths of `blob` are in the
    /// scaled unit.
    pub fn new(
        choice: Choice,
        tolerance: f64,
        blob: Blob,
        sources: &[[f64; 2]],
        targets: Option<&[[f64; 2]]>,
        scale: f64,
        times: &mut StageTimes,
    ) -> Self {
        let fmm = choice.method == Method::Fmm;
        let levels = accuracy::levels(sources.len(), targets.map_or(sources.len(), <[_]>::len), choice.leaf_size);
        let (target_tree, source_tree) = times.time(Stage::Tree, || match targets {
            None => (Pyramid::new(sources, scale, levels), None),
            Some(targets) => {
                let source_levels = if fmm { levels } else { 0 };
                (Pyramid::new(targets, scale, levels), Some(Pyramid::new(sources, scale, source_levels)))
            }
        });
        let lists = times.time(Stage::Lists, || {
            if !fmm {
                return Lists::of_pyramid(&target_tree);
            }
            let rule = Rule {
                theta: choice.theta.unwrap_or(accuracy::THETA),
                min_distance: blob.point_beyond(tolerance),
                swap_min_points: accuracy::swap_min_points(choice.order.unwrap_or(1)),
            };
            Lists::between_pyramids(&target_tree, source_tree.as_ref().unwrap_or(&target_tree), rule)
        });
        Plan { choice, targets: target_tree, sources: source_tree, lists, geometry: Pyramids }
    }

    /// The stages after pyramids and lists, in order: the same as in three dimensions.
    pub fn schedule(&self) -> &'static [Stage] {
        plan::schedule(self.choice.method)
    }
}
