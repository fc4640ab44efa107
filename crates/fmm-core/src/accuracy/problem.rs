//! What a choice depends on: how many bodies, how they lie, which signs they have.

use rayon::prelude::*;

use crate::cpu::strength_range;
use crate::tree::Cube;
use crate::tree::key::{levels_per_key, morton};

/// What the choice depends on besides the settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Number of sources.
    pub sources: usize,
    /// Number of targets.
    pub targets: usize,
    /// How the sources lie and which signs they have.
    pub kind: Kind,
    /// How many times more bodies a body sees around it than if they filled the cube evenly: 1 for a filled cube, 1.9 for a ball.
    pub crowding: f64,
    /// Side of the leaves where the sources are dense (the tenth part that has the smallest).
    pub dense_leaf: f64,
    /// The largest strength over the smallest that is not zero.
    pub strength_range: f64,
}

impl Problem {
    /// The problem of `sources` with `strengths` at `targets` points, in `cube`.
    pub fn of<const D: usize>(sources: &[[f64; D]], strengths: &[f64], targets: usize, cube: &Cube<D>) -> Self {
        let (kind, crowding) = Kind::of(sources, strengths, &cube.corner, cube.side);
        Problem {
            sources: sources.len(),
            targets,
            kind,
            crowding,
            dense_leaf: dense_leaf(sources, cube),
            strength_range: strength_range(strengths),
        }
    }
}

/// Bodies of a sample that stand for the whole set.
const SAMPLE: usize = 1 << 16;

/// The side of the cells that hold some hundred bodies, where bodies are dense: bodies that are neighbours by their key share the
/// cell of the key's common part.
fn dense_leaf<const D: usize>(points: &[[f64; D]], cube: &Cube<D>) -> f64 {
    const LEAF: usize = 100;
    let step = points.len().div_ceil(SAMPLE).max(1);
    let mut keys: Vec<u64> = points.par_iter().step_by(step).map(|x| morton(x, &cube.corner, cube.side)).collect();
    keys.par_sort_unstable();
    let apart = (LEAF / step).max(4);
    let bits = levels_per_key(D) * D as u32;
    let mut levels: Vec<u32> = keys
        .iter()
        .zip(keys.iter().skip(apart))
        .map(|(a, b)| ((a ^ b).leading_zeros() - (64 - bits)) / D as u32)
        .collect();
    levels.sort_unstable();
    let level = levels.get(levels.len() * 9 / 10).copied().unwrap_or(0);
    cube.side * 0.5f64.powi(level as i32)
}

/// Classes of sets that err alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One sign, filling the cube about evenly.
    Filling,
    /// One sign, unevenly: clusters, surfaces.
    Clustered,
    /// Both signs: forces cancel, errors do not.
    Cancelling,
    /// One sign, in a plane or on a line: a few bodies feel next to nothing.
    Flat,
}

impl Kind {
    /// The kind and the crowding of a set in the cube with lower `corner` and `side`, from the signs of all strengths and a
    /// sample of the positions.
    pub fn of<const D: usize>(points: &[[f64; D]], strengths: &[f64], corner: &[f64; D], side: f64) -> (Kind, f64) {
        const DIVISIONS: usize = 16;
        let sign = |q: &f64| (*q > 0.0, *q < 0.0);
        let (plus, minus) = strengths.par_iter().map(sign).reduce(|| (false, false), |a, b| (a.0 | b.0, a.1 | b.1));
        let step = points.len().div_ceil(SAMPLE).max(1);
        let mut bins = vec![0.0f64; DIVISIONS.pow(D as u32)];
        let mut n = 0.0f64;
        let (mut low, mut high) = ([f64::INFINITY; D], [f64::NEG_INFINITY; D]);
        for x in points.iter().step_by(step) {
            let place = (0..D).fold(0, |place, d| {
                let i = ((x[d] - corner[d]) / side * DIVISIONS as f64).clamp(0.0, DIVISIONS as f64 - 1.0);
                place * DIVISIONS + i as usize
            });
            bins[place] += 1.0;
            for d in 0..D {
                (low[d], high[d]) = (low[d].min(x[d]), high[d].max(x[d]));
            }
            n += 1.0;
        }
        // N times the mean occupation that a body sees, less the noise.
        let crowding = bins.iter().map(|b| b * (b - 1.0)).sum::<f64>() * bins.len() as f64 / (n * n).max(1.0);
        let extents = || (0..D).map(|d| high[d] - low[d]);
        let kind = if plus && minus {
            Kind::Cancelling
        } else if extents().fold(f64::INFINITY, f64::min) < 0.02 * extents().fold(0.0, f64::max) {
            Kind::Flat
        } else if crowding < 3.0 {
            Kind::Filling
        } else {
            Kind::Clustered
        };
        (kind, crowding)
    }
}
