//! Trees, lists and expansions.

use cust::memory::{DeviceCopy, DevicePointer};

use super::{Body, F32OrF64, Float4, ReadOnly};

/// The most GPUs that share a sum.
pub const TEAM: usize = 16;
/// Where so many shares begin, and where the last ends.
pub const BOUNDS: usize = TEAM + 1;

/// A tree as [`fmm_core::tree::Tree`] has it.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct TreeView {
    /// `[cells][3]`
    pub center: ReadOnly<f64>,
    /// Half the side of the cells of a level. `[levels]`
    pub half: ReadOnly<f64>,
    /// `[levels + 1]`
    pub level_start: ReadOnly<u32>,
    /// `[cells][2]`
    pub bodies: ReadOnly<u32>,
    /// `[cells][2]`
    pub children: ReadOnly<u32>,
    /// `[cells]`
    pub parent: ReadOnly<u32>,
    /// `[cells]`
    pub octant: ReadOnly<u8>,
    /// Number of cells.
    pub cells: u32,
    /// Number of levels.
    pub levels: u32,
    /// First body that is summed here, and one past the last; the sums of others are another GPU's.
    pub share: [u32; 2],
}

/// Rows of pairs, one row a target cell.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CsrView {
    /// `[cells + 1]`
    pub start: ReadOnly<u64>,
    /// Source cell and class. `[start[cells]][2]`
    pub pairs: ReadOnly<u32>,
}

/// Potential and field at one body.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C, align(32))]
pub struct Sum {
    /// Potential.
    pub potential: f64,
    /// Field.
    ///
    /// Kernels: `x`, `y`, `z`.
    pub field: [f64; 3],
}

/// Bodies to expansions and expansions to bodies. Bodies and sums are in the order of their tree.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct FarView {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources.
    pub sources: TreeView,
    /// Of P2L and M2P.
    pub list: CsrView,
    /// `[targets]`
    pub target_bodies: ReadOnly<Body>,
    /// `[sources]`
    pub source_bodies: ReadOnly<Body>,
    /// The cells that have work. `[count]`
    pub work: ReadOnly<u32>,
    /// Of the recurrences, see [`fmm_core::expansion::recurrences`].
    pub factors: ReadOnly<F32OrF64>,
    /// Multipoles or local expansions. `[cells][(order + 1)²]`
    pub coefficients: DevicePointer<F32OrF64>,
    /// `[targets]`
    pub sums: DevicePointer<Sum>,
    /// Of the periodic box, or 0.
    pub sides: [f64; 3],
    /// Number of cells that have work.
    pub count: u32,
    /// Order of the expansions.
    pub order: u32,
    /// Harmonics that a warp of P2M or P2L holds at a time.
    pub window: u32,
}

/// Multipoles of children to their parents', local expansions of parents to their children's.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct TranslateView {
    /// Of the cells.
    pub tree: TreeView,
    /// Children of one level and octant, then [`NONE`](super::NONE). `[][CELLS]`
    pub tiles: ReadOnly<u32>,
    /// `[8][n][columns]`
    pub matrices: ReadOnly<F32OrF64>,
    /// The expansions that are translated; M2M completes those of the tile's cells first. `[cells][n]`
    pub from: DevicePointer<F32OrF64>,
    /// L2L adds to it; M2M leaves each cell about its parent's center there. `[cells][n]`
    pub to: DevicePointer<F32OrF64>,
    /// The tile of block 0.
    pub first_tile: u32,
    /// 0: nothing but the completing, for the root.
    pub translates: u32,
    /// Coefficients of an expansion.
    pub n: u32,
    /// The same rounded up to a multiple of 4.
    pub columns: u32,
    /// Target coefficients of a block, a multiple of 4.
    pub part: u32,
    /// Source coefficients at a time.
    pub depth: u32,
    /// 0: all cells; 1: those whose bodies are all of this GPU's share; 2: those of several shares,
    /// with their children.
    pub pass: u32,
    /// GPUs that share the tree.
    pub members: u32,
    /// Where their shares begin. `[members + 1]`
    pub bounds: [u32; BOUNDS],
}

/// Σq² of the cells of a level.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct SquaresView {
    /// The tree, and which cells M2M takes.
    pub pass: TranslateView,
    /// In the order of the tree. `[sources]`
    pub bodies: ReadOnly<Body>,
    /// Those of the level are set, from those of the level below. `[cells]`
    pub squares: DevicePointer<f32>,
    /// First cell of the level.
    pub first: u32,
    /// Its cells.
    pub count: u32,
}

/// Cartesian expansions: bodies to expansions and expansions to bodies.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CartesianView {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources.
    pub sources: TreeView,
    /// Of P2L and M2P.
    pub list: CsrView,
    /// `[targets]`
    pub target_bodies: ReadOnly<Body>,
    /// `[sources]`
    pub source_bodies: ReadOnly<Body>,
    /// A cell for each block.
    pub work: ReadOnly<u32>,
    /// Of the multi-indices to degree order + 1, 8 bits an axis.
    pub exponents: ReadOnly<u32>,
    /// Multipoles or local expansions. `[cells][indices]`
    pub coefficients: DevicePointer<F32OrF64>,
    /// `[targets]`
    pub sums: DevicePointer<Sum>,
    /// ε, or the screening length.
    pub epsilon: f64,
    /// Order of the expansions.
    pub order: u32,
    /// Bodies at a time.
    pub lanes: u32,
    /// 0 for Plummer's kernel, 1 for P1, 2 for Yukawa's.
    pub kernel: u32,
}

