//! Forks of the process wait until no sum runs.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use fmm::bindings::forks;

use crate::answer::{Refusal, internal};

static REGISTERED: AtomicBool = AtomicBool::new(false);

extern "C" fn before() {
    forks::before();
}

extern "C" fn after_in_parent() {
    forks::after_in_parent();
}

extern "C" fn after_in_child() {
    forks::after_in_child();
}

/// Has `fork` call the functions above, from the first sum on.
///
/// # Errors
/// The system has no memory for it.
pub(crate) fn register() -> Result<(), Refusal> {
    if REGISTERED.load(SeqCst) {
        return Ok(());
    }
    // Threads that come here at once register twice. That does no harm, while a fork in the midst of
    // a lock that lets one pass would leave the lock taken in the child.
    // SAFETY: the functions are in memory as long as the process lives (build.rs: nodelete), and
    // take no locks.
    let code = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    if code != 0 {
        return Err(internal(format!("pthread_atfork failed with the error number {code}")));
    }
    REGISTERED.store(true, SeqCst);
    Ok(())
}
