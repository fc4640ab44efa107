//! Sums over all particles, for diagnostics: what a store sums where the particles are, so that they need not be copied.

/// Where the mass is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Extent {
    /// Σ m x/Σ m; the mean position where nothing has a mass.
    pub center_of_mass: [f64; 3],
    /// Center of the densest part, see [`SHRINK`].
    pub density_center: [f64; 3],
    /// Radii about it that hold the [`SHARES`] of the mass: the distance of the particle with which the share is reached.
    pub lagrangian: [f64; 3],
}

/// Sums over all particles.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// T = Σ m v²/2.
    pub kinetic: f64,
    /// Σ q Φ/2 with the potential Φ = Σ q/r of the other particles: each pair once.
    pub interaction: f64,
    /// P = Σ m v.
    pub momentum: [f64; 3],
    /// L = Σ m x × v about the origin.
    pub angular_momentum: [f64; 3],
    /// Clausius' virial Σ m x·a with the accelerations a = coupling · field.
    pub clausius: f64,
    /// Σ q x.
    pub first_moment: [f64; 3],
    /// Σ q |x|².
    pub second_moment: f64,
    /// Centers and Lagrangian radii.
    pub extent: Extent,
}

/// The center of density is that of a shrinking sphere (Power et al., MNRAS 338 (2003) 14): from the sphere about the center of mass
/// that holds all, the center of mass of the particles inside is found again and again in a sphere of this share of the radius,
/// as long as it holds at least a tenth of the particles, and at least [`FEWEST`]. Of so many particles or fewer it is the center of mass.
///
/// A smaller sphere would lie in the flat core of a cluster, where nothing pulls it back to the middle: with 1 % of 1e5
/// particles of a Plummer sphere the center wanders by 0.06 scale radii, with 10 % by a fifth of that.
pub const SHRINK: f64 = 0.9;

/// See [`SHRINK`].
pub const FEWEST: usize = 100;

/// Shares of the mass whose Lagrangian radii are reported.
pub const SHARES: [f64; 3] = [0.1, 0.5, 0.9];

/// The fewest particles of the smallest sphere of a set of `n`.
pub fn fewest(n: usize) -> usize {
    FEWEST.max(n / 10)
}

/// What a sum must reach for a share of `total` to be in it, but for rounding.
pub fn reached(share: f64, total: f64) -> f64 {
    share * total * (1.0 - 1e-12)
}

/// The part of the kinetic energy that is motion about the center of mass, of particles with this `momentum` and total `mass`; 0 where
/// it may be rounding.
pub fn kinetic_about_center(kinetic: f64, momentum: [f64; 3], mass: f64) -> f64 {
    let together = if mass > 0.0 { 0.5 * momentum.iter().map(|p| p * p).sum::<f64>() / mass } else { 0.0 };
    let about = kinetic - together;
    if about > 1e-13 * kinetic { about } else { 0.0 }
}

/// Independent components of the velocities of `n` particles about their center of mass.
pub fn degrees_of_freedom(n: usize) -> f64 {
    (3.0 * n as f64 - 3.0).max(0.0)
}
