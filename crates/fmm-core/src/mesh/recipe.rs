//! What a sum with a mesh is made of for an order, how far it errs and what it costs.

use std::f64::consts::PI;

use super::window::MOST_POINTS;
use crate::error_model::OF_PAIRS;
use crate::math::Number;
use crate::settings::Precision;

/// Points of the window along an axis with what goes with them, so that window and waves err alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// P.
    pub points: usize,
    /// c: waves up to c/r_c.
    pub bandlimit: f64,
    /// How many times finer the mesh is than its waves need.
    pub oversampling: f64,
}

/// The fewest points of a window.
const FEWEST: usize = 3;

/// Errors of the field by P from [`FEWEST`] on, of 2,000 ions up to a quarter of a spacing from the
/// places of a lattice: the larger of rms and L2. Random charges err by a third to a sixth of it, ions
/// at their places by three times as much.
const ERRORS: [f64; MOST_POINTS - FEWEST + 1] =
    [4e-2, 1.2e-2, 2e-3, 3e-4, 5.5e-5, 9e-6, 1.6e-6, 2.2e-7, 3.5e-8, 6e-9, 1e-9, 1.6e-10, 2.5e-11, 5e-12];

impl Recipe {
    /// The orders that there are.
    pub const ORDERS: std::ops::RangeInclusive<usize> = FEWEST..=MOST_POINTS;

    /// That of P points. The error of the waves that are left out goes like e^(−0.96 c), that of the window is a
    /// sixth with each point; c makes the two equal where the mesh is so much finer than its waves.
    pub fn of(points: usize) -> Self {
        Recipe { points, bandlimit: 1.87 * points as f64 + 0.9, oversampling: 1.25 }
    }

    /// The fewest points with this error, if any have it.
    pub fn points_for(error: f64) -> Option<usize> {
        ERRORS.iter().position(|&e| e <= error).map(|k| FEWEST + k)
    }

    /// The relative error of so many points at ions up to a quarter of a spacing from the places of a lattice.
    ///
    /// # Panics
    /// Outside [`Self::ORDERS`].
    pub fn error(points: usize) -> f64 {
        ERRORS[points - FEWEST]
    }

    /// The same with the rounding of pairs, in sums of this precision.
    ///
    /// # Panics
    /// Outside [`Self::ORDERS`].
    pub fn error_in(points: usize, precision: Precision) -> f64 {
        let single = matches!(precision, Precision::F32 | Precision::Mixed);
        Recipe::error(points).hypot(if single { OF_PAIRS.sqrt() } else { 0.0 })
    }

    /// Points of the mesh along each side of a box for pairs up to `cutoff`.
    pub fn counts(&self, cutoff: f64, side: [f64; 3]) -> [usize; 3] {
        let spacing = PI * cutoff / (self.oversampling * self.bandlimit);
        side.map(|s| smooth(((s / spacing).ceil() as usize).max(self.points)))
    }
}

/// The next whole number that is even and has no factor above 7.
fn smooth(least: usize) -> usize {
    let is_smooth = |n: &usize| {
        let mut n = *n;
        for f in [2, 3, 5, 7] {
            while n.is_multiple_of(f) {
                n /= f;
            }
        }
        n == 1
    };
    (least.max(2)..).filter(|n| n % 2 == 0).find(is_smooth).expect("there is a power of two")
}

/// The cut-off within which each of `sources` bodies that fill a volume has so many neighbours.
pub fn cutoff(volume: f64, sources: usize, neighbours: usize) -> f64 {
    (3.0 * neighbours as f64 * volume / (4.0 * PI * sources.max(1) as f64)).cbrt()
}

/// Neighbours among which the cheapest are chosen.
const NEIGHBOURS: [usize; 14] = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768];

/// What a sum with a mesh is of: the sides, its bodies, by how much more of these a body has near it than if they
/// filled the box, and the least cut-off.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Of the box.
    pub side: [f64; 3],
    /// Sources.
    pub sources: usize,
    /// Targets.
    pub targets: usize,
    /// 1 where bodies fill the box.
    pub crowding: f64,
    /// Where the softening ends.
    pub reach: f64,
    /// `Mixed`: pairs in single, mesh in double.
    pub precision: Precision,
    /// Of the place.
    pub rates: Rates,
}

