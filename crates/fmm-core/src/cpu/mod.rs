//! Execution on the cores of this machine.

mod boxed;
mod direct;
mod error_field;
mod evaluate;
mod executor;
pub(crate) mod far;
mod hessian;
mod near;
mod schedule;
mod sorted;
mod vortex;
pub mod workload;

pub use direct::direct_field;
pub use evaluate::{WithHessian, evaluate, evaluate_hessian, watch};
pub use executor::CpuExecutor;
pub use schedule::execute;
pub use sorted::Sum;
pub use vortex::{biot_savart, velocity_of};
