//! What host and device share: the arguments of the kernels. `kernels/common/view.cuh` has the same structs in the same order, and
//! the tests compare the layout of the two in the text of the kernels.

mod bodies;
mod cells;
mod guard;
mod peak;
mod periodic;

pub use bodies::*;
pub use cells::*;
pub use guard::*;
pub use peak::*;
pub use periodic::*;

/// Bodies that one block reads at once, and threads of a block.
pub const TILE: usize = 256;
/// Targets that a thread of a direct sum holds in single precision.
pub const TARGETS_F32: usize = 4;
/// Targets that a thread of a direct sum holds in double precision.
pub const TARGETS_F64: usize = 3;
/// Target cells of one octant that one block translates to.
pub const CELLS: usize = 64;
/// Sums of one share of the particles.
pub const TOTALS: usize = 21;
/// Particles of a chunk in the order of their distances.
pub const CHUNK: usize = 4096;
/// No cell.
pub const NONE: u32 = u32::MAX;

/// What `layout` in `kernels/common/view.cuh` must hold.
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
        offset_of!(CartesianView, kernel),
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
        size_of::<VelocityView>(),
        offset_of!(VelocityView, component),
        TOTALS,
        CHUNK,
        size_of::<Sphere>(),
        size_of::<TotalsView>(),
        offset_of!(TotalsView, n),
        offset_of!(TotalsView, massless),
        PEAK_CHAINS,
        size_of::<PeakView>(),
        offset_of!(PeakView, rounds),
    ]
};
