//! The rule that separates pairs of cells.

/// When cells may interact through expansions. All comparisons are in `f64` without contraction, so that every
/// executor decides alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Cells of one level interact when the distance of their centers is at least √`separation2` sides: opening
    /// angle θ = √(3/`separation2`). 4 is the classical rule of 27 near cells.
    pub separation2: f64,
    /// Where above 0, cells of one level interact instead when their offset along some axis is larger: 1 for 27
    /// near cells, 2 for 125.
    pub most_near: i32,
    /// Bodies meet an expansion whose center is at least √`point_separation2` of the cell's half sides away.
    pub point_separation2: f64,
    /// Bodies closer than this never interact through expansions (softened kernels).
    pub min_distance: f64,
    /// Two leaves with at most this many pairs of bodies interact directly.
    pub m2l_min_pairs: usize,
    /// Cells with fewer bodies are not worth a multipole evaluated at bodies.
    pub m2p_min_bodies: usize,
    /// Cells with fewer bodies are not worth a local expansion made from bodies.
    pub p2l_min_bodies: usize,
}

impl Rule {
    /// The distance of bodies from an expansion, squared and in half sides, at which a body in the worst place errs
    /// as much as two bodies in the worst corners of cells at √`separation2` sides: ratios of convergence a/r and
    /// a/(R−a) are equal, a = √3/2 sides.
    pub fn point_separation2_of(separation2: f64) -> f64 {
        4.0 * (separation2.sqrt() - 0.75f64.sqrt()).powi(2)
    }

    /// The classical rule of 27 near cells, for cells of any number of bodies.
    pub fn classical() -> Self {
        Rule {
            separation2: 4.0,
            most_near: 0,
            point_separation2: 4.0,
            min_distance: 0.0,
            m2l_min_pairs: 0,
            m2p_min_bodies: 0,
            p2l_min_bodies: 0,
        }
    }

    /// Whether cells of one level at `offset` are separated, for cells with these sides over the longest whose
    /// squared diagonal is `stretch` times that of a cube.
    pub(super) fn far<const D: usize>(&self, offset: [i32; D], aspect: &[f64; D], stretch: f64) -> bool {
        match self.most_near {
            0 => distance2(offset, aspect) >= self.separation2 * stretch,
            most => offset.iter().any(|o| o.abs() > most),
        }
    }

    /// √3/√`separation2`.
    pub fn theta(&self) -> f64 {
        (3.0 / self.separation2).sqrt()
    }

    /// The `separation2` of opening angle `theta`, a hair smaller so that √3/2 gives 4.
    pub fn separation2_of(theta: f64) -> f64 {
        3.0 / (theta * theta) * (1.0 - 1e-12)
    }
}

/// |offset|² in units of the longest side.
pub(super) fn distance2<const D: usize>(offset: [i32; D], aspect: &[f64; D]) -> f64 {
    (0..D).map(|d| (f64::from(offset[d]) * aspect[d]).powi(2)).sum()
}
