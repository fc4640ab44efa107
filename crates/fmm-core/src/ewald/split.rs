//! How a sum is split between real space and waves.

use std::f64::consts::PI;

use super::band::{self, Band};

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

/// What makes the smooth part of the kernel, which the waves have.
pub enum Part {
    /// Gaussians around the sources: all digits.
    Gauss(Split),
    /// Waves up to a limit: fewer of them for the digits that they have.
    Band(Band),
}

impl Part {
    /// The cheapest for `sources` bodies at `targets` places of a box of `volume`, with errors of about `accuracy` of
    /// typical values, and a cut-off of `reach` at least.
    pub fn cheapest(volume: f64, (sources, targets): (usize, usize), accuracy: f64, reach: f64) -> Self {
        if accuracy >= band::FINEST {
            return Part::Band(Band::cheapest(volume, (sources, targets), accuracy, reach));
        }
        let split = Split::cheapest(volume, sources, targets, accuracy);
        let shorter = split.cutoff < reach;
        Part::Gauss(if shorter { Split::with(split.alpha * split.cutoff / reach, accuracy) } else { split })
    }

    /// Images of sources within this distance are summed.
    pub fn cutoff(&self) -> f64 {
        match self {
            Part::Gauss(split) => split.cutoff,
            Part::Band(band) => band.cutoff,
        }
    }

    /// Waves up to this wave number are summed.
    pub fn highest(&self) -> f64 {
        match self {
            Part::Gauss(split) => split.highest,
            Part::Band(band) => band.highest,
        }
    }

    /// The smooth part of 4π/k² of a wave, over it.
    pub fn factor(&self, square: f64) -> f64 {
        match self {
            Part::Gauss(split) => (-square / (4.0 * split.alpha * split.alpha)).exp(),
            Part::Band(band) => band.factor(square),
        }
    }

    /// The integral over space of what is left of 1/r in real space: without the wave k = 0 it is what a uniform
    /// background cancels.
    pub fn left(&self) -> f64 {
        match self {
            Part::Gauss(split) => PI / (split.alpha * split.alpha),
            Part::Band(band) => band.left(),
        }
    }
}
