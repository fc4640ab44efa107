//! The guard's direct sums.

use cust::memory::DevicePointer;
use fmm_core::cpu::guard::Sample;
use fmm_core::{Error, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::kernel;
use crate::view::{Body, GuardView, TILE};

/// Shares of the sources, each a block's.
const PARTS: usize = 64;

/// Sources as a sum has them.
pub struct Sources {
    /// `[n]`
    pub bodies: DevicePointer<Body>,
    /// Number of bodies.
    pub n: usize,
    /// What the strengths were multiplied by.
    pub strength_scale: f64,
    /// What their lengths were multiplied by.
    pub unit: f64,
    /// What lengths are to be multiplied by, so that squares of forces are numbers.
    pub scale: f64,
}

/// The error of the field `found` (in the caller's order and units) at `sample` of the targets `at`, measured on the device.
pub fn error(
    gpu: &Gpu,
    sources: &Sources,
    softening: Softening,
    sample: &Sample,
    at: &[[f64; 3]],
    found: &[[f64; 3]],
) -> Result<f64, Error> {
    let places: Vec<f64> = sample.places().flat_map(|i| at[i].map(|x| x * sources.unit)).collect();
    let targets = places.len() / 3;
    if targets == 0 || sources.n == 0 {
        return Ok(0.0);
    }
    let (mut place, mut partial) = (Buffer::new(), Buffer::<f64>::new());
    place.upload(&places)?;
    gpu.settle()?;
    partial.resize(targets * PARTS * 4)?;
    let (name, length) = kernel(softening, sources.scale);
    let view = GuardView {
        sources: sources.bodies,
        places: place.pointer(),
        partial: partial.pointer(),
        softening: length,
        scale: sources.scale / sources.unit,
        n: sources.n as u32,
        parts: PARTS as u32,
    };
    // SAFETY: each block has its place in `partial`.
    unsafe {
        let grid = (PARTS as u32, targets as u32);
        gpu.kernels().launch(gpu.stream(), &format!("guard_{name}_f64"), grid, TILE as u32, &view)?;
    }
    gpu.finish()?;
    let parts = partial.download()?;
    let exact: Vec<[f64; 4]> = parts
        .chunks(4 * PARTS)
        .map(|parts| {
            parts.chunks(4).fold([0.0; 4], |s, p| [s[0] + p[0], s[1] + p[1], s[2] + p[2], f64::max(s[3], p[3])])
        })
        .collect();
    let unit = sources.strength_scale / (sources.scale * sources.scale);
    let found: Vec<[f64; 3]> = sample.places().map(|i| found[i].map(|f| f * unit)).collect();
    Ok(sample.weigh(&exact, &found))
}
