//! Sums with fixed options, by any number of threads, before and after a fork.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::{mem, process};

use fmm_core::Cancel;

use super::arrays::Rows;
use super::{Arrays, Failure, Options, guarded};
use crate::{Device, DeviceArrays, Error, Evaluation, Points, Problem, Solver};

/// Options with the device that they name. A GPU stays open from the first sum on. Threads that
/// share a session take turns.
pub struct Session {
    options: Options,
    kept: Mutex<Kept>,
    /// Whether the last sum was on a GPU.
    on_gpu: AtomicBool,
}

/// Of sums on a GPU the host checks and copies the bodies, and takes out excluded pairs. For fewer
/// than these one thread does it: threads that sleep between the steps of a run take longer to wake.
const FEWEST_BODIES: usize = 30_000;

/// The solver of one process.
struct Kept {
    process: u32,
    solver: Arc<Mutex<Solver<'static>>>,
}

impl Kept {
    fn new(device: Device) -> Self {
        Kept { process: process::id(), solver: Arc::new(Mutex::new(Solver::new(device))) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.process != process::id() {
            // A GPU of the parent cannot be closed in the child.
            mem::forget(Arc::clone(&self.solver));
        }
    }
}

impl Session {
    /// Sums with these options. Nothing is opened yet.
    pub fn new(options: Options) -> Self {
        let kept = Mutex::new(Kept::new(options.device));
        Session { options, kept, on_gpu: AtomicBool::new(false) }
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Sums, until `cancel` is set. A fork waits for the end.
    ///
    /// # Errors
    /// Those of [`Solver::evaluate`], with the array and the row of values that are not finite;
    /// exclusions of sources that do not exist; [`Failure::Threads`]; [`Failure::Panic`].
    pub fn evaluate(&self, arrays: &Arrays, cancel: Cancel) -> Result<Evaluation, Failure> {
        let mut excluded = None;
        if !arrays.exclusions.is_empty() {
            excluded = Some(Problem { exclusions: arrays.excluded()?, ..self.options.problem.clone() });
        }
        let problem = excluded.as_ref().unwrap_or(&self.options.problem);
        let on_gpu = self.on_gpu.load(Relaxed) && !self.options.device.on_cores(arrays.pairs());
        let alone = on_gpu && arrays.bodies() < FEWEST_BODIES && self.options.problem.sample == 0;
        let threads = if alone { Some(1) } else { self.options.threads };
        let sum = guarded(threads, arrays.pairs(), |threads| {
            let solver = self.solver();
            // Taken before the pool is entered: a worker that waits for a part of one sum may begin
            // another sum.
            let mut held = solver.lock().unwrap_or_else(PoisonError::into_inner);
            let solver: &mut Solver = &mut held;
            solver.set_cancel(cancel);
            let dimension = arrays.dimension;
            let (sources, targets) =
                (Rows::of(arrays.sources, dimension), arrays.targets.map(|t| Rows::of(t, dimension)));
            let targets = targets.as_ref().map(Rows::get);
            let points = Points { dimension, sources: sources.get(), strengths: arrays.strengths, targets };
            threads.install(|| solver.evaluate(problem, &points))
        })?;
        self.on_gpu.store(sum.as_ref().is_ok_and(|sum| sum.device.gpu().is_some()), Relaxed);
        sum.map_err(|e| match e {
            Error::Sum(fmm_core::Error::NotFinite { .. }) => arrays.not_finite(),
            e => e.into(),
        })
    }

    /// The address of the stream of GPU `ordinal` that reads arrays: see [`Solver::stream`].
    ///
    /// # Errors
    /// Those of [`Solver::stream`]; [`Failure::Panic`].
    pub fn stream(&self, ordinal: u32) -> Result<u64, Failure> {
        let stream = |_: &_| self.solver().lock().unwrap_or_else(PoisonError::into_inner).stream(ordinal);
        Ok(guarded(self.options.threads, 0.0, stream)??)
    }

    /// Sums arrays on a GPU, as [`Solver::evaluate_on_device`], until `cancel` is set. A fork waits
    /// for the end.
    ///
    /// # Errors
    /// Those of [`Solver::evaluate_on_device`]; [`Failure::Panic`].
    ///
    /// # Safety
    /// That of [`Solver::evaluate_on_device`].
    #[allow(unsafe_code)]
    pub unsafe fn evaluate_on_device(&self, arrays: &DeviceArrays, cancel: Cancel) -> Result<Evaluation, Failure> {
        let sum = |_: &_| {
            let solver = self.solver();
            let mut solver = solver.lock().unwrap_or_else(PoisonError::into_inner);
            solver.set_cancel(cancel);
            // SAFETY: as the caller promises.
            unsafe { solver.evaluate_on_device(&self.options.problem, arrays) }
        };
        Ok(guarded(self.options.threads, 0.0, sum)??)
    }

    /// The solver of this process. After a fork the parent's is left alone.
    fn solver(&self) -> Arc<Mutex<Solver<'static>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.process != process::id() {
            *kept = Kept::new(self.options.device);
        }
        Arc::clone(&kept.solver)
    }
}
