//! Sums in the plane on the device: [`fmm_core::planar`] with the whole sum, pyramids and lists included, where the points are.
//!
//! Where the tolerance allows, the direct sums of leaves that gain by it are in single precision; pairs too close for it, and all else,
//! in double.

mod far;
mod flat;
mod flow;
mod pairs;
mod policy;
mod pyramid;
mod rows;
mod trial;
pub mod versions;
pub mod view;
pub mod workload;

use fmm_core::bodies::coincident_pairs;
use fmm_core::planar::{Kernel, Lists, Problem, Pyramid};
use fmm_core::{Choice, Complex64, Error, Evaluation, Method, Stage, StageTimes};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct;
pub(crate) use flat::Flat;
pub(crate) use flow::{Flow, Vortices};
use trial::{Arrays, Output};

/// The sum that `problem` asks for, as [`fmm_core::planar::evaluate`] defines it, done on the device.
///
/// # Errors
/// Those of the sum on the CPU, [`Error::Unsupported`] for direct sums in single precision and 2³¹ points, [`Error::Device`] where memory lacks or the
/// device fails.
pub fn evaluate(gpu: &Gpu, problem: &Problem, times: &mut StageTimes) -> Result<Evaluation<Complex64>, Error> {
    if problem.request.may_underflow {
        let why = "there are coordinates or blobs so small compared with the extent of the set that a GPU may not separate points; device cpu does";
        return Err(Error::Unsupported(why.into()));
    }
    let mut plane = Plane::default();
    times.time_more(Stage::Tree, || plane.upload(gpu, problem))?;
    let choice = plane.sum(gpu, problem, times)?;
    let (potential, field) = plane.download()?;
    let direct = choice.method == Method::Direct;
    // Where no coordinate is there twice along one of the axes no points coincide.
    let coincident_pairs =
        if direct || plane.arrays.may_coincide(problem.request.apart)? { coincident_pairs(problem.sources) } else { 0 };
    Ok(Evaluation { potential, field, error: vec![], choice, coincident_pairs })
}

/// Sums in the plane on the device, whose arrays are kept from one to the next.
#[derive(Default)]
pub struct Plane {
    inputs: Inputs,
    arrays: Arrays,
    potential: Buffer<f64>,
    field: Buffer<f64>,
}

/// Points and strengths as they were given.
#[derive(Default)]
struct Inputs {
    sources: Buffer<f64>,
    strengths: [Buffer<f64>; 2],
    targets: Buffer<f64>,
}

impl Plane {
    /// Copies points and strengths to the device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more points than the device's numbers hold, [`Error::Device`] where memory lacks or a copy fails.
    pub fn upload(&mut self, gpu: &Gpu, problem: &Problem) -> Result<(), Error> {
        gpu.enter()?;
        let (n, m) = (problem.sources.len(), problem.request.size.targets);
        fits(gpu, n, m)?;
        self.inputs.sources.upload(problem.sources.as_flattened())?;
        for (k, strengths) in self.inputs.strengths.iter_mut().enumerate() {
            strengths.upload(problem.strengths.get(k).map_or(&[][..], |q| q))?;
        }
        self.inputs.targets.upload(problem.targets.unwrap_or(&[]).as_flattened())?;
        gpu.settle()
    }

    /// Sums what was uploaded until the tolerance is kept.
    ///
    /// # Errors
    /// Those of [`fmm_core::solve::solve`], [`Error::Unsupported`] for direct sums in single precision, [`Error::Device`] where memory lacks or the device fails.
    pub fn sum(&mut self, gpu: &Gpu, problem: &Problem, times: &mut StageTimes) -> Result<Choice, Error> {
        gpu.enter()?;
        let (request, Plane { inputs, arrays, potential, field }) = (&problem.request, self);
        let n = request.size.targets;
        potential.resize(if request.kernel == Kernel::Log { n } else { 0 })?;
        field.resize(2 * n)?;
        let output = Output { potential: potential.pointer(), field: field.pointer(), width: 2 };
        Ok(trial::keep(gpu, request, inputs, arrays, output, None, times)?.0)
    }

    /// Potential (log alone) and field in the caller's order.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn download(&self) -> Result<(Vec<f64>, Vec<Complex64>), Error> {
        let flat = self.field.download()?;
        Ok((self.potential.download()?, flat.as_chunks().0.iter().map(|&[re, im]| Complex64 { re, im }).collect()))
    }

    /// The pyramids of targets and sources of the last sum by FMM, and the lists between them.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn geometry(&self) -> Result<(Pyramid, Option<Pyramid>, Lists), Error> {
        self.arrays.geometry(!self.inputs.targets.is_empty())
    }

    /// Starts to note what parts of the geometry take.
    pub fn start_clock(&mut self) {
        self.arrays.start_clock();
    }

    /// Parts of the geometry and their milliseconds since [`Plane::start_clock`].
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn stop_clock(&mut self, gpu: &Gpu) -> Result<Vec<(&'static str, f64)>, Error> {
        self.arrays.stop_clock(gpu)
    }
}

/// Refuses what numbers or memory of the device do not hold.
fn fits(gpu: &Gpu, sources: usize, targets: usize) -> Result<(), Error> {
    let most = sources.max(targets);
    if most >= 1 << 31 {
        return Err(Error::Unsupported(format!("{most} points do not fit a GPU's sum; use device cpu")));
    }
    direct::fits(gpu, 40 * sources + 64 * targets, &format!("{sources} sources at {targets} targets"))
}
