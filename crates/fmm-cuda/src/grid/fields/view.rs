//! What host and device share of the fields of a flow. The header of the kernels,
//! `arguments/grid_fields.cuh`, is generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};
use fmm_core::grid::{blocks, hierarchy};

use crate::view::ReadOnly;

/// Cells along a side of a block.
pub const BLOCK: usize = 16;
/// Cells of a block.
pub const BLOCK_CELLS: usize = BLOCK * BLOCK * BLOCK;
/// Blocks around a block, and itself.
pub const AROUND: usize = 27;
/// No block.
pub const NO_BLOCK: u32 = u32::MAX;
/// Threads of a block of cells.
pub const FIELD_THREADS: usize = 256;
/// Blocks of threads that share a block of cells where each cell takes long: there are few blocks
/// of cells.
pub const SLICES: usize = BLOCK_CELLS / FIELD_THREADS;

/// Numbers of a record that says what the cells of a block come from: up to 27 blocks, and then the
/// kind.
pub const RECORD: usize = AROUND + 1;
/// Kinds below this are parts of the block in the middle.
pub const KIND_SAME: u32 = 8;
/// The cells are zero.
pub const KIND_NOTHING: u32 = 9;
/// The first eight blocks are the parts of this one.
pub const KIND_PARTS: u32 = 10;

/// Numbers of a [`SeededView`] in an array.
pub const SEEDED: usize = 5;

const _: () = assert!(BLOCK == blocks::BLOCK && NO_BLOCK == hierarchy::NONE);

/// Where the blocks of a grid are, and what they have.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct FieldView {
    /// The numbers of the cells of the blocks of the grid. `[own_blocks][BLOCK_CELLS][numbers]`
    pub own: ReadOnly<f64>,
    /// Those of blocks that are made from them.
    pub made: ReadOnly<f64>,
    /// Numbers of the blocks around each. `[count][AROUND]`
    pub around: ReadOnly<u32>,
    /// Place along each axis and level of each. `[count][4]`
    pub block: ReadOnly<u32>,
    /// Records, numbers of cells, or bits.
    pub table: ReadOnly<u32>,
    /// A second field.
    pub other: ReadOnly<f64>,
    /// A third field; null if there is none.
    pub third: ReadOnly<f64>,
    /// What is made.
    pub out: DevicePointer<f64>,
    /// A second field that is made.
    pub second: DevicePointer<f64>,
    /// Integers that are made.
    pub integers: DevicePointer<u32>,
    /// Lower corner of the domain.
    pub corner: [f64; 3],
    /// A point or a vector.
    pub vector: [f64; 3],
    /// h of level 0.
    pub spacing: f64,
    /// Factors.
    pub factor: [f64; 2],
    /// Blocks of the grid.
    pub own_blocks: u32,
    /// Blocks or numbers of a launch.
    pub count: u32,
    /// Numbers of a cell.
    pub numbers: u32,
    /// Whether they are values at points, and not means.
    pub points: u32,
}

/// Particles of a level.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ParticleView {
    /// `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n][3]`
    pub vorticity: DevicePointer<f64>,
    /// dx/dt. `[n][3]`
    pub velocity: DevicePointer<f64>,
    /// dω/dt. `[n][3]`
    pub growth: DevicePointer<f64>,
    /// Number of the block that holds particles, for each block of a box; `NO_BLOCK` where none does.
    pub occupied: ReadOnly<u32>,
    /// Particles of each block of the box.
    pub held: DevicePointer<u32>,
    /// A bit for each of the blocks around a block of the box that its particles reach.
    pub reached: DevicePointer<u32>,
    /// The first particle of each block that holds some. `[blocks]`
    pub first: ReadOnly<u32>,
    /// The first particle of each cell, in the sorted order; how many until then.
    /// `[blocks][BLOCK_CELLS] + 1`
    pub start: DevicePointer<u32>,
    /// How many of each cell have a place.
    pub taken: DevicePointer<u32>,
    /// Sorted place → number.
    pub order: DevicePointer<u32>,
    /// The lowest and the highest block along each axis, and how many particles are outside.
    pub bounds: DevicePointer<i32>,
    /// Numbers of blocks around each: those that hold particles, or those of a field.
    /// `[blocks][AROUND]`
    pub around: ReadOnly<u32>,
    /// Numbers of the blocks of a grid that particles become cells of.
    pub targets: ReadOnly<u32>,
    /// u with its gradients in the blocks of a grid, and in those made from them.
    pub motion: ReadOnly<f64>,
    /// Those in the blocks that are made.
    pub motion_made: ReadOnly<f64>,
    /// ν ∇²ω likewise; null without viscosity.
    pub diffused: ReadOnly<f64>,
    /// Those in the blocks that are made.
    pub diffused_made: ReadOnly<f64>,
    /// The cells that are made of particles.
    pub out: DevicePointer<f64>,
    /// Lower corner of the domain.
    pub corner: [f64; 3],
    /// Cells of the level in a unit of length.
    pub cells: f64,
    /// Cells of the level along a side.
    pub across: f64,
    /// The first block of the box along each axis.
    pub low: [i32; 3],
    /// Blocks of the box along each axis.
    pub side: [i32; 3],
    /// Particles.
    pub n: u32,
    /// Blocks of a launch.
    pub count: u32,
    /// Blocks of the grid.
    pub own_blocks: u32,
    /// Cells on either side of a particle that the kernel acts on.
    pub reach: u32,
}

/// Cells that become particles.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct SeededView {
    /// Number, bits of blocks near, number of the coarser block, which part of it, and margin in
    /// cells. `[count][SEEDED]`
    pub seeded: ReadOnly<u32>,
    /// Place along each axis and level of all blocks.
    pub block: ReadOnly<u32>,
    /// ω in the blocks of a grid, and in those made from them.
    pub vorticity: ReadOnly<f64>,
    /// Those in the blocks that are made.
    pub vorticity_made: ReadOnly<f64>,
    /// u with its gradients likewise.
    pub motion: ReadOnly<f64>,
    /// Those in the blocks that are made.
    pub motion_made: ReadOnly<f64>,
    /// ν ∇²ω likewise; null without viscosity.
    pub diffused: ReadOnly<f64>,
    /// Those in the blocks that are made.
    pub diffused_made: ReadOnly<f64>,
    /// Particles of each block.
    pub counts: DevicePointer<u32>,
    /// The first of each block.
    pub first: ReadOnly<u32>,
    /// `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n][3]`
    pub weight: DevicePointer<f64>,
    /// `[n][3]`
    pub velocity: DevicePointer<f64>,
    /// `[n][3]`
    pub growth: DevicePointer<f64>,
    /// Lower corner of the domain.
    pub corner: [f64; 3],
    /// h of level 0.
    pub spacing: f64,
    /// Blocks of the grid.
    pub own_blocks: u32,
    /// Blocks of a launch.
    pub count: u32,
}
