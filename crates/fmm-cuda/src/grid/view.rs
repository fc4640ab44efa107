//! What host and device share in sums on grids. The header of the kernels, `arguments/grid.cuh`, is generated from this
//! text.

use cust::memory::{DeviceCopy, DevicePointer};
use fmm_core::grid::{near, plan};

use crate::view::ReadOnly;

/// Cells along a side of a brick.
pub const SIDE: usize = 8;
/// Cells of a brick.
pub const POINTS: usize = SIDE * SIDE * SIDE;
/// Sums of a brick: for each cell three components of 4πΨ and three of 4πu.
pub const SUMS: usize = 6 * POINTS;

/// Threads of a block of direct sums, each with a column of points along y; sources that it holds.
pub const COLUMNS: usize = SIDE * SIDE;
/// Threads of a block of evaluations, each with two points of a column.
pub const EVALUATORS: usize = POINTS / 2;

const _: () = assert!(SIDE == plan::SIDE && SUMS == near::SUMS);

/// No place of sums.
pub const NO_SUMS: u32 = u32::MAX;

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
    pub center: ReadOnly<[f64; 3]>,
    /// `[n]`
    pub strength: ReadOnly<[f64; 3]>,
    /// `[n]`
    pub core2: ReadOnly<f64>,
    /// Sorted place → place in these arrays. `[n]`
    pub order: ReadOnly<u32>,
    /// Sorted, in units of 1/scale. `[n]`
    pub source: DevicePointer<GridSource>,
    /// Coordinates of the points of bricks, in the same units. `[bricks]`
    pub brick: ReadOnly<[[f64; SIDE]; 3]>,
    /// Brick, first run or node, one past the last, place of its sums. `[count]`
    pub tasks: ReadOnly<[u32; 4]>,
    /// First source and one past the last.
    pub runs: ReadOnly<[u32; 2]>,
    /// Place of the sums of a brick, first of those to be added to them, one past the last. `[count]`
    pub parts: ReadOnly<[u32; 3]>,
    /// Nodes that act by expansion, row by row.
    pub nodes: ReadOnly<u32>,
    /// Center, and the inverse of half the side. `[nodes]`
    pub node: ReadOnly<[f64; 4]>,
    /// `[nodes][length]`
    pub weights: ReadOnly<f64>,
    /// `[degree + 2]`
    pub diagonal: ReadOnly<f64>,
    /// Of the recurrences, order by order.
    pub steps: ReadOnly<[f64; 2]>,
    /// `[places][SUMS]`
    pub out: DevicePointer<f64>,
    /// The place of the sums of each brick; `NO_SUMS` where it has none. `[bricks]`
    pub place: ReadOnly<u32>,
    /// Sums that the cores made; null without. `[bricks][SUMS]`
    pub others: ReadOnly<f64>,
    /// Ψ. `[cells][3]`
    pub psi: DevicePointer<f64>,
    /// u. `[cells][3]`
    pub field: DevicePointer<f64>,
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
