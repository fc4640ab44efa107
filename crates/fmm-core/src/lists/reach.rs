//! Which cells the targets of a distant domain may open: what of a tree another rank has to know.
//!
//! The answer is that of the [traversal](super::Lists) for the target of the domain that would open most. Lists are
//! then made by the traversal itself; it needs no cell that this leaves out.

use super::Rule;
use super::rule::distance2;
use crate::Method;

/// Comparisons of distances are as much wider as rounding could make them.
const MARGIN: f64 = 1.0 - 1e-9;

/// Offsets beyond this are all alike.
const FAR: f64 = 1e6;

/// A cubic cell of a tree, without what is in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen<const D: usize> {
    /// Level; the root has 0.
    pub level: usize,
    /// Center.
    pub center: [f64; D],
    /// Half the side.
    pub half: f64,
}

/// The lists of one method in open space.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// The method.
    pub method: Method,
    /// When cells meet by expansions.
    pub rule: Rule,
}

impl Reach {
    /// Whether a target cell of `domain`, or one that contains it, may open the source cell `source` with so many bodies.
    pub fn opens<const D: usize>(&self, source: &Seen<D>, count: usize, domain: &Seen<D>) -> bool {
        let walked = || count >= self.rule.m2p_min_bodies && !self.apart(source, domain);
        match self.method {
            Method::Fmm => self.near(source, domain) || (source.level >= domain.level && walked()),
            Method::Treecode => walked(),
            Method::Direct | Method::Auto | Method::Mesh => false,
        }
    }

    /// Whether the source is near some target cell of its own level: one that contains the domain or lies in it.
    fn near<const D: usize>(&self, source: &Seen<D>, domain: &Seen<D>) -> bool {
        let (side, within) = (2.0 * source.half, (domain.half - source.half).max(0.0));
        let offset = std::array::from_fn(|d| {
            let away = ((source.center[d] - domain.center[d]).abs() - within).max(0.0);
            // The center of the domain is less than half a side from that of a cell that contains it.
            (away / side).min(FAR).round() as i32
        });
        let rule = &self.rule;
        let gap2 = distance2::<D>(offset.map(|o| (o - 1).max(0)), &[1.0; D]) * side * side;
        let clear = rule.min_distance == 0.0 || gap2 * MARGIN >= rule.min_distance * rule.min_distance;
        !(rule.far(offset, &[1.0; D], 1.0) && clear)
    }

    /// Whether the expansion of the source holds in the whole domain.
    fn apart<const D: usize>(&self, source: &Seen<D>, domain: &Seen<D>) -> bool {
        let gap = |d: usize| ((source.center[d] - domain.center[d]).abs() - domain.half).max(0.0);
        let r2 = MARGIN * (0..D).map(|d| gap(d) * gap(d)).sum::<f64>();
        let (rule, half) = (&self.rule, source.half);
        let reach = rule.min_distance + half * (D as f64).sqrt();
        r2 >= rule.point_separation2 * (half * half) && (rule.min_distance == 0.0 || r2 >= reach * reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(level: usize, place: [u32; 3]) -> Seen<3> {
        let half = 0.5f64.powi(level as i32 + 1);
        Seen { level, center: place.map(|i| (2 * i + 1) as f64 * half), half }
    }

    #[test]
    fn a_domain_opens_what_its_nearest_cell_opens() {
        let reach = Reach { method: Method::Fmm, rule: Rule::classical() };
        // Neighbors on any level, and the cells that touch the domain from a deeper one.
        let domain = cell(3, [2, 2, 2]);
        assert!(reach.opens(&cell(3, [3, 1, 2]), 9, &domain) && !reach.opens(&cell(3, [4, 2, 2]), 9, &domain));
        assert!(reach.opens(&cell(5, [12, 8, 11]), 0, &domain) && !reach.opens(&cell(5, [13, 8, 11]), 0, &domain));
        // A coarser source meets the cell that contains the domain: [1, 1, 1] on level 2, [0, 0, 0] on level 1.
        assert!(reach.opens(&cell(2, [2, 0, 1]), 9, &domain) && !reach.opens(&cell(2, [3, 1, 1]), 9, &domain));
        assert!(reach.opens(&cell(1, [1, 1, 1]), 9, &domain));
        // A treecode opens what is near, and holds enough.
        let walks = Reach { method: Method::Treecode, rule: Rule { m2p_min_bodies: 5, ..Rule::classical() } };
        assert!(walks.opens(&cell(3, [3, 2, 2]), 5, &domain) && !walks.opens(&cell(3, [3, 2, 2]), 4, &domain));
        assert!(!walks.opens(&cell(3, [6, 2, 2]), 5, &domain));
        assert!(!Reach { method: Method::Direct, ..walks }.opens(&cell(1, [0; 3]), 9, &domain));
    }
}
