//! P2P on the device: runs of sources for each box of targets.

use cust::memory::DevicePointer;
use fmm_core::gauss::Plan;
use fmm_core::{Error, Precision};

use super::place::{Place, launch_tasks, tasks};
use super::view::{GaussView, NEAR_WARPS};
use crate::Gpu;
use crate::buffer::Buffer;

/// Targets of a warp.
const TARGETS: usize = 32;

/// The lists of direct sums on the device.
#[derive(Default)]
pub struct Near {
    tasks: Buffer<[u32; 4]>,
    start: Buffer<u64>,
    list: Buffer<[u32; 2]>,
}

impl Near {
    /// Bytes that the lists of a plan take.
    pub fn bytes<const D: usize>(plan: &Plan<D>) -> usize {
        let boxes = &plan.targets;
        let points = boxes.start.last().copied().unwrap_or(0) as usize;
        16 * (boxes.len() + points / TARGETS) + 8 * (boxes.len() + 1) + 8 * plan.lists.p2p.len()
    }

    /// Copies the lists of a plan.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if a copy fails.
    pub fn take<const D: usize>(&mut self, plan: &Plan<D>) -> Result<(), Error> {
        let (boxes, rows) = (&plan.targets, &plan.lists.p2p);
        let meet = (0..boxes.len()).filter(|&c| !rows.row(c).is_empty());
        self.tasks.upload(&tasks(meet.map(|c| (0, c)), boxes, TARGETS))?;
        self.start.upload(&rows.start)?;
        self.list.upload(&rows.items)
    }

    /// Queues the sums, which are added to the result.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses.
    pub fn sum(&self, gpu: &Gpu, place: &Place, precision: Precision, terms: usize) -> Result<(), Error> {
        let name = match (precision, terms) {
            (Precision::F32, _) => "gauss_p2p_f32",
            (_, ..=8) => "gauss_p2p_8",
            _ => "gauss_p2p_13",
        };
        let name = if place.values > 1 { format!("{name}_slope") } else { name.to_string() };
        let view = GaussView {
            points: place.targets,
            sources: place.sources,
            center: place.target_centers,
            tasks: self.tasks.pointer(),
            start: self.start.pointer(),
            list: self.list.pointer(),
            count: self.tasks.len() as u32,
            other: DevicePointer::null(),
            ..place.view()
        };
        launch_tasks(gpu, &name, self.tasks.len().div_ceil(NEAR_WARPS), 32 * NEAR_WARPS, 0, &view)
    }
}
