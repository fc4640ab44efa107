//! Heat that particles exchange with a bath, on the device: see [`fmm_core::bath`].

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::bath::{HeatExchange, Kind};
use fmm_core::math::blocked::added;
use fmm_core::random::BLOCKS;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::launch;
use crate::view::{LangevinView, MOTION_SUMS, MotionView, TILE};

/// Blocks that share the particles: the bits of the sums depend on this and not on the device.
const SHARES: usize = 256;

/// The memory of exchanges.
#[derive(Default)]
pub struct Bath {
    partial: Buffer<f64>,
}

impl Bath {
    /// Changes velocities `[n][3]` of particles with masses `[n]`.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn exchange(
        &mut self,
        gpu: &Gpu,
        heat: &HeatExchange<'_>,
        mass: DevicePointer<f64>,
        velocity: &Buffer<f64>,
    ) -> Result<(), Error> {
        let (n, velocity) = (velocity.len() / 3, velocity.pointer());
        if n == 0 {
            return Ok(());
        }
        match heat.kind {
            Kind::Langevin => {
                let (kept, noise, (key, stream, first)) = (heat.kept, heat.noise(), heat.numbers.key());
                let view =
                    LangevinView { velocity, mass, kept, noise, key, stream, first, blocks: BLOCKS, n: n as u64 };
                // SAFETY: the arrays hold `n` particles.
                unsafe { launch(gpu, "bath_langevin", n.div_ceil(TILE), TILE, &view)? };
            }
            Kind::Rescale => {
                let shares = n.div_ceil(TILE).min(SHARES);
                self.partial.resize(shares * MOTION_SUMS)?;
                let partial = self.partial.pointer();
                let view = MotionView { velocity, mass, partial, center: [0.0; 3], factor: 1.0, n: n as u64 };
                // SAFETY: the arrays hold `n` particles, and there are sums for each block.
                unsafe { launch(gpu, "bath_sums", shares, TILE, &view)? };
                let rows = self.partial.read(gpu.stream())?;
                let sums = added(rows.as_chunks::<MOTION_SUMS>().0.iter().copied());
                let Some((center, factor)) = heat.rescaling(sums) else { return Ok(()) };
                let view = MotionView { center, factor, ..view };
                // SAFETY: as before.
                unsafe { launch(gpu, "bath_rescale", (3 * n).div_ceil(TILE), TILE, &view)? };
            }
        }
        gpu.finish()
    }
}
