//! Integrals of a flow: what its motion conserves, and how well.

use std::f64::consts::PI;

use rayon::prelude::*;

use super::super::blocks::{Block, CELLS, split};
use super::super::differences::divergence;
use super::super::levels::Levels;
use super::super::padded::{REACH, wide_place};
use super::super::poisson::Solution;
use super::super::transfer::Values;
use super::Flow;
use crate::math::CollectVec;

/// Integrals of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Integrals {
    /// ½ ∫ ω·Ψ, the kinetic energy of the flow in all of space.
    pub energy: f64,
    /// ∫ |ω|².
    pub enstrophy: f64,
    /// ∫ ω.
    pub total: [f64; 3],
    /// ½ ∫ x × ω, x from the middle of the domain.
    pub impulse: [f64; 3],
    /// ∫ ω_θ/(2πr), below and above the middle of the domain: the flux of ω through half planes that end at the line x_m, y_m, along z, as a mean of
    /// all of them. Of rings about that line these are the circulations of those below and of those above.
    pub circulation: [f64; 2],
    /// The largest |ω|.
    pub largest: f64,
    /// √(∫ (h ∇·ω)²/∫ |ω|²): what the particles have lost of being a curl.
    pub divergence: f64,
}

impl Flow {
    /// Integrals of the flow; `solution` is that of its present state.
    pub fn integrals(&self, solution: &Solution) -> Integrals {
        self.integrals_of(&self.vorticity, &solution.psi)
    }
}

impl<F> Flow<F> {
    /// Integrals of the flow, from the values of ω and Ψ in its cells.
    pub fn integrals_of(&self, vorticity: &[[f64; 3]], psi: &[[f64; 3]]) -> Integrals {
        let levels = Levels::of(&self.grid, vorticity, Values::Means);
        let finest = self.grid.finest();
        let h = self.grid.spacing(finest);
        let middle = self.lattice.corner.map(|c| c + self.lattice.side / 2.0);
        let grid = &self.grid;
        let of_block = |(b, &block): (usize, &Block)| {
            let mut sums = Integrals::default();
            let own = &vorticity[b * CELLS..(b + 1) * CELLS];
            if own.iter().all(|w| *w == [0.0; 3]) {
                return sums;
            }
            let wide = levels.padded(block);
            for (c, w) in own.iter().enumerate() {
                let (psi, cell) = (psi[b * CELLS + c], split(c));
                let x: [f64; 3] = std::array::from_fn(|d| grid.coordinate(block, d, cell[d]) - middle[d]);
                sums.energy += 0.5 * (w[0] * psi[0] + w[1] * psi[1] + w[2] * psi[2]);
                let square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
                sums.enstrophy += square;
                sums.largest = sums.largest.max(square.sqrt());
                for k in 0..3 {
                    let (a, b) = ((k + 1) % 3, (k + 2) % 3);
                    sums.total[k] += w[k];
                    sums.impulse[k] += 0.5 * (x[a] * w[b] - x[b] * w[a]);
                }
                // Centers of cells are not on the line in the middle, which edges of cells are on.
                let square = x[0] * x[0] + x[1] * x[1];
                sums.circulation[usize::from(x[2] > 0.0)] += (x[0] * w[1] - x[1] * w[0]) / (2.0 * PI * square);
                let divergence = divergence(&wide, wide_place(cell.map(|i| i as usize + REACH)));
                sums.divergence += divergence * divergence;
            }
            sums
        };
        let blocks: Vec<Integrals> = self.grid.blocks().par_iter().enumerate().map(of_block).collect_vec();
        let mut all = Integrals::default();
        for (b, block) in blocks.iter().zip(self.grid.blocks()) {
            // A cell in those of the finest level.
            let volume = 8f64.powi(i32::from(finest - block.level));
            all.energy += volume * b.energy;
            all.enstrophy += volume * b.enstrophy;
            all.divergence += volume * b.divergence;
            all.largest = all.largest.max(b.largest);
            (0..3).for_each(|k| all.total[k] += volume * b.total[k]);
            (0..3).for_each(|k| all.impulse[k] += volume * b.impulse[k]);
            (0..2).for_each(|k| all.circulation[k] += volume * b.circulation[k]);
        }
        let volume = h * h * h;
        // Differences are per h, which the definition takes back.
        all.divergence = if all.enstrophy > 0.0 { (all.divergence / all.enstrophy).sqrt() } else { 0.0 };
        Integrals {
            energy: all.energy * volume,
            enstrophy: all.enstrophy * volume,
            total: all.total.map(|t| t * volume),
            impulse: all.impulse.map(|i| i * volume),
            circulation: all.circulation.map(|c| c * volume),
            ..all
        }
    }
}
