//! What host and device share: the arguments of the kernels. `kernels/view.cuh` has the same structs in the same order, and
//! the tests compare the layout of the two in the text of the kernels.

use cust::memory::{DeviceCopy, DevicePointer};

/// Bodies that one block reads at once, and threads of a block.
pub const TILE: usize = 256;
/// Targets that a thread of a direct sum holds in single precision.
pub const TARGETS_F32: usize = 4;
/// Targets that a thread of a direct sum holds in double precision.
pub const TARGETS_F64: usize = 3;

/// A body in the units of the sum: lengths and strengths are multiplied by powers of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C, align(32))]
pub struct Body {
    /// Position.
    pub position: [f64; 3],
    /// Strength.
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
    pub position: DevicePointer<f64>,
    /// `[n]`, or null: all zero.
    pub strength: DevicePointer<f64>,
    /// `[n]`, or null: the order of the caller.
    pub order: DevicePointer<u32>,
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
    pub targets: DevicePointer<Body>,
    /// `[n_sources]`
    pub sources: DevicePointer<Body>,
    /// Of each tile; null in double precision.
    pub target_bounds: DevicePointer<Bounds>,
    /// Of each tile; null in double precision.
    pub source_bounds: DevicePointer<Bounds>,
    /// `[splits][components][n_targets]`
    pub partial: DevicePointer<f64>,
    /// Place of each target in the caller's order; null: the same.
    pub order: DevicePointer<u32>,
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
    pub y: DevicePointer<f64>,
    /// `[n / 3]`, or null: 1.
    pub weight: DevicePointer<f64>,
    /// Step.
    pub h: f64,
    /// Number of numbers.
    pub n: u64,
}

/// The first number that is not finite, and how many, for each block.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CheckView {
    /// `[n]`
    pub x: DevicePointer<f64>,
    /// `[blocks]`
    pub first: DevicePointer<u64>,
    /// `[blocks]`
    pub count: DevicePointer<u64>,
    /// Number of numbers.
    pub n: u64,
}

/// What `layout` in `kernels/view.cuh` must hold.
pub const LAYOUT: &[usize] = &{
    use std::mem::offset_of;
    [
        TILE,
        TARGETS_F32,
        TARGETS_F64,
        size_of::<Body>(),
        size_of::<Bounds>(),
        size_of::<OrderView>(),
        offset_of!(OrderView, scale),
        offset_of!(OrderView, n),
        size_of::<SumView>(),
        offset_of!(SumView, partial),
        offset_of!(SumView, softening),
        offset_of!(SumView, n_targets),
        offset_of!(SumView, components),
        size_of::<StepView>(),
        offset_of!(StepView, n),
        size_of::<CheckView>(),
        offset_of!(CheckView, n),
    ]
};
