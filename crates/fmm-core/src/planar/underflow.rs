//! Pairs whose squared distance underflows: closer than 10⁻¹⁴⁵ of a leaf.
//!
//! They arise only between coordinates that are tiny compared with the extent of the set, since the
//! numbers next to a coordinate are 2⁻⁵² of it away. One scan of all coordinates rules them out for
//! ordinary sets. The vectors of `near` treat these pairs as coincident; [`make_good`](super::missed::make_good)
//! adds them one by one.

use rayon::prelude::*;

/// The smallest coordinate of a set that cannot have pairs of this kind, as a share of the extent.
/// It has a margin for units and for the distance to the next number.
pub const SMALL: f64 = 1e-120;

/// Of the extent; what is smaller may be lost when coordinates are put in the unit of the set.
pub const LOST: f64 = 1e-300;

/// Of the extent; the squares of shorter cores of blobs are no numbers in the unit of the set, though they are in that of a leaf.
pub const SHORT: f64 = 1e-140;

/// Of the extent; shorter cores are points: no unit has numbers for their squares and for those of all distances.
pub const POINT: f64 = 1e-200;

/// The smallest coordinate that is not zero; ∞ without any.
pub fn smallest(points: &[[f64; 2]]) -> f64 {
    let of = |x: &[f64; 2]| x.iter().map(|c| c.abs()).filter(|c| *c > 0.0).fold(f64::INFINITY, f64::min);
    points.par_iter().map(of).reduce(|| f64::INFINITY, f64::min)
}

/// Whether points whose smallest coordinate is `smallest` may form pairs of this kind.
pub fn possible(smallest: f64, extent: f64) -> bool {
    smallest < SMALL * extent
}
