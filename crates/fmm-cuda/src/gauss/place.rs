//! Where the points of a sum are, and how the kernels that work on them are queued.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::gauss::boxes::Occupied;

use super::view::{GaussPoint, GaussView, HELD};
use crate::Gpu;

/// Points on the device, and where their sums go.
#[derive(Clone, Copy)]
pub struct Place {
    /// Sources in the order of their boxes, and the centers of these.
    pub sources: DevicePointer<GaussPoint>,
    /// Centers of the boxes of sources.
    pub source_centers: DevicePointer<GaussPoint>,
    /// Targets in the order of their boxes.
    pub targets: DevicePointer<GaussPoint>,
    /// Centers of the boxes of targets.
    pub target_centers: DevicePointer<GaussPoint>,
    /// `[targets][values]`
    pub out: DevicePointer<f64>,
    /// 1, and an axis each where derivatives are wanted.
    pub values: usize,
    /// Axes.
    pub axes: usize,
    /// 1/σ.
    pub scale: f64,
    /// Of strengths in single precision.
    pub strength: f64,
}

impl Place {
    /// What all operators take.
    pub fn view(&self) -> GaussView {
        let (none, points) = (DevicePointer::null(), DevicePointer::null());
        GaussView {
            points,
            sources: points,
            center: points,
            other: points,
            tasks: DevicePointer::null(),
            start: DevicePointer::null(),
            list: DevicePointer::null(),
            matrix: none,
            used: DevicePointer::null(),
            roots: none,
            series: none,
            before: none,
            out: self.out,
            scale: self.scale,
            strength: self.strength,
            order: 1,
            width: HELD as u32,
            terms: 1,
            axes: self.axes as u32,
            values: self.values as u32,
            count: 0,
            reach: 0,
            fresh: 0,
        }
    }
}

/// Tasks of up to `most` points: place of the series, box, first point, one past the last.
pub fn tasks<const D: usize>(
    boxes: impl Iterator<Item = (usize, usize)>,
    all: &Occupied<D>,
    most: usize,
) -> Vec<[u32; 4]> {
    let pieces = |(place, b): (usize, usize)| {
        let range = all.range(b);
        let end = range.end;
        range.step_by(most).map(move |first| [place, b, first, end.min(first + most)].map(|x| x as u32))
    };
    boxes.flat_map(pieces).collect()
}

/// Queues a kernel, unless there is nothing to do.
pub fn launch_tasks(
    gpu: &Gpu,
    name: &str,
    blocks: usize,
    threads: usize,
    shared: usize,
    view: &GaussView,
) -> Result<(), Error> {
    if blocks == 0 {
        return Ok(());
    }
    // SAFETY: all arrays have the lengths that the view says.
    unsafe { gpu.kernels().launch_with(gpu.stream(), name, blocks as u32, (threads as u32, shared), view) }
}
