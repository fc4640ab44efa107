//! Ewald's sum of a periodic box, to any accuracy: the direct sum over all images, and the reference of everything faster.
//!
//! φ(x) = Σ_j,n q_j erfc(αr)/r + (4π/V) Σ_k≠0 e^(−k²/4α²)/k² Re[e^(ikx) S*(k)] − πQ/(α²V), S(k) = Σ q_j e^(ikx_j), r = |x − x_j + nL|, for tin foil around and
//! a uniform background −Q/V (Ewald 1921; de Leeuw, Perram & Smith 1980). A pair at distance zero does not see itself, but the other images: what
//! remains of erfc(αr)/r is −2α/√π, which is also what a source has to do with itself.

mod band;
mod near;
mod screen;
mod split;
mod structure;
mod waves;

use rayon::prelude::*;

use crate::boundary::{Moments, PeriodicBox};
use crate::kernel::{Hessian, Pairs, Softening};
use crate::math::CollectVec;
use crate::math::scale::{power_of_two_below, strength_scale};
use near::Cells;
use split::Part;
pub use split::Split;
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

/// Ewald's sum of a set of sources, at any targets. All numbers within are multiplied by powers of two, which brings them near those of a unit box.
pub struct Ewald<'a> {
    cell: &'a PeriodicBox,
    sources: &'a [[f64; 3]],
    strengths: &'a [f64],
    /// What lengths are multiplied by.
    scale: f64,
    /// What strengths are multiplied by.
    unit: f64,
    softening: Softening,
    part: Part,
    near: Cells,
    far: Waves,
}

impl<'a> Ewald<'a> {
    /// With errors of about `accuracy`, relative to typical values: [`EXACT`] for all digits; the cheapest for so many `targets`. Positions
    /// need not lie in the box; the dipole that the surroundings see is that of positions as given. The softening is none or a spline that
    /// ends within half a box.
    ///
    /// # Panics
    /// If the box or the softening are not what [`PeriodicBox::check`] lets through.
    pub fn new(
        cell: &'a PeriodicBox,
        softening: Softening,
        accuracy: f64,
        sources: &'a [[f64; 3]],
        strengths: &'a [f64],
        targets: usize,
    ) -> Self {
        let (scale, unit) = (power_of_two_below(1.0 / cell.longest()), strength_scale(strengths));
        let small = scaled(cell, scale);
        let (x, q) = (wrapped(&small, scale, sources), strengths.par_iter().map(|q| q * unit).collect_vec());
        let softening = softening.scaled(scale);
        let reach = softening.newtonian_beyond(0.0);
        let part = Part::cheapest(small.volume(), (x.len(), targets), accuracy, reach);
        let (near, far) = (Cells::new(small.side, &part, &x, &q), Waves::new(small.side, &part, &x, &q));
        Ewald { cell, sources, strengths, scale, unit, softening, part, near, far }
    }

    /// Potential and field.
    pub fn sums(&self, at: At) -> Sums {
        let places = places(self.sources, at);
        let targets = wrapped(&scaled(self.cell, self.scale), self.scale, &places);
        let mut sums = self.near.sums(self.softening, &self.part, &targets);
        self.far.add_to(&mut sums, &targets);
        let charge: f64 = self.strengths.iter().map(|q| q * self.unit).sum();
        let volume = self.cell.side.map(|s| s * self.scale).iter().product::<f64>();
        let background = self.part.left() * charge / volume;
        sums.potential.par_iter_mut().for_each(|p| *p -= background);
        // Nobody sees what a softened kernel is at distance zero of itself.
        if let Softening::Spline(length) = self.softening {
            self.own(at, places.len()).for_each(|(p, q)| sums.potential[p] -= q / length);
        }
        let (back, per_length) = (self.scale / self.unit, self.scale * self.scale / self.unit);
        sums.potential.par_iter_mut().for_each(|p| *p *= back);
        sums.field.par_iter_mut().for_each(|e| *e = e.map(|c| c * per_length));
        sums.largest.par_iter_mut().for_each(|l| *l *= per_length);
        let moments = Moments::of(self.sources, self.strengths, [0.0; 3]);
        depolarise(self.cell, &moments, &places, &mut sums.potential, &mut sums.field);
        sums
    }

    /// Second derivatives. Surroundings add nothing to them: what they add to the potential of a neutral box is linear.
    pub fn hessians(&self, at: At) -> Hessians {
        let targets = wrapped(&scaled(self.cell, self.scale), self.scale, &places(self.sources, at));
        let mut sums = self.near.hessians(self.softening, &self.part, &targets);
        self.far.add_hessians_to(&mut sums.hessian, &targets);
        let at_zero = Hessian(self.softening).potential_at_zero();
        self.own(at, targets.len()).for_each(|(p, q)| sums.hessian[p][..3].iter_mut().for_each(|h| *h += q * at_zero));
        let back = self.scale * self.scale * self.scale / self.unit;
        sums.hessian.par_iter_mut().for_each(|h| *h = h.map(|c| c * back));
        sums.largest.par_iter_mut().for_each(|l| *l *= back);
        sums
    }

    /// Those of the first targets that are sources, by their place, with their strengths.
    fn own<'b>(&'b self, at: At<'b>, targets: usize) -> impl Iterator<Item = (usize, f64)> + 'b {
        let source = move |p: usize| match at {
            At::Sources => Some(p),
            At::Some(chosen) => Some(chosen[p]),
            At::Points(_) => None,
        };
        (0..targets).filter_map(move |p| Some((p, self.strengths[source(p)?] * self.unit)))
    }
}

fn scaled(cell: &PeriodicBox, scale: f64) -> PeriodicBox {
    PeriodicBox { side: cell.side.map(|s| s * scale), ..*cell }
}

/// Scaled places in the `small` box.
fn wrapped(small: &PeriodicBox, scale: f64, points: &[[f64; 3]]) -> Vec<[f64; 3]> {
    points.par_iter().map(|x| small.wrapped(x.map(|c| c * scale))).collect_vec()
}

/// Potential and field by Ewald's sum at once: [`Ewald::sums`] of [`Ewald::new`].
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
    let targets = match at {
        At::Sources => sources.len(),
        At::Some(chosen) => chosen.len(),
        At::Points(points) => points.len(),
    };
    Ewald::new(cell, softening, accuracy, sources, strengths, targets).sums(at)
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
