//! What a sum with a mesh is split into: the numbers that every place takes from box, recipe and cut-off.

use std::f64::consts::PI;

use super::near::Far;
use super::window::Window;
use super::{Mesh, Recipe};
use crate::Softening;
use crate::math::Real;
use crate::math::prolate::Prolate;
use crate::math::scale::power_of_two_below;

/// The split of a sum, in its own unit of length.
#[derive(Debug, Clone)]
pub struct Split {
    /// What lengths are multiplied by: a power of two.
    pub scale: f64,
    /// Of the box, scaled.
    pub sides: [f64; 3],
    /// Scaled.
    pub cutoff: f64,
    /// c of the waves.
    bandlimit: f64,
    prolate: Prolate,
}

impl Split {
    /// That of a sum.
    pub fn of(mesh: &Mesh) -> Self {
        let scale = power_of_two_below(1.0 / mesh.cell.longest());
        let bandlimit = mesh.recipe.bandlimit;
        let sides = mesh.cell.side.map(|s| s * scale);
        Split { scale, sides, cutoff: mesh.cutoff * scale, bandlimit, prolate: Prolate::new(bandlimit) }
    }

    /// The far kernel within the cut-off.
    pub fn far(&self) -> Far {
        Far::new(&self.prolate, self.cutoff, self.prolate.at(1.0))
    }

    /// The potential of the background that a charge of 1 has.
    pub fn background(&self) -> f64 {
        let volume: f64 = self.sides.iter().product();
        2.0 * PI * self.cutoff * self.cutoff * self.prolate.second_moment() / self.prolate.whole() / volume
    }

    /// The potential that a charge of 1 has at itself, by the kernel with a scaled softening, where it is finite.
    pub fn own(softening: Softening) -> f64 {
        match softening {
            Softening::Spline(length) => 1.0 / length,
            _ => 0.0,
        }
    }

    /// The factors of the waves of a mesh.
    pub fn influence<T: Real>(&self, recipe: Recipe, window: &Window<T>, counts: [usize; 3]) -> Influence {
        debug_assert_eq!(recipe.bandlimit, self.bandlimit);
        let powers = self.prolate.by_square();
        let inverse = counts.map(|n| (0..n).map(|m| window.transform(m.min(n - m), n).powi(-2)).collect());
        Influence { highest: self.bandlimit / self.cutoff, powers, inverse, volume: self.sides.iter().product() }
    }
}

/// The factors of waves: the far kernel, over the square of the window's transform.
#[derive(Debug, Clone)]
pub struct Influence {
    /// K: waves above it have no factor.
    pub highest: f64,
    /// The far kernel over 4π/k² by powers of 2 (k/K)² − 1, the highest first.
    pub powers: Vec<f64>,
    /// Of each place along each axis.
    pub inverse: [Vec<f64>; 3],
    /// Of the box.
    pub volume: f64,
}

impl Influence {
    /// Of the wave at these places along the axes, whose k² is `square`.
    #[inline(always)]
    pub fn at(&self, m: [usize; 3], square: f64) -> f64 {
        let t = 2.0 * square / (self.highest * self.highest) - 1.0;
        let far = self.powers.iter().fold(0.0, |sum, a| sum * t + a);
        let [x, y, z] = &self.inverse;
        4.0 * PI / (self.volume * square) * far * x[m[0]] * y[m[1]] * z[m[2]]
    }
}
