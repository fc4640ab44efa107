//! Sums of arrays. `unsafe` is the call with addresses of arrays on a GPU, which the package `nbody_fmm` takes from objects that it holds.

use std::sync::{Arc, Mutex, PoisonError};
use std::{mem, process};

use fmm::{Device, DeviceArrays, Evaluation, Kernel, Points, Problem, Solver, in_order};
use fmm_core::{Error as Refused, Stage};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::guard::guarded;
use crate::options::{Keywords, Options};
use crate::refusals::exception;

/// Options with the device that they name. A GPU stays open from the first sum on.
#[pyclass(frozen)]
pub struct Sum {
    options: Options,
    kept: Mutex<Kept>,
}

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

/// A contiguous array of positions. `[n, d]`
type Positions<'py> = PyReadonlyArray2<'py, f64>;

#[pymethods]
impl Sum {
    #[new]
    fn new(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Options::new(&Keywords(options))?;
        let kept = Mutex::new(Kept::new(options.device));
        Ok(Sum { options, kept })
    }

    /// Name of the kernel, without its parameter.
    #[getter]
    fn kernel(&self) -> &'static str {
        self.options.problem.kernel.name()
    }

    /// Sums. All arrays are C-contiguous: positions `[n, d]`, columns of strengths `[n]`, exclusions `[pairs, 2]`.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        sources: Positions<'py>,
        strengths: Vec<PyReadonlyArray1<'py, f64>>,
        targets: Option<Positions<'py>>,
        exclusions: Option<PyReadonlyArray2<'py, i64>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dimension = sources.shape()[1];
        let at = targets.as_ref().unwrap_or(&sources);
        let pairs = sources.shape()[0] as f64 * at.shape()[0] as f64;
        let (from, to) = (rows("sources", &sources)?, targets.as_ref().map(|t| rows("targets", t)).transpose()?);
        let columns: Vec<&[f64]> = strengths.iter().map(|q| contiguous("strengths", q)).collect::<PyResult<_>>()?;
        let solver = self.solver(py);
        let mut excluded = None;
        if let Some(pairs) = &exclusions {
            let pairs = excluded_pairs(pairs, sources.shape()[0])?;
            excluded = Some(Problem { exclusions: pairs, ..self.options.problem.clone() });
        }
        let problem = excluded.as_ref().unwrap_or(&self.options.problem);
        let sum = guarded(py, self.options.threads, pairs, |threads, cancel| {
            // Taken before the pool is entered: a worker that waits for a part of one sum may begin another sum.
            let mut held = solver.lock().unwrap_or_else(PoisonError::into_inner);
            let solver: &mut Solver = &mut held;
            solver.set_cancel(cancel);
            let (sources, targets) = (Rows::of(from, dimension), to.map(|t| Rows::of(t, dimension)));
            let targets = targets.as_ref().map(Rows::get);
            let points = Points { dimension, sources: sources.get(), strengths: &columns, targets };
            threads.install(|| solver.evaluate(problem, &points))
        })?;
        let sum = sum.map_err(|e| match e {
            fmm::Error::Sum(Refused::NotFinite { .. }) => not_finite(from, &columns, to, dimension),
            e => exception(&e),
        })?;
        results(py, problem.kernel, dimension, sum)
    }

    /// Address of the CUDA stream that reads arrays on GPU `ordinal`.
    fn stream(&self, py: Python, ordinal: u32) -> PyResult<u64> {
        let solver = self.solver(py);
        // On a thread of its own: opening a GPU makes it that of the thread.
        let stream = guarded(py, self.options.threads, f64::INFINITY, |_, _| {
            solver.lock().unwrap_or_else(PoisonError::into_inner).stream(ordinal)
        })?;
        stream.map_err(|e| exception(&e))
    }

    /// Sums arrays on GPU `ordinal`, which are given by address and number of rows, into `potential` and `field`.
    #[expect(clippy::too_many_arguments, reason = "the arrays")]
    #[allow(unsafe_code)]
    fn evaluate_on_gpu<'py>(
        &self,
        py: Python<'py>,
        ordinal: u32,
        sources: (u64, usize),
        strengths: Vec<u64>,
        targets: Option<(u64, usize)>,
        potential: u64,
        field: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let solver = self.solver(py);
        let problem = &self.options.problem;
        let pairs = sources.1 as f64 * targets.map_or(sources.1, |t| t.1) as f64;
        let sum = guarded(py, self.options.threads, pairs / GPU_SPEED, |_, cancel| {
            let mut solver = solver.lock().unwrap_or_else(PoisonError::into_inner);
            solver.set_cancel(cancel);
            let arrays = DeviceArrays { ordinal, sources, strengths: &strengths, targets, potential, field };
            // SAFETY: _device.py holds the arrays, has checked shapes and dtypes, and has made the stream wait.
            unsafe { solver.evaluate_on_device(problem, &arrays) }
        })?;
        let sum = sum.map_err(|e| exception(&e))?;
        let out = PyDict::new(py);
        describe(py, &out, &sum)?;
        Ok(out)
    }
}

/// How many times faster than cores a GPU sums, for what counts as a long sum.
const GPU_SPEED: f64 = 1e5;

impl Sum {
    /// The solver of this process. After a fork the parent's is left alone: its GPU cannot be used in the child.
    fn solver(&self, _py: Python) -> Arc<Mutex<Solver<'static>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.process != process::id() {
            mem::forget(mem::replace(&mut *kept, Kept::new(self.options.device)));
        }
        Arc::clone(&kept.solver)
    }
}

