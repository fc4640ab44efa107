//! Simulations of scenarios. They run without the GIL, and signals are handled between steps.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{mem, process, thread};

use fmm::bindings::{Failure, guarded};
use fmm::{ErrorKind, Note};
use fmm_core::Error;
use nbody_sim::initial::no_hdf5;
use nbody_sim::scenario::{self, Scenario};
use nbody_sim::units::Dimension;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::refusals::{exception, refused};
use crate::sum::rows;

/// What messages call a scenario that is no file.
const NAME: &str = "scenario";

/// How long steps go on before signals are handled, and a fork or another thread gets its turn.
const TURN: Duration = Duration::from_millis(50);

/// How long steps pause where another thread waits.
const PAUSE: Duration = Duration::from_millis(2);

/// The particles of a scenario.
#[pyclass(frozen)]
pub struct Simulation {
    held: Arc<Mutex<nbody_sim::Simulation>>,
    threads: Option<usize>,
    /// Pairs of a step.
    pairs: f64,
    on_gpu: bool,
    process: u32,
    /// Threads that wait for their turn.
    waiting: AtomicUsize,
    warnings: Vec<String>,
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if self.on_gpu && self.process != process::id() {
            // A GPU of the parent cannot be closed in the child.
            mem::forget(Arc::clone(&self.held));
        }
    }
}

/// A time: a number in the scenario's unit, or a text with a unit.
enum Time {
    Number(f64),
    Text(String),
}

fn time(value: &Bound<PyAny>) -> PyResult<Time> {
    if let Ok(text) = value.extract() {
        return Ok(Time::Text(text));
    }
    value
        .extract()
        .map(Time::Number)
        .map_err(|_| PyTypeError::new_err(format!("until: {value:?} is neither a number nor a text such as \"5 Myr\"")))
}

/// `[n, 3]`
type Vectors<'py> = PyReadonlyArray2<'py, f64>;

#[pymethods]
impl Simulation {
    /// The scenario of a file, or that of a text.
    #[new]
    fn new(py: Python, file: Option<PathBuf>, text: Option<String>, threads: Option<usize>) -> PyResult<Self> {
        let scenario = read(file, text)?;
        let (sums, device) = (scenario.integrator.sums_per_step() as f64, scenario.device);
        let mut no_gpu = false;
        let mut note = |note| no_gpu |= matches!(note, Note::NoGpu(_));
        let make = || nbody_sim::Simulation::new(scenario, no_hdf5, &mut note);
        // Opening a GPU makes it that of the thread.
        let made = py.detach(|| on_a_thread(|| guarded(threads, f64::INFINITY, |threads| threads.install(make))));
        let (simulation, warnings) = made.map_err(exception)?.map_err(refused)?;
        let pairs = (simulation.initial().len() as f64).powi(2);
        let on_gpu = !no_gpu && !device.on_cores(pairs);
        let held = Arc::new(Mutex::new(simulation));
        Ok(Simulation {
            held,
            threads,
            pairs: sums * pairs,
            on_gpu,
            process: process::id(),
            waiting: AtomicUsize::new(0),
            warnings,
        })
    }

    /// What the command would warn of at the start.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Makes steps. Where a handler of a signal raises an exception, as that of Ctrl-C does, they
    /// end with it.
    fn step(&self, py: Python, count: u64) -> PyResult<()> {
        let mut left = count;
        while left > 0 {
            left = self.with(py, |s| turn(s, left))?;
            py.check_signals()?;
            // The lock is not fair: others would wait as long as this thread asks for it at once.
            if self.waiting.load(Ordering::Relaxed) > 0 {
                py.detach(|| thread::sleep(PAUSE));
            }
        }
        Ok(())
    }

    /// Number of steps from now to a time, the end of the scenario if none is given.
    fn steps_until(&self, py: Python, until: Option<Bound<PyAny>>) -> PyResult<u64> {
        let until = until.as_ref().map(time).transpose()?;
        self.look(py, |s| {
            let time = match until {
                None => return Ok(s.scenario().steps.saturating_sub(s.steps())),
                Some(Time::Number(time)) => time,
                Some(Time::Text(text)) => {
                    let time = s.scenario().units.convert(&text, Dimension::Time);
                    time.map_err(|why| format!("until = \"{text}\" cannot be read as a time: {why}"))?
                }
            };
            s.steps_until(time)
        })?
        .map_err(PyValueError::new_err)
    }

    /// Steps made, the present time, the length of a step, and the number of particles.
    fn progress(&self, py: Python) -> PyResult<(u64, f64, f64, usize)> {
        self.look(py, |s| (s.steps(), s.time(), s.scenario().clock.dt, s.initial().len()))
    }

    /// The scenario with every default.
    fn resolved(&self, py: Python) -> PyResult<String> {
        self.look(py, |s| s.scenario().resolved(None, s.initial().len()))
    }

