//! The parts of the `nbody` program: files, scenarios and runs around the sums of `fmm-core`.
// `console` prints: these macros panic where nobody listens.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![deny(unsafe_code)]

pub mod bench;
pub mod check;
pub mod cli;
pub mod console;
pub mod convert;
pub mod device;
pub mod diagnostics;
pub mod eval;
pub mod exclusions;
pub mod fault;
pub mod files;
pub mod flow;
pub mod info;
pub mod init;
pub mod initial;
pub mod integrator;
pub mod manual;
pub mod molecular;
pub mod paraview;
pub mod plot;
pub mod run;
pub mod scenario;
pub mod times;
pub mod told;
pub mod units;
