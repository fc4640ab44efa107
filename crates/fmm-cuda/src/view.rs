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

/// Target cells of one octant that one block translates to.
pub const CELLS: usize = 64;
/// No cell.
pub const NONE: u32 = u32::MAX;

/// A tree as [`fmm_core::tree::Tree`] has it.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct TreeView {
    /// `[cells][3]`
    pub centre: DevicePointer<f64>,
    /// Half the side of the cells of a level. `[levels]`
    pub half: DevicePointer<f64>,
    /// `[levels + 1]`
    pub level_start: DevicePointer<u32>,
    /// `[cells][2]`
    pub bodies: DevicePointer<u32>,
    /// `[cells][2]`
    pub children: DevicePointer<u32>,
    /// `[cells]`
    pub parent: DevicePointer<u32>,
    /// `[cells]`
    pub octant: DevicePointer<u8>,
    /// Number of cells.
    pub cells: u32,
    /// Number of levels.
    pub levels: u32,
}

/// Rows of pairs, one row a target cell.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CsrView {
    /// `[cells + 1]`
    pub start: DevicePointer<u64>,
    /// Source cell and class. `[start[cells]][2]`
    pub pairs: DevicePointer<u32>,
}

/// Potential and field at one body.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C, align(32))]
pub struct Sum {
    /// Potential.
    pub potential: f64,
    /// Field.
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
    pub target_bodies: DevicePointer<Body>,
    /// `[sources]`
    pub source_bodies: DevicePointer<Body>,
    /// The cells that have work. `[count]`
    pub work: DevicePointer<u32>,
    /// Of the recurrences, see [`fmm_core::expansion::recurrences`].
    pub factors: DevicePointer<u8>,
    /// Multipoles or local expansions. `[cells][(order + 1)²]`
    pub coefficients: DevicePointer<u8>,
    /// `[targets]`
    pub sums: DevicePointer<Sum>,
    /// Number of cells that have work.
    pub count: u32,
    /// Order of the expansions.
    pub order: u32,
    /// 1: shared memory holds the harmonics of 32 bodies for each warp.
    pub staged: u32,
}

/// Multipoles of children to their parents', local expansions of parents to their children's.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct TranslateView {
    /// Of the targets.
    pub tree: TreeView,
    /// Target cells of one level and octant, then [`NONE`]. `[][CELLS]`
    pub tiles: DevicePointer<u32>,
    /// `[8][n][columns]`
    pub matrices: DevicePointer<u8>,
    /// `[cells][n]`
    pub from: DevicePointer<u8>,
    /// `[cells][n]`
    pub to: DevicePointer<u8>,
    /// The tile of block 0.
    pub first_tile: u32,
    /// 8 octants of children, or 1 parent.
    pub slots: u32,
    /// Coefficients of an expansion.
    pub n: u32,
    /// The same rounded up to a multiple of 4.
    pub columns: u32,
    /// Target coefficients of a block, a multiple of 4.
    pub part: u32,
    /// Source coefficients at a time.
    pub depth: u32,
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
    pub target_bodies: DevicePointer<Body>,
    /// `[sources]`
    pub source_bodies: DevicePointer<Body>,
    /// A cell for each block.
    pub work: DevicePointer<u32>,
    /// Of the multi-indices to degree order + 1, 8 bits an axis.
    pub exponents: DevicePointer<u32>,
    /// Multipoles or local expansions. `[cells][indices]`
    pub coefficients: DevicePointer<u8>,
    /// `[targets]`
    pub sums: DevicePointer<Sum>,
    /// ε.
    pub epsilon: f64,
    /// Order of the expansions.
    pub order: u32,
    /// Bodies at a time.
    pub lanes: u32,
    /// 1 for the kernel P1, 0 for Plummer's.
    pub p1: u32,
}

