//! A disc galaxy: exponential disc, Hernquist bulge and Hernquist halo, near equilibrium.
//!
//! - Bulge and halo: isotropic velocities by Eddington's formula in the field of all three, the disc's mass taken as a
//!   sphere of the same mass within each radius.
//! - Disc: Σ ∝ exp(−R/h), ρ ∝ sech²(z/z₀). Velocities are normal about the mean, with the moments of Hernquist (1993):
//!   σ_R² ∝ exp(−√(R² + h²/8)/h), scaled to Toomre's Q = σ_R κ/(3.36 G Σ) at 2.5 h; σ_φ = σ_R κ/(2Ω);
//!   σ_z² = π G Σ z₀; and the mean rotation v̄² = v_c² + σ_R² (1 − κ²/(4Ω²) + d ln(Σ σ_R²)/d ln R) of the asymmetric
//!   drift.
//! - v_c is that of Freeman's (1970) disc and of the spheres.
//!
//! The disc settles within two or three rotations, by ripples of a few percent.

use std::f64::consts::PI;

use fmm_core::Softening;
use puruspe::{In, Kn};

use super::Initial;
use super::spherical::{Profile, Spherical};
use crate::scenario::models::Galaxy;
use fmm_core::random::{Dice, Stream};

/// The particles of disc, bulge and halo, in this order.
pub fn sample(stream: Stream, galaxy: &Galaxy, gravity: f64) -> Initial {
    let disc = Disc::new(galaxy, gravity);
    let [n_disc, n_bulge, n_halo] = galaxy.n;
    let mut all = Initial::default();
    if n_disc > 0 {
        all.append(Initial::equal(stream.sample(n_disc, |dice| disc.particle(dice)), disc.mass[0], 0.0));
    }
    for (part, n, from) in [(1, n_bulge, n_disc), (2, n_halo, n_disc + n_bulge)] {
        if n > 0 {
            let others = |r: f64| (0..3).filter(|&k| k != part).map(|k| disc.within(k, r)).sum();
            let scale = galaxy.scale_radius[part];
            let sphere = Spherical::new(Profile::Hernquist, (disc.mass[part], scale), gravity, Softening::None, others);
            all.append(sphere.sample(stream.after(from), n));
        }
    }
    all
}

/// The disc in the field of all parts.
struct Disc {
    gravity: f64,
    /// Masses of disc, bulge and halo; 0 of a part without particles.
    mass: [f64; 3],
    scale: [f64; 3],
    height: f64,
    /// σ_R² at R = 0, but for the factor exp(−√(1/8)).
    dispersion: f64,
}

impl Disc {
    fn new(galaxy: &Galaxy, gravity: f64) -> Self {
        let mass = std::array::from_fn(|k| if galaxy.n[k] > 0 { galaxy.mass[k] } else { 0.0 });
        let scale = galaxy.scale_radius;
        let mut disc = Disc { gravity, mass, scale, height: galaxy.disc_height, dispersion: 1.0 };
        let reference = 2.5 * scale[0];
        let (_, kappa2) = disc.frequencies(reference);
        let sigma = galaxy.toomre_q * 3.36 * gravity * disc.surface(reference) / kappa2.sqrt();
        disc.dispersion = sigma * sigma / disc.radial_dispersion(reference);
        disc
    }

    /// Mass of a part within r; of the disc within the cylinder.
    fn within(&self, part: usize, r: f64) -> f64 {
        let x = r / self.scale[part];
        let fraction = if part == 0 { 1.0 - (1.0 + x) * (-x).exp() } else { (x / (1.0 + x)).powi(2) };
        self.mass[part] * fraction
    }

    /// Σ(R).
    fn surface(&self, r: f64) -> f64 {
        let h = self.scale[0];
        self.mass[0] / (2.0 * PI * h * h) * (-r / h).exp()
    }

    /// v_c²(R).
    fn circular(&self, r: f64) -> f64 {
        let h = self.scale[0];
        let y = 0.5 * r / h;
        let bessel = In(0, y) * Kn(0, y) - In(1, y) * Kn(1, y);
        let spheres = self.within(1, r) + self.within(2, r);
        2.0 * self.gravity * self.mass[0] / h * y * y * bessel + self.gravity * spheres / r
    }

    /// Ω² and κ² = R dΩ²/dR + 4Ω².
    fn frequencies(&self, r: f64) -> (f64, f64) {
        let omega2 = |r: f64| self.circular(r) / (r * r);
        let step = 1e-3 * r;
        let slope = (omega2(r + step) - omega2(r - step)) / (2.0 * step);
        (omega2(r), (r * slope + 4.0 * omega2(r)).max(0.0))
    }

    /// R with the core of the dispersion: √(R² + h²/8).
    fn cored(&self, r: f64) -> f64 {
        r.hypot(self.scale[0] / 8f64.sqrt())
    }

    fn radial_dispersion(&self, r: f64) -> f64 {
        self.dispersion * (-self.cored(r) / self.scale[0]).exp()
    }

