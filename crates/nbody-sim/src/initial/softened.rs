//! The field of a sphere whose particles' forces are softened.
//!
//! A thin shell of mass m and radius s has at r the potential −G m (U(r + s) − U(|r − s|))/(2 r s) with U' = d w(d),
//! where w replaces 1/d ([`Softening::moment`]). Softened, a shell pulls on what is inside it too, and less than Newton's on what is close
//! outside: the middle of a cluster is bound more loosely, by a few times (ε/core radius)². Speeds that ignore this are
//! too high, and the core expands (Barnes, MNRAS 425 (2012) 1104).

use std::f64::consts::LN_10;

use fmm_core::Softening;
use fmm_core::math::CollectVec;
use rayon::prelude::*;

use super::Initial;

/// Masses that at the center would pull, unsoftened, on particles at the increasing radii `r` as the sphere does, of
/// which `within` has the mass within each.
pub fn pulling(softening: Softening, r: &[f64], within: &[f64]) -> Vec<f64> {
    if softening == Softening::None {
        return within.to_vec();
    }
    // What lies between two radii, as a shell halfway.
    let middle = r.windows(2).map(|r| (r[0] * r[1]).sqrt()).zip(within.windows(2).map(|m| m[1] - m[0]));
    let shells: Vec<(f64, f64)> = std::iter::once((0.75 * r[0], within[0])).chain(middle).collect();
    let at = |&r: &f64| {
        let part = |&(s, m): &(f64, f64)| {
            let ((outer, rising), (inner, falling)) = (softening.moment(r + s), softening.moment((r - s).abs()));
            0.5 * m / s * (outer - inner - r * (rising - falling.copysign(r - s)))
        };
        // Rounding must not make a pull into a push.
        shells.iter().map(part).sum::<f64>().max(f64::MIN_POSITIVE)
    };
    r.par_iter().map(at).collect_vec()
}

/// Radii within a factor of ten in the profile of a sample.
const PER_DECADE: f64 = 200.0;

