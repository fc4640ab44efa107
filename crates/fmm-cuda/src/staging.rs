//! Staged copies of the particles: made on the device, downloaded later by another thread.

use std::sync::{Arc, Mutex, PoisonError};

use cust::context::{Context, CurrentContext};
use cust::stream::{Stream, StreamFlags};
use fmm_core::{Copied, Error, Particles, Pending};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::error::device as told;

/// Positions, velocities, field and potential.
type Arrays = [Buffer<f64>; 4];

/// Device memory for staged copies. It is kept from one copy to the next, because allocating and
/// freeing stall the device.
#[derive(Default)]
pub struct Staging {
    spare: Arc<Mutex<Option<Arrays>>>,
}

/// A copy of the particles on the device.
struct Staged {
    arrays: Arrays,
    strength: Arc<Vec<f64>>,
    coupling: Arc<Vec<f64>>,
    spare: Arc<Mutex<Option<Arrays>>>,
    // Dropped after the arrays, whose memory it holds.
    context: Context,
}

impl Staging {
    /// Copies position, velocity, field (`[n][3]` each) and potential (`[n]`) as they are now.
    ///
    /// The copy stays on the device if twice the memory that it needs is free; otherwise it goes to the host at once.
    /// The result downloads it, from any thread.
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
        // The download uses a stream of its own and does not wait for this one.
        gpu.finish()?;
        let staged = Staged { arrays: copies, strength, coupling, spare: self.spare.clone(), context: gpu.context() };
        Ok(Box::new(move || staged.download()))
    }
}

impl Staged {
    /// Copies the arrays to the host on a stream of its own.
    fn download(self) -> Result<Copied, Error> {
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
            ..Particles::default()
        },
        potential,
        field: threes(field)?,
        error: vec![],
    })
}
