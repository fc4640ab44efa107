//! What can go wrong in a sum.

use fmm_core::ErrorKind;
use fmm_cuda::Unavailable;

/// Errors of the library.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter does not go together with the others.
    #[error("{parameter}: {why}")]
    Request {
        /// Its name, as in the options of `nbody eval`: `softening`, `method`, …
        parameter: &'static str,
        /// What is allowed.
        why: String,
    },
    /// The sum refuses its input, or failed.
    #[error(transparent)]
    Sum(#[from] fmm_core::Error),
    /// The GPU that was asked for cannot be used.
    #[error("device = {device}: {why}; device auto or cpu runs on the cores of this machine")]
    Unavailable {
        /// As it was asked for.
        device: String,
        /// The reason.
        why: Unavailable,
    },
    /// A result is not finite.
    #[error(
        "{output} of target {target} (counted from 0, at {:e}, {:e}, {:e}) is {value}: the true value may be beyond the range of \
         {bits}-bit numbers; {}other units or a softening bring it back",
        .position[0], .position[1], .position[2], if *.bits == 32 { "precision f64, " } else { "" }
    )]
    Overflow {
        /// Name of the output, see [`Kernel::outputs`](crate::Kernel::outputs).
        output: &'static str,
        /// Index of the target.
        target: usize,
        /// Its position.
        position: [f64; 3],
        /// The result.
        value: f64,
        /// Width of the numbers that were summed, 32 or 64.
        bits: u32,
    },
}

impl Error {
    /// What the error is about.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Request { .. } => ErrorKind::Request,
            Error::Sum(e) => e.kind(),
            Error::Unavailable { .. } => ErrorKind::Device,
            Error::Overflow { .. } => ErrorKind::Data,
        }
    }
}
