//! Steps of point vortices on the device: what [`fmm_core::planar::Flow`] is on the cores, with its bits.

use cust::memory::DevicePointer;
use fmm_core::Error;

use super::view::{FlowView, THREADS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::launch;

/// Blocks that share the particles.
pub const SHARES: usize = 512;

/// What a step keeps.
#[derive(Default)]
pub struct Flow {
    start: Buffer<f64>,
    velocity: Buffer<f64>,
    sum: Buffer<f64>,
    largest: Buffer<f64>,
    /// Whether velocities of this step are there.
    moving: bool,
}

/// The vortices, `n` of them, in the caller's order.
#[derive(Clone, Copy)]
pub struct Vortices {
    /// `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n][3]`
    pub field: DevicePointer<f64>,
    /// `[n]`
    pub coupling: DevicePointer<f64>,
    /// Number of vortices.
    pub n: usize,
}

impl Flow {
    /// Begins a step at the present positions of the vortices. Returns the largest coordinate.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn begin(&mut self, gpu: &Gpu, vortices: Vortices) -> Result<f64, Error> {
        for array in [&mut self.start, &mut self.velocity, &mut self.sum] {
            array.resize(2 * vortices.n)?;
        }
        self.largest.resize(SHARES)?;
        self.moving = false;
        self.launch(gpu, "planar_flow_begin", self.view(vortices))?;
        self.largest(gpu, vortices.n)
    }

    /// Takes the velocities of the field. Returns the largest change of a component; infinity in
    /// the first call of a step.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn take(&mut self, gpu: &Gpu, vortices: Vortices, weight: f64) -> Result<f64, Error> {
        let first = !std::mem::replace(&mut self.moving, true);
        self.launch(gpu, "planar_flow", FlowView { weight, first: u32::from(first), ..self.view(vortices) })?;
        let change = self.largest(gpu, vortices.n)?;
        Ok(if first || vortices.n == 0 { f64::INFINITY } else { change })
    }

    /// Moves the vortices to where velocities, or the sum of them, lead from the start.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn reach(&self, gpu: &Gpu, vortices: Vortices, h: f64, summed: bool) -> Result<(), Error> {
        self.launch(gpu, "planar_flow_to", FlowView { h, summed: u32::from(summed), ..self.view(vortices) })?;
        gpu.finish()
    }

    fn view(&self, Vortices { position, field, coupling, n }: Vortices) -> FlowView {
        FlowView {
            position,
            field,
            coupling,
            start: self.start.pointer(),
            velocity: self.velocity.pointer(),
            sum: self.sum.pointer(),
            largest: self.largest.pointer(),
            weight: 0.0,
            h: 0.0,
            n: n as u64,
            first: 0,
            summed: 0,
        }
    }

    fn launch(&self, gpu: &Gpu, name: &str, view: FlowView) -> Result<(), Error> {
        if self.start.is_empty() {
            return Ok(());
        }
        let blocks = (view.n as usize).div_ceil(THREADS).min(SHARES);
        // SAFETY: `begin` has made all arrays as long as the view says, and a place for each block.
        unsafe { launch(gpu, name, blocks, THREADS, &view) }
    }

    /// The largest number that blocks have found.
    fn largest(&self, gpu: &Gpu, n: usize) -> Result<f64, Error> {
        gpu.finish()?;
        let found = self.largest.download_first(n.div_ceil(THREADS).min(SHARES))?;
        Ok(found.into_iter().fold(0.0, f64::max))
    }
}
