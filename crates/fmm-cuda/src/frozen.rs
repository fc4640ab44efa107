//! Copies of the particles that stay on the device until another thread brings them to the host.

use std::sync::Arc;

use cust::context::{Context, CurrentContext};
use fmm_core::{Copied, Error, Particles, Pending};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::error::device as told;

/// Particles as they were.
pub struct Frozen {
    // Dropped in this order: arrays before the context that their memory belongs to.
    position: Buffer<f64>,
    velocity: Buffer<f64>,
    field: Buffer<f64>,
    potential: Buffer<f64>,
    strength: Arc<Vec<f64>>,
    coupling: Arc<Vec<f64>>,
    context: Context,
}

impl Frozen {
    /// Copies positions, velocities, field and potential as they are now; on the device where there is room for them and as much again,
    /// otherwise to the host at once.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn of(
        gpu: &Gpu,
        arrays: [&Buffer<f64>; 4],
        (strength, coupling): (&Arc<Vec<f64>>, &Arc<Vec<f64>>),
    ) -> Result<Pending, Error> {
        let bytes: usize = arrays.iter().map(|a| 8 * a.len()).sum();
        let (strength, coupling) = (strength.clone(), coupling.clone());
        if 2 * bytes > gpu.free_memory()? {
            let copied = read(arrays, &strength, &coupling)?;
            return Ok(Box::new(move || Ok(copied)));
        }
        let copy = |k: usize| arrays[k].duplicate(gpu.stream());
        let (position, velocity, field, potential) = (copy(0)?, copy(1)?, copy(2)?, copy(3)?);
        let context = gpu.context();
        let frozen = Frozen { position, velocity, field, potential, strength, coupling, context };
        // Whoever reads the copies does not wait for the queue.
        gpu.finish()?;
        Ok(Box::new(move || frozen.thaw()))
    }

    /// Brings them to the host.
    fn thaw(self) -> Result<Copied, Error> {
        CurrentContext::set_current(&self.context).map_err(told("cannot use the GPU"))?;
        let Frozen { position, velocity, field, potential, strength, coupling, .. } = &self;
        read([position, velocity, field, potential], strength, coupling)
    }
}

fn read(arrays: [&Buffer<f64>; 4], strength: &Arc<Vec<f64>>, coupling: &Arc<Vec<f64>>) -> Result<Copied, Error> {
    let [position, velocity, field, potential] = arrays;
    Ok(Copied {
        particles: Particles {
            position: position.download_threes()?,
            velocity: velocity.download_threes()?,
            strength: strength.to_vec(),
            coupling: coupling.to_vec(),
        },
        potential: potential.download()?,
        field: field.download_threes()?,
    })
}
