//! The argument of the multiply-adds that measure a device's peak.

use cust::memory::{DeviceCopy, DevicePointer};

/// Independent multiply-adds of a thread: more than their latency needs.
pub const PEAK_CHAINS: usize = 16;

/// Multiply-adds x ← factor · x + shift.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct PeakView {
    /// Their sums, so that none is left out. `[threads]`
    pub out: DevicePointer<f64>,
    /// Below 1: numbers remain numbers.
    pub factor: f64,
    /// What is added.
    pub shift: f64,
    /// Multiply-adds of each chain.
    pub rounds: u32,
}
