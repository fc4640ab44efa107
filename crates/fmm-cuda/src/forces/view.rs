//! What host and device share for forces in addition to the sum. The header of the kernels, `arguments/forces.cuh`, is
//! generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};

use crate::mesh::view::BrickView;
use crate::view::ReadOnly;

/// Short-range forces between ions of two kinds. The sign of an ion's charge is its kind.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ShortView {
    /// Cells of the ions.
    pub bricks: BrickView,
    /// Place of each ion in the caller's order. `[n]`
    pub order: ReadOnly<u32>,
    /// In the caller's order: added to. `[n][3]`
    pub field: DevicePointer<f64>,
    /// Energy and virial of each warp: added to. `[blocks][NEAR_WARPS][2]`
    pub partial: DevicePointer<f64>,
    /// For each pair of kinds: σ², ε, and u and −u′ at the cut-off; scaled as lengths in cells.
    pub kinds: [[f64; 4]; 4],
    /// Distance beyond which there is no force, scaled.
    pub cutoff: f64,
    /// Field of a scaled force, times the charge.
    pub per_charge: f64,
}

/// A fixed external field.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ExternalView {
    /// `[n][3]`
    pub position: ReadOnly<f64>,
    /// Added to. `[n][3]`
    pub field: DevicePointer<f64>,
    /// Center of the shape.
    pub center: [f64; 3],
    /// Parameters of the shape. 0: strength, core²; 1: −v², core², flattening²; 2: the three components.
    pub parameter: [f64; 3],
    /// Field of a force.
    pub per_field: f64,
    /// Number of bodies.
    pub n: u32,
    /// 0: a point; 1: a halo; 2: the same force everywhere.
    pub shape: u32,
}

/// Sums of energies and virials.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct PairTotalsView {
    /// `[n][2]`
    pub partial: ReadOnly<f64>,
    /// `[blocks][2]`
    pub total: DevicePointer<f64>,
    /// Number of shares.
    pub n: u64,
}

/// Pairs that do not act on each other.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ExclusionView {
    /// `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n]`
    pub strength: ReadOnly<f64>,
    /// First partner of each particle. `[n + 1]`
    pub start: ReadOnly<u32>,
    /// `[start[n]]`
    pub partner: ReadOnly<u32>,
    /// Subtracted from. `[n][3]`
    pub field: DevicePointer<f64>,
    /// What the potential is too large by. `[n]`
    pub less: DevicePointer<f64>,
    /// Energy and virial of the short-range forces that are left out. `[n][2]`
    pub partial: DevicePointer<f64>,
    /// As in [`ShortView`], unscaled.
    pub kinds: [[f64; 4]; 4],
    /// Sides of the periodic box, or 0.
    pub sides: [f64; 3],
    /// Distance beyond which there is no short-range force; 0: there are none.
    pub cutoff: f64,
    /// Field of a force, times the charge.
    pub per_charge: f64,
    /// ε, h of the spline or the screening length.
    pub softening: f64,
    /// Number of particles.
    pub n: u32,
}
