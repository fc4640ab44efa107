//! Errors of sums as Python exceptions.

use fmm::Error;
use fmm_core::Error as Refused;
use pyo3::create_exception;
use pyo3::exceptions::{PyArithmeticError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    nbody_fmm,
    ToleranceError,
    PyArithmeticError,
    "The tolerance is not reached by the method and precision that are asked for."
);
create_exception!(
    nbody_fmm,
    DeviceError,
    PyRuntimeError,
    "The device that is asked for is not available, too small, or failed."
);

/// The exception for an error of a sum.
pub fn exception(e: &Error) -> PyErr {
    match e {
        Error::Request { parameter, why } => PyValueError::new_err(format!("{}: {why}", keyword(parameter))),
        Error::Sum(Refused::Tolerance { .. }) => ToleranceError::new_err(e.to_string()),
        Error::Sum(Refused::Device(_)) | Error::Unavailable { .. } => DeviceError::new_err(e.to_string()),
        e => PyValueError::new_err(e.to_string()),
    }
}

/// The keyword of Python for an option of the command line.
fn keyword(parameter: &str) -> &str {
    match parameter {
        "periodic" => "box",
        "leaf-size" => "leaf_size",
        parameter => parameter,
    }
}