impl Load {
    /// The cheapest number of neighbours.
    pub fn neighbours(&self, recipe: Recipe) -> usize {
        let serves = |n: &usize| self.cutoff(*n) >= self.reach;
        let cost = |n: usize| self.cost(recipe, n);
        let cheapest = NEIGHBOURS.into_iter().filter(serves).min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        // A softening that is longer than all.
        let needed = || 4.0 / 3.0 * PI * self.reach.powi(3) * self.sources as f64 / self.volume();
        cheapest.unwrap_or_else(|| needed().ceil() as usize + 1)
    }

    fn volume(&self) -> f64 {
        self.side.iter().product()
    }

    fn cutoff(&self, neighbours: usize) -> f64 {
        cutoff(self.volume(), self.sources, neighbours)
    }

    /// Points of the mesh.
    pub fn points(&self, recipe: Recipe, neighbours: usize) -> f64 {
        recipe.counts(self.cutoff(neighbours), self.side).iter().map(|&n| n as f64).product()
    }

    /// Nanoseconds by the rates of the place.
    pub fn cost(&self, recipe: Recipe, neighbours: usize) -> f64 {
        let (single_pairs, single_mesh) = (self.precision != Precision::F64, self.precision == Precision::F32);
        let Rates { width, body, spread, gather, near, pair, point, fixed } = self.rates;
        let points = self.points(recipe, neighbours);
        let rows = (recipe.points * recipe.points) as f64;
        // Rows of more points than a vector has.
        let rows = rows * recipe.points.div_ceil(width[usize::from(!single_mesh)]) as f64;
        let [pair, point] = [pair[usize::from(!single_pairs)], point[usize::from(!single_mesh)]];
        let bodies = self.sources as f64 * (body + spread * rows);
        let near = near + pair * neighbours as f64 * self.crowding;
        bodies + self.targets as f64 * (body + gather * rows + near) + points * point + fixed
    }
}

/// Nanoseconds of the parts of a sum with a mesh on a place. Pairs of numbers are of single and of double precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Points of a row of the window that cost what one does.
    pub width: [usize; 2],
    /// Of a source or a target.
    pub body: f64,
    /// From a source to a row of its window.
    pub spread: f64,
    /// From a row of a window to its target.
    pub gather: f64,
    /// Of a target where pairs are summed.
    pub near: f64,
    /// Of a pair within the cut-off.
    pub pair: [f64; 2],
    /// Of a point of the mesh.
    pub point: [f64; 2],
    /// Of a sum.
    pub fixed: f64,
}

impl Rates {
    /// Of one thread, measured on an AVX-512 EPYC (Zen 4).
    pub const CORES: Rates = Rates {
        width: [<f32 as Number>::WIDTH, <f64 as Number>::WIDTH],
        body: 150.0,
        spread: 3.0,
        gather: 6.0,
        near: 350.0,
        pair: [2.5, 8.0],
        point: [34.0, 65.0],
        fixed: 1e5,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finer_meshes_go_with_smaller_errors() {
        assert_eq!(Recipe::points_for(1.0), Some(FEWEST));
        assert_eq!(Recipe::points_for(1e-3), Some(6));
        assert_eq!(Recipe::points_for(1e-12), None);
        assert!(ERRORS.is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn dense_sets_have_fewer_neighbours_and_softenings_fit_within_them() {
        let (sources, targets, precision) = (100_000, 100_000, Precision::F32);
        let load = Load { side: [1.0; 3], sources, targets, crowding: 1.0, reach: 0.0, precision, rates: Rates::CORES };
        let few = |load: Load| load.neighbours(Recipe::of(6));
        assert!(few(Load { crowding: 10.0, ..load }) < few(load));
        for reach in [0.05, 0.2, 0.5] {
            let soft = Load { reach, ..load };
            assert!(cutoff(1.0, soft.sources, few(soft)) >= reach);
        }
    }
}
