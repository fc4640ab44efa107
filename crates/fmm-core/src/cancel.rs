//! How a caller ends a sum early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A flag that ends a sum early. Clones share it; the default is never set.
///
/// Loops over leaves and the driver look at it. What they have not begun is left out, and the sum
/// ends with [`Error::Cancelled`](crate::Error::Cancelled). A kernel that runs on a GPU is waited
/// for.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Option<Arc<AtomicBool>>);

impl Cancel {
    /// A flag that is not set yet.
    pub fn new() -> Self {
        Cancel(Some(Arc::default()))
    }

    /// Ends the sums that have this flag. The default flag stays as it is.
    pub fn set(&self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Relaxed);
        }
    }

    /// Whether the sums are to end.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Relaxed))
    }
}
