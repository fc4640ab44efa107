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
use crate::kernel::{Hessian, Pairs, Softening};
use crate::math::CollectVec;
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

/// Second derivatives of the potential of a periodic box.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hessians {
    /// ∂²φ/∂x_i∂x_j for xx, yy, zz, xy, xz, yz. `[targets]`
    pub hessian: Vec<[f64; 6]>,
    /// The largest Frobenius norm of a single image of a source, bare. `[targets]`
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

/// Ewald's sum of a set of sources at its targets. All numbers within are multiplied by powers of two, which brings them near those of a unit box.
pub struct Ewald<'a> {
    cell: &'a PeriodicBox,
    sources: &'a [[f64; 3]],
    strengths: &'a [f64],
    at: At<'a>,
    /// What lengths are multiplied by.
    scale: f64,
    /// What strengths are multiplied by.
    unit: f64,
    softening: Softening,
    split: Split,
    /// Targets in the box.
    targets: Vec<[f64; 3]>,
    near: Cells,
    far: Waves,
}

impl<'a> Ewald<'a> {
    /// With errors of about `accuracy`, relative to typical values: [`EXACT`] for all digits. Positions need not lie in the box; the
    /// dipole that the surroundings see is that of positions as given. The softening is none or a spline that ends within half a box.
    ///
    /// # Panics
    /// If the box or the softening are not what [`PeriodicBox::check`] lets through.
    pub fn new(
        cell: &'a PeriodicBox,
        softening: Softening,
        accuracy: f64,
        sources: &'a [[f64; 3]],
        strengths: &'a [f64],
        at: At<'a>,
    ) -> Self {
        let (scale, unit) = (power_of_two_below(1.0 / cell.longest()), strength_scale(strengths));
        let small = PeriodicBox { side: cell.side.map(|s| s * scale), ..*cell };
        let inside = |points: &[[f64; 3]]| -> Vec<[f64; 3]> {
            points.par_iter().map(|x| small.wrapped(x.map(|c| c * scale))).collect_vec()
        };
        let (x, q) = (inside(sources), strengths.par_iter().map(|q| q * unit).collect_vec());
        let targets = if matches!(at, At::Sources) { x.clone() } else { inside(&places(sources, at)) };
        let split = Split::cheapest(small.volume(), x.len(), targets.len(), accuracy);
        let (near, far) = (Cells::new(small.side, &split, &x, &q), Waves::new(small.side, &split, &x, &q));
        let softening = softening.scaled(scale);
        Ewald { cell, sources, strengths, at, scale, unit, softening, split, targets, near, far }
    }

    /// Potential and field.
    pub fn sums(&self) -> Sums {
        let mut sums = self.near.sums(self.softening, &self.split, &self.targets);
        self.far.add_to(&mut sums, &self.targets);
        let charge: f64 = self.strengths.iter().map(|q| q * self.unit).sum();
        let volume = self.cell.side.map(|s| s * self.scale).iter().product::<f64>();
        let background = PI * charge / (self.split.alpha * self.split.alpha * volume);
        sums.potential.par_iter_mut().for_each(|p| *p -= background);
        // Nobody sees what a softened kernel is at distance zero of itself.
        if let Softening::Spline(length) = self.softening {
            self.own().for_each(|(p, q)| sums.potential[p] -= q / length);
        }
        let (back, per_length) = (self.scale / self.unit, self.scale * self.scale / self.unit);
        sums.potential.par_iter_mut().for_each(|p| *p *= back);
        sums.field.par_iter_mut().for_each(|e| *e = e.map(|c| c * per_length));
        sums.largest.par_iter_mut().for_each(|l| *l *= per_length);
        let moments = Moments::of(self.sources, self.strengths, [0.0; 3]);
        depolarise(self.cell, &moments, &places(self.sources, self.at), &mut sums.potential, &mut sums.field);
        sums
    }

    /// Second derivatives. Surroundings add nothing to them: what they add to the potential of a neutral box is linear.
    pub fn hessians(&self) -> Hessians {
        let mut sums = self.near.hessians(self.softening, &self.split, &self.targets);
        self.far.add_hessians_to(&mut sums.hessian, &self.targets);
        let at_zero = Hessian(self.softening).potential_at_zero();
        self.own().for_each(|(p, q)| sums.hessian[p][..3].iter_mut().for_each(|h| *h += q * at_zero));
        let back = self.scale * self.scale * self.scale / self.unit;
        sums.hessian.par_iter_mut().for_each(|h| *h = h.map(|c| c * back));
        sums.largest.par_iter_mut().for_each(|l| *l *= back);
        sums
    }

    /// The targets that are sources, by their place, with their strengths.
    fn own(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let source = move |p: usize| match self.at {
            At::Sources => Some(p),
            At::Some(chosen) => Some(chosen[p]),
            At::Points(_) => None,
        };
        (0..self.targets.len()).filter_map(move |p| Some((p, self.strengths[source(p)?] * self.unit)))
    }
}

/// Potential and field by Ewald's sum: [`Ewald::sums`] of [`Ewald::new`].
///
/// # Panics
/// Those of [`Ewald::new`].
pub fn evaluate(
    cell: &PeriodicBox,
    softening: Softening,
    accuracy: f64,
    sources: &[[f64; 3]],
    strengths: &[f64],
    at: At,
) -> Sums {
    Ewald::new(cell, softening, accuracy, sources, strengths, at).sums()
}

fn places(sources: &[[f64; 3]], at: At) -> Vec<[f64; 3]> {
    match at {
        At::Sources => sources.to_vec(),
        At::Some(chosen) => chosen.iter().map(|&i| sources[i]).collect(),
        At::Points(points) => points.to_vec(),
    }
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
