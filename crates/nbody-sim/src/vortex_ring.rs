//! A vortex ring as particles on a lattice: how many, and where.

use std::f64::consts::PI;

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

    /// The centers of its cubes with positive coordinates.
    pub fn octant(&self) -> impl Iterator<Item = [f64; 3]> {
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
