//! Sums without the GIL, which signals end and around which forks wait.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fmm::bindings::{Failure, forks, guarded};
use fmm_core::Cancel;
use pyo3::prelude::*;

use crate::refusals::exception;

/// Sums of fewer pairs end before anybody wants to stop them.
const FEWEST_PAIRS: f64 = 1e8;

/// How often Python's handlers of signals run during a sum.
const POLL: Duration = Duration::from_millis(50);

/// Runs `sum`, of `pairs` pairs, without the GIL. Where a handler of a signal raises an exception,
/// as that of Ctrl-C does, the flag is set and the exception returned.
pub fn watched<R: Send>(py: Python, pairs: f64, sum: impl FnOnce(Cancel) -> Result<R, Failure> + Send) -> PyResult<R> {
    let cancel = Cancel::new();
    if pairs < FEWEST_PAIRS {
        return py.detach(|| sum(cancel)).map_err(exception);
    }
    let (result, raised) = py.detach(|| with_signals(|| sum(cancel.clone()), &cancel));
    raised.map_or(Ok(()), Err)?;
    result.map_err(exception)
}

/// Runs `sum` on a thread of its own and signal handlers on this one, until one of them raises an exception.
fn with_signals<R: Send>(sum: impl FnOnce() -> R + Send, cancel: &Cancel) -> (R, Option<PyErr>) {
    let mut raised = None;
    let (done, wait) = channel::<()>();
    let result = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Dropped at the end, which ends the wait.
            let _done = done;
            sum()
        });
        while raised.is_none() && wait.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            raised = Python::attach(|py| py.check_signals()).err();
        }
        if raised.is_some() {
            cancel.set();
        }
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    (result, raised)
}

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
    watched(py, 1e9, |_| guarded(None, 1e9, |threads| threads.install(|| panic!("asked for"))))
}
