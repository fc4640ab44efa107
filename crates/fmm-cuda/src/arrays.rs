//! Single sums of arrays that are on the device already.

use cust::memory::DevicePointer;
use fmm_core::accuracy::Strengths;
use fmm_core::solve::Quantity;
use fmm_core::{Choice, Error, Settings, Stage, StageTimes, bodies};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::{self, Output};
use crate::inputs::{Inputs, OnDevice};
use crate::numbers::Numbers;
use crate::trial::{self, Arrays, Bodies};
use crate::view::NumbersShare;

/// What is known of a sum whose results are in the arrays of the caller.
pub struct Done {
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of sources at bitwise the same place.
    pub coincident_pairs: u64,
    /// Whether all results are finite.
    pub finite: bool,
}

/// Sums of arrays on the device. The memory of a sum serves the next.
#[derive(Default)]
pub struct DeviceSums {
    inputs: Inputs,
    arrays: Arrays,
    field: Buffer<f64>,
    potential: Buffer<f64>,
    numbers: Numbers,
}

impl DeviceSums {
    /// The sum of [`evaluate`](crate::evaluate), or with three columns of strengths that of
    /// [`biot_savart`](crate::biot_savart), of `points` on `gpu`. The results go to `output`, whose
    /// potential is null for velocities. They are complete when this returns.
    ///
    /// # Errors
    /// Those of [`evaluate`](crate::evaluate).
    ///
    /// # Safety
    /// All arrays lie in the memory of `gpu`, or in memory that it can reach, with as many numbers as
    /// [`OnDevice`] and [`Output`] say. Work that writes them was queued before on
    /// [`Gpu::stream_address`], or is done.
    pub unsafe fn evaluate(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        points: &OnDevice,
        output: Output,
        times: &mut StageTimes,
    ) -> Result<Done, Error> {
        let quantity = if points.columns.len() == 3 { Quantity::Velocity } else { Quantity::Potential };
        let settings = settings.clone().simplified();
        quantity.check(&settings)?;
        let n = points.targets.map_or(points.sources.1, |t| t.1);
        gpu.enter()?;
        if let Some(&too_many) = [points.sources.1, n].iter().find(|&&n| n >= u32::MAX as usize) {
            return Err(Error::TooMany(too_many));
        }
        let growth = self.inputs.growth(points) + self.field.growth(3 * n) + self.potential.growth(n);
        direct::fits(gpu, growth, &format!("{} sources at {n} targets", points.sources.1))?;
        let strengths = times.time_more(Stage::Tree, || {
            // SAFETY: as the caller promises.
            unsafe { self.inputs.copy(gpu, points) }?;
            self.check(gpu, &settings)
        })?;
        let one_column = quantity == Quantity::Potential;
        let bodies = Bodies {
            quantity,
            inputs: &mut self.inputs,
            host: None,
            strengths,
            field: &mut self.field,
            potential: one_column.then_some(&mut self.potential),
        };
        let (choice, summed) = trial::sum(gpu, &mut self.arrays, &settings, bodies, times)?;
        // SAFETY: as the caller promises.
        unsafe {
            self.field.copy_to(output.field, gpu.stream())?;
            if one_column {
                self.potential.copy_to(output.potential, gpu.stream())?;
            }
        }
        let results = [&self.field, &self.potential].map(|b| (b.pointer(), b.len()));
        let finite = self.numbers.of(gpu, &results[..1 + usize::from(one_column)])?.iter().all(|found| found.bad == 0);
        let coincident_pairs = match summed.coincident_pairs {
            Some(pairs) => pairs,
            None => {
                let sources = self.inputs.positions().0.download_threes()?;
                let cell = settings.boundary.periodic();
                bodies::coincident_pairs(&cell.map_or_else(|| sources.clone(), |cell| cell.wrap(&sources)))
            }
        };
        Ok(Done { choice, coincident_pairs, finite })
    }

    /// The last results, the potential empty for velocities; and the places of the targets.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    #[expect(clippy::type_complexity, reason = "potential, field, places")]
    pub fn download(&self, gpu: &Gpu) -> Result<(Vec<f64>, Vec<[f64; 3]>, Vec<[f64; 3]>), Error> {
        gpu.enter()?;
        let (sources, targets) = self.inputs.positions();
        Ok((self.potential.download()?, self.field.download_threes()?, targets.unwrap_or(sources).download_threes()?))
    }

    /// The checks of [`bodies`]; returns what choices depend on of the strengths.
    fn check(&mut self, gpu: &Gpu, settings: &Settings) -> Result<Strengths, Error> {
        let (sources, targets) = self.inputs.positions();
        let columns = self.inputs.columns();
        let all = [Some(sources), targets].into_iter().flatten().chain(columns).map(|b| (b.pointer(), b.len()));
        let found = self.numbers.of(gpu, &all.collect::<Vec<_>>())?;
        let (positions, columns) = found.split_at(found.len() - columns.len());
        let (smallest, largest) =
            positions.iter().fold((f64::INFINITY, 0.0), |(s, l), p| (f64::min(s, p.smallest), f64::max(l, p.largest)));
        // Rare enough to bring everything to the host, whose messages name the row.
        if found.iter().any(|f| f.bad > 0) || !bodies::surely_in_reach(smallest, largest) {
            self.check_on_host()?;
        }
        if let Some(cell) = settings.boundary.periodic() {
            cell.check_total(columns[0].sum, columns[0].magnitude)?;
        }
        let strengths = Strengths::of_columns(columns.iter().map(NumbersShare::strengths));
        self.inputs.order_columns(strengths.largest, columns.iter().map(|c| c.magnitude).collect());
        Ok(strengths)
    }

    fn check_on_host(&self) -> Result<(), Error> {
        let (sources, targets) = self.inputs.positions();
        let sources = sources.download_threes()?;
        let targets = targets.map_or(Ok(vec![]), Buffer::download_threes)?;
        let columns = self.inputs.columns().iter().map(Buffer::download).collect::<Result<Vec<_>, _>>()?;
        bodies::check_sources(&sources, &columns.iter().map(|c| &c[..]).collect::<Vec<_>>())?;
        bodies::check_positions(&targets)?;
        bodies::check_reach(&[&sources, &targets])
    }
}

/// An address on the device as a pointer to numbers.
pub fn numbers_at(address: u64) -> DevicePointer<f64> {
    DevicePointer::from_raw(address)
}
