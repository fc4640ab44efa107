//! The parts of the `nbody` program: HDF5 files, runs and plots around the simulations of
//! [`nbody_sim`], and the benchmarks of [`nbody_bench`].
// `console` prints: these macros panic where nobody listens.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![deny(unsafe_code)]

pub mod carried;
pub mod check;
pub mod cli;
pub mod convert;
pub mod eval;
pub mod files;
pub mod info;
pub mod init;
pub mod manual;
pub mod paraview;
pub mod plot;
pub mod run;
pub mod times;

// The rooms below those of the command.
pub use nbody_bench as bench;
pub use nbody_cli::{console, figure, grid_errors, signals};
pub use nbody_sim::{
    diagnostics, exclusions, failure, flow, initial, integrator, messages, mistake, scenario, terminal, thermostat,
    units,
};
