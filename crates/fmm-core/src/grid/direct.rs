//! Direct sums in some cells, in double precision: what a solution is compared with.
//!
//! The formulas of [`near`](super::near) as they stand, without its vectors and bricks. With
//! d = x − x_j, s = |d|² + ε² and α = ω h³, 4πΨ = Σ (|d|² + 3/2 ε²) s^(−3/2) α and
//! 4πu = −Σ (|d|² + 5/2 ε²) s^(−5/2) d × α.

use rayon::prelude::*;

use super::blocks::{CELLS, Grid};
use super::correction::Correction;
use super::green::Green;
use super::poisson::Solver;
use super::sources::Cells;

impl Solver {
    /// Ψ and u in the cells of these numbers, by direct sums over all cells with `vorticity`, a
    /// value for each cell of `grid`: what [`solve`](Self::solve) gives there with θ = 0 in double
    /// precision, with the same correction. The bits do not depend on the number of threads.
    pub fn direct_at(&self, grid: &Grid, vorticity: &[[f64; 3]], cells: &[u32]) -> (Vec<[f64; 3]>, Vec<[f64; 3]>) {
        assert_eq!(vorticity.len(), grid.cells(), "a value for each cell");
        let sources = Cells::new(grid, vorticity, self.green);
        let correction = self.correction.then(|| Correction::new(grid, self.green, vorticity));
        let at = |&cell: &u32| {
            let (b, c) = (cell as usize / CELLS, cell as usize % CELLS);
            let mut sums = sums(self.green, &sources, cell, grid.center_of(b, c));
            if let Some(correction) = &correction {
                let more = correction.of_block(b)(c);
                sums.as_flattened_mut().iter_mut().zip(more.as_flattened()).for_each(|(sum, more)| *sum += more);
            }
            let [psi, velocity] = sums;
            (psi, velocity)
        };
        cells.par_iter().map(at).unzip()
    }
}

/// Ψ and u at the center `x` of a cell.
fn sums(green: Green, sources: &Cells, cell: u32, x: [f64; 3]) -> [[f64; 3]; 2] {
    let [mut psi, mut velocity] = [[0.0; 3]; 2];
    for (j, &number) in sources.number.iter().enumerate() {
        if green == Green::Singular && number == cell {
            continue;
        }
        let (y, q, core2) = (sources.center[j], sources.strength[j], sources.core2[j]);
        let d = [x[0] - y[0], x[1] - y[1], x[2] - y[2]];
        let distance2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        let s = distance2 + core2;
        let cubed = 1.0 / (s * s.sqrt());
        let (of_psi, of_velocity) = ((distance2 + 1.5 * core2) * cubed, (distance2 + 2.5 * core2) / s * cubed);
        let turned = [d[1] * q[2] - d[2] * q[1], d[2] * q[0] - d[0] * q[2], d[0] * q[1] - d[1] * q[0]];
        for k in 0..3 {
            psi[k] += of_psi * q[k];
            velocity[k] -= of_velocity * turned[k];
        }
    }
    let factor = 1.0 / (4.0 * std::f64::consts::PI * sources.scale);
    [psi, velocity].map(|sum| sum.map(|v| v * factor))
}
