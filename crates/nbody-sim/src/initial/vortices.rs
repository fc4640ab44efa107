//! Vortex particles in space: rings on a lattice.

use fmm_core::grid::vorticity::{GaussianRing, Vorticity};

use super::Initial;
use crate::vortex_ring::VortexRing;

/// The particles of a ring, those of one octant and then its seven mirror images.
pub fn ring(of: &VortexRing) -> Initial {
    let (center, axis) = ([0.0; 3], [0.0, 0.0, 1.0]);
    let VortexRing { radius, core, circulation, spacing } = *of;
    let ring = GaussianRing { center, axis, radius, core, circulation };
    let volume = spacing.powi(3);
    let octant: Vec<[f64; 3]> = of.octant().collect();
    let sign = |mirror: usize, d: usize| if mirror >> d & 1 == 0 { 1.0 } else { -1.0 };
    let position: Vec<[f64; 3]> =
        (0..8).flat_map(|m| octant.iter().map(move |x| std::array::from_fn(|d| sign(m, d) * x[d]))).collect();
    let vorticity = position.iter().map(|&x| ring.cell(x, spacing).map(|w| w * volume)).collect();
    Initial::vortices_in_space(position, vorticity, vec![volume; 8 * octant.len()])
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
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn rings_have_their_circulation_and_impulse() {
        let ring = VortexRing { circulation: 2.0, radius: 1.0, core: 0.2, spacing: 0.05 };
        let p = super::ring(&ring);
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
