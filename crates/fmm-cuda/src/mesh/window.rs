//! Between bodies and the points of a mesh.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::mesh::Window;

use super::cells::InCells;
use super::tables::place_real;
use super::view::{BRICK, GATHERERS, Lattice, SPREADERS, WindowView};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::Output;

/// The window of a recipe.
pub struct Windows {
    weights: Buffer<u8>,
    powers: usize,
    points: usize,
    single: bool,
}

/// From scaled sums to the caller's.
#[derive(Clone, Copy)]
pub struct Scales {
    /// Taken from the potential.
    pub background: f64,
    /// Taken from it, times the strength of the target.
    pub own: f64,
    /// What potentials are multiplied by.
    pub potential: f64,
    /// What fields are multiplied by.
    pub field: f64,
}

impl Windows {
    /// Of P points.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn new(window: &Window<f64>, points: usize, single: bool) -> Result<Self, Error> {
        let weights = window.weights();
        Ok(Windows { weights: place_real(weights.as_flattened(), single)?, powers: weights.len(), points, single })
    }

    fn kernel(&self, name: &str) -> String {
        format!("{name}_{}_{}", if self.single { "f32" } else { "f64" }, self.points)
    }

    /// Queues the spreading of the strengths of `bodies` to `mesh`.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn spread(&self, gpu: &Gpu, lattice: &Lattice, bodies: &InCells, mesh: &Buffer<u8>) -> Result<(), Error> {
        let bricks: usize = lattice.points.iter().map(|&n| (n as usize).div_ceil(BRICK)).product();
        let view = WindowView { mesh: mesh.pointer(), ..self.view(lattice, bodies) };
        let name = self.kernel("mesh_spread");
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(gpu.stream(), &name, bricks as u32, SPREADERS as u32, &view) }
    }

    /// Queues the sums at `targets`, of pairs and of the mesh.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    #[expect(clippy::too_many_arguments, reason = "what is joined")]
    pub fn gather(
        &self,
        gpu: &Gpu,
        lattice: &Lattice,
        targets: &InCells,
        functions: &Buffer<u8>,
        near: &Buffer<f64>,
        scales: Scales,
        output: Output,
    ) -> Result<(), Error> {
        let n = targets.bodies.len();
        if n == 0 {
            return Ok(());
        }
        let view = WindowView {
            functions: functions.pointer(),
            near: near.pointer(),
            order: targets.order.pointer(),
            potential: output.potential,
            field: output.field,
            background: scales.background,
            own: scales.own,
            potential_scale: scales.potential,
            field_scale: scales.field,
            ..self.view(lattice, targets)
        };
        let name = self.kernel("mesh_gather");
        let blocks = n.div_ceil(GATHERERS / 32 * (32 / self.points)) as u32;
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(gpu.stream(), &name, blocks, GATHERERS as u32, &view) }
    }

    fn view(&self, lattice: &Lattice, bodies: &InCells) -> WindowView {
        WindowView {
            lattice: *lattice,
            bodies: bodies.bodies.pointer(),
            start: bodies.start.pointer(),
            mesh: DevicePointer::null(),
            functions: DevicePointer::null(),
            weights: self.weights.pointer(),
            near: DevicePointer::null(),
            order: DevicePointer::null(),
            potential: DevicePointer::null(),
            field: DevicePointer::null(),
            background: 0.0,
            own: 0.0,
            potential_scale: 1.0,
            field_scale: 1.0,
            n: bodies.bodies.len() as u32,
            powers: self.powers as u32,
        }
    }
}
