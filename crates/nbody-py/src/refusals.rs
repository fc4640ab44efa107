//! Errors of sums and scenarios as Python exceptions.

use fmm::ErrorKind;
use fmm::bindings::Failure;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyArithmeticError, PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
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

/// The exception for a sum without a result.
pub fn exception(failure: Failure) -> PyErr {
    match failure {
        Failure::Sum(ErrorKind::Request | ErrorKind::Data, text) => PyValueError::new_err(text),
        Failure::Sum(ErrorKind::Tolerance, text) => ToleranceError::new_err(text),
        Failure::Sum(ErrorKind::Device, text) => DeviceError::new_err(text),
        // Signals end sums, and leave an exception of their own.
        Failure::Sum(ErrorKind::Cancelled, text) | Failure::Threads(text) => PyRuntimeError::new_err(text),
        Failure::Panic(text) => {
            PyRuntimeError::new_err(format!("internal error of nbody_fmm, please report it: {text}"))
        }
    }
}

/// The exception for a scenario that cannot be simulated.
pub fn refused(failure: nbody_sim::failure::Failure) -> PyErr {
    let text = failure.render(false);
    let text = text.trim_start_matches("nbody: ").trim_end().to_string();
    match failure.code {
        66 => PyFileNotFoundError::new_err(text),
        69 | 70 => DeviceError::new_err(text),
        71 => PyMemoryError::new_err(text),
        74 => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
