//! The parts of the `nbody` program: HDF5 files, runs, plots and benchmarks around the simulations
//! of [`nbody_sim`].
// `console` prints: these macros panic where nobody listens.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![deny(unsafe_code)]

pub mod bench;
pub mod carried;
pub mod check;
pub mod cli;
pub mod console;
pub mod convert;
pub mod eval;
pub mod figure;
pub mod files;
pub mod grid_errors;
pub mod info;
pub mod init;
pub mod manual;
pub mod paraview;
pub mod plot;
pub mod run;
pub mod signals;
pub mod times;

// The rooms below those of the command.
pub use nbody_sim::{
    diagnostics, exclusions, failure, flow, initial, integrator, messages, mistake, random, scenario, terminal,
    thermostat, units,
};
