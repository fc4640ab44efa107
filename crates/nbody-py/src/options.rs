//! Keywords of Python as a problem of the library.

use fmm::{Device, Error, Kernel, Problem, names};
use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::refusals::exception;

/// The keywords of a sum.
pub struct Keywords<'a, 'py>(pub &'a Bound<'py, PyDict>);

impl<'py> Keywords<'_, 'py> {
    /// A keyword of type T, which messages call `expected`.
    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str, expected: &str) -> PyResult<T> {
        let Some(value) = self.0.get_item(name)? else {
            return Err(PyTypeError::new_err(format!("{name} is missing")));
        };
        value.extract().map_err(|_| PyTypeError::new_err(format!("{name}: {value:?} is not {expected}")))
    }

    fn text(&self, name: &str) -> PyResult<String> {
        self.get(name, "a string")
    }

    /// A whole number that is not negative, or None.
    fn whole(&self, name: &str) -> PyResult<Option<usize>> {
        let value: Option<i64> = self.get(name, "a whole number")?;
        let usable = |n| usize::try_from(n).map_err(|_| PyValueError::new_err(format!("{name}: {n} is negative")));
        value.map(usable).transpose()
    }
}

/// What is summed, where, and on how many threads.
pub struct Options {
    /// Without exclusions.
    pub problem: Problem,
    pub device: Device,
    /// None: all cores.
    pub threads: Option<usize>,
}

const MOST_THREADS: usize = 1024;

impl Options {
    /// # Errors
    /// ValueError for an unknown name, a value out of range, or parameters that do not go together.
    pub fn new(k: &Keywords) -> PyResult<Self> {
        let refuse = |name: &str, why: String| PyValueError::new_err(format!("{name}: {why}"));
        let refused = |e: Error| exception(&e);
        let kernel: Kernel = k.text("kernel")?.parse().map_err(|why| refuse("kernel", why))?;
        let shape: Option<String> = k.get("softening", "a string such as \"plummer:0.01\"")?;
        let (softening, blob) = names::softening(shape.as_deref().unwrap_or("none")).map_err(refused)?;
        let sides: Option<[f64; 3]> = k.get("box", "three sides")?;
        let medium = k.text("surroundings")?;
        let surroundings = names::surroundings(&medium).map_err(refused)?;
        if sides.is_none() && medium != "tinfoil" {
            return Err(refuse("surroundings", "only with a box".into()));
        }
        let boundary = sides.map_or(Boundary::Open, |side| Boundary::Periodic(PeriodicBox { side, surroundings }));
        let threads = k.whole("threads")?;
        if let Some(threads) = threads.filter(|n| !(1..=MOST_THREADS).contains(n)) {
            return Err(refuse("threads", format!("{threads} is outside 1 to {MOST_THREADS}")));
        }
        let settings = Settings {
            softening,
            boundary,
            method: named("method", &k.text("method")?, names::METHODS, Method::name)?,
            tolerance: k.get("tolerance", "a number")?,
            precision: named("precision", &k.text("precision")?, names::PRECISIONS, Precision::name)?,
            order: k.whole("order")?,
            theta: k.get("theta", "a number")?,
            leaf_size: k.whole("leaf_size")?,
            uniform: None,
        };
        // Orders and angles have limits that depend on the kernel: the sum checks them.
        let general = Settings { order: None, theta: None, ..settings.clone() };
        general.check().map_err(|e| refused(e.into()))?;
        let sample = k.whole("check")?.unwrap_or(0);
        let problem = Problem { blob, settings, sample, ..Problem::new(kernel) };
        problem.check().map_err(refused)?;
        let device = k.text("device")?.parse().map_err(|why| refuse("device", why))?;
        Ok(Options { problem, device, threads })
    }
}

/// The one of `values` that is called `text`.
fn named<T: Copy, const N: usize>(
    keyword: &str,
    text: &str,
    values: [T; N],
    name: fn(T) -> &'static str,
) -> PyResult<T> {
    values.into_iter().find(|&value| name(value) == text).ok_or_else(|| {
        let allowed = values.map(name).join(", ");
        PyValueError::new_err(format!("{keyword}: {text:?} is unknown; allowed: {allowed}"))
    })
}
