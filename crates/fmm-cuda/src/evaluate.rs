//! Single sums on the device.

use cust::memory::DevicePointer;
use fmm_core::accuracy::Strengths;
use fmm_core::plan::Plan;
use fmm_core::{Error, Evaluation, Settings, Stage, StageTimes, bodies};

use crate::Gpu;
use crate::attempt::{self, Arrays, Bodies};
use crate::buffer::Buffer;
use crate::direct::{self, Output};
use crate::fmm::{Ends, Fmm, Watch};
use crate::order::Points;

/// The field of `sources` with `strengths` at `targets`, as [`fmm_core::evaluate`] defines it, summed on the device.
///
/// # Errors
/// Those of [`choose`](crate::choose) and [`contract::keep`](fmm_core::contract::keep), values that are not finite,
/// [`Error::Device`] where memory lacks or the device fails.
pub fn evaluate(
    gpu: &Gpu,
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<Evaluation, Error> {
    bodies::check(sources, &[], strengths)?;
    targets.map_or(Ok(()), |t| bodies::check(t, &[], &[]))?;
    let settings = settings.clone().simplified();
    let n = targets.map_or(sources.len(), <[_]>::len);
    gpu.enter()?;
    direct::fits(gpu, 32 * sources.len() + 56 * n, &format!("{} sources at {n} targets", sources.len()))?;
    let uploaded = times.time_more(Stage::Tree, || Uploaded::new(gpu, sources, strengths, targets))?;
    let (mut field, mut potential) = (Buffer::new(), Buffer::new());
    let bodies = uploaded.bodies(&mut field, Some(&mut potential));
    let summed = attempt::sum(gpu, &mut Arrays::default(), &settings, bodies, times)?;
    Ok(Evaluation {
        potential: potential.download()?,
        field: field.download_threes()?,
        choice: summed.choice,
        coincident_pairs: summed.coincident_pairs.unwrap_or_else(|| direct::coincident_pairs(sources)),
    })
}

/// The bodies of one sum on the device.
struct Uploaded {
    position: Buffer<f64>,
    /// Held for `ends`, which points there.
    _strength: Buffer<f64>,
    /// Targets that are not the sources.
    place: Buffer<f64>,
    ends: Ends,
    strengths: Strengths,
}

impl Uploaded {
    fn new(gpu: &Gpu, sources: &[[f64; 3]], strengths: &[f64], targets: Option<&[[f64; 3]]>) -> Result<Self, Error> {
        let (mut position, mut strength, mut place) = (Buffer::new(), Buffer::new(), Buffer::new());
        position.upload(sources.as_flattened())?;
        strength.upload(strengths)?;
        place.upload(targets.unwrap_or(&[]).as_flattened())?;
        gpu.settle()?;
        let strengths = Strengths::of(strengths);
        let at = |points: &Buffer<f64>, strength, n| Points { position: points.pointer(), strength, n };
        let ends = Ends {
            sources: at(&position, strength.pointer(), sources.len()),
            targets: targets.map(|t| at(&place, DevicePointer::null(), t.len())),
            largest: strengths.largest,
        };
        Ok(Uploaded { position, _strength: strength, place, ends, strengths })
    }

    fn bodies<'a>(&'a self, field: &'a mut Buffer<f64>, potential: Option<&'a mut Buffer<f64>>) -> Bodies<'a> {
        let other = self.ends.targets.map(|_| &self.place);
        Bodies { position: (&self.position, other), ends: self.ends, strengths: self.strengths, field, potential }
    }
}

/// The field with the order of `settings`, which must be given, and the error that the guard would measure of it.
///
/// # Errors
/// Those of [`evaluate`].
pub fn measure(
    gpu: &Gpu,
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
) -> Result<(Vec<[f64; 3]>, f64), Error> {
    gpu.enter()?;
    let uploaded = Uploaded::new(gpu, sources, strengths, targets)?;
    let mut field = Buffer::new();
    let bodies = uploaded.bodies(&mut field, None);
    let error = attempt::measure(gpu, &mut Arrays::default(), settings, bodies)?;
    Ok((field.download_threes()?, error))
}

/// Executes the plan of `settings`, whose order must be given, and shows what each stage leaves: the device's side of
/// [`fmm_core::cpu::watch`].
///
/// # Errors
/// Those of [`evaluate`].
pub fn watch(
    gpu: &Gpu,
    settings: &Settings,
    plan: &Plan<3>,
    (sources, strengths): (&[[f64; 3]], &[f64]),
    targets: Option<&[[f64; 3]]>,
    see: Watch,
) -> Result<(), Error> {
    gpu.enter()?;
    let uploaded = Uploaded::new(gpu, sources, strengths, targets)?;
    let n = targets.map_or(sources.len(), <[_]>::len);
    let (mut field, mut potential) = (Buffer::<f64>::new(), Buffer::<f64>::new());
    field.resize(3 * n)?;
    potential.resize(n)?;
    let output = Output { field: field.pointer(), potential: potential.pointer() };
    let mut fmm = Fmm::default();
    let planned = fmm.take(plan)?;
    fmm.sum(gpu, settings, &planned, uploaded.ends, output, &mut StageTimes::default(), Some(see))
}
