//! Sums of pairwise interactions: directly, by treecode or by fast multipole method.
//!
//! **A summation is a plan (integers) executed with an expansion (mathematics) by an executor (place).**
#![deny(missing_docs)]

pub mod bodies;
pub mod error;
pub mod executor;
pub mod settings;
pub mod stage;

pub use bodies::Particles;
pub use error::Error;
pub use executor::{CpuExecutor, Executor};
pub use settings::{Choice, Method, Precision, Settings, Softening};
pub use stage::{Stage, StageTimes};