/// Scales the velocities so that −2T/Σ m x·a is `ratio`, with the accelerations of the particles' own field made round
/// about the origin: what a sample lacks of a sphere's symmetry changes Σ m x·a in second order only.
pub fn virialise(particles: &mut Initial, ratio: f64, softening: Softening, gravity: f64) {
    let square = |v: &[f64; 3]| v.iter().map(|v| v * v).sum::<f64>();
    let mut by_radius: Vec<(f64, f64)> =
        particles.position.iter().zip(&particles.mass).map(|(x, &m)| (square(x).sqrt(), m)).collect();
    by_radius.sort_by(|a, b| a.0.total_cmp(&b.0));
    let largest = by_radius.last().map_or(0.0, |p| p.0);
    let smallest = by_radius.iter().map(|p| p.0).find(|&r| r > 1e-6 * largest).unwrap_or(largest);
    let kinetic: f64 = particles.velocity.iter().zip(&particles.mass).map(|(v, m)| m * square(v)).sum();
    // A single particle has no field.
    if particles.len() < 2 || kinetic == 0.0 {
        return;
    }
    let count = ((largest / smallest).log10() * PER_DECADE).ceil() + 1.0;
    let step = LN_10 / PER_DECADE;
    let r: Vec<f64> = (0..=count as usize).map(|i| smallest * (step * i as f64).exp()).collect();
    // The mass within each radius; a particle sees half of itself within its own.
    let (mut within, mut sum, mut next) = (vec![0.0; r.len()], 0.0, 0);
    for (r, within) in r.iter().zip(&mut within) {
        while next < by_radius.len() && by_radius[next].0 <= *r {
            sum += by_radius[next].1;
            next += 1;
        }
        *within = sum;
    }
    let pulling = pulling(softening, &r, &within);
    let (mut virial, mut inside) = (0.0, 0.0);
    for &(radius, mass) in &by_radius {
        // Newton's pull particle by particle, the share that softening leaves of it from the table.
        let at = ((radius / smallest).ln() / step).max(0.0);
        let (i, t) = (at as usize, at.fract());
        let share = |k: usize| pulling[k] / within[k];
        let newton = inside + 0.5 * mass;
        inside += mass;
        let j = (i + 1).min(r.len() - 1);
        let softer = newton * ((1.0 - t) * share(i) + t * share(j));
        virial += mass * gravity * softer / radius.max(smallest);
    }
    let scale = (ratio * virial / kinetic).sqrt();
    particles.velocity.as_flattened_mut().iter_mut().for_each(|v| *v *= scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [Softening; 4] =
        [Softening::None, Softening::Plummer(0.3), Softening::Spline(0.3), Softening::P1(0.3)];

    /// Of the pull at distance d: −d/dd of the potentials as the documentation gives them.
    fn pull(softening: Softening, d: f64) -> f64 {
        let w = |d: f64| match softening {
            Softening::None => 1.0 / d,
            Softening::Plummer(e) => (d * d + e * e).powf(-0.5),
            Softening::P1(e) => (d * d + 1.5 * e * e) * (d * d + e * e).powf(-1.5),
            Softening::Spline(e) if d >= 2.8 * e => 1.0 / d,
            Softening::Spline(e) => {
                let (h, u) = (2.8 * e, d / (2.8 * e));
                let inner = 14.0 / 5.0 - 16.0 / 3.0 * u.powi(2) + 48.0 / 5.0 * u.powi(4) - 32.0 / 5.0 * u.powi(5);
                let outer = 16.0 / 5.0 - 1.0 / (15.0 * u) - 32.0 / 3.0 * u.powi(2) + 16.0 * u.powi(3)
                    - 48.0 / 5.0 * u.powi(4)
                    + 32.0 / 15.0 * u.powi(5);
                if u < 0.5 { inner / h } else { outer / h }
            }
            other => panic!("{other:?} is not softened"),
        };
        (w(d - 1e-5) - w(d + 1e-5)) / 2e-5
    }

    #[test]
    fn a_shell_pulls_as_the_sum_over_its_surface() {
        // One shell at the geometric mean of two radii, all else empty.
        let s: f64 = 0.8;
        for kernel in KERNELS {
            for r in [0.11, 0.3, 0.79, 0.82, 1.0, 1.5, 4.0] {
                // Mean over cos θ by midpoints of the radial part of the pull.
                let n = 400_000;
                let parts = (0..n).map(|k| {
                    let cos = -1.0 + (f64::from(k) + 0.5) * 2.0 / f64::from(n);
                    let d = (r * r + s * s - 2.0 * r * s * cos).sqrt();
                    pull(kernel, d) * (r - s * cos) / d
                });
                let exact = parts.sum::<f64>() / f64::from(n) * r * r;
                let mut radii = vec![0.1, s / 1.001, s * 1.001, 10.0, r];
                radii.sort_by(f64::total_cmp);
                let within: Vec<f64> = radii.iter().map(|&x| if x > s { 1.0 } else { 0.0 }).collect();
                let found = pulling(kernel, &radii, &within)[radii.iter().position(|&x| x == r).unwrap()];
                assert!((found - exact).abs() < 2e-4 * exact.abs().max(1.0), "{kernel:?} at {r}: {found}, not {exact}");
            }
        }
    }

    #[test]
    fn softened_spheres_are_in_equilibrium_with_the_softened_force() {
        use super::super::spherical::{Profile, Spherical};
        let (n, a, gravity) = (50_000, 0.5, 2.0);
        for kernel in KERNELS {
            for profile in [Profile::Plummer, Profile::Hernquist] {
                let sphere = Spherical::new(profile, (3.0, a), gravity, kernel, |_| 0.0);
                let sample = sphere.sample(fmm_core::random::Stream::new(8, 0), n);
                let mut scaled = sample.clone();
                virialise(&mut scaled, 1.0, kernel, gravity);
                let v2 = |p: &Initial| p.velocity.as_flattened().iter().map(|v| v * v).sum::<f64>();
                // 2T/|Σ m x·a| scatters by less than 1.5/√N.
                let ratio = v2(&sample) / v2(&scaled);
                assert!((ratio - 1.0).abs() < 5.0 * 1.5 / (n as f64).sqrt(), "{profile:?} {kernel:?}: {ratio}");
            }
        }
        // The closed form knows of no softening: the test sees the difference.
        let sample = super::super::plummer::sample(fmm_core::random::Stream::new(8, 0), n, 3.0, a, gravity);
        let mut scaled = sample.clone();
        virialise(&mut scaled, 1.0, KERNELS[1], gravity);
        assert!(sample.velocity[0][0].abs() > 1.1 * scaled.velocity[0][0].abs());
    }

    #[test]
    fn a_sample_has_the_ratio_that_was_asked_for() {
        let stream = fmm_core::random::Stream::new(5, 0);
        for kernel in KERNELS.into_iter().chain([Softening::Plummer(50.0)]) {
            for ratio in [1.0, 0.4] {
                let mut p = super::super::plummer::sample(stream.clone(), 2000, 3.0, 0.5, 2.0);
                virialise(&mut p, ratio, kernel, 2.0);
                let mut virial = 0.0;
                for i in 0..p.len() {
                    for j in 0..i {
                        let d2 = (0..3).map(|k| (p.position[i][k] - p.position[j][k]).powi(2)).sum::<f64>();
                        let d = d2.sqrt().max(1e-4);
                        virial += 2.0 * p.mass[i] * p.mass[j] * pull(kernel, d) * d;
                    }
                }
                let kinetic: f64 = p.velocity.iter().map(|v| p.mass[0] * v.iter().map(|v| v * v).sum::<f64>()).sum();
                assert!((kinetic / virial / ratio - 1.0).abs() < 3e-3, "{kernel:?}: {} of {ratio}", kinetic / virial);
            }
        }
    }
}
