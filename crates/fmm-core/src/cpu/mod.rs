//! Execution on the cores of this machine.

mod executor;
mod far;
mod guard;
mod near;
pub mod p2p;
pub mod simd;
mod sorted;

pub use executor::{CpuExecutor, Evaluation, evaluate, execute};
pub use sorted::{Sum, strength_range};
