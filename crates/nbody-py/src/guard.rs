//! Sums without the GIL, which signals end and whose panics are exceptions.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fmm_core::Cancel;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::fork::Running;
use crate::threads::Threads;

/// Sums of fewer pairs end before anybody wants to stop them.
const FEWEST_PAIRS: f64 = 1e8;

/// How often Python's handlers of signals run during a sum.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` without the GIL, with the threads for `pairs` pairs. A panic becomes a RuntimeError.
/// Where a handler of a signal raises an exception, as that of Ctrl-C does, the flag is set and the
/// exception returned.
pub fn guarded<R: Send>(
    py: Python,
    threads: Option<usize>,
    pairs: f64,
    work: impl FnOnce(&Threads, Cancel) -> R + Send,
) -> PyResult<R> {
    let running = Running::start(py);
    let threads = Threads::of(py, threads, pairs)?;
    let cancel = Cancel::new();
    let (run, flag) = (AssertUnwindSafe(|| work(&threads, cancel.clone())), &cancel);
    let (result, raised) = py.detach(|| {
        let results = if pairs < FEWEST_PAIRS { (catch_unwind(run), None) } else { watched(run, flag) };
        drop(running);
        results
    });
    raised.map_or(Ok(()), Err)?;
    result.map_err(|panic| internal(&*panic))
}

/// Runs `work` on a thread of its own and signal handlers on this one, until one of them raises an exception.
fn watched<R: Send>(
    work: AssertUnwindSafe<impl FnOnce() -> R + Send>,
    cancel: &Cancel,
) -> (thread::Result<R>, Option<PyErr>) {
    let mut raised = None;
    let (done, wait) = channel::<()>();
    let result = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Dropped at the end, which ends the wait.
            let _done = done;
            work()
        });
        while raised.is_none() && wait.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            raised = Python::attach(|py| py.check_signals()).err();
        }
        if raised.is_some() {
            cancel.set();
        }
        worker.join()
    });
    (result, raised)
}

/// The exception for a panic, which is an error of ours.
fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!("internal error of nbody_fmm, please report it: {}", text.unwrap_or("no message")))
}

/// Panics within a sum: for the test of what users see then.
#[pyfunction]
pub fn panic(py: Python) -> PyResult<()> {
    guarded(py, None, 1e9, |threads, _| threads.install(|| panic!("asked for")))
}
