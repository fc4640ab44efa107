//! Bodies: their order, direct sums, steps and totals.

use cust::memory::{DeviceCopy, DevicePointer};

use super::{ReadOnly, Sum};

/// A body in the units of the sum: lengths and strengths are multiplied by powers of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C, align(32))]
pub struct Body {
    /// Position.
    ///
    /// Kernels: `x`, `y`, `z`.
    pub position: [f64; 3],
    /// Strength.
    ///
    /// Kernels: `q`.
    pub strength: f64,
}

/// The bounds of a tile of bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C)]
pub struct Bounds {
    /// Smallest coordinates.
    pub low: [f64; 3],
    /// Largest coordinates.
    pub high: [f64; 3],
}

/// Positions to bodies in a given order, and to tiles.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct OrderView {
    /// `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n]`, or null: all zero.
    pub strength: ReadOnly<f64>,
    /// `[n]`, or null: the order of the caller.
    pub order: ReadOnly<u32>,
    /// `[n]`
    pub bodies: DevicePointer<Body>,
    /// Of each tile of bodies, or of each block's share of the positions.
    pub bounds: DevicePointer<Bounds>,
    /// What positions are multiplied by.
    pub scale: f64,
    /// What strengths are multiplied by.
    pub strength_scale: f64,
    /// Number of bodies.
    pub n: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// Sums over all sources at all targets.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct SumView {
    /// `[n_targets]`
    pub targets: ReadOnly<Body>,
    /// `[n_sources]`
    pub sources: ReadOnly<Body>,
    /// Of each tile; null in double precision.
    pub target_bounds: ReadOnly<Bounds>,
    /// Of each tile; null in double precision.
    pub source_bounds: ReadOnly<Bounds>,
    /// `[splits][components][n_targets]`
    pub partial: DevicePointer<f64>,
    /// Place of each target in the caller's order; null: the same.
    pub order: ReadOnly<u32>,
    /// `[n_targets][3]`; null: not wanted.
    pub field: DevicePointer<f64>,
    /// `[n_targets]`; null: not wanted.
    pub potential: DevicePointer<f64>,
    /// Length in the units of the bodies: ε, or h of the spline.
    pub softening: f64,
    /// From sums to the field.
    pub field_scale: f64,
    /// From sums to the potential.
    pub potential_scale: f64,
    /// Number of targets.
    pub n_targets: u32,
    /// Number of sources.
    pub n_sources: u32,
    /// Shares of the sources, each summed by blocks of its own.
    pub splits: u32,
    /// Tiles of sources in a share.
    pub tiles_per_split: u32,
    /// 1: targets are the sources, and none sees itself.
    pub same: u32,
    /// 3, or 4 with the potential.
    pub components: u32,
}

/// x += h w y.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct StepView {
    /// `[n]`
    pub x: DevicePointer<f64>,
    /// `[n]`
    pub y: ReadOnly<f64>,
    /// `[n / 3]`, or null: 1.
    pub weight: ReadOnly<f64>,
    /// Step.
    pub h: f64,
    /// Number of numbers.
    pub n: u64,
}

/// What is known of a share of an array of numbers.
#[derive(Debug, Clone, Copy, Default, DeviceCopy)]
#[repr(C)]
pub struct NumbersShare {
    /// Index of the first number that is not finite; the largest integer if all are.
    pub first: u64,
    /// How many are not finite. They count nowhere else.
    pub bad: u64,
    /// How many are above 0.
    pub plus: u64,
    /// How many are below 0.
    pub minus: u64,
    /// The largest |x|; 0 without numbers.
    pub largest: f64,
    /// The smallest |x| that is not 0; infinite if all are.
    pub smallest: f64,
    /// Σ x.
    pub sum: f64,
    /// Σ |x|.
    pub magnitude: f64,
}

/// What is known of an array of numbers, a share for each block.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct NumbersView {
    /// `[n]`
    pub x: ReadOnly<f64>,
    /// `[blocks]`
    pub share: DevicePointer<NumbersShare>,
    /// Number of numbers.
    pub n: u64,
}

/// Bodies to the order of a tree, and sums back to the caller's.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GatherView {
    /// In the caller's order. `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n]`, or null: all zero.
    pub strength: ReadOnly<f64>,
    /// `[n]`
    pub order: ReadOnly<u32>,
    /// The place of `order[i]` is i. `[n]`
    pub inverse: DevicePointer<u32>,
    /// `[n]`
    pub bodies: DevicePointer<Body>,
    /// `[n]`
    pub sums: ReadOnly<Sum>,
    /// More of the potential, or null. `[n]`
    pub more: ReadOnly<Sum>,
    /// In the caller's order, or null. `[n][3]`
    pub field: DevicePointer<f64>,
    /// In the caller's order, or null. `[n]`
    pub potential: DevicePointer<f64>,
    /// What strengths are multiplied by.
    pub strength_scale: f64,
    /// Number of bodies.
    pub n: u32,
}

impl Default for GatherView {
    /// Nothing of nothing.
    fn default() -> Self {
        GatherView {
            position: DevicePointer::null(),
            strength: DevicePointer::null(),
            order: DevicePointer::null(),
            inverse: DevicePointer::null(),
            bodies: DevicePointer::null(),
            sums: DevicePointer::null(),
            more: DevicePointer::null(),
            field: DevicePointer::null(),
            potential: DevicePointer::null(),
            strength_scale: 1.0,
            n: 0,
        }
    }
}

/// What one component of the strengths adds to velocities.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct VelocityView {
    /// Of this component. `[n][3]`
    pub field: ReadOnly<f64>,
    /// `[n][3]`
    pub velocity: DevicePointer<f64>,
    /// Number of targets.
    pub n: u32,
    /// 0, 1 or 2.
    pub component: u32,
}

/// A sphere that shrinks about the densest part.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C)]
pub struct Sphere {
    /// Its center.
    pub center: [f64; 3],
    /// Its radius.
    pub radius: f64,
    /// 1: it shrinks no more.
    pub done: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// Sums over all particles, in the caller's order.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct TotalsView {
    /// `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n][3]`
    pub velocity: ReadOnly<f64>,
    /// `[n][3]`
    pub field: ReadOnly<f64>,
    /// `[n]`
    pub potential: ReadOnly<f64>,
    /// `[n]`
    pub mass: ReadOnly<f64>,
    /// `[n]`
    pub strength: ReadOnly<f64>,
    /// `[n]`
    pub coupling: ReadOnly<f64>,
    /// What blocks find.
    pub partial: DevicePointer<f64>,
    /// `[1]`
    pub sphere: DevicePointer<Sphere>,
    /// 1 for particles that have left the sphere. `[n]`
    pub outside: DevicePointer<u8>,
    /// By distance. `[n]`
    pub order: ReadOnly<u32>,
    /// Squared distances in this order. `[n]`
    pub key: ReadOnly<u64>,
    /// Number of particles.
    pub n: u64,
    /// First particle of the chunk.
    pub first: u64,
    /// The next radius over the last.
    pub shrink: f64,
    /// The fewest particles of a sphere.
    pub fewest: f64,
    /// 1: particles count alike.
    pub massless: u32,
    /// Blocks that share the particles.
    pub shares: u32,
}

/// Positions and strengths on the device, in the caller's order.
#[derive(Debug, Clone, Copy)]
pub struct Points {
    /// `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n]`, or null for targets.
    pub strength: DevicePointer<f64>,
    /// Number of bodies.
    pub n: usize,
}
