//! Forks wait until no sum runs.
//!
//! A fork copies the calling thread only. A lock that another thread holds at that moment, of a
//! table of operators for example, would stay taken in the child forever. So a program calls
//! [`before`] ahead of a fork, and [`after_in_parent`] or [`after_in_child`] behind it.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static FORKING: AtomicUsize = AtomicUsize::new(0);

const PAUSE: Duration = Duration::from_millis(1);

/// A sum that runs. It ends when this is dropped.
pub struct Running(());

impl Running {
    /// Starts a sum. Waits for the forks that are under way.
    pub fn start() -> Self {
        loop {
            // First counted, then looked: either this sum sees the fork, or the fork sees this sum.
            RUNNING.fetch_add(1, SeqCst);
            if FORKING.load(SeqCst) == 0 {
                return Running(());
            }
            RUNNING.fetch_sub(1, SeqCst);
            sleep(PAUSE);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, SeqCst);
    }
}

/// Waits for the sums that run, and holds back new ones.
pub fn before() {
    FORKING.fetch_add(1, SeqCst);
    while RUNNING.load(SeqCst) > 0 {
        sleep(PAUSE);
    }
}

/// Lets sums start again.
pub fn after_in_parent() {
    FORKING.fetch_sub(1, SeqCst);
}

/// Lets sums start in the child, which has a single thread. A thread of the parent may have been
/// counted as running while it looked for forks.
pub fn after_in_child() {
    RUNNING.store(0, SeqCst);
    FORKING.store(0, SeqCst);
}
