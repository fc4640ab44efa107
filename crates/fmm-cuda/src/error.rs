//! What can go wrong on the way to a GPU and on it.

use cust::error::CudaError;
use fmm_core::Error;

/// Why no GPU can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The program was built without a compiler for the kernels.
    #[error(
        "this program was built without GPU kernels ({0}); run scripts/setup --gpu, which installs nvcc, and build again"
    )]
    NoKernels(&'static str),
    /// There is no driver, with what the loader says.
    #[error("no NVIDIA driver: {0}")]
    NoDriver(String),
    /// The driver lacks a function.
    #[error("the NVIDIA driver lacks the function {0}: update the driver")]
    MissingFunction(&'static str),
    /// The driver shows no GPU.
    #[error("the NVIDIA driver shows no GPU")]
    NoDevice,
    /// There is no GPU of this number.
    #[error("there is no GPU {asked}: the driver shows {present}, counted from 0")]
    NoSuchDevice {
        /// The number that was asked for.
        asked: u32,
        /// How many there are.
        present: u32,
    },
    /// The GPU is older than the kernels.
    #[error("{name} has compute capability {}.{}; the kernels need 8.0 or newer", .capability.0, .capability.1)]
    TooOld {
        /// Name of the GPU.
        name: String,
        /// Major and minor number of its compute capability.
        capability: (i32, i32),
    },
    /// The driver is older than the compiler of the kernels, and cannot read them.
    #[error(
        "the NVIDIA driver is that of CUDA {found}; the kernels need that of CUDA {needed} or newer: update the driver"
    )]
    OldDriver {
        /// The release of CUDA that the driver is for.
        found: String,
        /// That of the compiler.
        needed: &'static str,
    },
    /// The GPUs of a team are not of one model.
    #[error("{first} and {other} would not give the same bits: GPUs that share sums are of one model")]
    Unlike {
        /// Name of the first GPU.
        first: String,
        /// Name of the one that is another model.
        other: String,
    },
    /// A call of the driver failed while the GPU was opened.
    #[error("the NVIDIA driver fails: {0}")]
    Driver(String),
}

impl Unavailable {
    /// The reason in a few words, for programs that go on without a GPU.
    pub fn brief(&self) -> &'static str {
        match self {
            Unavailable::NoKernels(_) => "built without GPU kernels",
            Unavailable::NoDriver(_) => "no NVIDIA driver",
            Unavailable::MissingFunction(_) | Unavailable::OldDriver { .. } => "the NVIDIA driver is too old",
            Unavailable::NoDevice | Unavailable::NoSuchDevice { .. } => "no GPU",
            Unavailable::Unlike { .. } => "GPUs of several models",
            Unavailable::TooOld { .. } => "the GPU is too old",
            _ => "the NVIDIA driver fails",
        }
    }
}

impl From<CudaError> for Unavailable {
    fn from(e: CudaError) -> Self {
        match e {
            CudaError::NoDevice => Unavailable::NoDevice,
            e => Unavailable::Driver(explain(e)),
        }
    }
}

/// The driver's words for an error.
pub(crate) fn explain(e: CudaError) -> String {
    // `cust` formats by asking the driver, which may know no text.
    format!("{e:?}")
}

/// A failure on the device as an error of the library.
pub(crate) fn device(what: &str) -> impl Fn(CudaError) -> Error {
    move |e| Error::Device(format!("{what}: {}", explain(e)))
}
