//! What host and device share for sums of Gaussians. The header of the kernels,
//! `arguments/gauss.cuh`, is generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};

use crate::view::ReadOnly;

/// Threads of a block that sorts points into boxes.
///
/// Kernels: `GAUSS_THREADS`.
pub const THREADS: usize = 256;
/// Points that a thread looks at once for where boxes begin.
pub const RUN_ITEMS: usize = 8;
/// Points that a block looks at once for where boxes begin.
pub const RUN_TILE: usize = RUN_ITEMS * THREADS;
/// Digits of the number of a box.
pub const BOX_DIGITS: usize = 8;
/// Threads of a block of P2M and P2L.
pub const GATHER_THREADS: usize = 128;
/// Points that a block of P2M or P2L holds.
pub const BATCH: usize = 32;
/// Coefficients of a thread.
pub const HELD: usize = 8;
/// Threads of a block of L2P and M2P.
pub const SPREAD_THREADS: usize = 64;
/// Points of each where boxes are full.
pub const SPREAD_POINTS: usize = 4;
/// Warps of a block of P2P, each with up to 32 targets.
pub const NEAR_WARPS: usize = 4;

/// A point with its strength; unused axes are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C, align(32))]
pub struct GaussPoint {
    /// Coordinates.
    pub x: [f64; 3],
    /// Strength.
    pub q: f64,
}

/// Points and the boxes of a lattice that hold them.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GaussBoxesView {
    /// `[n][axes]`
    pub position: ReadOnly<f64>,
    /// `[n]`, or null: zero.
    pub strength: ReadOnly<f64>,
    /// The smallest and the largest coordinates of the share of each block. `[blocks][6]`
    pub bounds: DevicePointer<f64>,
    /// The number of the box of each point; sorted where boxes are looked for. `[n]`
    pub key: DevicePointer<u64>,
    /// `[BOX_DIGITS][256]`
    pub bins: DevicePointer<u32>,
    /// The numbers of the boxes that hold any. `[n]`
    ///
    /// Kernels: `box`.
    pub occupied: DevicePointer<u64>,
    /// The first point of each, and n. `[n + 1]`
    pub start: DevicePointer<u32>,
    /// `[boxes]`
    pub center: DevicePointer<GaussPoint>,
    /// How many they are.
    pub found: DevicePointer<u32>,
    /// `[n]`
    pub order: ReadOnly<u32>,
    /// `[n]`
    pub points: DevicePointer<GaussPoint>,
    /// `[tiles]`
    pub status: DevicePointer<u64>,
    /// One.
    pub ticket: DevicePointer<u32>,
    /// Corner of the lattice.
    pub origin: [f64; 3],
    /// Side of a box.
    pub side: f64,
    /// 1/side.
    pub inverse: f64,
    /// Boxes along each axis.
    pub count: [u64; 3],
    /// Number of the launch.
    pub epoch: u64,
    /// Number of points, or of boxes.
    pub n: u32,
    /// Axes.
    pub axes: u32,
}

/// Operators.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GaussView {
    /// Sources of P2M and P2L, targets of the others.
    pub points: ReadOnly<GaussPoint>,
    /// Of P2P.
    pub sources: ReadOnly<GaussPoint>,
    /// Of the boxes of tasks.
    pub center: ReadOnly<GaussPoint>,
    /// Of the boxes of sources, for M2P.
    pub other: ReadOnly<GaussPoint>,
    /// Place of the series, box, first point, one past the last; for M2L the row of `list` and the place along the axis. `[count]`
    pub tasks: ReadOnly<[u32; 4]>,
    /// Rows of `list`. `[boxes + 1]`
    pub start: ReadOnly<u64>,
    /// Runs of sources, or the place of a series and its box, or that and where it is along the axis. `[entries]`
    pub list: ReadOnly<[u32; 2]>,
    /// Of M2L. `[offsets][order][width]`
    pub matrix: ReadOnly<f64>,
    /// Terms of each offset. `[offsets]`
    pub used: ReadOnly<u32>,
    /// Roots of n and their inverses, or for the scaling the inverse roots of n!.
    pub roots: ReadOnly<f64>,
    /// `[places][terms]`
    pub series: DevicePointer<f64>,
    /// What M2L begins with, or the parts of sums. `[places][terms]`
    pub before: ReadOnly<f64>,
    /// `[targets][values]`
    pub out: DevicePointer<f64>,
    /// 1/σ.
    pub scale: f64,
    /// A power of two by which strengths are multiplied in single precision.
    pub strength: f64,
    /// Terms along an axis.
    pub order: u32,
    /// The same up to whole eights.
    pub width: u32,
    /// Coefficients of a box.
    pub terms: u32,
    /// Axes.
    pub axes: u32,
    /// Numbers of a target.
    pub values: u32,
    /// Tasks, boxes or series.
    pub count: u32,
    /// Boxes along an axis that M2L reaches.
    pub reach: u32,
    /// 1: L2P forgets what `out` was.
    pub fresh: u32,
}

/// To the caller's order.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GaussReturnView {
    /// `[n][values]`
    pub out: ReadOnly<f64>,
    /// `[n]`
    pub order: ReadOnly<u32>,
    /// `[n]`
    pub potential: DevicePointer<f64>,
    /// `[n][axes]`, or null: not wanted.
    pub field: DevicePointer<f64>,
    /// 1/σ.
    pub scale: f64,
    /// Number of targets.
    pub n: u32,
    /// Axes.
    pub axes: u32,
}
