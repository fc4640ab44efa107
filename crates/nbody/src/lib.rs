//! The parts of the `nbody` program: files, scenarios and runs around the sums of `fmm-core`.

pub mod cli;
pub mod diagnostics;
pub mod eval;
pub mod external;
pub mod fault;
pub mod files;
pub mod initial;
pub mod integrator;
pub mod run;
pub mod scenario;
pub mod units;
