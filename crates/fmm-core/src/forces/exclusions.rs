//! Pairs that do not see each other, as in molecules whose bonds have forces of their own.

use crate::{PeriodicBox, Softening};

/// What two bodies do to each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairInteraction {
    /// From the second to the first; in a periodic box from its nearest image.
    pub from: [f64; 3],
    /// K at their distance.
    pub potential: f64,
    /// −K'/r.
    pub slope: f64,
}

impl PairInteraction {
    /// Of the bodies at `a` and `b`, in a periodic box if there is one.
    pub fn of(softening: Softening, cell: Option<&PeriodicBox>, a: &[f64; 3], b: &[f64; 3]) -> Self {
        let from: [f64; 3] = std::array::from_fn(|k| {
            let d = a[k] - b[k];
            cell.map_or(d, |cell| d - (d / cell.side[k]).round() * cell.side[k])
        });
        let (potential, slope) = softening.at(from[0].hypot(from[1]).hypot(from[2]));
        PairInteraction { from, potential, slope }
    }
}
