//! Vortex particles in space: rings on a lattice.

use std::f64::consts::PI;

use fmm_core::grid::vorticity::{GaussianRing, Vorticity};

use super::Initial;

/// Vorticity below this part of that in the middle of the core has no particles.
const LEAST: f64 = 1e-4;

/// A ring about the z axis with a Gaussian core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VortexRing {
    /// Its circulation; positive ones move it along z.
    pub circulation: f64,
    /// From the axis to the middle of the core.
    pub radius: f64,
    /// σ of the core: ω falls off as exp(−d²/σ²).
    pub core: f64,
    /// Side of the cubes that are its particles.
    pub spacing: f64,
}

impl VortexRing {
    /// Number of its particles; where they are more than can be numbered, about that.
    pub fn count(&self) -> u64 {
        let reach = self.core * LEAST.ln().abs().sqrt();
        let about = 2.0 * PI * self.radius * PI * reach * reach / self.spacing.powi(3);
        if about > 2.0 * f64::from(u32::MAX) { about as u64 } else { 8 * self.octant().count() as u64 }
    }

    /// Its particles, those of one octant and then its seven mirror images.
    pub fn particles(&self) -> Initial {
        let (center, axis) = ([0.0; 3], [0.0, 0.0, 1.0]);
        let Self { radius, core, circulation, spacing } = *self;
        let ring = GaussianRing { center, axis, radius, core, circulation };
        let volume = spacing.powi(3);
        let octant: Vec<[f64; 3]> = self.octant().collect();
        let sign = |mirror: usize, d: usize| if mirror >> d & 1 == 0 { 1.0 } else { -1.0 };
        let position: Vec<[f64; 3]> =
            (0..8).flat_map(|m| octant.iter().map(move |x| std::array::from_fn(|d| sign(m, d) * x[d]))).collect();
        let vorticity = position.iter().map(|&x| ring.cell(x, spacing).map(|w| w * volume)).collect();
        Initial::vortices_in_space(position, vorticity, vec![volume; 8 * octant.len()])
    }

    /// The centers of its cubes with positive coordinates.
    fn octant(&self) -> impl Iterator<Item = [f64; 3]> {
        let Self { radius, core, spacing, .. } = *self;
        let reach2 = core * core * LEAST.ln().abs();
        let at = move |i: usize| (i as f64 + 0.5) * spacing;
        let across = ((radius + reach2.sqrt()) / spacing) as usize + 1;
        let deep = (reach2.sqrt() / spacing) as usize + 1;
        let columns = (0..across).flat_map(move |j| (0..across).map(move |i| [at(i), at(j)]));
        columns.flat_map(move |[x, y]| {
            let out = (x.hypot(y) - radius).powi(2);
            let heights = if out > reach2 { 0 } else { deep };
            (0..heights).map(at).filter(move |z| out + z * z <= reach2).map(move |z| [x, y, z])
        })
    }
}

impl Initial {
    /// Vortex particles in space, with the fluid that they carry, at density 1, as their masses.
    pub fn vortices_in_space(position: Vec<[f64; 3]>, vorticity: Vec<[f64; 3]>, volume: Vec<f64>) -> Initial {
        let n = position.len();
        Initial { position, velocity: vec![[0.0; 3]; n], mass: volume, charge: vec![0.0; n], vorticity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_their_circulation_and_impulse() {
        let ring = VortexRing { circulation: 2.0, radius: 1.0, core: 0.2, spacing: 0.05 };
        let p = ring.particles();
        assert_eq!(p.len() as u64, ring.count());
        let mut through = 0.0;
        let mut impulse = [0.0; 3];
        for (x, a) in p.position.iter().zip(&p.vorticity) {
            // The circulation through the half plane y = 0, x > 0: ∫ ω_θ dA = Σ α_θ/(2π r).
            through += (x[0] * a[1] - x[1] * a[0]) / (2.0 * PI * (x[0] * x[0] + x[1] * x[1]));
            (0..3)
                .for_each(|k| impulse[k] += 0.5 * (x[(k + 1) % 3] * a[(k + 2) % 3] - x[(k + 2) % 3] * a[(k + 1) % 3]));
        }
        assert!((through - 2.0).abs() < 1e-3 * 2.0, "{through}");
        // π Γ (R² + σ²/2 …): that of the profile is π Γ ⟨r²⟩, with ⟨r²⟩ = R² + σ²/2.
        let expected = PI * 2.0 * (1.0 + 0.5 * 0.04);
        assert!((impulse[2] / expected - 1.0).abs() < 1e-3, "{impulse:?} {expected}");
        assert!(impulse[0].abs() < 1e-12 && impulse[1].abs() < 1e-12);
        // Too many to be counted one by one.
        assert!(VortexRing { spacing: 1e-5, ..ring }.count() > u64::from(u32::MAX));
    }
}
