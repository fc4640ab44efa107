//! Ewald's sum of a periodic box, to any accuracy: the direct sum over all images, and the reference of everything faster.
//!
//! φ(x) = Σ_j,n q_j erfc(αr)/r + (4π/V) Σ_k≠0 e^(−k²/4α²)/k² Re[e^(ikx) S*(k)] − πQ/(α²V), S(k) = Σ q_j e^(ikx_j), r = |x − x_j + nL|, for tin foil around and
//! a uniform background −Q/V (Ewald 1921; de Leeuw, Perram & Smith 1980). A pair at distance zero does not see itself, but the other images: what
//! remains of erfc(αr)/r is −2α/√π, which is also what a source has to do with itself.

mod near;
mod waves;

use std::f64::consts::PI;

use rayon::prelude::*;

use crate::boundary::{Moments, PeriodicBox};
use crate::kernel::Softening;
use crate::math::scale::{power_of_two_below, strength_scale};
use near::Cells;
use waves::Waves;

/// Where the sum is wanted.
#[derive(Debug, Clone, Copy)]
pub enum At<'a> {
    /// At all sources, none of which sees itself (but its images).
    Sources,
    /// At these sources, likewise.
    Some(&'a [usize]),
    /// Anywhere.
    Points(&'a [[f64; 3]]),
}

/// Potential and field of a periodic box.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sums {
    /// Σ q K over all images. `[targets]`
    pub potential: Vec<f64>,
    /// e = −∇ of it. `[targets]`
    pub field: Vec<[f64; 3]>,
    /// The largest field of a single image of a source, bare. `[targets]`
    pub largest: Vec<f64>,
}

/// The accuracy at which nothing but rounding is left.
pub const EXACT: f64 = 1e-17;

/// Nanoseconds of one thread for a pair in real space, for a wave in the sums over sources and in those at a target: estimates from their
/// operations. Only the split between the two sums and the choice between methods depend on them.
const PAIR: f64 = 3.0;
const WAVE_OF_SOURCE: f64 = 0.35;
const WAVE_AT_TARGET: f64 = 0.6;

/// How a sum is split between the spaces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// α.
    pub alpha: f64,
    /// Images of sources within this distance are summed.
    pub cutoff: f64,
    /// Waves up to this wave number are summed.
    pub highest: f64,
}

impl Split {
    /// The cheapest split for `sources` bodies at `targets` places of a box of `volume`, with errors of about `accuracy` of typical values.
    pub fn cheapest(volume: f64, sources: usize, targets: usize, accuracy: f64) -> Self {
        let (n, m) = (sources.max(1) as f64, targets.max(1) as f64);
        let waves = WAVE_OF_SOURCE * n + WAVE_AT_TARGET * m;
        // Pairs go like α^−3, waves like α³.
        let balance = (2.0 * PI).powi(3) * n * m * PAIR / (4.0 * waves);
        Self::with(balance.powf(1.0 / 6.0).clamp(1.0, 40.0) / volume.cbrt(), accuracy)
    }

    /// The sums that `alpha` needs.
    pub fn with(alpha: f64, accuracy: f64) -> Self {
        // Both remainders go like e^(−s²).
        let s = (-accuracy.ln()).max(1.0).sqrt() + 0.1;
        Split { alpha, cutoff: s / alpha, highest: 2.0 * alpha * s }
    }

    /// Nanoseconds of one thread.
    pub fn cost(&self, volume: f64, sources: usize, targets: usize) -> f64 {
        let ball = |r: f64| 4.0 / 3.0 * PI * r.powi(3);
        let waves = 0.5 * ball(self.highest) * volume / (2.0 * PI).powi(3);
        let pairs = ball(self.cutoff) / volume * sources as f64 * targets as f64;
        PAIR * pairs + waves * (WAVE_OF_SOURCE * sources as f64 + WAVE_AT_TARGET * targets as f64)
    }
}

/// Ewald's sum with errors of about `accuracy`, relative to typical values: [`EXACT`] for all digits. Positions need not lie in the
/// box; the dipole that the surroundings see is that of positions as given. The softening is none or a spline that ends within half a box.
///
/// # Panics
/// If the box or the softening are not what [`PeriodicBox::check`] lets through.
pub fn evaluate(
    cell: &PeriodicBox,
    softening: Softening,
    accuracy: f64,
    sources: &[[f64; 3]],
    strengths: &[f64],
    at: At,
) -> Sums {
    let places: Vec<[f64; 3]> = match at {
        At::Sources => sources.to_vec(),
        At::Some(chosen) => chosen.iter().map(|&i| sources[i]).collect(),
        At::Points(points) => points.to_vec(),
    };
    // In units near the box's own, exactly.
    let (scale, unit) = (power_of_two_below(1.0 / cell.longest()), strength_scale(strengths));
    let small = PeriodicBox { side: cell.side.map(|s| s * scale), ..*cell };
    let softening = softening.scaled(scale);
    let inside = |points: &[[f64; 3]]| -> Vec<[f64; 3]> {
        points.par_iter().map(|x| small.wrapped(x.map(|c| c * scale))).collect()
    };
    let (x, q) = (inside(sources), strengths.par_iter().map(|q| q * unit).collect::<Vec<_>>());
    let y = if matches!(at, At::Sources) { x.clone() } else { inside(&places) };
    let volume = small.volume();
    let split = Split::cheapest(volume, x.len(), y.len(), accuracy);
    let mut sums = Cells::new(small.side, &split, &x, &q).sums(softening, &split, &y);
    Waves::new(small.side, &split, &x, &q).add_to(&mut sums, &y);
    let background = PI * q.iter().sum::<f64>() / (split.alpha * split.alpha * volume);
    sums.potential.par_iter_mut().for_each(|p| *p -= background);
    // Nobody sees what a softened kernel is at distance zero of itself.
    if let Softening::Spline(length) = softening {
        let own = |i: usize| q[i] / length;
        match at {
            At::Sources => sums.potential.iter_mut().enumerate().for_each(|(i, p)| *p -= own(i)),
            At::Some(chosen) => sums.potential.iter_mut().zip(chosen).for_each(|(p, &i)| *p -= own(i)),
            At::Points(_) => {}
        }
    }
    let (back, per_length) = (scale / unit, scale * scale / unit);
    sums.potential.par_iter_mut().for_each(|p| *p *= back);
    sums.field.par_iter_mut().for_each(|e| *e = e.map(|c| c * per_length));
    sums.largest.par_iter_mut().for_each(|l| *l *= per_length);
    depolarise(cell, &Moments::of(sources, strengths, [0.0; 3]), &places, &mut sums.potential, &mut sums.field);
    sums
}

/// Adds what the surroundings do, if they are not tin foil, at unwrapped `places`, where `moments` are those of unwrapped sources.
pub fn depolarise(
    cell: &PeriodicBox,
    moments: &Moments,
    places: &[[f64; 3]],
    potential: &mut [f64],
    field: &mut [[f64; 3]],
) {
    let Some(c) = cell.depolarisation() else { return };
    // What is left of a charge is rounding.
    let neutral = Moments { charge: 0.0, ..*moments };
    potential.par_iter_mut().zip(field).zip(places).for_each(|((p, e), x)| {
        let (value, slope) = neutral.paraboloid(*x);
        *p -= c * value;
        (0..3).for_each(|d| e[d] -= c * slope[d]);
    });
}
