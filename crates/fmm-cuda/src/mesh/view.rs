//! What host and device share in sums with a mesh. The header of the kernels, `arguments/mesh.cuh`, is generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};
use fmm_core::mesh;

use crate::view::{Body, F32OrF64, ReadOnly};

/// The most points of a window along an axis.
pub const MOST_POINTS: usize = 16;
/// The most coefficients of a polynomial of the far kernel.
pub const TERMS: usize = 48;
/// Points along a side of a brick of the mesh.
pub const BRICK: usize = 8;
/// Threads of a block that spreads.
pub const SPREADERS: usize = 128;
/// Threads of a block that gathers.
pub const GATHERERS: usize = 256;
/// Threads of a block of transforms.
pub const TRANSFORM_THREADS: usize = 256;
/// The most factors of the length of a line.
pub const MOST_FACTORS: usize = 16;
/// Warps that share the targets of a block of pairs.
pub const NEAR_WARPS: usize = 4;
/// Columns of cells along z of a brick of cells at most.
pub const BRICK_COLUMNS: usize = 121;
/// Threads of a block of other kernels.
pub const MESH_TILE: usize = 256;

const _: () = assert!(MOST_POINTS == mesh::MOST_POINTS && TERMS == mesh::TERMS);

/// A mesh over a box, and its cells, each of whole points.
#[derive(Debug, Clone, Copy, Default, DeviceCopy)]
#[repr(C)]
pub struct Lattice {
    /// Points over the side of the box.
    pub per_length: [f64; 3],
    /// Sides of a cell, scaled.
    pub size: [f64; 3],
    /// What lengths are multiplied by.
    pub scale: f64,
    /// Points of the mesh.
    pub points: [u32; 3],
    /// Points of a cell.
    pub group: [u32; 3],
    /// Cells.
    pub cells: [u32; 3],
    /// Fills the last word.
    pub unused: u32,
}

/// Bodies to their places in the order of cells.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CellsView {
    /// The mesh.
    pub lattice: Lattice,
    /// In the box, unscaled. `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n]`, or null: targets.
    pub strength: ReadOnly<f64>,
    /// Sorted. `[n]`
    pub key: ReadOnly<u64>,
    /// The body of each place. `[n]`
    pub order: ReadOnly<u32>,
    /// Unscaled positions and scaled strengths. `[n]`
    pub bodies: DevicePointer<Body>,
    /// From the corner of the cell, scaled, and strengths. `[n][4]`
    pub near: DevicePointer<F32OrF64>,
    /// The index of the cell along z. `[n]`
    pub depth: DevicePointer<F32OrF64>,
    /// The cell of each place. `[n]`
    pub cell: DevicePointer<u32>,
    /// The first place of each cell, z fastest, and one past the last.
    pub start: DevicePointer<u32>,
    /// Pairs of bodies at one place.
    pub coincident: DevicePointer<u64>,
    /// What strengths are multiplied by.
    pub strength_scale: f64,
    /// Number of bodies.
    pub n: u32,
    /// What keys are shifted by.
    pub shift: u32,
    /// Number of cells.
    pub cells: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// Pairs within a cut-off of the bodies of cells, by bricks of these.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct BrickView {
    /// The cells.
    pub lattice: Lattice,
    /// As in [`CellsView`]. `[targets][4]`
    pub targets: ReadOnly<F32OrF64>,
    /// `[targets]`
    pub target_depth: ReadOnly<F32OrF64>,
    /// First place of each cell of targets.
    pub target_start: ReadOnly<u32>,
    /// `[sources][4]`
    pub sources: ReadOnly<F32OrF64>,
    /// `[sources]`
    pub depth: ReadOnly<F32OrF64>,
    /// First place of each cell of sources.
    pub start: ReadOnly<u32>,
    /// Sides of a cell, square of the cut-off, one over the side of a cell along z, and the square of the distance within
    /// which a pair may be within the cut-off, as products in TF32 find it; scaled.
    pub units: [f64; 6],
    /// In single precision.
    pub units_f32: [f32; 6],
    /// Cells of a brick, whose targets a block has.
    pub brick: [u32; 3],
    /// Cells that the cut-off reaches beyond a brick at most.
    pub reach: [u32; 3],
}

