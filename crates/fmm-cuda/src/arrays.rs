//! Single sums of arrays that are on the device already.

use fmm_core::accuracy::Strengths;
use fmm_core::solve::Quantity;
use fmm_core::{Choice, Error, Settings, Stage, StageTimes, bodies};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::inputs::{DeviceArrays, Inputs};
use crate::numbers::Numbers;
use crate::trial::{self, Arrays, Bodies};
use crate::view::NumbersShare;

/// What is known of a sum whose results are in the arrays of the caller.
pub struct Done {
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of sources at bitwise the same place.
    pub coincident_pairs: u64,
    /// The results on the host, if one of them is not finite.
    pub not_finite: Option<Results>,
}

/// Results on the host.
pub struct Results {
    /// `[targets]`; empty for velocities.
    pub potential: Vec<f64>,
    /// `[targets]`
    pub field: Vec<[f64; 3]>,
    /// `[targets]`, if it was asked for.
    pub hessian: Vec<[f64; 6]>,
    /// Positions of the targets. `[targets]`
    pub places: Vec<[f64; 3]>,
}

/// Sums of arrays on the device or the host. Memory and tables of a sum serve the next.
#[derive(Default)]
pub struct DeviceSums {
    pub(crate) arrays: Arrays,
    numbers: Numbers,
    pub(crate) copies: Copies,
}

/// On the device: what the host has, and what it gets.
#[derive(Default)]
pub(crate) struct Copies {
    pub inputs: Inputs,
    /// `[targets][3]`
    pub field: Buffer<f64>,
    /// `[targets]`
    pub potential: Buffer<f64>,
    /// `[targets][6]`
    pub hessian: Buffer<f64>,
}

impl DeviceSums {
    /// The sum of [`evaluate`](crate::evaluate) or [`evaluate_hessian`](crate::evaluate_hessian),
    /// or with three columns of strengths that of [`biot_savart`](crate::biot_savart), of `arrays`,
    /// which lie on `gpu`. Nothing of it is under way any more when this returns.
    ///
    /// # Errors
    /// Those of [`evaluate`](crate::evaluate).
    ///
    /// # Safety
    /// All arrays lie in the memory of `gpu`, or in memory that it can reach, with as many numbers as
    /// [`DeviceArrays`] says. Work that writes them was queued before on [`Gpu::stream_address`], or is
    /// done.
    pub unsafe fn evaluate(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        arrays: &DeviceArrays,
        times: &mut StageTimes,
    ) -> Result<Done, Error> {
        let n = arrays.targets();
        gpu.enter()?;
        if let Some(&too_many) = [arrays.sources.1, n].iter().find(|&&n| n >= u32::MAX as usize) {
            return Err(Error::TooMany(too_many));
        }
        // SAFETY: as the caller promises.
        let (mut inputs, outputs) = unsafe {
            let lent = |address, n| if address == 0 { Buffer::new() } else { Buffer::lent(address, n) };
            let outputs = [(arrays.field, 3 * n), (arrays.potential, n), (arrays.hessian, 6 * n)];
            (Inputs::lent(arrays), outputs.map(|(address, n)| lent(address, n)))
        };
        let quantity = match arrays {
            DeviceArrays { strengths: [_, _, ..], .. } => Quantity::Velocity,
            DeviceArrays { hessian: 0, .. } => Quantity::Potential,
            _ => Quantity::Hessian,
        };
        let done = self.sum(gpu, settings.clone().simplified(), quantity, &mut inputs, outputs, times);
        gpu.finish()?;
        done
    }

    fn sum(
        &mut self,
        gpu: &Gpu,
        settings: Settings,
        quantity: Quantity,
        inputs: &mut Inputs,
        [mut field, mut potential, mut hessian]: [Buffer<f64>; 3],
        times: &mut StageTimes,
    ) -> Result<Done, Error> {
        quantity.check(&settings)?;
        let strengths = times.time_more(Stage::Tree, || self.check(gpu, &settings, inputs))?;
        let bodies = Bodies {
            quantity,
            inputs,
            host: None,
            strengths,
            field: &mut field,
            potential: (quantity != Quantity::Velocity).then_some(&mut potential),
            hessian: (quantity == Quantity::Hessian).then_some(&mut hessian),
        };
        let solved = trial::sum(gpu, &mut self.arrays, &settings, bodies, None, times)?;
        let (choice, summed) = (solved.choice, solved.sums);
        let results = [&field, &potential, &hessian].map(|b| (b.pointer(), b.len()));
        let found = self.numbers.of(gpu, &results)?;
        let (sources, targets) = inputs.positions();
        let not_finite = if found.iter().all(|found| found.bad == 0) {
            None
        } else {
            let places = targets.unwrap_or(sources).download_threes()?;
            let (potential, field) = (potential.download()?, field.download_threes()?);
            Some(Results { potential, field, hessian: hessian.download()?.as_chunks().0.to_vec(), places })
        };
        let coincident_pairs = match summed.coincident_pairs {
            Some(pairs) => pairs,
            None => {
                let sources = sources.download_threes()?;
                match settings.boundary.periodic() {
                    None => bodies::coincident_pairs(&sources),
                    Some(cell) => bodies::coincident_pairs(&cell.wrap(&sources)),
                }
            }
        };
        Ok(Done { choice, coincident_pairs, not_finite })
    }

    /// The checks of [`bodies`]; returns what choices depend on of the strengths.
    fn check(&mut self, gpu: &Gpu, settings: &Settings, inputs: &mut Inputs) -> Result<Strengths, Error> {
        let (sources, targets) = inputs.positions();
        let columns = inputs.columns();
        let all = [Some(sources), targets].into_iter().flatten().chain(columns).map(|b| (b.pointer(), b.len()));
        let found = self.numbers.of(gpu, &all.collect::<Vec<_>>())?;
        let (positions, columns) = found.split_at(found.len() - columns.len());
        let (smallest, largest) =
            positions.iter().fold((f64::INFINITY, 0.0), |(s, l), p| (f64::min(s, p.smallest), f64::max(l, p.largest)));
        // Rare enough to bring everything to the host, whose messages name the row.
        if found.iter().any(|f| f.bad > 0) || !bodies::surely_in_reach(smallest, largest) {
            check_on_host(inputs)?;
        }
        if let Some(cell) = settings.boundary.periodic() {
            cell.check_total(columns[0].sum, columns[0].magnitude)?;
        }
        let strengths = Strengths::of_columns(columns.iter().map(NumbersShare::strengths));
        inputs.order_columns(strengths, columns.iter().map(|c| c.magnitude).collect());
        Ok(strengths)
    }
}

fn check_on_host(inputs: &Inputs) -> Result<(), Error> {
    let (sources, targets) = inputs.positions();
    let sources = sources.download_threes()?;
    let targets = targets.map_or(Ok(vec![]), Buffer::download_threes)?;
    let columns = inputs.columns().iter().map(Buffer::download).collect::<Result<Vec<_>, _>>()?;
    bodies::check_sources(&sources, &columns.iter().map(|c| &c[..]).collect::<Vec<_>>())?;
    bodies::check_positions(&targets)?;
    bodies::check_reach(&[&sources, &targets])
}
