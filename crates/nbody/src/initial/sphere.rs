//! A sphere of uniform density, cold or with normally distributed velocities.

use super::Initial;
use super::random::{Dice, Stream};
use crate::scenario::Velocities;

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
}

impl Sphere {
    /// Particles with centre of mass and momentum zero.
    pub fn sample(&self, stream: Stream, velocities: Velocities, gravity: f64) -> Initial {
        let sigma = match velocities {
            Velocities::Dispersion(sigma) => sigma,
            // 2T = 3 M σ² and W = −3/5 G M²/R.
            Velocities::VirialRatio(0.0) => 0.0,
            Velocities::VirialRatio(q) => (q * gravity * self.mass / (5.0 * self.radius)).sqrt(),
        };
        let particle = |dice: &mut Dice| {
            let r = self.radius * dice.uniform().cbrt();
            let x = dice.direction(r);
            (x, std::array::from_fn(|_| sigma * dice.normal()))
        };
        Initial::equal(stream.sample(self.n, particle), self.mass, self.charge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_and_velocities_are_as_asked() {
        let n = 50_000;
        let sphere = Sphere { n, mass: 2.0, charge: 3.0, radius: 4.0 };
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
}
