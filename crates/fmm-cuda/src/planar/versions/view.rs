//! What host and device share in the versions of M2L in the plane. The header of the kernels,
//! `arguments/planar_versions.cuh`, is generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};

use crate::view::{F32OrF64, ReadOnly};

/// Threads of a block with a translation each.
pub const DIAGONAL_THREADS: usize = 128;
/// Threads of a block with a row each.
pub const ROW_THREADS: usize = 128;
/// Sets of translations of a block that loads the next one meanwhile.
pub const ROW_ROUNDS: usize = 8;

/// The argument of all versions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct VersionsView {
    /// Complex. `[boxes][terms]`
    pub multipoles: ReadOnly<F32OrF64>,
    /// Complex: from source to target. `[count]`
    pub way: ReadOnly<F32OrF64>,
    /// The source of each translation. `[count]`
    pub source: ReadOnly<u32>,
    /// The first translation of each target. `[targets + 1]`
    pub start: ReadOnly<u32>,
    /// Complex: what each translation gives. `[count][terms]`
    pub products: DevicePointer<F32OrF64>,
    /// Complex: their sums. `[targets][terms]`
    pub locals: DevicePointer<F32OrF64>,
    /// Terms of an expansion.
    pub terms: u32,
    /// Number of translations.
    pub count: u32,
    /// Number of targets.
    pub targets: u32,
}
