//! Simulations of particles: scenarios, initial conditions, integrators and diagnostics over the sums of [`fmm`].
//!
//! The command `nbody` and the Python package run the same scenarios with this crate, step by step
//! with the same bits. It prints nothing and needs no HDF5: a caller that reads such files passes a
//! [function](initial::ReadHdf5) for it.
//! ```
//! use nbody_sim::{Simulation, initial::no_hdf5, scenario::Scenario};
//! let text = "[[particles]]\nmodel = 'figure-eight'\n[time]\ndt = 0.01\nend = 1\n";
//! let scenario = Scenario::parse("eight.toml", text.into(), None, &[]).map_err(|mistakes| mistakes.render(false))?;
//! let (mut simulation, _) = Simulation::new(scenario, no_hdf5, &mut |_| {}).map_err(|e| e.render(false))?;
//! while simulation.steps() < simulation.scenario().steps {
//!     simulation.step(false).map_err(|e| e.to_string())?;
//! }
//! assert_eq!(simulation.time(), 1.0);
//! # Ok::<(), String>(())
//! ```
#![deny(missing_docs, unsafe_code, clippy::print_stdout, clippy::print_stderr)]

pub mod choices;
pub mod diagnostics;
pub mod exclusions;
pub mod failure;
pub mod files;
pub mod flow;
pub mod initial;
pub mod integrator;
pub mod messages;
pub mod mistake;
mod motion;
mod orders;
pub mod ranks;
pub mod scenario;
mod simulation;
mod snapshot_builder;
pub mod surface;
pub mod terminal;
pub mod thermostat;
mod time_step;
pub mod units;
pub mod vortex_ring;

pub use motion::Motion;
pub use orders::Order;
pub use simulation::Simulation;
pub use snapshot_builder::SnapshotBuilder;
pub use time_step::with_step;
