//! Sums of arrays that lie on a GPU, of CuPy or PyTorch for example. `unsafe` because nothing can
//! check addresses that a caller gives.
#![allow(unsafe_code)]

use std::time::Instant;

use fmm_core::StageTimes;
use fmm_cuda::team::Opened;
use fmm_cuda::{DeviceArrays, Done, Results};

use crate::{Device, Error, Evaluation, Kernel, Points, Problem, Seconds, Solver};

impl Solver<'_> {
    /// The address of the stream of GPU `ordinal` that reads arrays, for events of streams of the caller.
    ///
    /// # Errors
    /// [`Error::Request`] if this solver has another device, [`Error::Unavailable`].
    pub fn stream(&mut self, ordinal: u32) -> Result<u64, Error> {
        Ok(self.0.gpu_of_arrays(ordinal)?.gpu.stream_address())
    }

    /// The sum of `arrays` by the GPU on which they lie. The result has no potential and no field:
    /// they are in the arrays, complete when this returns.
    ///
    /// # Errors
    /// Those of [`evaluate`](Solver::evaluate); [`Error::Request`] for kernels in fewer than three
    /// dimensions, exclusions, and [`Problem::sample`].
    ///
    /// # Safety
    /// The addresses are those of arrays as [`DeviceArrays`] says, on its GPU, and none that is
    /// written overlaps another. All work that writes or frees them is finished, or was queued
    /// before on [`stream`](Solver::stream).
    pub unsafe fn evaluate_on_device(&mut self, problem: &Problem, arrays: &DeviceArrays) -> Result<Evaluation, Error> {
        problem.check()?;
        check(problem, arrays)?;
        let begun = Instant::now();
        let settings = problem.in_space();
        let mut times = StageTimes::with_cancel(self.0.cancel.clone());
        let opened = self.0.gpu_of_arrays(arrays.ordinal)?;
        let Opened { sums, gpu } = &mut *opened;
        // SAFETY: as the caller promises.
        let summed = gpu.within(|| unsafe { sums.evaluate(gpu, &settings, arrays, &mut times) });
        let Done { choice, coincident_pairs, not_finite } = summed??;
        let device = Device::Cuda(arrays.ordinal);
        let (potential, field) = (vec![], vec![]);
        let mut sum = Evaluation {
            potential,
            field,
            hessian: vec![],
            error: vec![],
            choice,
            device,
            coincident_pairs,
            errors: None,
            times,
            seconds: Seconds::default(),
        };
        if let Some(Results { potential, field, hessian, places }) = not_finite {
            (sum.potential, sum.field, sum.hessian) = (potential, field, hessian);
            sum.check_finite(problem.kernel, &Points::in_space(&places, &[]))?;
        }
        sum.seconds.sum = begun.elapsed().as_secs_f64();
        Ok(sum)
    }
}

fn check(problem: &Problem, arrays: &DeviceArrays) -> Result<(), Error> {
    let refuse = |parameter, why: &str| Err(Error::Request { parameter, why: format!("with arrays on a GPU {why}") });
    if !problem.kernel.is_in_space() {
        return refuse("kernel", &format!("allowed: {}", Kernel::forms(Kernel::is_in_space).join(", ")));
    }
    if !problem.exclusions.is_empty() {
        return refuse("exclusions", "there are none");
    }
    if problem.settings.errors {
        return refuse("errors", "there are none; allowed: errors=False");
    }
    if problem.hessian != (arrays.hessian != 0) {
        return refuse("hessian", "it needs an address, and no other sum has one");
    }
    if problem.sample > 0 {
        return refuse("check", "there is none");
    }
    if problem.settings.uniform.is_some() {
        return refuse("depth", "there is none");
    }
    let (expected, found) = (problem.kernel.strengths().len(), arrays.strengths.len());
    if expected != found {
        return Err(fmm_core::Error::Shape { what: "columns of strengths", expected, found }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: DeviceArrays = DeviceArrays {
        ordinal: 4711,
        sources: (0, 0),
        strengths: &[0],
        targets: None,
        potential: 0,
        field: 0,
        hessian: 0,
    };

    fn refused(problem: &Problem, device: Device) -> String {
        // SAFETY: there are no points.
        let sum = unsafe { Solver::new(device).evaluate_on_device(problem, &NONE) };
        sum.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_a_gpu_does_not_sum_is_refused() {
        let laplace = Problem::new(Kernel::Laplace);
        for (problem, text) in [
            (Problem::new(Kernel::Log), "kernel: with arrays on a GPU allowed: laplace, yukawa:KAPPA, vortex"),
            (
                Problem { exclusions: vec![[0, 1]], ..laplace.clone() },
                "exclusions: with arrays on a GPU there are none",
            ),
            (
                Problem { hessian: true, ..laplace.clone() },
                "hessian: with arrays on a GPU it needs an address, and no other sum has one",
            ),
            (Problem { sample: 1, ..laplace.clone() }, "check: with arrays on a GPU there is none"),
            (Problem::new(Kernel::Vortex), "1 columns of strengths, but 3 are needed"),
        ] {
            assert_eq!(refused(&problem, Device::Auto), text);
        }
        let text = refused(&laplace, Device::Cpu);
        assert_eq!(text, "device: the arrays are on cuda:4711; allowed: auto, cuda:4711");
        assert!(refused(&laplace, Device::Auto).starts_with("device = cuda:4711: "), "there is no such GPU");
    }
}
