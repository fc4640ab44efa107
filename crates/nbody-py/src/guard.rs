//! Sums without the GIL, around which forks wait.

use fmm::bindings::{forks, guarded};
use pyo3::prelude::*;

use crate::refusals::exception;

/// Waits for the sums that run, and holds back new ones. `os.register_at_fork` calls this and the
/// next two.
#[pyfunction]
pub fn before_fork(py: Python) {
    py.detach(forks::before);
}

/// Lets sums start again.
#[pyfunction]
pub fn after_fork_in_parent() {
    forks::after_in_parent();
}

/// Lets sums start in the child, which has a single thread.
#[pyfunction]
pub fn after_fork_in_child() {
    forks::after_in_child();
}

/// Panics within a sum: for the test of what users see then.
#[pyfunction]
pub fn panic(py: Python) -> PyResult<()> {
    py.detach(|| guarded(None, 1e9, |threads| threads.install(|| panic!("asked for")))).map_err(exception)
}
