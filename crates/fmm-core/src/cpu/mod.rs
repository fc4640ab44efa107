//! Execution on the cores of this machine.

mod boxed;
mod by_class;
pub mod counted;
pub mod dense;
mod evaluate;
mod executor;
pub(crate) mod exp;
pub(crate) mod far;
pub mod guard;
mod near;
pub mod p2p;
mod schedule;
pub mod simd;
mod sorted;
mod truncation;
mod vortex;
pub mod workload;

pub use evaluate::{Evaluation, evaluate};
pub use executor::CpuExecutor;
pub use schedule::{execute, watch};
pub use sorted::{Sum, power_of_two_below, strength_scale};
pub use truncation::{largest_share, leaf_step};
pub use vortex::{Velocity, biot_savart};
