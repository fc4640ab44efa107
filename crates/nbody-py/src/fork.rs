//! Forks wait until no sum runs.
//!
//! A fork copies the calling thread alone. A lock that another thread holds at that moment, of a
//! table of operators for example, would stay taken in the child forever. `os.register_at_fork`
//! calls the functions of this file. All of them, and the start of a sum, hold the GIL.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

use pyo3::prelude::*;

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static FORKING: AtomicUsize = AtomicUsize::new(0);

const PAUSE: Duration = Duration::from_millis(1);

/// A sum that runs. It ends when this is dropped.
pub struct Running(());

impl Running {
    /// Starts a sum, after the forks that are under way.
    pub fn start(py: Python) -> Self {
        while FORKING.load(SeqCst) > 0 {
            py.detach(|| sleep(PAUSE));
        }
        RUNNING.fetch_add(1, SeqCst);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, SeqCst);
    }
}

/// Waits for the sums that run, and holds back new ones.
#[pyfunction]
pub fn before_fork(py: Python) {
    FORKING.fetch_add(1, SeqCst);
    while RUNNING.load(SeqCst) > 0 {
        py.detach(|| sleep(PAUSE));
    }
}

/// Lets sums start again.
#[pyfunction]
pub fn after_fork_in_parent() {
    FORKING.fetch_sub(1, SeqCst);
}

/// Lets sums start in the child, which has a single thread.
#[pyfunction]
pub fn after_fork_in_child() {
    FORKING.store(0, SeqCst);
}
