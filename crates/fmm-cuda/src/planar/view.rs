//! What host and device share in the plane. The header of the kernels, `arguments/planar.cuh`, is
//! generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};

use crate::view::ReadOnly;

/// Threads of a block.
///
/// Kernels: `PLANE_THREADS`.
pub const THREADS: usize = 256;
/// Points that a thread halves at once.
pub const SPLIT_ITEMS: usize = 8;
/// Points that a block halves at once.
pub const SPLIT_TILE: usize = SPLIT_ITEMS * THREADS;
/// Digits of a key along an axis.
pub const KEY_DIGITS: usize = 8;
/// Rows of a block of the connectivity, one a warp.
///
/// Kernels: `PLANE_ROWS`.
pub const ROWS: usize = THREADS / 32;
/// The most lists that one launch of the connectivity writes.
///
/// Kernels: `PLANE_LISTS`.
pub const LISTS: usize = 3;

/// Warps of a block of M2L, and the target boxes of each on the tensor cores and with a translation a thread.
pub const M2L_WARPS: usize = 4;
/// See [`M2L_WARPS`].
pub const PAIR_BOXES: usize = 4;
/// See [`M2L_WARPS`].
pub const THREAD_BOXES: usize = 7;

/// Numbers that a block finds about points.
pub const FLAT_FOUND: usize = 5;

/// A point in the scaled unit, with its strength.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C, align(32))]
pub struct PlanePoint {
    /// Coordinates.
    ///
    /// Kernels: `x`, `y`.
    pub x: [f64; 2],
    /// Real and imaginary part of the strength.
    ///
    /// Kernels: `q`, `qi`.
    pub q: [f64; 2],
}

/// The pyramid of one set of points, level by level.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct PyramidView {
    /// `[n][2]`
    pub position: ReadOnly<f64>,
    /// Of each axis, sorted once the sort is done. `[n]` each
    pub key: [DevicePointer<u64>; 2],
    /// The points in these orders. `[n]` each
    pub index: [ReadOnly<u32>; 2],
    /// The place of each point in them. `[n]` each
    pub rank: [DevicePointer<u32>; 2],
    /// Places along both axes in the order of boxes, then of one axis. `[n]` each
    pub list: [DevicePointer<[u32; 2]>; 2],
    /// The lists with every part halved. `[n]` each
    pub list_out: [DevicePointer<[u32; 2]>; 2],
    /// The place of the first point of the second half, and the axis. `[2^depth]`
    pub pivot: DevicePointer<u32>,
    /// First point and one past the last. `[boxes]`
    pub points: DevicePointer<[u32; 2]>,
    /// `[boxes]`
    pub center: DevicePointer<[f64; 2]>,
    /// `[boxes]`
    pub radius: DevicePointer<f64>,
    /// Of the units of the expansions. `[boxes]`
    pub exponent: DevicePointer<i32>,
    /// The leaf of each point, by index. `[n]`
    pub leaf: DevicePointer<u64>,
    /// Counts of digits.
    pub bins: DevicePointer<u32>,
    /// Neighbours along an axis with the same coordinate. `[2]`
    pub ties: DevicePointer<u64>,
    /// `[2][tiles]`
    pub status: DevicePointer<u64>,
    /// `[2]`
    pub ticket: DevicePointer<u32>,
    /// Of coordinates.
    pub scale: f64,
    /// Number of the launch.
    pub epoch: u64,
    /// Number of points.
    pub n: u32,
    /// How often they have been halved.
    pub depth: u32,
    /// Blocks that halve a list.
    pub tiles: u32,
    /// Of the numbers of leaves.
    pub digits: u32,
}

/// The boxes of a pyramid.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct BoxesView {
    /// `[boxes]`
    pub points: ReadOnly<[u32; 2]>,
    /// `[boxes]`
    pub center: ReadOnly<[f64; 2]>,
    /// `[boxes]`
    pub radius: ReadOnly<f64>,
    /// `[boxes]`
    pub exponent: ReadOnly<i32>,
    /// Number of points.
    pub n: u32,
    /// Number of the last level.
    pub levels: u32,
}

/// The rows of one level.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ConnectView {
    /// Pyramid of the targets.
    pub targets: BoxesView,
    /// Pyramid of the sources.
    pub sources: BoxesView,
    /// Strong pairs of the level above, or of the leaves themselves. `[parents + 1]`
    pub near_start: ReadOnly<u64>,
    /// `[near_capacity]`
    pub near: ReadOnly<u32>,
    /// Entries that there was room for.
    pub near_capacity: u64,
    /// Weak and strong; or M2P, P2L and P2P. `[cells + 1]` each
    pub start: [DevicePointer<u64>; LISTS],
    /// `[capacity]` each
    pub source: [DevicePointer<u32>; LISTS],
    /// Of each list.
    pub capacity: [u64; LISTS],
    /// Entries of earlier levels, or null.
    pub before: [ReadOnly<u64>; LISTS],
    /// Entries with those of this level.
    pub found: [DevicePointer<u64>; LISTS],
    /// `[lists][tiles]`
    pub status: DevicePointer<u64>,
    /// Counts the tiles that blocks have taken.
    pub ticket: DevicePointer<u32>,
    /// Of the rule.
    pub theta: f64,
    /// Of the rule.
    pub min_distance: f64,
    /// Of the rule.
    pub swap_min_points: u64,
    /// Number of the launch.
    pub epoch: u64,
    /// First box of the level.
    pub first: u32,
    /// Boxes of the level.
    pub cells: u32,
    /// First box of the level above.
    pub parents: u32,
    /// Blocks.
    pub tiles: u32,
}

