//! Copies of the particles that stay on the device until another thread brings them to the host.

use std::sync::{Arc, Mutex, PoisonError};

use cust::context::{Context, CurrentContext};
use cust::stream::{Stream, StreamFlags};
use fmm_core::{Copied, Error, Particles, Pending};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::error::device as told;

/// Positions, velocities, field and potential.
type Arrays = [Buffer<f64>; 4];

/// The memory of copies, kept from one to the next: taking and giving it back would hold up all else on the device.
#[derive(Default)]
pub struct Freezer {
    spare: Arc<Mutex<Option<Arrays>>>,
}

/// Particles as they were.
struct Frozen {
    arrays: Arrays,
    strength: Arc<Vec<f64>>,
    coupling: Arc<Vec<f64>>,
    spare: Arc<Mutex<Option<Arrays>>>,
    // Dropped after the arrays, whose memory it holds.
    context: Context,
}

impl Freezer {
    /// Copies arrays as they are now; on the device where there is room for them and as much again, otherwise to the host at once.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn copy(
        &self,
        gpu: &Gpu,
        arrays: [&Buffer<f64>; 4],
        (strength, coupling): (&Arc<Vec<f64>>, &Arc<Vec<f64>>),
    ) -> Result<Pending, Error> {
        let mut copies = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        let growth: usize = arrays.iter().zip(&copies).map(|(a, c)| c.growth(a.len())).sum();
        let (strength, coupling) = (strength.clone(), coupling.clone());
        if growth > 0 && 2 * growth > gpu.free_memory()? {
            let copied = read(arrays, gpu.stream(), &strength, &coupling)?;
            return Ok(Box::new(move || Ok(copied)));
        }
        for (copy, array) in copies.iter_mut().zip(arrays) {
            copy.copy_from(array, gpu.stream())?;
        }
        // Whoever reads the copies does not wait for the queue.
        gpu.finish()?;
        let frozen = Frozen { arrays: copies, strength, coupling, spare: self.spare.clone(), context: gpu.context() };
        Ok(Box::new(move || frozen.thaw()))
    }
}

impl Frozen {
    /// Brings them to the host, through a queue of its own.
    fn thaw(self) -> Result<Copied, Error> {
        let failed = |e| told("cannot use the GPU")(e);
        CurrentContext::set_current(&self.context).map_err(failed)?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(failed)?;
        let copied = read(self.arrays.each_ref(), &stream, &self.strength, &self.coupling)?;
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.arrays);
        Ok(copied)
    }
}

fn read(arrays: [&Buffer<f64>; 4], stream: &Stream, strength: &[f64], coupling: &[f64]) -> Result<Copied, Error> {
    let threes = |array: &Buffer<f64>| {
        let mut values = vec![[0.0; 3]; array.len() / 3];
        array.read_by(values.as_flattened_mut(), stream)?;
        Ok::<_, Error>(values)
    };
    let [position, velocity, field, at] = arrays;
    let mut potential = vec![0.0; at.len()];
    at.read_by(&mut potential, stream)?;
    Ok(Copied {
        particles: Particles {
            position: threes(position)?,
            velocity: threes(velocity)?,
            strength: strength.to_vec(),
            coupling: coupling.to_vec(),
        },
        potential,
        field: threes(field)?,
    })
}
