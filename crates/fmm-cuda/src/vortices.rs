//! Sums of vortex particles that move, on a GPU: [`fmm_core::vortices`].

use fmm_core::solve::Quantity;
use fmm_core::vortices::Sums;
use fmm_core::{Error, Precision, Settings, StageTimes, WithHessian, gauss};

use crate::gauss::{Problem, Transform};
use crate::{DeviceSums, Gpu};

/// A GPU that sums for vortex particles, which come from the host and whose sums go back there.
pub struct CudaVortices {
    // Dropped before the GPU whose memory they are.
    sums: DeviceSums,
    transform: Transform,
    gpu: Gpu,
}

impl CudaVortices {
    /// On a GPU.
    pub fn new(gpu: Gpu) -> Self {
        CudaVortices { sums: DeviceSums::default(), transform: Transform::default(), gpu }
    }
}

impl Drop for CudaVortices {
    fn drop(&mut self) {
        // Freeing memory needs its GPU; a thread that cannot enter it has lost the memory with it.
        let _ = self.gpu.enter();
    }
}

impl Sums for CudaVortices {
    fn derivatives(
        &mut self,
        settings: &Settings,
        position: &[[f64; 3]],
        strengths: &[f64],
        times: &mut StageTimes,
    ) -> Result<WithHessian, Error> {
        let host = (position, &[strengths][..], None);
        self.sums.evaluate_host(&self.gpu, settings, host, Quantity::Hessian, times)
    }

    fn gaussians(
        &mut self,
        settings: &gauss::Settings,
        position: &[[f64; 3]],
        strengths: &[&[f64]],
        times: &mut StageTimes,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let problem = Problem { settings, precision: Precision::Auto, sources: position, strengths, targets: None };
        self.transform.upload(&self.gpu, &problem)?;
        self.transform.sum(&self.gpu, &problem, times)?;
        Ok(self.transform.download()?.0)
    }
}
