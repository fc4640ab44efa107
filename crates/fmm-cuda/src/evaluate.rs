//! Single sums on the device.

use fmm_core::accuracy::Strengths;
use fmm_core::plan::OctreePlan;
use fmm_core::solve::Quantity;
use fmm_core::{Error, Evaluation, Settings, Stage, StageTimes, WithHessian, bodies};

use crate::DeviceSums;
use crate::Gpu;
use crate::arrays::Copies;
use crate::buffer::Buffer;
use crate::direct::{self, Output};
use crate::fmm::{Fmm, Watch};
use crate::inputs::{Host, Inputs};
use crate::shares::Divided;
use crate::trial::{self, Arrays, Bodies};

/// The field of `sources` with `strengths` at `targets`, as [`fmm_core::evaluate`] defines it, summed on the device.
///
/// At its peak a fast sum of N bodies at themselves holds about 129 bytes for each, and what cells and lists take: where there is
/// not enough for more, positions and strengths leave the device once the bodies are in the order of their tree. By this count 10⁹ bodies fit
/// 141 GB.
///
/// # Errors
/// Those of [`choose`](crate::choose) and [`solve`](fmm_core::solve::solve), values that are not finite,
/// [`Error::Device`] where memory lacks or the device fails.
pub fn evaluate(
    gpu: &Gpu,
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<Evaluation, Error> {
    let host = (sources, &[strengths][..], targets);
    Ok(DeviceSums::default().evaluate_host(gpu, settings, host, Quantity::Potential, times)?.sum)
}

/// As [`evaluate`], with second derivatives of the potential, as [`fmm_core::evaluate_hessian`] defines them.
///
/// # Errors
/// Those of [`evaluate`]; [`Error::Unsupported`] in periodic boxes, and for direct sums in single
/// precision.
pub fn evaluate_hessian(
    gpu: &Gpu,
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: &[f64],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<WithHessian, Error> {
    DeviceSums::default().evaluate_host(gpu, settings, (sources, &[strengths], targets), Quantity::Hessian, times)
}

/// The velocity of vortex particles, as [`fmm_core::biot_savart`] defines it, summed on the device: a sum of 1/r for each component of
/// the strengths, by one tree and one set of lists.
///
/// # Errors
/// Those of [`evaluate`]; [`Error::Unsupported`] for other softenings than p1, and for periodic boxes.
pub fn biot_savart(
    gpu: &Gpu,
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: [&[f64]; 3],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<Evaluation, Error> {
    let host = (sources, &strengths[..], targets);
    Ok(DeviceSums::default().evaluate_host(gpu, settings, host, Quantity::Velocity, times)?.sum)
}

impl DeviceSums {
    /// The sum of `quantity` over `host`: sources, columns of strengths (three of vortices), and
    /// targets if they are others. Second derivatives are empty unless they are the quantity.
    ///
    /// # Errors
    /// Those of [`evaluate`], [`evaluate_hessian`] and [`biot_savart`].
    pub fn evaluate_host(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        host: Host,
        quantity: Quantity,
        times: &mut StageTimes,
    ) -> Result<WithHessian, Error> {
        let (sources, columns, targets) = host;
        bodies::check_sources(sources, columns)?;
        bodies::check_positions(targets.unwrap_or(&[]))?;
        bodies::check_reach(&[sources, targets.unwrap_or(&[])])?;
        let settings = settings.clone().simplified();
        quantity.check(&settings)?;
        let cell = settings.boundary.periodic();
        cell.map_or(Ok(()), |cell| cell.check_charge(columns[0]))?;
        let n = targets.map_or(sources.len(), <[_]>::len);
        gpu.enter()?;
        // Memory that is taken anew waits for all work of the process on the device.
        let Copies { inputs, field, potential, hessian } = &mut self.copies;
        let one_column = quantity != Quantity::Velocity;
        let numbers = |wanted: bool, each: usize| if wanted { each * n } else { 0 };
        let more = inputs.growth(host)
            + field.growth(3 * n)
            + potential.growth(numbers(one_column, 1))
            + hessian.growth(numbers(quantity == Quantity::Hessian, 6));
        direct::fits(gpu, more, &format!("{} sources at {n} targets", sources.len()))?;
        times.time_more(Stage::Tree, || inputs.upload(gpu, host))?;
        potential.resize(0)?;
        hessian.resize(0)?;
        let bodies = Bodies {
            quantity,
            inputs,
            // The places in a box are made of them, and they serve the surroundings in the end, as
            // other columns need them.
            host: (cell.is_none() && one_column).then_some(host),
            strengths: Strengths::of(columns),
            field: &mut *field,
            potential: one_column.then_some(&mut *potential),
            hessian: (quantity == Quantity::Hessian).then_some(&mut *hessian),
        };
        let solved = trial::sum(gpu, &mut self.arrays, &settings, bodies, None, times)?;
        let (choice, summed) = (solved.choice, solved.sums);
        // Of a team each GPU brings its slice to the host, or the first all, of which every one has
        // the same.
        let first = gpu.member().is_none_or(|member| member.index() == 0);
        let part = match gpu.member() {
            Some(member) if summed.sliced => member.share(n, Divided::Evenly),
            _ if first => 0..n,
            _ => 0..0,
        };
        let error = match settings.errors && first {
            true => trial::errors(gpu, &mut self.arrays, settings.tolerance, (&choice, summed.of_vectors), field)?,
            false => vec![],
        };
        if !first {
            hessian.resize(0)?;
        }
        let sum = Evaluation {
            potential: potential.download_part(if one_column { part.clone() } else { 0..0 })?,
            field: field.download_some_threes(part)?,
            error,
            choice,
            coincident_pairs: summed.coincident_pairs.unwrap_or_else(|| match cell {
                _ if !first => 0,
                None => bodies::coincident_pairs(sources),
                Some(cell) => bodies::coincident_pairs(&cell.wrap(sources)),
            }),
        };
        Ok(WithHessian { sum, hessian: hessian.download()?.as_chunks().0.to_vec() })
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
    let mut inputs = Inputs::default();
    inputs.upload(gpu, (sources, &[strengths], targets))?;
    let (mut field, mut potential) = (Buffer::new(), Buffer::new());
    let strengths = Strengths::of(&[strengths]);
    // In a box the error is that of the potential too.
    let potential = settings.boundary.periodic().map(|_| &mut potential);
    let quantity = Quantity::Potential;
    let bodies =
        Bodies { quantity, inputs: &mut inputs, host: None, strengths, field: &mut field, potential, hessian: None };
    let error = trial::measure(gpu, &mut Arrays::default(), settings, bodies)?;
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
    plan: &OctreePlan<3>,
    (sources, strengths): (&[[f64; 3]], &[f64]),
    targets: Option<&[[f64; 3]]>,
    see: Watch,
) -> Result<(), Error> {
    gpu.enter()?;
    let mut inputs = Inputs::default();
    inputs.upload(gpu, (sources, &[strengths], targets))?;
    let n = targets.map_or(sources.len(), <[_]>::len);
    let (mut field, mut potential) = (Buffer::<f64>::new(), Buffer::<f64>::new());
    field.resize(3 * n)?;
    potential.resize(n)?;
    let output = Output { field: field.pointer(), potential: potential.pointer() };
    let mut fmm = Fmm::default();
    let planned = fmm.take(plan)?;
    fmm.gather(gpu, inputs.ends())?;
    fmm.sum(gpu, settings, &planned, inputs.ends(), output, &mut StageTimes::default(), Some(see), None)
}
