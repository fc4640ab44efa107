//! Sums whose errors and panics are values with a kind and a text.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Threads;
use super::forks::Running;
use crate::{Error, ErrorKind};

/// Why a sum has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The sum refuses its input, or failed. With the message.
    Sum(ErrorKind, String),
    /// The system refuses threads. With the message.
    Threads(String),
    /// A panic, which is an error of this library. With its text.
    Panic(String),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Sum(e.kind(), message(&e))
    }
}

/// The message of an error, with the names that options have in other languages.
pub fn message(e: &Error) -> String {
    match e {
        Error::Request { parameter: "periodic", why } => format!("box: {why}"),
        Error::Request { parameter: "leaf-size", why } => format!("leaf_size: {why}"),
        e => e.to_string(),
    }
}

/// Runs `work` with the threads for `pairs` pairs. Forks wait for its end.
///
/// # Errors
/// [`Failure::Threads`], and [`Failure::Panic`] if `work` panics.
pub fn guarded<R>(threads: Option<usize>, pairs: f64, work: impl FnOnce(&Threads) -> R) -> Result<R, Failure> {
    let running = Running::start();
    let threads = Threads::of(&running, threads, pairs)
        .map_err(|e| Failure::Threads(format!("cannot start the worker threads: {e}")))?;
    catch_unwind(AssertUnwindSafe(|| work(&threads))).map_err(|panic| Failure::Panic(text(&*panic)))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_failures_and_end_the_sum() {
        let panicked = |pairs| guarded(Some(2), pairs, |threads| threads.install(|| panic!("asked for {pairs}")));
        for pairs in [1.0, 1e9] {
            assert_eq!(panicked(pairs), Err::<(), _>(Failure::Panic(format!("asked for {pairs}"))));
        }
        // Returns at once: no sum runs any more.
        super::super::forks::before();
        super::super::forks::after_in_parent();
        assert_eq!(guarded(None, 1.0, |threads| threads.install(|| 5)), Ok(5));
    }
}
