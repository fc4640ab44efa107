//! Direct sums in the plane on the device: of all targets, and of the sample of the guard.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::guard::{Sample, step};
use fmm_core::planar::accuracy::sample_size;
use fmm_core::planar::{Kernel, Request};

use super::far::blob_name;
use super::view::{AllPairsView, PlanePoint};
use crate::Gpu;
use crate::buffer::Buffer;

/// Threads of a block.
const THREADS: usize = 128;

/// Blocks that fill a device; the bits of a sum depend on this and not on the device.
const FILLED: usize = 2112;

/// The fewest sources of a part.
const FEWEST: usize = 256;

/// The arrays of direct sums.
#[derive(Default)]
pub struct AllPairs {
    partial: Buffer<f64>,
    out: Buffer<f64>,
}

/// Points in the scaled unit, and sums at the targets.
#[derive(Clone, Copy)]
pub struct Both {
    /// The sources and how many.
    pub bodies: (DevicePointer<PlanePoint>, usize),
    /// The targets and how many.
    pub at: (DevicePointer<PlanePoint>, usize),
    /// `[targets]`, for the log kernel.
    pub potential: DevicePointer<f64>,
    /// `[targets][2]`
    pub g: DevicePointer<f64>,
}

impl AllPairs {
    /// Queues the sums at all targets.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver refuses.
    pub fn sum(&mut self, gpu: &Gpu, request: &Request, both: Both) -> Result<(), Error> {
        let name = format!("planar_all_{}_{}", request.kernel.name(), blob_name(request.blob));
        self.launch(gpu, request, both, &name, both.at.1, 0)
    }

    /// The error of the sums on a sample of the targets, in the order of their pyramid: L2 with its margin.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn error(&mut self, gpu: &Gpu, request: &Request, both: Both) -> Result<f64, Error> {
        let (n, size) = (both.at.1, sample_size(both.at.1));
        let sample = Sample::spread(n, size);
        let targets = sample.places().len();
        self.out.resize(6 * targets)?;
        let name = format!("planar_sample_{}", blob_name(request.blob));
        self.launch(gpu, request, both, &name, targets, step(n, size))?;
        gpu.finish()?;
        let rows = self.out.download()?;
        let rows = rows.as_chunks::<6>().0;
        Ok(sample.weigh(rows.iter().map(|r| ([r[0], r[1]], r[2])), rows.iter().map(|r| [r[3], r[4]]), None).l2_bound)
    }

    fn launch(
        &mut self,
        gpu: &Gpu,
        request: &Request,
        both: Both,
        name: &str,
        targets: usize,
        step: usize,
    ) -> Result<(), Error> {
        if targets == 0 {
            return Ok(());
        }
        let blocks = targets.div_ceil(THREADS);
        let parts = (FILLED / blocks).clamp(1, both.bodies.1.div_ceil(FEWEST).max(1));
        self.partial.resize(3 * parts * targets)?;
        let view = AllPairsView {
            bodies: both.bodies.0,
            at: both.at.0,
            partial: self.partial.pointer(),
            potential: both.potential,
            g: both.g,
            out: self.out.pointer(),
            core: request.blob.length(),
            at_center: request.blob.at_center_in(request.global),
            global: request.global,
            sources: both.bodies.1 as u32,
            targets: targets as u32,
            parts: parts as u32,
            step: step as u32,
            all: both.at.1 as u32,
            log: u32::from(request.kernel == Kernel::Log),
            same: u32::from(!request.apart),
        };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe {
            let kernels = gpu.kernels();
            kernels.launch(gpu.stream(), name, (blocks as u32, parts as u32), THREADS as u32, &view)?;
            kernels.launch(gpu.stream(), "planar_join", blocks as u32, THREADS as u32, &view)
        }
    }
}
