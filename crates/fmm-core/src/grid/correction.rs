//! The leading error of Ψ and u: multiples of h² ω and of h² ∇ × ω.
//!
//! On a uniform grid Ψ_h − Ψ = −C h² ω + O(h⁴) and u_h − u = −C' h² ∇ × ω + O(h⁴). By Poisson's summation, with the transform ζ̂(x) of what
//! smooths and sums over the lattice x = 2πn, n ≠ 0: C = s − Σ ζ̂/x², C' = s − Σ (ζ̂/x² + ζ̂'/x)/3, where s = 1/4 h² is half of a third of
//! the second moment of the smoothing function. Of ζ̂ = x² K₂(x)/2, the regularised kernel with ε = h, Σ ζ̂/x² = 0.00416 and
//! Σ (ζ̂/x² + ζ̂'/x)/3 = −0.00603. Of the singular kernel, a limit, s = 0 and Σ ζ̂/x² = −2.8372974794806196/(4π), the potential of a charge in
//! its neutralised cubic lattice; derivatives have a third of it, since Σ ζ̂'/x has none.
//!
//! What is left is O(h⁴) for the singular kernel. ζ of the regularised one falls as r⁻⁷, so that
//! its fourth moment diverges: ζ̂(x) = 1 − x²/4 − (x⁴/16)(log(x/2) + γ − 3/4) + …, and h⁴ log h is
//! left. Of a wave with kh = 1.6 the error falls to the next halving by order 3.1, at 0.8 by 3.4,
//! at 0.2 by 3.6.

use rayon::prelude::*;

use super::blocks::{CELLS, Grid, split};
use super::green::Green;
use super::levels::Levels;
use super::padded::{REACH, WIDE, wide_place};
use super::transfer::Values;

impl Green {
    /// C and C' of the leading errors −C h² ω of Ψ and −C' h² ∇ × ω of u.
    pub fn leading_errors(self) -> [f64; 2] {
        const LATTICE: f64 = 2.837_297_479_480_619_6 / (4.0 * std::f64::consts::PI);
        match self {
            Green::Singular => [LATTICE, LATTICE / 3.0],
            Green::Regularised => [0.245_839_103_5, 0.256_033_279_9],
        }
    }
}

/// The leading errors of a solution, with their sign turned: what is to be added to Ψ and u. Where
/// resolutions meet, C h² changes within a cell and the leading error does so over some cells: the
/// correction is of first order less there.
pub struct Correction<'a> {
    grid: &'a Grid,
    vorticity: &'a [[f64; 3]],
    levels: Levels<'a, 3>,
    /// C and C'.
    factors: [f64; 2],
}

impl<'a> Correction<'a> {
    /// Those of a solution for `vorticity`, a value for each cell of `grid`.
    pub fn new(grid: &'a Grid, green: Green, vorticity: &'a [[f64; 3]]) -> Self {
        let levels = Levels::of(grid, vorticity, Values::Means);
        Correction { grid, vorticity, levels, factors: green.leading_errors() }
    }

    /// C h² ω and C' h² ∇ × ω, by central differences, of any cell of block `b`.
    pub fn of_block(&self, b: usize) -> impl Fn(usize) -> [[f64; 3]; 2] + '_ {
        let block = self.grid.blocks()[b];
        let (h, wide) = (self.grid.spacing(block.level), self.levels.padded(block));
        let [of_psi, of_velocity] = self.factors;
        let (whole, slope) = (of_psi * h * h, of_velocity * h / 2.0);
        move |c| {
            let here = wide_place(split(c).map(|i| i as usize + REACH));
            let difference =
                |step: usize| std::array::from_fn::<f64, 3, _>(|k| wide[here + step][k] - wide[here - step][k]);
            let [dx, dy, dz] = [1, WIDE, WIDE * WIDE].map(difference);
            let curl = [dy[2] - dz[1], dz[0] - dx[2], dx[1] - dy[0]];
            [self.vorticity[b * CELLS + c].map(|w| whole * w), curl.map(|w| slope * w)]
        }
    }
}

/// Adds the [`Correction`] to `psi` and `velocity`.
pub fn correct(grid: &Grid, green: Green, vorticity: &[[f64; 3]], psi: &mut [[f64; 3]], velocity: &mut [[f64; 3]]) {
    let correction = Correction::new(grid, green, vorticity);
    let fields = psi.par_chunks_mut(CELLS).zip(velocity.par_chunks_mut(CELLS)).enumerate();
    fields.for_each(|(b, (psi, velocity))| {
        let of_cell = correction.of_block(b);
        for c in 0..CELLS {
            let [of_psi, of_velocity] = of_cell(c);
            for k in 0..3 {
                psi[c][k] += of_psi[k];
                velocity[c][k] += of_velocity[k];
            }
        }
    });
}
