//! Microbenchmarks: the stages of a fast sum, one after the other, and the peak rate of multiply-adds in registers.

use std::time::Duration;

use cust::event::{Event, EventFlags};
use cust::memory::DevicePointer;
use fmm_core::accuracy::{self, Problem};
use fmm_core::plan::OctreePlan;
use fmm_core::tree::Cube;
use fmm_core::{Error, Precision, Settings, StageTimes, bodies};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::Output;
use crate::error::device as told;
use crate::fmm::Fmm;
use crate::inputs::Inputs;
use crate::occupancy::Occupancy;
use crate::policy;
use crate::view::{PEAK_CHAINS, PeakView, TILE};

/// Times the stages of a fast sum of `positions` at themselves, `samples` times. No two stages overlap.
///
/// Returns the plan, and the device's times in seconds of each sample. `positions` and `strengths`
/// are `[n]`. `settings` must give the order; the guard does not run.
///
/// # Errors
/// Those of [`evaluate`](crate::evaluate).
pub fn time_stages(
    gpu: &Gpu,
    settings: &Settings,
    positions: &[[f64; 3]],
    strengths: &[f64],
    samples: usize,
) -> Result<(OctreePlan<3>, Vec<StageTimes>), Error> {
    bodies::check_sources(positions, &[strengths])?;
    gpu.enter()?;
    let cube = Cube::around(&[positions]);
    let problem = Problem::of(positions, &[strengths], positions.len(), &cube);
    let settings = policy::choose(&settings.clone().simplified(), problem)?;
    let choice = accuracy::choose(&settings, problem)?;
    let cube = accuracy::fit(cube, &problem, policy::best_leaf(&choice), choice.leaf_size);
    let plan = OctreePlan::new(&settings, choice, cube, positions, None, &mut StageTimes::default());
    let mut inputs = Inputs::default();
    inputs.upload(gpu, (positions, &[strengths], None))?;
    let mut field = Buffer::<f64>::new();
    field.resize(3 * positions.len())?;
    let mut fmm = Fmm::default();
    fmm.apart = true;
    let planned = fmm.take(&plan)?;
    fmm.gather(gpu, inputs.ends())?;
    let mut all = vec![];
    for _ in 0..=samples {
        let (output, mut times) =
            (Output { field: field.pointer(), potential: DevicePointer::null() }, StageTimes::default());
        fmm.sum(gpu, &settings, &planned, inputs.ends(), output, &mut times, None, None)?;
        all.push(times);
    }
    // The first makes tables.
    all.remove(0);
    Ok((plan, all))
}

/// Blocks that fill any device several times.
const BLOCKS: usize = 8192;

/// The most floating-point operations a second of the device's ordinary units (not of its tensor cores): independent multiply-adds,
/// the best of five launches.
///
/// # Errors
/// [`Error::Device`] if the driver fails.
pub fn peak(gpu: &Gpu, precision: Precision) -> Result<f64, Error> {
    gpu.enter()?;
    let mut out = Buffer::<f64>::new();
    out.resize(BLOCKS * TILE)?;
    let view = PeakView { out: out.pointer(), factor: 0.5, shift: 1.0, rounds: 2048 };
    let name = if precision == Precision::F32 { "peak_f32" } else { "peak_f64" };
    let mut least = Duration::MAX;
    for _ in 0..5 {
        // SAFETY: `out` has a number for each thread, and lives until the queue is done.
        let took =
            timed(gpu, || unsafe { gpu.kernels().launch(gpu.stream(), name, BLOCKS as u32, TILE as u32, &view) })?;
        least = least.min(took);
    }
    let operations = (2 * BLOCKS * TILE * PEAK_CHAINS) as f64 * f64::from(view.rounds);
    Ok(operations / least.as_secs_f64())
}

/// One operator with its inputs and outputs on the device, that can be done again and again.
pub trait DeviceWork {
    /// Particles or translations of one [`run`](DeviceWork::run).
    fn units(&self) -> usize;

    /// Floating-point operations of each, as its formulas have them; a multiply-add is two.
    fn operations(&self) -> f64;

    /// Of its numbers.
    fn precision(&self) -> Precision {
        Precision::F64
    }

    /// Does the work once; what the device takes for it.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    fn run(&self, gpu: &Gpu) -> Result<Duration, Error>;

    /// What the device takes for parts of the work, which are done again, by their names: those of `run` or what comes after it. None where
    /// nothing is known of parts.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    fn parts(&self, _gpu: &Gpu) -> Result<Vec<(&'static str, Duration)>, Error> {
        Ok(vec![])
    }

    /// The occupancy of its kernel; none where it has several.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    fn occupancy(&self, _gpu: &Gpu) -> Result<Option<Occupancy>, Error> {
        Ok(None)
    }
}

/// What the device takes for the work that `launch` queues.
pub(crate) fn timed(gpu: &Gpu, launch: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
    gpu.enter()?;
    let failed = |e| told("cannot time the GPU")(e);
    let begin = Event::new(EventFlags::DEFAULT).map_err(failed)?;
    let end = Event::new(EventFlags::DEFAULT).map_err(failed)?;
    begin.record(gpu.stream()).map_err(failed)?;
    launch()?;
    end.record(gpu.stream()).map_err(failed)?;
    gpu.finish()?;
    end.elapsed(&begin).map_err(failed)
}
