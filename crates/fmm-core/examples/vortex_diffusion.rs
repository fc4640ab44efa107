//! A vortex that viscosity spreads: blobs of Gaussian vorticity widen by σ² → σ² + 2νt, and the fast Gauss transform adds them up.
//!
//!     cargo run --release -p fmm-core --example vortex_diffusion -- 0.01 8
//!
//! The vorticity of a Lamb-Oseen vortex of circulation 1 is a Gaussian of variance s² + 2νt. Blobs of width σ on a grid of spacing σ, with
//! strengths from a Gaussian of variance s² − σ², are that vortex; each step widens them, and the table compares with the exact solution.
//! Arguments: the viscosity ν and the number of steps of length 1.

use std::f64::consts::TAU;

use fmm_core::StageTimes;
use fmm_core::gauss::{Settings, evaluate};

/// Normal distribution in the plane.
fn normal(x: &[f64; 2], variance: f64) -> f64 {
    (-0.5 * (x[0] * x[0] + x[1] * x[1]) / variance).exp() / (TAU * variance)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let viscosity: f64 = words.first().map_or(Ok(0.01), |w| w.parse())?;
    let steps: usize = words.get(1).map_or(Ok(8), |w| w.parse())?;
    if !(viscosity.is_finite() && viscosity >= 0.0) {
        return Err(format!("viscosity {viscosity} is outside 0 or more").into());
    }
    let (size, width, spacing) = (1.0f64, 0.1f64, 0.1f64);
    let variance = size * size - width * width;
    let grid: Vec<[f64; 2]> =
        (-70..=70).flat_map(|i| (-70..=70).map(move |j| [f64::from(i) * spacing, f64::from(j) * spacing])).collect();
    let circulation: Vec<f64> = grid.iter().map(|x| normal(x, variance) * spacing * spacing).collect();
    println!("{} blobs\n     t   width of a blob   largest error of the vorticity   peak", grid.len());
    for step in 0..=steps {
        let time = step as f64;
        let sigma2 = width * width + 2.0 * viscosity * time;
        let strengths: Vec<f64> = circulation.iter().map(|g| g / (TAU * sigma2)).collect();
        let settings = Settings { tolerance: 1e-12, ..Settings::new(sigma2.sqrt()) };
        let sum = evaluate(&settings, &grid, &[&strengths], None, &mut StageTimes::default())?;
        let exact = |x: &[f64; 2]| normal(x, size * size + 2.0 * viscosity * time);
        let errors = grid.iter().zip(&sum.potential[0]).map(|(x, w)| (w - exact(x)).abs());
        let error = errors.fold(0.0, f64::max);
        println!("{time:6.1} {:14.5} {error:24.2e} {:20.6}", sigma2.sqrt(), exact(&[0.0; 2]));
        // A grid of spacing σ resolves Gaussians to e^(−2π²).
        if error > 1e-8 {
            return Err(format!("at t = {time} the vorticity is wrong by {error:e}").into());
        }
    }
    Ok(())
}