    fn particle(&self, dice: &mut Dice) -> ([f64; 3], [f64; 3]) {
        let h = self.scale[0];
        // x e^(−x) is the density of the sum of two exponential variates.
        let r = -h * (dice.uniform() * dice.uniform()).ln();
        let (sin, cos) = (2.0 * PI * dice.uniform()).sin_cos();
        let z = self.height * (2.0 * dice.uniform() - 1.0).atanh();
        let (omega2, kappa2) = self.frequencies(r);
        let sigma2 = self.radial_dispersion(r);
        let tangential = kappa2 / (4.0 * omega2);
        let gradient = -r / h - r * r / (h * self.cored(r));
        let mean = (omega2 * r * r + sigma2 * (1.0 - tangential + gradient)).max(0.0).sqrt();
        let radial = sigma2.sqrt() * dice.normal();
        let around = mean + (sigma2 * tangential).sqrt() * dice.normal();
        let up = (PI * self.gravity * self.surface(r) * self.height).sqrt() * dice.normal();
        ([r * cos, r * sin, z], [radial * cos - around * sin, radial * sin + around * cos, up])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn galaxy(n: [usize; 3]) -> Galaxy {
        let (mass, scale_radius) = ([1.0, 1.0 / 3.0, 6.0], [1.0, 0.2, 4.0]);
        Galaxy { n, mass, scale_radius, disc_height: 0.15, toomre_q: 1.5 }
    }

    #[test]
    fn rotation_of_a_bare_disc_is_freemans() {
        let disc = Disc::new(&galaxy([10, 0, 0]), 1.0);
        // v_c peaks at R = 2.15 h (Freeman 1970), with 2y² (I₀K₀ − I₁K₁) = 0.387044 G M/h there.
        let peak = disc.circular(2.15);
        assert!((peak - 0.387_044).abs() < 2e-6, "{peak}");
        assert!(disc.circular(2.1) < peak && disc.circular(2.2) < peak);
        // Far away the disc is a point, but for its quadrupole, 3⟨R²⟩/(4R²) with ⟨R²⟩ = 6h²: 18/4/100.
        assert!((disc.circular(30.0) * 30.0 - 1.0 - 4.5 / 900.0).abs() < 1e-3);
        // A point's κ = Ω.
        let (omega2, kappa2) = disc.frequencies(60.0);
        assert!((kappa2 / omega2 - 1.0).abs() < 0.01);
    }

    #[test]
    fn disc_has_its_profile_rotation_and_stability() {
        let n = 100_000;
        let g = galaxy([n, 1000, 1000]);
        let p = sample(Stream::new(3, 0), &g, 1.0);
        assert_eq!(p.len(), n + 2000);
        let mass: f64 = p.mass.iter().sum();
        assert!((mass - 22.0 / 3.0).abs() < 1e-9, "{mass}");
        let disc = Disc::new(&g, 1.0);
        let radius = |x: &[f64; 3]| x[0].hypot(x[1]);
        let within = p.position[..n].iter().filter(|x| radius(x) < 1.0).count() as f64 / n as f64;
        let exact = 1.0 - 2.0 / 1f64.exp();
        assert!((within - exact).abs() < 5.0 * (exact * (1.0 - exact) / n as f64).sqrt(), "{within}");
        // ⟨z²⟩ = π²/12 z₀², of a standard deviation of 1.8 times that.
        let z2 = p.position[..n].iter().map(|x| x[2] * x[2]).sum::<f64>() / n as f64;
        let exact = PI * PI / 12.0 * 0.0225;
        assert!((z2 / exact - 1.0).abs() < 5.0 * 1.8 / (n as f64).sqrt(), "{z2}, not {exact}");
        let ring: Vec<(f64, f64)> = (0..n)
            .filter(|&i| (2.4..2.6).contains(&radius(&p.position[i])))
            .map(|i| {
                let ([x, y, _], [u, v, _], r) = (p.position[i], p.velocity[i], radius(&p.position[i]));
                ((x * u + y * v) / r, (x * v - y * u) / r)
            })
            .collect();
        let count = ring.len() as f64;
        let around = ring.iter().map(|(_, a)| a).sum::<f64>() / count;
        let outward = ring.iter().map(|(o, _)| o * o).sum::<f64>() / count;
        let vc = disc.circular(2.5).sqrt();
        assert!(around < vc && around > 0.93 * vc, "mean rotation {around}, circular {vc}");
        let (_, kappa2) = disc.frequencies(2.5);
        let q = outward.sqrt() * kappa2.sqrt() / (3.36 * disc.surface(2.5));
        assert!((q / 1.5 - 1.0).abs() < 5.0 / (2.0 * count).sqrt() + 0.01, "Q = {q}");
    }

    #[test]
    fn spheres_feel_the_whole_galaxy() {
        let n = 40_000;
        let g = galaxy([1000, 1000, n]);
        let p = sample(Stream::new(3, 0), &g, 1.0);
        let disc = Disc::new(&g, 1.0);
        // The scalar virial theorem of the halo in the field of all: ⟨v²⟩ = ⟨G M(r)/r⟩.
        let length = |x: &[f64; 3]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let pull = |x: &[f64; 3]| (0..3).map(|k| disc.within(k, length(x))).sum::<f64>() / length(x);
        let v2 = p.velocity[2000..].iter().map(|v| length(v).powi(2)).sum::<f64>() / n as f64;
        let virial = p.position[2000..].iter().map(pull).sum::<f64>() / n as f64;
        assert!((v2 / virial - 1.0).abs() < 5.0 / (n as f64).sqrt(), "2T = {v2}, −W = {virial}");
    }
}
