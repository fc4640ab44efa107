//! Plummer's sphere: ρ = 3M/(4πa³) (1 + r²/a²)^(−5/2), isotropic velocities from its distribution function
//! f ∝ (−E)^(7/2) (Plummer 1911; Aarseth, Hénon & Wielen 1974).
//!
//! In units G = M = a = 1: M(r) inverted gives r = (X^(−2/3) − 1)^(−1/2) for X uniform in (0, 1); the speed is
//! q times the escape speed √2 (1 + r²)^(−1/4) with q from g(q) = q²(1 − q²)^(7/2) by rejection.
//! W = −3π/32, T = 3π/64. With a = 3π/16 (`virial_radius = 1`) these are Hénon's units, E = −1/4.

use super::Initial;
use fmm_core::random::{Dice, Stream};

/// `n` particles of total mass `mass` and scale radius `a`, center of mass and momentum zero.
pub fn sample(stream: Stream, n: usize, mass: f64, a: f64, gravity: f64) -> Initial {
    let speed = (gravity * mass / a).sqrt();
    let particle = |dice: &mut Dice| {
        let r = (dice.uniform().powf(-2.0 / 3.0) - 1.0).sqrt().recip();
        let escape = std::f64::consts::SQRT_2 * (1.0 + r * r).powf(-0.25);
        let q = fraction_of_escape_speed(dice);
        (dice.direction(a * r), dice.direction(speed * escape * q))
    };
    Initial::equal(stream.sample(n, particle), mass, 0.0)
}

/// q with the density g(q); the largest g is 0.0922.
fn fraction_of_escape_speed(dice: &mut Dice) -> f64 {
    loop {
        let (q, y) = (dice.uniform(), 0.1 * dice.uniform());
        if y < q * q * (1.0 - q * q).powf(3.5) {
            return q;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::diagnostics::{Diagnostics, State};

    fn radii(p: &Initial) -> Vec<f64> {
        let mut r: Vec<f64> = p.position.iter().map(|x| x.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
        r.sort_by(f64::total_cmp);
        r
    }

    #[test]
    fn lagrangian_radii_follow_the_closed_form() {
        let n = 100_000;
        let r = radii(&sample(Stream::new(1, 0), n, 1.0, 1.0, 1.0));
        // The fraction within the radius r_f is binomial: five standard deviations of it.
        for (f, exact) in [(0.1, 0.5240280636), (0.5, 1.30476602650411), (0.9, 3.707112792)] {
            let measured = r.partition_point(|&r| r < exact) as f64 / n as f64;
            let bound = 5.0 * (f * (1.0 - f) / n as f64).sqrt();
            assert!((measured - f).abs() < bound, "{measured} within r_{f}, bound {bound}");
        }
    }

    #[test]
    fn kinetic_energy_and_dispersion_follow_the_closed_form() {
        let (n, gravity, mass, a) = (100_000, 2.0, 3.0, 0.5);
        let p = sample(Stream::new(7, 2), n, mass, a, gravity);
        let unit = gravity * mass * mass / a;
        let v2 = |v: &[f64; 3]| v.iter().map(|v| v * v).sum::<f64>();
        let kinetic = 0.5 * mass / n as f64 * p.velocity.iter().map(v2).sum::<f64>();
        // v²/2 of a particle has mean 3π/64 and a standard deviation below 0.13: five of them over √n.
        let bound = 5.0 * 0.13 / (n as f64).sqrt();
        assert!((kinetic / unit - 3.0 * PI / 64.0).abs() < bound, "T = {}", kinetic / unit);
        // The virial Σ m x·a of the smooth potential is W.
        let w = |x: &[f64; 3]| {
            let r2 = x.iter().map(|x| x * x).sum::<f64>() / (a * a);
            -r2 * (1.0 + r2).powf(-1.5)
        };
        let potential = p.position.iter().map(w).sum::<f64>() / n as f64;
        assert!((potential + 3.0 * PI / 32.0).abs() < bound, "W = {potential}");
        // ⟨v²⟩(r) = (1 + r²)^(−1/2)/2 in the shell around r = a.
        let shell = p.position.iter().zip(&p.velocity).filter_map(|(x, v)| {
            let r = x.iter().map(|x| x * x).sum::<f64>().sqrt() / a;
            (0.9..1.1).contains(&r).then(|| 2.0 * v2(v) * (1.0 + r * r).sqrt() / (gravity * mass / a))
        });
        let shell: Vec<f64> = shell.collect();
        let mean = shell.iter().sum::<f64>() / shell.len() as f64;
        assert!((mean - 1.0).abs() < 5.0 * 0.7 / (shell.len() as f64).sqrt(), "⟨v²⟩ is {mean} times the closed form");
    }

    #[test]
    fn energy_of_the_particles_and_zero_center() {
        // Hénon units by direct summation: E = −1/4 within the noise of 2000 particles.
        let p = sample(Stream::new(3, 0), 2000, 1.0, 3.0 * PI / 16.0, 1.0);
        let phi = |i: usize| {
            let r = |j: usize| (0..3).map(|k| (p.position[i][k] - p.position[j][k]).powi(2)).sum::<f64>().sqrt();
            -(0..p.len()).filter(|&j| j != i).map(|j| p.mass[j] / r(j)).sum::<f64>()
        };
        let potential: Vec<f64> = (0..p.len()).map(phi).collect();
        let (position, velocity, mass) = (&p.position, &p.velocity, &p.mass);
        let acceleration = &vec![[0.0; 3]; p.len()];
        let state =
            State { position, velocity, mass, strength: mass, potential: &potential, external: &[], acceleration };
        let d = Diagnostics::of(&fmm_core::comm::Solo, state);
        assert!((d.total() + 0.25).abs() < 0.03 && (d.kinetic - 0.25).abs() < 0.02, "{d:?}");
        let center: [f64; 3] = std::array::from_fn(|k| p.position.iter().map(|x| x[k]).sum::<f64>() / 2000.0);
        assert!(center.iter().chain(&d.momentum).all(|c| c.abs() < 1e-14), "{center:?} {:?}", d.momentum);
    }
}
