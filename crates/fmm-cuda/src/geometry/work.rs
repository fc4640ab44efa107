//! Memory that outlives a stage only to be used by the next.

use cust::event::{Event, EventFlags};
use cust::memory::DevicePointer;
use fmm_core::Error;

use crate::buffer::Buffer;
use crate::error::device as told;
use crate::geometry::view::{Image, Near, RADIX, SORT_TILE};
use crate::{Gpu, kernels};

/// The number of launches that the status words of `kernels/common/scan.cuh` can distinguish.
const EPOCHS: u64 = 1 << 22;

/// Arrays that sort, trees and lists share, one after the other, and the marks of a clock.
#[derive(Default)]
pub struct Work {
    pub(super) bins: Buffer<u32>,
    pub(super) key: Buffer<u64>,
    pub(super) index: Buffer<u32>,
    pub(super) map: Buffer<u32>,
    pub(super) rank: Buffer<u32>,
    pub(super) kind: Buffer<u64>,
    pub(super) kind_out: Buffer<u64>,
    pub(super) state: Buffer<u64>,
    pub(super) total: Buffer<u64>,
    pub(super) near: [Buffer<Near>; 2],
    pub(super) near_start: [Buffer<u64>; 2],
    pub(super) images: Buffer<Image>,
    /// What `images` holds.
    pub(super) known: Vec<Image>,
    ticket: Buffer<u32>,
    status: Buffer<u64>,
    epoch: u64,
    marks: Option<Vec<(&'static str, Event)>>,
}

impl Work {
    /// Bytes more of device memory than there are now for the sort of `n` keys, without those of the result.
    pub(crate) fn sort_growth(&self, n: usize) -> usize {
        let words = n.div_ceil(SORT_TILE) * RADIX;
        self.key.growth(n) + self.index.growth(n) + self.status.growth(words + words / 4)
    }

    /// Gives back the memory that grows with the bodies.
    pub(crate) fn trim(&mut self) {
        (self.key, self.index, self.kind, self.kind_out) = Default::default();
        (self.map, self.rank, self.status) = Default::default();
    }

    /// Tickets, all zero.
    pub(crate) fn tickets(&mut self, gpu: &Gpu, n: usize) -> Result<DevicePointer<u32>, Error> {
        self.ticket.resize(n)?;
        self.ticket.fill(gpu.stream(), 0)?;
        Ok(self.ticket.pointer())
    }

    /// Words for the tiles of a launch, and the number of the launch.
    pub(crate) fn launch(&mut self, gpu: &Gpu, words: usize) -> Result<(DevicePointer<u64>, u64), Error> {
        let grows = words > self.status.capacity();
        let words = if grows { words + words / 4 } else { self.status.capacity() };
        self.status.resize(words)?;
        self.epoch += 1;
        if grows || self.epoch == EPOCHS {
            // Old words must not look like those of this launch.
            self.status.fill(gpu.stream(), 0)?;
            self.epoch = 1;
        }
        Ok((self.status.pointer(), self.epoch))
    }

    /// Starts to note when the device begins each stage.
    pub fn start_clock(&mut self) {
        self.marks = Some(vec![]);
    }

    /// Notes that everything queued from here on belongs to `stage`.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn mark(&mut self, gpu: &Gpu, stage: &'static str) -> Result<(), Error> {
        let Some(marks) = &mut self.marks else { return Ok(()) };
        let event = Event::new(EventFlags::DEFAULT).map_err(told("cannot make an event"))?;
        event.record(gpu.stream()).map_err(told("cannot record an event"))?;
        marks.push((stage, event));
        Ok(())
    }

    /// Stages and their milliseconds since [`Work::start_clock`], in their order; stops the clock.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn stop_clock(&mut self, gpu: &Gpu) -> Result<Vec<(&'static str, f64)>, Error> {
        self.mark(gpu, "end")?;
        gpu.finish()?;
        let marks = self.marks.take().unwrap_or_default();
        marks
            .windows(2)
            .map(|m| Ok((m[0].0, f64::from(m[1].1.elapsed_time_f32(&m[0].1).map_err(told("cannot read an event"))?))))
            .collect()
    }
}

/// Launches a kernel with blocks of `threads`.
///
/// # Safety
/// That of [`kernels::Kernels::launch`].
pub(crate) unsafe fn launch<V: cust::memory::DeviceCopy>(
    gpu: &Gpu,
    name: &str,
    blocks: usize,
    threads: usize,
    view: &V,
) -> Result<(), Error> {
    let kernels: &kernels::Kernels = gpu.kernels();
    // SAFETY: the caller's promise.
    unsafe { kernels.launch(gpu.stream(), name, blocks as u32, threads as u32, view) }
}
