//! Sums of arrays. `unsafe` is the call with addresses of arrays on a GPU, which the package `nbody_fmm` takes from objects that it holds.

use std::mem;

use fmm::bindings::{Arrays, Session, components};
use fmm::{DeviceArrays, Evaluation, Problem};
use fmm_core::Stage;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::guard::watched;
use crate::options::Keywords;

/// Options with the device that they name. A GPU stays open from the first sum on.
#[pyclass(frozen)]
pub struct Sum(Session);

/// A contiguous array of positions. `[n, d]`
type Positions<'py> = PyReadonlyArray2<'py, f64>;

#[pymethods]
impl Sum {
    #[new]
    fn new(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Sum(Session::new(crate::options::options(&Keywords(options))?)))
    }

    /// Name of the kernel, without its parameter.
    #[getter]
    fn kernel(&self) -> &'static str {
        self.0.options().problem.kernel.name()
    }

    /// Whether the kernel is one of `RADIAL`.
    #[getter]
    fn radial(&self) -> bool {
        self.0.options().problem.kernel.is_radial()
    }

    /// Whether the kernel is one of `IN_SPACE`.
    #[getter]
    fn in_space(&self) -> bool {
        self.0.options().problem.kernel.is_in_space()
    }

    /// Whether second derivatives are wanted.
    #[getter]
    fn hessian(&self) -> bool {
        self.0.options().problem.hessian
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
        let (from, to) = (rows("sources", &sources)?, targets.as_ref().map(|t| rows("targets", t)).transpose()?);
        let columns: Vec<&[f64]> = strengths.iter().map(|q| contiguous("strengths", q)).collect::<PyResult<_>>()?;
        let exclusions = exclusions.as_ref().map_or(Ok(&[][..]), pairs)?;
        let arrays = Arrays { dimension, sources: from, strengths: &columns, targets: to, exclusions };
        let sum = watched(py, arrays.pairs(), |cancel| self.0.evaluate(&arrays, cancel))?;
        results(py, &self.0.options().problem, dimension, sum)
    }

    /// Address of the CUDA stream that reads arrays on GPU `ordinal`.
    fn stream(&self, py: Python, ordinal: u32) -> PyResult<u64> {
        // On a thread of its own: opening a GPU makes it that of the thread.
        watched(py, f64::INFINITY, |_| self.0.stream(ordinal))
    }

    /// Sums arrays on GPU `ordinal`, which are given by address and number of rows, into
    /// `potential`, `field` and `hessian`; 0 is none.
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
        hessian: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let arrays = DeviceArrays { ordinal, sources, strengths: &strengths, targets, potential, field, hessian };
        // SAFETY: _device.py holds the arrays, has checked shapes and dtypes, and has made the stream wait.
        let sum = |cancel| unsafe { self.0.evaluate_on_device(&arrays, cancel) };
        let sum = watched(py, arrays.pairs() / GPU_SPEED, sum)?;
        let out = PyDict::new(py);
        describe(py, &out, &sum)?;
        Ok(out)
    }
}

/// How many times faster than cores a GPU sums, for what counts as a long sum.
const GPU_SPEED: f64 = 1e5;

/// The numbers of an array in C order. `as_slice` alone accepts Fortran order, too.
pub fn rows<'a>(name: &str, array: &'a Positions) -> PyResult<&'a [f64]> {
    if !array.is_c_contiguous() || !(1..=3).contains(&array.shape()[1]) {
        return Err(PyTypeError::new_err(format!("{name}: not a C-contiguous array of 1 to 3 columns")));
    }
    array.as_slice().map_err(|e| PyTypeError::new_err(format!("{name}: {e}")))
}

fn contiguous<'a>(name: &str, array: &'a PyReadonlyArray1<f64>) -> PyResult<&'a [f64]> {
    array.as_slice().map_err(|e| PyTypeError::new_err(format!("{name}: {e}")))
}

/// Pairs of rows, not yet checked.
fn pairs<'a>(array: &'a PyReadonlyArray2<i64>) -> PyResult<&'a [[i64; 2]]> {
    if !array.is_c_contiguous() || array.shape()[1] != 2 {
        return Err(PyTypeError::new_err("exclusions: not a C-contiguous array of 2 columns"));
    }
    Ok(array.as_slice().map_err(|e| PyTypeError::new_err(format!("exclusions: {e}")))?.as_chunks().0)
}

/// The sum as arrays of NumPy, which own the vectors of `sum`.
fn results<'py>(
    py: Python<'py>,
    problem: &Problem,
    dimension: usize,
    mut sum: Evaluation,
) -> PyResult<Bound<'py, PyDict>> {
    let outputs = problem.kernel.outputs(dimension);
    let (m, width) = (sum.field.len(), outputs.field.len());
    let field = components(mem::take(&mut sum.field), width);
    let hessian = mem::take(&mut sum.hessian).into_flattened();
    let out = PyDict::new(py);
    describe(py, &out, &sum)?;
    out.set_item("potential", outputs.potential.map(|_| PyArray1::from_vec(py, sum.potential)))?;
    out.set_item("field", PyArray1::from_vec(py, field).reshape([m, width])?)?;
    let hessian = problem.hessian.then(|| PyArray1::from_vec(py, hessian).reshape([m, 6]));
    out.set_item("hessian", hessian.transpose()?)?;
    out.set_item("error", problem.settings.errors.then(|| PyArray1::from_vec(py, sum.error)))?;
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
        errors.set_item("rms_interval", (e.rms_interval[0], e.rms_interval[1]))?;
        errors.set_item("l2_interval", (e.l2_interval[0], e.l2_interval[1]))?;
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
