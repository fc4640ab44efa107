//! The split of 1/r by a prolate spheroidal wave function ψ_c (Liang, Lu, Barnett, Greengard & Jiang 2025).
//!
//! Real space has 1/r less I(u)/(C r), u = r/r_c, with I(u) = ∫₀ᵘψ_c and C = I(1): nothing from r_c on. The rest has
//! the waves 4π/k² ψ_c(k r_c/c) of k ≤ c/r_c. For the same accuracy these are a fifth to an eighth of those of a split
//! by Gaussians with the same cut-off.

use std::f64::consts::PI;

use crate::math::horner;
use crate::math::prolate::Prolate;

/// The waves that a sum takes of 1/r, and what they are within the cut-off.
pub struct Band {
    /// r_c.
    pub cutoff: f64,
    /// Waves up to this wave number are summed.
    pub highest: f64,
    /// What the waves are within the cut-off, as polynomials of t = 2 r²/r_c² − 1, the highest power first: φ and
    /// g = −φ'/r.
    pub field: Vec<[f64; 2]>,
    /// g and h = −g'/r.
    pub second: Vec<[f64; 2]>,
    /// ψ_c(k r_c/c) by powers of 2 (k/K)² − 1.
    factor: Vec<f64>,
    /// The integral over space of what is left in real space.
    left: f64,
}

/// Errors of about this part of typical values need no better than these polynomials in double precision.
pub const FINEST: f64 = 1e-12;

/// Nanoseconds of one thread for a pair in real space and a wave of a source: estimates from their operations.
const PAIR: f64 = 2.0;
const WAVE: f64 = 0.12;

impl Band {
    /// The cheapest for `sources` bodies at `targets` places of a box of `volume`, with errors of about `accuracy` of
    /// typical values, and a cut-off of `reach` at least.
    pub fn cheapest(volume: f64, (sources, targets): (usize, usize), accuracy: f64, reach: f64) -> Self {
        let (n, m) = (sources.max(1) as f64, targets.max(1) as f64);
        let bandlimit = Self::bandlimit(accuracy);
        // Pairs go like r_c³, waves like r_c^−3; half of the waves stand for all.
        let pairs = PAIR * n * m * 4.0 / 3.0 * PI;
        let waves = WAVE * (n + m) * bandlimit.powi(3) / (12.0 * PI * PI);
        Self::new(((waves / pairs).powf(1.0 / 6.0) * volume.cbrt()).max(reach), bandlimit)
    }

    /// The error goes like 5 e^(−0.97 c), and in crystals, whose forces cancel, like ten times as much.
    fn bandlimit(accuracy: f64) -> f64 {
        (50.0 / accuracy).ln().max(4.0) / 0.97
    }

    fn new(cutoff: f64, bandlimit: f64) -> Self {
        let prolate = Prolate::new(bandlimit);
        let unit = 1.0 / (prolate.whole() * cutoff);
        let fit = prolate.mean(0.02 * prolate.at(1.0));
        // dt/dr = 4 r/r_c².
        let (slope, step) = (fit.derivative(), -4.0 / (cutoff * cutoff));
        let pull = slope.powers(unit * step);
        let field = horner::pairs(&fit.powers(unit), &pull);
        let second = horner::pairs(&pull, &slope.derivative().powers(unit * step * step));
        let factor = prolate.by_square();
        let left = 2.0 * PI * cutoff * cutoff * prolate.second_moment() / prolate.whole();
        Band { cutoff, highest: bandlimit / cutoff, field, second, factor, left }
    }

    /// ψ_c(k r_c/c) of a wave, whose k² is `square`.
    pub fn factor(&self, square: f64) -> f64 {
        let t = 2.0 * square / (self.highest * self.highest) - 1.0;
        self.factor.iter().fold(0.0, |sum, a| sum * t + a)
    }

    /// The integral over space of what is left in real space.
    pub fn left(&self) -> f64 {
        self.left
    }
}
