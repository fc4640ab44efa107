//! Heat that particles exchange with a bath.

use cust::memory::{DeviceCopy, DevicePointer};

use super::ReadOnly;

/// Sums over the motion of a share of the particles: kinetic energy, momentum, mass.
pub const MOTION_SUMS: usize = 5;

/// Friction and noise.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct LangevinView {
    /// `[n][3]`
    pub velocity: DevicePointer<f64>,
    /// `[n]`
    pub mass: ReadOnly<f64>,
    /// What is left of a velocity.
    pub kept: f64,
    /// Standard deviation of the noise of mass 1.
    pub noise: f64,
    /// Key of the random numbers.
    pub key: [u32; 8],
    /// Number of their stream.
    pub stream: u64,
    /// Their first block.
    pub first: u64,
    /// Blocks from one particle to the next.
    pub blocks: u64,
    /// Number of particles.
    pub n: u64,
}

/// The motion of all particles, and one factor for it.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct MotionView {
    /// `[n][3]`
    pub velocity: DevicePointer<f64>,
    /// `[n]`
    pub mass: ReadOnly<f64>,
    /// `[blocks][MOTION_SUMS]`
    pub partial: DevicePointer<f64>,
    /// Velocity of the center of mass.
    pub center: [f64; 3],
    /// Of velocities about it.
    pub factor: f64,
    /// Number of particles.
    pub n: u64,
}
