//! What host and device share in evaluations of series in single precision. The header of the kernels,
//! `arguments/gauss_single.cuh`, is generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};

use crate::view::ReadOnly;

/// Threads of a block.
pub const SERIES_THREADS: usize = 128;
/// Points of a thread.
pub const SERIES_POINTS: usize = 4;
/// The most terms of a series along an axis.
pub const MOST_TERMS: usize = 16;

/// Series in the plane at points, a series for each block of points.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct SeriesView {
    /// Whole blocks. `[points][2]`
    pub points: ReadOnly<f32>,
    /// Coefficients of powers of the coordinates, those of the first axis outside. `[series_count][order][order]`
    pub series: ReadOnly<f32>,
    /// `[points]`
    pub out: DevicePointer<f32>,
    /// Of all series.
    pub center: [f32; 2],
    /// Terms along an axis.
    pub order: u32,
    /// Series that the blocks have in turn.
    pub series_count: u32,
}