/// Pairs within the cut-off of a mesh.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CutoffView {
    /// Their cells.
    pub bricks: BrickView,
    /// `[targets]`
    pub target_cell: ReadOnly<u32>,
    /// Columns of cells around one, along x and y. `[columns][2]`
    pub columns: ReadOnly<i32>,
    /// Potential and field, scaled. `[targets][4]`
    pub sums: DevicePointer<f64>,
    /// Targets that have a pair that is too close for single precision, and before them how many. `[1 + targets]`
    pub again: DevicePointer<u32>,
    /// `[targets]`
    pub target_bodies: ReadOnly<Body>,
    /// `[sources]`
    pub source_bodies: ReadOnly<Body>,
    /// Two over the square of the cut-off, and the square of the distance within which pairs are too close (0: none is);
    /// scaled.
    pub units: [f64; 2],
    /// In single precision.
    pub units_f32: [f32; 2],
    /// Square of the cut-off.
    pub cutoff2: f64,
    /// Of the kernel.
    pub softening: f64,
    /// The far potential by powers of 2 r²/r_c² − 1, the highest first.
    pub potential: [f64; TERMS],
    /// The far force over r, the same; one power less.
    pub force: [f64; TERMS],
    /// In single precision.
    pub potential_f32: [f32; TERMS],
    /// The same.
    pub force_f32: [f32; TERMS],
    /// Number of columns.
    pub columns_len: u32,
    /// 1: targets are the sources, in the same order.
    pub same: u32,
}

/// Between bodies and the mesh.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct WindowView {
    /// The mesh.
    pub lattice: Lattice,
    /// Sources, or targets, by cells.
    pub bodies: ReadOnly<Body>,
    /// First place of each cell of sources.
    pub start: ReadOnly<u32>,
    /// Strengths. `[x][y][z]`
    pub mesh: DevicePointer<F32OrF64>,
    /// Potential and field. `[x][y][z][4]`
    pub functions: ReadOnly<F32OrF64>,
    /// Coefficients of the weights. `[powers][MOST_POINTS]`
    pub weights: ReadOnly<F32OrF64>,
    /// Sums of pairs at targets. `[n][4]`
    pub near: ReadOnly<f64>,
    /// The body of each place.
    pub order: ReadOnly<u32>,
    /// In the caller's order, or null.
    pub potential: DevicePointer<f64>,
    /// In the caller's order. `[n][3]`
    pub field: DevicePointer<f64>,
    /// Taken from the scaled potential.
    pub background: f64,
    /// Taken from it, times the scaled strength of the target.
    pub own: f64,
    /// From scaled sums to the caller's.
    pub potential_scale: f64,
    /// The same.
    pub field_scale: f64,
    /// Number of bodies.
    pub n: u32,
    /// Powers of the weights.
    pub powers: u32,
}

/// Fourier transforms of a mesh.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct TransformView {
    /// Strengths. `[x][y][z]`
    pub mesh: ReadOnly<F32OrF64>,
    /// Transformed along z. `[x][y][depth]` complex
    pub spectrum: DevicePointer<F32OrF64>,
    /// Transformed along y. `[x][row_count][depth]`
    pub rows: DevicePointer<F32OrF64>,
    /// The potential, transformed back along x. The same.
    pub potential: DevicePointer<F32OrF64>,
    /// Its slope along x. The same.
    pub slope: DevicePointer<F32OrF64>,
    /// Potential, slopes along x and y. `[3][x][y][depth]`
    pub spectra: DevicePointer<F32OrF64>,
    /// Potential and field. `[x][y][z][4]`
    pub functions: DevicePointer<F32OrF64>,
    /// exp(−2πi k/n) of each axis. `[n]` complex
    pub roots: [ReadOnly<F32OrF64>; 3],
    /// Of the windows, squared: what waves are divided by, inverted.
    pub inverse: [ReadOnly<f64>; 3],
    /// The far kernel by powers, the highest first.
    pub powers: ReadOnly<f64>,
    /// Waves along z of each row along y.
    pub row_waves: ReadOnly<u32>,
    /// 2π over each side.
    pub wave: [f64; 3],
    /// K².
    pub highest2: f64,
    /// 4π over the volume.
    pub kernel: f64,
    /// Points of the mesh.
    pub counts: [u32; 3],
    /// How many factors there are.
    pub factor_count: [u32; 3],
    /// Of each axis.
    pub factors: [[u32; MOST_FACTORS]; 3],
    /// Waves along z, from 0.
    pub depth: u32,
    /// Waves along y, of both signs.
    pub row_count: u32,
    /// Coefficients.
    pub power_count: u32,
    /// Lines of a block.
    pub lines: u32,
}