/// Rows of three numbers: those of an array, or a copy with zeros beyond its columns.
enum Rows<'a> {
    Borrowed(&'a [[f64; 3]]),
    Padded(Vec<[f64; 3]>),
}

impl<'a> Rows<'a> {
    fn of(values: &'a [f64], dimension: usize) -> Self {
        if dimension == 3 {
            return Rows::Borrowed(values.as_chunks().0);
        }
        let row = |row: &[f64]| std::array::from_fn(|d| row.get(d).copied().unwrap_or(0.0));
        Rows::Padded(values.chunks_exact(dimension).map(row).collect())
    }

    fn get(&self) -> &[[f64; 3]] {
        match self {
            Rows::Borrowed(rows) => rows,
            Rows::Padded(rows) => rows,
        }
    }
}

/// The numbers of an array in C order. `as_slice` alone accepts Fortran order, too.
fn rows<'a>(name: &str, array: &'a Positions) -> PyResult<&'a [f64]> {
    if !array.is_c_contiguous() || !(1..=3).contains(&array.shape()[1]) {
        return Err(PyTypeError::new_err(format!("{name}: not a C-contiguous array of 1 to 3 columns")));
    }
    array.as_slice().map_err(|e| PyTypeError::new_err(format!("{name}: {e}")))
}

fn contiguous<'a>(name: &str, array: &'a PyReadonlyArray1<f64>) -> PyResult<&'a [f64]> {
    array.as_slice().map_err(|e| PyTypeError::new_err(format!("{name}: {e}")))
}

/// Pairs of rows, checked and in order.
fn excluded_pairs(pairs: &PyReadonlyArray2<i64>, n: usize) -> PyResult<Vec<[usize; 2]>> {
    let index = |i: i64| {
        let known = usize::try_from(i).ok().filter(|&i| i < n);
        known.ok_or_else(|| PyValueError::new_err(format!("exclusions: {i} is not one of {n} sources, counted from 0")))
    };
    let rows = pairs.as_array();
    let pairs = rows.rows().into_iter().map(|row| Ok([index(row[0])?, index(row[1])?]));
    in_order(pairs.collect::<PyResult<_>>()?)
        .map_err(|[i, j]| PyValueError::new_err(format!("exclusions: the pair {i}, {j} is given twice")))
}

/// The exception for values that are not finite, with the argument and the index of the first.
fn not_finite(sources: &[f64], columns: &[&[f64]], targets: Option<&[f64]>, dimension: usize) -> PyErr {
    let bad = |values: &[f64]| values.iter().position(|v| !v.is_finite());
    let of = |name: &str, values: &[f64], width: usize| {
        let at = bad(values)?;
        Some(format!("{name}: row {} (counted from 0) holds {}, which is not finite", at / width, values[at]))
    };
    let strengths = || columns.iter().find_map(|column| of("strengths", column, 1));
    let found = of("sources", sources, dimension)
        .or_else(strengths)
        .or_else(|| targets.and_then(|t| of("targets", t, dimension)));
    PyValueError::new_err(found.unwrap_or_else(|| "a value is not finite".into()))
}

/// The sum as arrays of NumPy, which own the vectors of `sum`.
fn results<'py>(
    py: Python<'py>,
    kernel: Kernel,
    dimension: usize,
    mut sum: Evaluation,
) -> PyResult<Bound<'py, PyDict>> {
    let outputs = kernel.outputs(dimension);
    let (m, width) = (sum.field.len(), outputs.field.len());
    let field = match width {
        3 => mem::take(&mut sum.field).into_flattened(),
        width => sum.field.iter().flat_map(|e| e[..width].iter().copied()).collect(),
    };
    let out = PyDict::new(py);
    describe(py, &out, &sum)?;
    out.set_item("potential", outputs.potential.map(|_| PyArray1::from_vec(py, sum.potential)))?;
    out.set_item("field", PyArray1::from_vec(py, field).reshape([m, width])?)?;
    Ok(out)
}

/// Everything but potential and field.
fn describe(py: Python, out: &Bound<PyDict>, sum: &Evaluation) -> PyResult<()> {
    let choice = PyDict::new(py);
    choice.set_item("method", sum.choice.method.name())?;
    choice.set_item("precision", sum.choice.precision.name())?;
    choice.set_item("order", sum.choice.order)?;
    choice.set_item("theta", sum.choice.theta)?;
    choice.set_item("leaf_size", sum.choice.leaf_size)?;
    out.set_item("choice", choice)?;
    let times = PyDict::new(py);
    for stage in Stage::ALL.into_iter().filter(|&stage| sum.times.calls(stage) > 0) {
        times.set_item(stage.name(), sum.times.seconds(stage))?;
    }
    times.set_item("sum", sum.seconds.sum)?;
    if let Some(e) = &sum.errors {
        times.set_item("errors", sum.seconds.errors)?;
        let errors = PyDict::new(py);
        for (name, value) in [("rms", e.rms), ("median", e.median), ("p99", e.p99), ("max", e.max), ("l2", e.l2)] {
            errors.set_item(name, value)?;
        }
        errors.set_item("potential", e.potential)?;
        errors.set_item("floored", e.floored)?;
        errors.set_item("sample", e.sample)?;
        out.set_item("errors", errors)?;
    } else {
        out.set_item("errors", py.None())?;
    }
    out.set_item("times", times)?;
    out.set_item("device", sum.device.to_string())?;
    out.set_item("coincident_pairs", sum.coincident_pairs)
}
