//! The contract of every place, on the GPU.

use crate::common::gpu;
use fmm_core::gauss::{Axes, Dimension, Settings as GaussSettings};
use fmm_core::planar::{Blob, Kernel, Problem};
use fmm_core::{Complex64, Error, Evaluation, ParticleStore, Precision, Settings, StageTimes, WithHessian};
use fmm_cuda::Gpu;
use testkit::contract::Place;

struct OnGpu(Gpu);

impl Place for OnGpu {
    fn evaluate(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: &[f64],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<Evaluation, Error> {
        fmm_cuda::evaluate(&self.0, settings, sources, strengths, targets, &mut StageTimes::default())
    }

    fn store(&self, settings: &Settings) -> Result<Box<dyn ParticleStore>, Error> {
        Ok(Box::new(fmm_cuda::CudaStore::new(Gpu::open(0).expect("that of the tests"), settings.clone())?))
    }

    fn evaluate_hessian(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: &[f64],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<WithHessian, Error> {
        fmm_cuda::evaluate_hessian(&self.0, settings, sources, strengths, targets, &mut StageTimes::default())
    }

    fn biot_savart(
        &self,
        settings: &Settings,
        sources: &[[f64; 3]],
        strengths: [&[f64]; 3],
        targets: Option<&[[f64; 3]]>,
    ) -> Result<Evaluation, Error> {
        fmm_cuda::biot_savart(&self.0, settings, sources, strengths, targets, &mut StageTimes::default())
    }

    fn in_plane(
        &self,
        settings: &Settings,
        kernel: Kernel,
        blob: Blob,
        sources: &[Complex64],
        strengths: &[Complex64],
        targets: Option<&[Complex64]>,
    ) -> Result<Evaluation<Complex64>, Error> {
        let problem = Problem::new(settings, kernel, blob, sources, strengths, targets)?;
        fmm_cuda::planar::evaluate(&self.0, &problem, &mut StageTimes::default())
    }

    fn gauss<const D: usize>(
        &self,
        settings: &GaussSettings,
        sources: &[[f64; D]],
        strengths: &[&[f64]],
        targets: Option<&[[f64; D]]>,
    ) -> Result<fmm_core::gauss::Evaluation<D>, Error>
    where
        Axes<D>: Dimension<D>,
    {
        let problem = fmm_cuda::gauss::Problem { settings, precision: Precision::Auto, sources, strengths, targets };
        Ok(fmm_cuda::gauss::evaluate(&self.0, &problem, &mut StageTimes::default())?.0)
    }
}

testkit::contract!(gpu().map(OnGpu));
