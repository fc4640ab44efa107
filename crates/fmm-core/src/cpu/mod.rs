//! Execution on the cores of this machine.

mod boxed;
mod direct;
mod error_field;
mod evaluate;
pub(crate) mod far;
mod hessian;
mod near;
mod points;
mod schedule;
mod sorted;
mod store;
mod vortex;
pub mod workload;

pub use direct::direct_field;
pub use evaluate::{WithHessian, biot_savart, evaluate, evaluate_hessian, watch};
pub use schedule::execute;
pub use sorted::Sum;
pub use store::CpuStore;
pub use vortex::velocity_of;
