//! Single sums on the device.

use cust::memory::DevicePointer;
use fmm_core::accuracy::Problem;
use fmm_core::plan::Plan;
use fmm_core::tree::Cube;
use fmm_core::{Error, Evaluation, Settings, Stage, StageTimes, bodies, contract};

use crate::attempt::DeviceAttempt;
use crate::buffer::Buffer;
use crate::direct::{self, Direct, Output};
use crate::fmm::{Ends, Fmm, Watch};
use crate::order::Points;
use crate::{Gpu, policy};

/// The field of `sources` with `strengths` at `targets`, as [`fmm_core::evaluate`] defines it, summed on the device.
///
/// # Errors
/// Those of [`policy::choose`] and [`contract::keep`], values that are not finite, [`Error::Device`] where memory lacks or the
/// device fails.
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
    let cube = Cube::around(&[sources, targets.unwrap_or(&[])]);
    let n = targets.map_or(sources.len(), <[_]>::len);
    let problem = Problem::of(sources, strengths, n, &cube);
    let settings = policy::choose(&settings, problem)?;
    gpu.enter()?;
    direct::fits(gpu, 32 * sources.len() + 56 * n, &format!("{} sources at {n} targets", sources.len()))?;
    let uploaded = times.time_more(Stage::Tree, || Uploaded::new(gpu, sources, strengths, targets))?;
    let (mut field, mut potential) = (Buffer::new(), Buffer::new());
    let (mut fmm, mut direct) = (Fmm::default(), Direct::default());
    let mut attempt = DeviceAttempt {
        gpu,
        fmm: &mut fmm,
        direct: &mut direct,
        cube,
        sources,
        targets,
        positions: (&uploaded.position, targets.map(|_| &uploaded.place)),
        ends: uploaded.ends,
        field: &mut field,
        potential: Some(&mut potential),
        softening: settings.softening,
        times,
        shares: vec![],
        arranged: None,
        failed: None,
        coincident_pairs: None,
    };
    let choice = contract::keep(&settings, problem, &mut attempt)?;
    let coincident_pairs = attempt.coincident_pairs;
    Ok(Evaluation {
        potential: potential.download()?,
        field: direct::triples(&field.download()?),
        choice,
        coincident_pairs: coincident_pairs.unwrap_or_else(|| direct::coincident_pairs(sources)),
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
}

impl Uploaded {
    fn new(gpu: &Gpu, sources: &[[f64; 3]], strengths: &[f64], targets: Option<&[[f64; 3]]>) -> Result<Self, Error> {
        let (mut position, mut strength, mut place) = (Buffer::new(), Buffer::new(), Buffer::new());
        position.upload(sources.as_flattened())?;
        strength.upload(strengths)?;
        place.upload(targets.unwrap_or(&[]).as_flattened())?;
        gpu.settle()?;
        let at = |points: &Buffer<f64>, strength, n| Points { position: points.pointer(), strength, n };
        let ends = Ends {
            sources: at(&position, strength.pointer(), sources.len()),
            targets: targets.map(|t| at(&place, DevicePointer::null(), t.len())),
            largest: direct::largest(strengths),
        };
        Ok(Uploaded { position, _strength: strength, place, ends })
    }
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
    let times = &mut StageTimes::default();
    Fmm::default().sum(gpu, settings, plan, uploaded.ends, output, None, times, Some(see)).map(|_| ())
}