/// The matrices of the M2L of Cartesian expansions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CartesianMatrixView {
    /// Of the multi-indices.
    pub exponents: DevicePointer<u32>,
    /// The coefficient of a packed place, or [`NONE`]. `[16 steps]`
    pub coefficients: DevicePointer<u32>,
    /// `[matrices][indices]`
    pub derivatives: DevicePointer<f64>,
    /// `[matrices][steps][columns][32][4]`
    pub matrices: DevicePointer<u8>,
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
    /// 1: numbers of single precision are cut into two.
    pub split: u32,
}

/// Multipoles to local expansions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct M2lView {
    /// Who meets whom.
    pub list: CsrView,
    /// Target cells of one level and octant, then [`NONE`]. `[tiles_len][CELLS]`
    pub tiles: DevicePointer<u32>,
    /// Source cells, or [`NONE`]. `[tiles_len][slots][CELLS]`
    pub table: DevicePointer<u32>,
    /// Of the target cells. `[cells]`
    pub octant: DevicePointer<u8>,
    /// Of the targets. `[levels + 1]`
    pub level_start: DevicePointer<u32>,
    /// The slot of a class at targets of an octant, or [`NONE`]. `[8][classes]`
    pub slot_of: DevicePointer<u32>,
    /// The matrix, and in bits 29 to 31 the axes that it is mirrored along. `[8][slots]`
    pub operators: DevicePointer<u32>,
    /// The sign bits of a packed place in a mirror along these axes. `[8][pitch]`
    pub source_signs: DevicePointer<u32>,
    /// `[8][8 columns]`
    pub target_signs: DevicePointer<u32>,
    /// The coefficient of a packed place, or [`NONE`]. `[pitch]`
    pub order: DevicePointer<u32>,
    /// `[][steps][columns][32][4]`
    pub matrices: DevicePointer<u8>,
    /// `[zero_row][n]`
    pub multipoles: DevicePointer<u8>,
    /// `[zero_row + 1][pitch]`
    pub packed: DevicePointer<u8>,
    /// The same.
    pub from: DevicePointer<u8>,
    /// `[cells][n]`
    pub to: DevicePointer<u8>,
    /// Where there are parts. `[parts][cells][n]`
    pub partial: DevicePointer<u8>,
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
    pub target_bodies: DevicePointer<Body>,
    /// `[sources]`
    pub source_bodies: DevicePointer<Body>,
    /// From the centre of the leaf, in a power of two below half the root's side; strength. `[sources][4]`
    pub near: DevicePointer<f32>,
    /// Leaf or [`NONE`], first body, one past the last. `[count][3]`
    pub tasks: DevicePointer<u32>,
    /// 1 where a pair was too close for single precision. `[count]`
    pub again: DevicePointer<u32>,
    /// `[targets]`
    pub sums: DevicePointer<Sum>,
    /// ε, or h of the spline.
    pub softening: f64,
    /// ε.
    pub smooth_below: f64,
    /// In half sides of the leaf; 0: never too close.
    pub closest: f64,
    /// Number of tasks.
    pub count: u32,
    /// 1: targets are the sources, and none sees itself.
    pub same: u32,
}

