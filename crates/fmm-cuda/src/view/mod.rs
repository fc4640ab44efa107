//! What host and device share: the arguments of the kernels, which they take by value.
//!
//! This text is the source. `build.rs` generates a C++ header from it for the kernels, `arguments/view.cuh`, and
//! `tests/layout.rs` compares the layouts of both languages. A doc line "Kernels: `name`." gives another name in C++.

use cust::memory::DevicePointer;

mod bath;
mod bodies;
mod cells;
mod guard;
mod hessian;
mod peak;
mod periodic;
mod team;

pub use bath::*;
pub use bodies::*;
pub use cells::*;
pub use guard::*;
pub use hessian::*;
pub use peak::*;
pub use periodic::*;
pub use team::*;

/// An array that kernels only read.
pub type ReadOnly<T> = DevicePointer<T>;
/// Numbers in the precision of the sum, `f32` or `f64`: kernels cast the pointer.
///
/// Kernels: `void`.
pub type F32OrF64 = u8;
/// Four numbers that kernels load at once.
///
/// Kernels: `float4`.
pub type Float4 = [f32; 4];
/// Four integers that kernels load at once.
///
/// Kernels: `uint4`.
pub type Uint4 = [u32; 4];

/// Bodies that one block reads at once, and threads of a block.
pub const TILE: usize = 256;
/// Targets that a thread of a direct sum holds in single precision: enough to hide latencies, with registers left for
/// several blocks on a multiprocessor.
pub const TARGETS_F32: usize = 4;
/// Targets that a thread of a direct sum holds in double precision.
pub const TARGETS_F64: usize = 3;
/// Target cells of one octant that one block translates to.
pub const CELLS: usize = 64;
/// Room for the sums over one share of the particles, the largest mass in the last place.
pub const TOTALS: usize = 32;
/// Particles of a chunk in the order of their distances.
pub const CHUNK: usize = 4096;
/// No cell.
pub const NONE: u32 = u32::MAX;