/// Operators.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct PlaneView {
    /// Pyramid of the targets.
    pub targets: BoxesView,
    /// Pyramid of the sources.
    pub sources: BoxesView,
    /// Targets in the order of their pyramid.
    pub at: ReadOnly<PlanePoint>,
    /// Sources in the order of theirs.
    pub bodies: ReadOnly<PlanePoint>,
    /// The rows of one list. `[boxes + 1]`
    pub start: ReadOnly<u64>,
    /// `[start[boxes]]`
    pub source: ReadOnly<u32>,
    /// Of a shift. `[terms][terms]`
    pub matrix: ReadOnly<f64>,
    /// Of P2M and P2L. `[terms]`
    pub weights: ReadOnly<f64>,
    /// `[boxes][terms][2]`
    pub multipoles: DevicePointer<f64>,
    /// `[boxes][terms][2]`
    pub locals: DevicePointer<f64>,
    /// Of the log kernel. `[targets]`
    pub potential: DevicePointer<f64>,
    /// `[targets][2]`
    pub g: DevicePointer<f64>,
    /// Sources relative to the centers of their leaves, and their strengths, where pairs are in
    /// single precision. `[sources][4]`
    pub single_points: DevicePointer<f32>,
    /// Length of the blobs.
    pub core: f64,
    /// What stands for log 0 at the center of a blob, which no blob feels of itself.
    pub at_center: f64,
    /// The unit of length is 2^this of the caller's.
    pub global: i32,
    /// Terms of an expansion.
    pub terms: u32,
    /// First box.
    pub first: u32,
    /// Number of boxes.
    pub count: u32,
    /// 1: the log kernel.
    pub log: u32,
    /// 1: the targets are the sources.
    pub same: u32,
}

/// Direct sums, shared out in parts of the sources.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct AllPairsView {
    /// `[sources]`
    pub bodies: ReadOnly<PlanePoint>,
    /// `[targets]`, or `[all]`
    pub at: ReadOnly<PlanePoint>,
    /// Potential, or the largest squared term, and G. `[parts][targets][3]`
    pub partial: DevicePointer<f64>,
    /// `[targets]`
    pub potential: DevicePointer<f64>,
    /// `[targets][2]`
    pub g: DevicePointer<f64>,
    /// Of a sample: G as summed directly, the largest squared term, G as found. `[targets][6]`
    pub out: DevicePointer<f64>,
    /// Length of the blobs.
    pub core: f64,
    /// As in [`PlaneView`].
    pub at_center: f64,
    /// As in [`PlaneView`].
    pub global: i32,
    /// Number of sources.
    pub sources: u32,
    /// Number of targets.
    pub targets: u32,
    /// Of the sources.
    pub parts: u32,
    /// Of the sample, 0: all targets.
    pub step: u32,
    /// Targets from which the sample is drawn.
    pub all: u32,
    /// 1: the log kernel.
    pub log: u32,
    /// 1: the targets are the sources.
    pub same: u32,
}

/// Between the caller's arrays and those in the order of a pyramid.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ExchangeView {
    /// `[n][2]`
    pub position: ReadOnly<f64>,
    /// Real and imaginary parts. `[n]` each, or null: zero.
    ///
    /// Kernels: `real`, `imaginary`.
    pub strengths: [ReadOnly<f64>; 2],
    /// `[n]`, or null: the caller's.
    pub order: ReadOnly<u32>,
    /// `[n]`
    pub points: DevicePointer<PlanePoint>,
    /// `[n]`
    pub potential: ReadOnly<f64>,
    /// `[n][2]`
    pub g: ReadOnly<f64>,
    /// `[n]`, or null.
    pub potential_out: DevicePointer<f64>,
    /// `[n][width]`
    pub field_out: DevicePointer<f64>,
    /// Of coordinates.
    pub scale: f64,
    /// Of strengths, or of the potential.
    pub strength: f64,
    /// Of G to field.
    pub sign: [f64; 2],
    /// Number of points.
    pub n: u32,
    /// Numbers of a field, those after the second zero.
    pub width: u32,
}

/// Points out of particles in space.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct FlattenView {
    /// `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n][2]`
    pub points: DevicePointer<f64>,
    /// Largest x, y, −x and −y of each block, and 1 if one of them is no number. `[blocks][FLAT_FOUND]`
    pub found: DevicePointer<f64>,
    /// Number of particles.
    pub n: u64,
}

/// A step of vortices.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct FlowView {
    /// `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n][3]`
    pub field: ReadOnly<f64>,
    /// `[n]`
    pub coupling: ReadOnly<f64>,
    /// Where the step began. `[n][2]`
    pub start: DevicePointer<f64>,
    /// `[n][2]`
    pub velocity: DevicePointer<f64>,
    /// Of weighed velocities. `[n][2]`
    pub sum: DevicePointer<f64>,
    /// What each block finds. `[blocks]`
    pub largest: DevicePointer<f64>,
    /// Of the velocities in the sum.
    pub weight: f64,
    /// Time from the start.
    pub h: f64,
    /// Number of vortices.
    pub n: u64,
    /// 1: no velocities came before.
    pub first: u32,
    /// 1: the sum leads on.
    pub summed: u32,
}
