//! The velocity of vortex particles in three dimensions.

use fmm_core::{Softening, StageTimes};
use rayon::prelude::*;

use super::kernel::{Answer, Problem, Truth};
use super::laplace::fault;
use crate::device::{Asked, biot_savart};
use crate::fault::Fault;

/// (`ux`, `uy`, `uz`) = −1/(4π) Σ g(r) (x − x_j) × ω_j.
pub fn sum(problem: &Problem) -> Result<Answer, Fault> {
    let mut times = StageTimes::default();
    let strengths = [0, 1, 2].map(|k| &problem.strengths[k][..]);
    let asked = Asked { device: problem.device, quiet: problem.quiet, fault, times: &mut times };
    let (sum, device) = biot_savart(asked, problem.settings, (problem.sources, problem.targets), strengths)?;
    let component = |d: usize| sum.field.iter().map(|u| u[d]).collect();
    Ok(Answer {
        columns: vec![("ux", component(0)), ("uy", component(1)), ("uz", component(2))],
        judged: 0..3,
        choice: sum.choice,
        device,
        coincident_pairs: sum.coincident_pairs,
        times,
    })
}

/// The velocity at `at`, pair by pair in f64. A pair at distance zero adds nothing.
pub fn truth(problem: &Problem, at: &[[f64; 3]]) -> Vec<Truth> {
    let core = match problem.settings.softening {
        Softening::P1(e) => e,
        _ => 0.0,
    };
    let one = |x: &[f64; 3]| {
        let (mut sum, mut largest) = ([0.0; 3], 0.0f64);
        for (j, y) in problem.sources.iter().enumerate() {
            let w = [0, 1, 2].map(|k| problem.strengths[k][j]);
            let d: [f64; 3] = std::array::from_fn(|k| x[k] - y[k]);
            let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if r2 == 0.0 {
                continue;
            }
            let s = r2 + core * core;
            let g = (r2 + 2.5 * core * core) / (s * s * s.sqrt()) / (4.0 * std::f64::consts::PI);
            let term =
                [g * (w[1] * d[2] - w[2] * d[1]), g * (w[2] * d[0] - w[0] * d[2]), g * (w[0] * d[1] - w[1] * d[0])];
            for k in 0..3 {
                sum[k] += term[k];
            }
            largest = largest.max(term[0].hypot(term[1]).hypot(term[2]));
        }
        Truth { vector: sum, largest }
    };
    at.par_iter().map(one).collect()
}