/// Where the last degree of the expansions is large, at the bodies of a sample of leaves.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ShareView {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources.
    pub sources: TreeView,
    /// Multipoles at leaves.
    pub m2p: CsrView,
    /// Every `step`th is in the sample.
    pub leaves: DevicePointer<u32>,
    /// Places in the caller's order. `[targets]`
    pub caller: DevicePointer<u32>,
    /// In the order of their tree.
    pub target_bodies: DevicePointer<Body>,
    /// In the order of the targets' tree.
    pub sums: DevicePointer<Sum>,
    /// `[cells][(order + 1)²]`; null where there is no M2P.
    pub multipoles: DevicePointer<u8>,
    /// The same; null where there is no M2L.
    pub locals: DevicePointer<u8>,
    /// Of the recurrences.
    pub m2p_factors: DevicePointer<u8>,
    /// Of the recurrences.
    pub l2p_factors: DevicePointer<u8>,
    /// First body of each leaf of the sample. `[count]`
    pub start: DevicePointer<u32>,
    /// Number of bodies. `[1]`
    pub found: DevicePointer<f64>,
    /// In the caller's order. `[capacity]`
    pub target: DevicePointer<u32>,
    /// `[capacity]`
    pub share: DevicePointer<f64>,
    /// Leaves of the sample.
    pub count: u32,
    /// Of the sample in the leaves.
    pub step: u32,
    /// Bodies beyond which a leaf holds one place only.
    pub leaf_size: u32,
    /// Order of the expansions.
    pub order: u32,
    /// Bodies that there is room for.
    pub capacity: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// Direct sums at a sample of targets, for the guard.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GuardView {
    /// `[n]`
    pub sources: DevicePointer<Body>,
    /// In the caller's order. `[all][3]`
    pub position: DevicePointer<f64>,
    /// What is to be measured. `[all][3]`
    pub field: DevicePointer<f64>,
    /// Number of targets that have shares, `[1]`; or null.
    pub shared: DevicePointer<f64>,
    /// `[capacity]`
    pub share_target: DevicePointer<u32>,
    /// `[capacity]`
    pub share: DevicePointer<f64>,
    /// The sample. `[targets]`
    pub picked: DevicePointer<u32>,
    /// The number of targets, in any unit, that each stands for; 0: none. `[targets]`
    pub weight: DevicePointer<f64>,
    /// Field and square of the largest term. `[targets][parts][4]`
    pub partial: DevicePointer<f64>,
    /// The same, the field that was found, weight, `[targets][8]`; and what `shared` holds.
    pub out: DevicePointer<f64>,
    /// ε, or h of the spline, in the scaled unit.
    pub softening: f64,
    /// What lengths are multiplied by in the sources.
    pub unit: f64,
    /// What they are multiplied by besides, so that squares of forces are numbers.
    pub scale: f64,
    /// Number of sources.
    pub n: u32,
    /// Number of all targets.
    pub all: u32,
    /// Number of targets of the sample.
    pub targets: u32,
    /// Shares of the sources.
    pub parts: u32,
    /// Targets with shares that there is room for.
    pub capacity: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// Bodies to the order of a tree, and sums back to the caller's.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GatherView {
    /// In the caller's order. `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n]`, or null: all zero.
    pub strength: DevicePointer<f64>,
    /// `[n]`
    pub order: DevicePointer<u32>,
    /// The place of `order[i]` is i. `[n]`
    pub inverse: DevicePointer<u32>,
    /// `[n]`
    pub bodies: DevicePointer<Body>,
    /// `[n]`
    pub sums: DevicePointer<Sum>,
    /// More of the potential, or null. `[n]`
    pub more: DevicePointer<Sum>,
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
        CELLS,
        size_of::<TreeView>(),
        offset_of!(TreeView, cells),
        size_of::<CsrView>(),
        size_of::<Sum>(),
        size_of::<FarView>(),
        offset_of!(FarView, list),
        offset_of!(FarView, sums),
        offset_of!(FarView, staged),
        size_of::<TranslateView>(),
        offset_of!(TranslateView, tiles),
        offset_of!(TranslateView, depth),
        size_of::<CartesianView>(),
        offset_of!(CartesianView, epsilon),
        offset_of!(CartesianView, p1),
        size_of::<CartesianMatrixView>(),
        offset_of!(CartesianMatrixView, split),
        size_of::<M2lView>(),
        offset_of!(M2lView, matrices),
        offset_of!(M2lView, fault),
        offset_of!(M2lView, per_level),
        size_of::<NearView>(),
        offset_of!(NearView, tasks),
        offset_of!(NearView, softening),
        offset_of!(NearView, same),
        size_of::<ShareView>(),
        offset_of!(ShareView, start),
        offset_of!(ShareView, capacity),
        size_of::<GuardView>(),
        offset_of!(GuardView, softening),
        offset_of!(GuardView, capacity),
        size_of::<GatherView>(),
        offset_of!(GatherView, n),
    ]
};
