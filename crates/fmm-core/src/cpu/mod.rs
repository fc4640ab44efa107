//! Execution on the cores of this machine.

mod boxed;
pub(crate) mod direct;
mod error_field;
pub(crate) mod evaluate;
pub(crate) mod far;
mod hessian;
mod near;
pub(crate) mod points;
pub(crate) mod schedule;
pub(crate) mod sorted;
mod store;
mod vortex;
pub mod workload;

pub use direct::{OTHER_DIGITS, direct_field};
pub use evaluate::{WithHessian, biot_savart, evaluate, evaluate_hessian, watch};
pub use schedule::execute;
pub use sorted::Sum;
pub use store::{CpuStore, Summing};
pub use vortex::velocity_of;
