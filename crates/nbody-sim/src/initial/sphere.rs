//! Spheres and cubes, cold or with normally distributed velocities.

use super::Initial;
use crate::scenario::Velocities;
use fmm_core::random::{Dice, Stream};

/// Total values of the sphere.
#[derive(Debug, Clone, Copy)]
pub struct Sphere {
    /// Number of particles.
    pub n: usize,
    /// Total mass.
    pub mass: f64,
    /// Total charge.
    pub charge: f64,
    /// Its radius.
    pub radius: f64,
    /// γ of ρ ∝ r^(−γ), below 5/2: 0 is uniform.
    pub cusp: f64,
}

impl Sphere {
    /// Particles with center of mass and momentum zero.
    pub fn sample(&self, stream: Stream, velocities: Velocities, gravity: f64) -> Initial {
        let sigma = match velocities {
            Velocities::Dispersion(sigma) => sigma,
            Velocities::VirialRatio(0.0) => 0.0,
            // 2T = 3 M σ² and W = −(3 − γ)/(5 − 2γ) G M²/R.
            Velocities::VirialRatio(q) => {
                let binding = (3.0 - self.cusp) / (5.0 - 2.0 * self.cusp);
                (q * binding * gravity * self.mass / (3.0 * self.radius)).sqrt()
            }
        };
        let particle = |dice: &mut Dice| {
            // M(r) ∝ r^(3 − γ).
            let within = dice.uniform();
            let x = if self.cusp == 0.0 { within.cbrt() } else { within.powf(1.0 / (3.0 - self.cusp)) };
            (dice.direction(self.radius * x), std::array::from_fn(|_| sigma * dice.normal()))
        };
        Initial::equal(stream.sample(self.n, particle), self.mass, self.charge)
    }
}

/// A uniform cube of `n` particles, each component of the velocity of the standard deviation `sigma`; center of mass
/// and momentum zero.
pub fn cube(stream: Stream, n: usize, mass: f64, charge: f64, side: f64, sigma: f64) -> Initial {
    let particle = |dice: &mut Dice| {
        let x = std::array::from_fn(|_| side * (dice.uniform() - 0.5));
        (x, std::array::from_fn(|_| sigma * dice.normal()))
    };
    Initial::equal(stream.sample(n, particle), mass, charge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_and_velocities_are_as_asked() {
        let n = 50_000;
        let sphere = Sphere { n, mass: 2.0, charge: 3.0, radius: 4.0, cusp: 0.0 };
        let p = sphere.sample(Stream::new(5, 0), Velocities::VirialRatio(1.0), 10.0);
        let r2 = |x: &[f64; 3]| x.iter().map(|x| x * x).sum::<f64>();
        // ⟨r²⟩ = 3/5 R², with a standard deviation of 0.262 R² a particle.
        let mean = p.position.iter().map(r2).sum::<f64>() / n as f64 / 16.0;
        assert!((mean - 0.6).abs() < 5.0 * 0.262 / (n as f64).sqrt(), "{mean}");
        let inside = p.position.iter().filter(|x| r2(x) < 4.0).count() as f64 / n as f64;
        assert!((inside - 0.125).abs() < 5.0 * (0.125 * 0.875 / n as f64).sqrt(), "{inside}");
        // 2T = −W = 3/5 G M²/R = 6.
        let twice_kinetic = 2.0 / n as f64 * p.velocity.iter().map(r2).sum::<f64>();
        assert!((twice_kinetic / 6.0 - 1.0).abs() < 5.0 * (2.0 / (3.0 * n as f64)).sqrt(), "{twice_kinetic}");
        assert!((p.charge.iter().sum::<f64>() - 3.0).abs() < 1e-9);
        let cold = sphere.sample(Stream::new(5, 0), Velocities::VirialRatio(0.0), 10.0);
        assert!(cold.velocity.iter().flatten().all(|v| *v == 0.0) && cold.position == p.position);
    }
    #[test]
    fn a_cusp_has_its_profile_and_energy() {
        let (n, gravity, mass, radius, cusp) = (50_000, 2.0, 3.0, 0.5, 1.0);
        let sphere = Sphere { n, mass, charge: 0.0, radius, cusp };
        let p = sphere.sample(Stream::new(5, 0), Velocities::VirialRatio(0.5), gravity);
        let r = |x: &[f64; 3]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        // M(r) ∝ r².
        let inside = p.position.iter().filter(|x| r(x) < 0.5 * radius).count() as f64 / n as f64;
        assert!((inside - 0.25).abs() < 5.0 * (0.25 * 0.75 / n as f64).sqrt(), "{inside}");
        // −W = 2/3 G M²/R, which the virial of the smooth field, Σ G M(r)/r, gives as well.
        let pull = |x: &[f64; 3]| gravity * mass * r(x) / (radius * radius);
        let virial = p.position.iter().map(pull).sum::<f64>() / n as f64;
        let v2 = p.velocity.iter().map(|v| r(v).powi(2)).sum::<f64>() / n as f64;
        let exact = 2.0 / 3.0 * gravity * mass / radius;
        assert!((virial / exact - 1.0).abs() < 5.0 * 0.36 / (n as f64).sqrt(), "{virial}");
        assert!((v2 / (0.5 * exact) - 1.0).abs() < 5.0 * (2.0 / (3.0 * n as f64)).sqrt(), "{v2}");
    }

    #[test]
    fn a_cube_is_uniform() {
        let n = 50_000;
        let p = cube(Stream::new(5, 0), n, 2.0, -3.0, 4.0, 0.5);
        for k in 0..3 {
            // x² of a uniform variate in ±2 has the mean 4/3 and the standard deviation 1.19; σ² = 1/4, ± √2/4.
            let mean = |v: &[[f64; 3]]| v.iter().map(|v| v[k] * v[k]).sum::<f64>() / n as f64;
            assert!((mean(&p.position) - 4.0 / 3.0).abs() < 5.0 * 1.2 / (n as f64).sqrt());
            assert!((mean(&p.velocity) - 0.25).abs() < 5.0 * 0.36 / (n as f64).sqrt());
        }
        assert!(p.position.iter().flatten().all(|x| x.abs() < 2.05));
        assert!((p.charge.iter().sum::<f64>() + 3.0).abs() < 1e-9);
    }
}
