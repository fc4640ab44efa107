//! Keywords of Python as a problem of the library.

use fmm::bindings::{Options, Request};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

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
        // Python's whole numbers have any length.
        if let Some(value) = self.0.get_item(name)?
            && value.is_instance_of::<PyInt>()
            && value.extract::<i64>().is_err()
        {
            return Err(PyValueError::new_err(format!("{name}: {value} has more than 64 bits")));
        }
        let value: Option<i64> = self.get(name, "a whole number")?;
        let usable = |n| usize::try_from(n).map_err(|_| PyValueError::new_err(format!("{name}: {n} is negative")));
        value.map(usable).transpose()
    }
}

/// The options that keywords stand for.
///
/// # Errors
/// TypeError for a value of a wrong type; ValueError for an unknown name, a value out of range, or
/// parameters that do not go together.
pub fn options(k: &Keywords) -> PyResult<Options> {
    let softening: Option<String> = k.get("softening", "a string such as \"plummer:0.01\"")?;
    let request = Request {
        kernel: &k.text("kernel")?,
        softening: softening.as_deref().unwrap_or("none"),
        sides: k.get("box", "three sides")?,
        surroundings: &k.text("surroundings")?,
        tolerance: k.get("tolerance", "a number")?,
        method: &k.text("method")?,
        precision: &k.text("precision")?,
        order: k.whole("order")?,
        theta: k.get("theta", "a number")?,
        leaf_size: k.whole("leaf_size")?,
        device: &k.text("device")?,
        threads: k.whole("threads")?,
        check: k.whole("check")?.unwrap_or(0),
        hessian: k.get("hessian", "True or False")?,
        errors: k.get("errors", "True or False")?,
    };
    request.options().map_err(|e| exception(e.into()))
}
