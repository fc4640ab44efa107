//! Sets in the plane z = 0: discs of particles, and patches of vortices.

use fmm_core::math::blocked_sums;
use std::f64::consts::PI;

use super::Initial;
use crate::scenario::Velocities;
use fmm_core::random::{Dice, Stream};

/// A disc of `n` particles of uniform density; center of mass and momentum zero.
///
/// Under gravity φ = G Σ m log r the virial Σ m x·a is −G M²/2 for any shape, so that
/// 2T = q G M²/2 for the virial ratio q.
pub fn disc(
    stream: Stream,
    n: usize,
    [mass, charge]: [f64; 2],
    radius: f64,
    velocities: Velocities,
    gravity: f64,
) -> Initial {
    let sigma = match velocities {
        Velocities::Dispersion(sigma) => sigma,
        // 2T = 2 M σ².
        Velocities::VirialRatio(q) => 0.5 * (q * gravity * mass).sqrt(),
    };
    let particle = |dice: &mut Dice| {
        let (r, (s, c)) = (radius * dice.uniform().sqrt(), (2.0 * PI * dice.uniform()).sin_cos());
        ([r * c, r * s, 0.0], [sigma * dice.normal(), sigma * dice.normal(), 0.0])
    };
    Initial::equal(stream.sample(n, particle), mass, charge)
}

/// An elliptic patch of `n` vortices of equal circulation, the long axis along x. They stand as the seeds of a sunflower do,
/// evenly and without chance: noise would let the edge of the patch fray.
pub fn patch(n: usize, circulation: f64, radius: f64, axis_ratio: f64) -> Initial {
    let golden = PI * (3.0 - 5f64.sqrt());
    let axes = [radius / axis_ratio.sqrt(), radius * axis_ratio.sqrt()];
    let place = |k: usize| {
        let (r, (s, c)) = (((k as f64 + 0.5) / n as f64).sqrt(), (golden * k as f64).sin_cos());
        [axes[0] * r * c, axes[1] * r * s, 0.0]
    };
    let mut position: Vec<[f64; 3]> = (0..n).map(place).collect();
    // The patch's own middle is where it is put.
    let middle = blocked_sums(n, |i| position[i]).map(|s| s / n as f64);
    position.iter_mut().for_each(|x| (0..2).for_each(|k| x[k] -= middle[k]));
    Initial::vortices(position, vec![circulation / n as f64; n])
}

impl Initial {
    /// Vortices: |Γ| in place of their masses weighs centers and radii.
    pub fn vortices(position: Vec<[f64; 3]>, circulation: Vec<f64>) -> Initial {
        let velocity = vec![[0.0; 3]; position.len()];
        let mass = circulation.iter().map(|g| g.abs()).collect();
        Initial { position, velocity, mass, charge: circulation, vorticity: vec![] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discs_have_their_density_and_motion() {
        let n = 50_000;
        let p = disc(Stream::new(3, 0), n, [2.0, -1.0], 3.0, Velocities::VirialRatio(1.0), 5.0);
        let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        let square = |v: &[f64; 3]| v[0] * v[0] + v[1] * v[1];
        // ⟨r²⟩ = R²/2, with a standard deviation of 0.289 R² a particle.
        let r2 = mean(&|i| square(&p.position[i])) / 9.0;
        assert!((r2 - 0.5).abs() < 5.0 * 0.289 / (n as f64).sqrt(), "{r2}");
        // 2T = G M²/2 = 10.
        let twice = 2.0 * mean(&|i| square(&p.velocity[i]));
        assert!((twice / 10.0 - 1.0).abs() < 5.0 / (n as f64).sqrt(), "{twice}");
        assert!(p.position.iter().chain(&p.velocity).all(|v| v[2] == 0.0));
        assert!((p.charge.iter().sum::<f64>() + 1.0).abs() < 1e-9);
    }

    #[test]
    fn patches_fill_their_ellipse() {
        let p = patch(10_000, -3.0, 2.0, 0.25);
        // Semi-axes of 4 and 1: ⟨x²⟩ = a²/4, ⟨y²⟩ = b²/4.
        for (k, expected) in [(0, 4.0), (1, 0.25)] {
            let mean = p.position.iter().map(|x| x[k] * x[k]).sum::<f64>() / 1e4;
            assert!((mean / expected - 1.0).abs() < 1e-3, "{k}: {mean}");
        }
        assert!((p.charge.iter().sum::<f64>() + 3.0).abs() < 1e-12 && p.mass.iter().all(|&m| m > 0.0));
    }
}
