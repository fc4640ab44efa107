//! Particles of a run, held where their forces are summed.

use fmm_core::forces::Forces;
use fmm_core::planar::{Blob, Kernel};
use fmm_core::solve::Quantity;
use fmm_core::{Bath, CpuExecutor, Executor, Settings};
use fmm_cuda::CudaExecutor;

use crate::device::loaded;
use crate::{Device, Error, Note};

/// A store of `n` particles on `device`, in the plane if `plane` is given, with forces and a bath
/// that act in addition to the sum. `note` receives notes on the choice of the device.
///
/// # Errors
/// [`Error::Unavailable`] without the GPU that is asked for; settings out of range.
pub fn executor(
    device: Device,
    settings: &Settings,
    plane: Option<(Kernel, Blob)>,
    n: usize,
    (forces, bath): (Forces, Option<Bath>),
    note: &mut dyn FnMut(Note),
) -> Result<Box<dyn Executor>, Error> {
    let gpu = device.able(settings, plane.is_some(), Quantity::Potential).open((n as f64).powi(2), note)?;
    let settings = settings.clone();
    let Some(gpu) = gpu else {
        let executor = match plane {
            None => CpuExecutor::new(settings),
            Some((kernel, blob)) => CpuExecutor::in_plane(settings, kernel, blob),
        };
        return Ok(Box::new(executor?.with_forces(forces).with_bath(bath)));
    };
    loaded(&gpu).into_iter().for_each(note);
    let executor = match plane {
        None => CudaExecutor::new(gpu, settings),
        Some((kernel, blob)) => CudaExecutor::in_plane(gpu, settings, kernel, blob),
    };
    Ok(Box::new(executor?.with_forces(forces).with_bath(bath)))
}
