//! Particles of a run, held where their forces are summed.

use fmm_core::forces::Forces;
use fmm_core::planar::{Blob, Kernel};
use fmm_core::solve::Quantity;
use fmm_core::{CpuStore, ParticleStore, Settings};
use fmm_cuda::CudaStore;

use crate::device::loaded;
use crate::{Device, Error, Note};

/// A store of `n` particles on `device`, in the plane if `plane` is given, with forces that act in
/// addition to the sum. `note` receives notes on the choice of the device.
///
/// # Errors
/// [`Error::Unavailable`] without the GPU that is asked for; settings out of range.
pub fn store(
    device: Device,
    settings: &Settings,
    plane: Option<(Kernel, Blob)>,
    n: usize,
    forces: Forces,
    note: &mut dyn FnMut(Note),
) -> Result<Box<dyn ParticleStore>, Error> {
    let gpu = device.able(settings, plane.is_some(), Quantity::Potential).open((n as f64).powi(2), note)?;
    let settings = settings.clone();
    let Some(gpu) = gpu else {
        let store = match plane {
            None => CpuStore::new(settings),
            Some((kernel, blob)) => CpuStore::in_plane(settings, kernel, blob),
        };
        return Ok(Box::new(store?.with_forces(forces)));
    };
    loaded(&gpu).into_iter().for_each(note);
    let store = match plane {
        None => CudaStore::new(gpu, settings),
        Some((kernel, blob)) => CudaStore::in_plane(gpu, settings, kernel, blob),
    };
    Ok(Box::new(store?.with_forces(forces)))
}
