//! Sums without the GIL, whose panics are exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::fork::Running;
use crate::threads::Threads;

/// Runs `work` without the GIL, with the threads for `pairs` pairs. A panic becomes a RuntimeError.
pub fn guarded<R: Send>(
    py: Python,
    threads: Option<usize>,
    pairs: f64,
    work: impl FnOnce(&Threads) -> R + Send,
) -> PyResult<R> {
    let running = Running::start(py);
    let threads = Threads::of(py, threads, pairs)?;
    py.detach(|| {
        let result = catch_unwind(AssertUnwindSafe(|| work(&threads)));
        drop(running);
        result
    })
    .map_err(|panic| internal(&*panic))
}

/// The exception for a panic, which is an error of ours.
fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!("internal error of nbody_fmm, please report it: {}", text.unwrap_or("no message")))
}

/// Panics within a sum: for the test of what users see then.
#[pyfunction]
pub fn panic(py: Python) -> PyResult<()> {
    guarded(py, None, 1e9, |threads| threads.install(|| panic!("asked for")))
}
