//! What host and device share in sums on grids: `kernels/grid/grid.cuh` has the same structs in the same order, and the tests compare the layout of the
//! two in the text of the kernels.

use cust::memory::{DeviceCopy, DevicePointer};
use fmm_core::grid::near::SUMS;
use fmm_core::grid::plan::SIDE;

/// Threads of a block of direct sums, each with a column of points along y; sources that it holds.
pub const COLUMNS: usize = SIDE * SIDE;
/// Threads of a block of evaluations, each with two points of a column.
pub const EVALUATORS: usize = COLUMNS * SIDE / 2;

/// A cell with vorticity: center, strength, and the square of its core.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C, align(32))]
pub struct GridSource {
    /// Center.
    pub x: [f64; 3],
    /// Strength.
    pub q: [f64; 3],
    /// ε².
    pub core2: f64,
    /// To whole words of four.
    pub unused: f64,
}

/// The argument of all kernels.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GridView {
    /// `[n]`
    pub center: DevicePointer<[f64; 3]>,
    /// `[n]`
    pub strength: DevicePointer<[f64; 3]>,
    /// `[n]`
    pub core2: DevicePointer<f64>,
    /// Sorted place → place in these arrays. `[n]`
    pub order: DevicePointer<u32>,
    /// Sorted, in units of 1/scale. `[n]`
    pub source: DevicePointer<GridSource>,
    /// Coordinates of the points of bricks, in the same units. `[bricks]`
    pub brick: DevicePointer<[[f64; SIDE]; 3]>,
    /// Brick, first run or node, one past the last, place of its sums. `[count]`
    pub tasks: DevicePointer<[u32; 4]>,
    /// First source and one past the last.
    pub runs: DevicePointer<[u32; 2]>,
    /// Place of the sums of a brick, first of those to be added to them, one past the last. `[count]`
    pub parts: DevicePointer<[u32; 3]>,
    /// Nodes that act by expansion, row by row.
    pub nodes: DevicePointer<u32>,
    /// Center, and the inverse of half the side. `[nodes]`
    pub node: DevicePointer<[f64; 4]>,
    /// `[nodes][length]`
    pub weights: DevicePointer<f64>,
    /// `[degree + 2]`
    pub diagonal: DevicePointer<f64>,
    /// Of the recurrences, order by order.
    pub steps: DevicePointer<[f64; 2]>,
    /// `[places][SUMS]`
    pub out: DevicePointer<f64>,
    /// A power of two.
    pub scale: f64,
    /// Factor of the sums for 4πΨ.
    pub stream: f64,
    /// Factor of those for 4πu.
    pub velocity: f64,
    /// Sources.
    pub n: u32,
    /// Tasks or bricks of a launch.
    pub count: u32,
    /// p.
    pub degree: u32,
    /// Weights of a node.
    pub length: u32,
}

/// What `grid_layout` in `kernels/grid/grid.cuh` must hold.
pub const LAYOUT: &[usize] = &{
    use std::mem::offset_of;
    [
        SIDE,
        SUMS,
        COLUMNS,
        EVALUATORS,
        size_of::<GridSource>(),
        offset_of!(GridSource, q),
        offset_of!(GridSource, core2),
        size_of::<GridView>(),
        offset_of!(GridView, order),
        offset_of!(GridView, tasks),
        offset_of!(GridView, parts),
        offset_of!(GridView, node),
        offset_of!(GridView, out),
        offset_of!(GridView, scale),
        offset_of!(GridView, velocity),
        offset_of!(GridView, n),
        offset_of!(GridView, degree),
    ]
};