    /// `[n]`
    fn masses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.look(py, |s| s.initial().mass.clone())?))
    }

    /// `[n]`; None under gravity.
    fn charges<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let charges = self.look(py, |s| s.scenario().charged().then(|| s.initial().charge.clone()))?;
        Ok(charges.map(|charges| PyArray1::from_vec(py, charges)))
    }

    /// `[n, 3]`
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        vectors(py, self.with(py, |s| s.snapshot())?.position)
    }

    /// `[n, 3]`
    fn velocities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        vectors(py, self.with(py, |s| s.snapshot())?.velocity)
    }

    fn set_positions(&self, py: Python, positions: Vectors) -> PyResult<()> {
        let values = self.vectors_of(py, "positions", &positions)?;
        self.with(py, |s| s.set_positions(values))
    }

    fn set_velocities(&self, py: Python, velocities: Vectors) -> PyResult<()> {
        if self.look(py, |s| s.scenario().vortices())? {
            let why = "velocities: those of vortices follow from the positions and cannot be set";
            return Err(PyValueError::new_err(why));
        }
        let values = self.vectors_of(py, "velocities", &velocities)?;
        self.with(py, |s| s.set_velocities(values))
    }

    /// The columns of `diagnostics.csv` at the present step.
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (step, time, values) = self.with(py, |s| {
            let values = s.diagnostics()?;
            Ok((s.steps(), s.time(), values))
        })?;
        let out = PyDict::new(py);
        out.set_item("step", step)?;
        out.set_item("time", time)?;
        values.into_iter().try_for_each(|(name, value)| out.set_item(name, value))?;
        Ok(out)
    }
}

impl Simulation {
    /// The vectors of an array, one for each particle, finite, and in the plane where the particles are.
    fn vectors_of(&self, py: Python, name: &str, array: &Vectors) -> PyResult<Vec<[f64; 3]>> {
        let wrong = |why: String| Err(PyValueError::new_err(format!("{name}: {why}")));
        let values: &[[f64; 3]] = rows(name, array)?.as_chunks().0;
        let (n, plane) = self.look(py, |s| (s.initial().len(), s.scenario().plane.is_some()))?;
        if values.len() != n {
            return wrong(format!("{} rows; expected {n}, one for each particle", values.len()));
        }
        if let Some(row) = values.iter().position(|v| v.iter().any(|x| !x.is_finite())) {
            return wrong(format!("row {row} (counted from 0) holds {:?}, which is not finite", values[row]));
        }
        if let Some(row) = values.iter().position(|v| plane && v[2] != 0.0) {
            let third = values[row][2];
            return wrong(format!(
                "the third number of row {row} (counted from 0) is {third}; allowed in the plane: 0"
            ));
        }
        Ok(values.to_vec())
    }

    /// Works on the simulation with its threads. A fork waits for the end.
    fn with<R: Send>(
        &self,
        py: Python,
        work: impl FnOnce(&mut nbody_sim::Simulation) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        if self.on_gpu && self.process != process::id() {
            let why = "a forked child cannot use a GPU of its parent; start it by spawn";
            return Err(exception(Failure::Sum(ErrorKind::Device, why.into())));
        }
        let work = || {
            guarded(self.threads, self.pairs, |threads| {
                // Taken before the pool is entered: a worker that waits for a part of one sum may
                // begin another.
                self.waiting.fetch_add(1, Ordering::Relaxed);
                let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                let simulation: &mut nbody_sim::Simulation = &mut held;
                threads.install(|| {
                    work(simulation).map_err(|e| {
                        let (steps, time) = (simulation.steps(), simulation.time());
                        Failure::Sum(e.kind(), format!("after step {steps}, time {time}: {e}"))
                    })
                })
            })?
        };
        py.detach(|| if self.on_gpu { on_a_thread(work) } else { work() }).map_err(exception)
    }

    /// Looks at what needs no sum.
    fn look<R: Send>(&self, py: Python, work: impl FnOnce(&nbody_sim::Simulation) -> R + Send) -> PyResult<R> {
        self.with(py, |s| Ok(work(s)))
    }
}

/// Makes steps for the time of a turn, `left` at most. Returns how many are left.
fn turn(s: &mut nbody_sim::Simulation, mut left: u64) -> Result<u64, Error> {
    let begun = Instant::now();
    while left > 0 && begun.elapsed() < TURN {
        s.step(left == 1)?;
        left -= 1;
    }
    Ok(left)
}

/// Runs `work` on a thread of its own, so that the GPU of the calling thread stays the one that it is.
fn on_a_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// The scenario of particles in a file or a text.
fn read(file: Option<PathBuf>, text: Option<String>) -> PyResult<Scenario> {
    let name = file.as_ref().map_or(NAME.into(), |file| file.display().to_string());
    let text = match (&file, text) {
        (Some(file), _) => scenario::file_text(file).map_err(refused)?,
        (None, text) => text.unwrap_or_default(),
    };
    if scenario::has_grid(&text) {
        let why = "has a [grid]; here particles are simulated, and the command nbody run solves on grids";
        return Err(PyValueError::new_err(format!("{name}: {why}")));
    }
    let folder = file.as_ref().and_then(|file| file.parent());
    Scenario::parse(&name, text, folder, &[]).map_err(|mistakes| refused(mistakes.into()))
}

fn vectors(py: Python<'_>, values: Vec<[f64; 3]>) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let n = values.len();
    PyArray1::from_vec(py, values.into_flattened()).reshape([n, 3])
}
