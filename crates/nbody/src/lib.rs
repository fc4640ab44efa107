//! The parts of the `nbody` program: files, scenarios and runs around the sums of `fmm-core`.
// `console` prints: these macros panic where nobody listens.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![deny(unsafe_code)]

pub mod bench;
pub mod carried;
pub mod check;
pub mod cli;
pub mod console;
pub mod convert;
pub mod diagnostics;
pub mod eval;
pub mod exclusions;
pub mod failure;
pub mod figure;
pub mod files;
pub mod flow;
pub mod grid_errors;
pub mod info;
pub mod init;
pub mod initial;
pub mod integrator;
pub mod manual;
pub mod messages;
pub mod mistake;
pub mod paraview;
pub mod plot;
pub mod random;
pub mod run;
pub mod scenario;
pub mod signals;
pub mod terminal;
pub mod thermostat;
pub mod times;
pub mod units;
