//! The arrays of the particles of a run.

use cust::memory::DevicePointer;
use fmm_core::Error;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::inputs::Inputs;
use crate::numbers::Numbers;

/// The arrays of the particles, in the caller's order.
#[derive(Default)]
pub struct State {
    /// Positions and strengths.
    pub inputs: Inputs,
    /// `[n][3]`
    pub velocity: Buffer<f64>,
    /// `[n]`, or empty
    pub coupling: Buffer<f64>,
    /// Of the last forces. `[n][3]`
    pub field: Buffer<f64>,
    /// The same, where it was summed. `[n]`
    pub potential: Buffer<f64>,
    /// Empty until masses are asked for, or where the strengths are the masses.
    mass: Buffer<f64>,
    /// Whether strengths are masses; unknown until masses are asked for.
    gravity: Option<bool>,
    /// The memory of checks.
    pub numbers: Numbers,
}

impl State {
    fn is_gravity(&mut self, mass: &[f64], strength: &[f64]) -> bool {
        *self.gravity.get_or_insert_with(|| mass == strength)
    }

    /// Bytes that the masses need in addition to what there is.
    pub fn mass_growth(&mut self, mass: &[f64], strength: &[f64]) -> usize {
        if self.is_gravity(mass, strength) { 0 } else { self.mass.growth(mass.len()) }
    }

    /// The masses, which are the same since the upload.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory for them.
    pub fn mass(&mut self, gpu: &Gpu, mass: &[f64], strength: &[f64]) -> Result<DevicePointer<f64>, Error> {
        if self.is_gravity(mass, strength) {
            return Ok(self.inputs.ends().sources.strength);
        }
        if self.mass.is_empty() {
            self.mass.upload(mass)?;
            gpu.settle()?;
        }
        Ok(self.mass.pointer())
    }
}