/// The matrices of the M2L of Cartesian expansions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CartesianMatrixView {
    /// Of the multi-indices.
    pub exponents: ReadOnly<u32>,
    /// The coefficient of a packed place, or [`NONE`](super::NONE). `[16 steps]`
    pub coefficients: ReadOnly<u32>,
    /// `[matrices][indices]`
    pub derivatives: ReadOnly<f64>,
    /// `[matrices][steps][columns][32][4]`
    pub matrices: DevicePointer<F32OrF64>,
    /// Numbers of all matrices.
    pub size: u64,
    /// Order of the expansions.
    pub order: u32,
    /// Steps of 16 source coefficients.
    pub steps: u32,
    /// Eights of target coefficients.
    pub columns: u32,
    /// Words of a number: 2 in double precision.
    pub words: u32,
    /// 1: numbers of single precision are split in two.
    pub split: u32,
}

/// Multipoles to local expansions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct M2lView {
    /// Who meets whom.
    pub list: CsrView,
    /// Target cells of one level and octant, then [`NONE`](super::NONE). `[tiles_len][CELLS]`
    pub tiles: ReadOnly<u32>,
    /// Source cells, or [`NONE`](super::NONE). `[tiles_len][slots][CELLS]`
    pub table: DevicePointer<u32>,
    /// Of the target cells. `[cells]`
    pub octant: ReadOnly<u8>,
    /// Of the target cells. `[cells][2]`
    pub bodies: ReadOnly<u32>,
    /// Of the targets. `[levels + 1]`
    pub level_start: ReadOnly<u32>,
    /// The slot of a class at targets of an octant, or [`NONE`](super::NONE). `[8][classes]`
    pub slot_of: ReadOnly<u32>,
    /// The matrix, and in bits 29 to 31 the axes that it is mirrored along. `[8][slots]`
    pub operators: ReadOnly<u32>,
    /// The sign bits of a packed place in a mirror along these axes. `[8][pitch]`
    pub source_signs: ReadOnly<u32>,
    /// `[8][8 columns]`
    pub target_signs: ReadOnly<u32>,
    /// The coefficient of a packed place, or [`NONE`](super::NONE). `[pitch]`
    pub order: ReadOnly<u32>,
    /// What packed places are multiplied by, with halves. `[pitch]`
    pub source_scale: ReadOnly<f64>,
    /// What sums are multiplied by then. `[8 columns]`
    pub target_scale: ReadOnly<f64>,
    /// What the products of a cell are multiplied by then. `[zero_row + 1]`
    pub cell_scale: DevicePointer<f32>,
    /// `[][steps][columns][32][4]`
    pub matrices: ReadOnly<F32OrF64>,
    /// `[zero_row][n]`
    pub multipoles: ReadOnly<F32OrF64>,
    /// `[zero_row + 1][pitch]`
    pub packed: DevicePointer<F32OrF64>,
    /// The same.
    pub from: ReadOnly<F32OrF64>,
    /// `[cells][n]`
    pub to: DevicePointer<F32OrF64>,
    /// Where there are parts. `[parts][cells][n]`
    pub partial: DevicePointer<F32OrF64>,
    /// Set where a pair's class has no slot. `[1]`
    pub fault: DevicePointer<u32>,
    /// Number of tiles.
    pub tiles_len: u32,
    /// Operators that targets of one octant can meet.
    pub slots: u32,
    /// Number of classes.
    pub classes: u32,
    /// Shares of the operators, each summed by warps of its own.
    pub parts: u32,
    /// Number of target cells.
    pub cells: u32,
    /// Number of source cells.
    pub zero_row: u32,
    /// Coefficients of an expansion.
    pub n: u32,
    /// Eights of target coefficients.
    pub columns: u32,
    /// Packed coefficients of a cell.
    pub pitch: u32,
    /// Steps of 16 source coefficients.
    pub steps: u32,
    /// 1: the last step has 8.
    pub half: u32,
    /// Levels of the targets.
    pub levels: u32,
    /// Matrices of a level; 0: all levels have the same.
    pub per_level: u32,
    /// As [`TreeView::share`].
    pub share: [u32; 2],
}

/// Direct sums by lists.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct NearView {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources.
    pub sources: TreeView,
    /// Who meets whom.
    pub list: CsrView,
    /// `[targets]`
    pub target_bodies: ReadOnly<Body>,
    /// `[sources]`
    pub source_bodies: ReadOnly<Body>,
    /// 1 for the leaves of the sources whose bodies are here; null: all are. `[source cells]`
    pub needed: ReadOnly<u8>,
    /// From the center of the leaf, in a power of two below half the root's side; strength. `[sources]`
    pub near: DevicePointer<Float4>,
    /// Σ|q| of the leaves whose bodies are here. `[source cells]`
    pub sizes: DevicePointer<f32>,
    /// Leaf or [`NONE`](super::NONE), first body, one past the last. `[count][3]`
    pub tasks: DevicePointer<u32>,
    /// The targets of a task that single precision could not sum, a bit each. `[count][2]`
    pub again: DevicePointer<u64>,
    /// `[targets]`
    pub sums: DevicePointer<Sum>,
    /// ε, or h of the spline.
    pub softening: f64,
    /// ε.
    pub smooth_below: f64,
    /// In half sides of the leaf; 0: never too close.
    pub closest: f64,
    /// Of the periodic box, or 0.
    pub sides: [f64; 3],
    /// Number of tasks.
    pub count: u32,
    /// 1: targets are the sources, and none sees itself.
    pub same: u32,
}
