//! What host and device share in the variants of M2L. The header of the kernels,
//! `arguments/m2l_variants.cuh`, is generated from this text. Pairs are the pairs (l, m) with m ≥ 0
//! of an expansion.

use cust::memory::{DeviceCopy, DevicePointer};

use crate::view::{F32OrF64, ReadOnly};

/// Groups of offsets that differ only in signs.
pub const GROUPS: usize = 56;
/// The most offsets of a group.
pub const MEMBERS: usize = 8;
/// Threads of a block of the variant with loops.
pub const NAIVE: usize = 128;
/// The most threads of a block of the other variants.
pub const WIDTH: usize = 256;

/// Kernels that a target cell launches where kernels launch kernels: one for each neighbor of its parent.
pub const LAUNCHES: usize = 26;
/// Places for the translations of a cell there.
pub const PARTS: usize = 8 * LAUNCHES;

/// The argument of all variants.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct M2lVariantsView {
    /// Complex. `[cells][pairs]`
    pub multipoles: ReadOnly<F32OrF64>,
    /// Complex. `[cells][pairs]`
    pub locals: DevicePointer<F32OrF64>,
    /// I_l^m to degree 2p, of the offsets −3 to 3 `[343][whole]` for loops and launches, `[GROUPS][whole]` for groups.
    pub operators: ReadOnly<F32OrF64>,
    /// Number of members; of each the offset + 3 by 3 bits an axis, and bits of signs from bit 16
    /// on. `[8][GROUPS][1 + MEMBERS]`
    pub groups: ReadOnly<u32>,
    /// For rotations, of Re and Im, then transposed; blocks of (l + 1)². `[4][blocks]`
    pub swaps: ReadOnly<F32OrF64>,
    /// Complex: powers of e1 and e2. `[343][2][p + 1]`
    pub turns: ReadOnly<F32OrF64>,
    /// n!/r^(n + 1). `[343][2p + 1]`
    pub powers: ReadOnly<F32OrF64>,
    /// Complex: what each translation gives, where kernels launch kernels. `[count][PARTS][pairs]`
    pub parts: DevicePointer<F32OrF64>,
    /// 1 where the device refused to launch a kernel. `[1]`
    pub failed: DevicePointer<u32>,
    /// Order of the expansions.
    pub p: u32,
    /// Cells along an axis.
    pub side: u32,
    /// Number of cells.
    pub cells: u32,
    /// Targets of a block.
    pub targets: u32,
    /// Numbers of all blocks of a rotation.
    pub blocks: u32,
    /// First cell of a launch.
    pub first: u32,
    /// Cells of a launch.
    pub count: u32,
}
