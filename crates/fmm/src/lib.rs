//! Fast sums of pairwise interactions: gravity and Coulomb forces, screened charges, vortices, sums
//! in the plane and of Gaussians.
//!
//! A [`Problem`] says what is summed and how accurately; [`Points`] borrow positions and strengths;
//! a [`Solver`] sums on the cores of this machine or on a GPU and returns an [`Evaluation`]. The
//! library reads no files and prints nothing.
//!
//! ```
//! use fmm::{Device, Kernel, Points, Problem, Solver};
//! let problem = Problem::new(Kernel::Laplace);
//! let (sources, charges) = ([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [1.0, -1.0]);
//! let columns: [&[f64]; 1] = [&charges];
//! let points = Points::in_space(&sources, &columns);
//! let sum = Solver::new(Device::Cpu).evaluate(&problem, &points)?;
//! assert_eq!(sum.potential, [-0.5, 0.5]);
//! assert_eq!(sum.field[0], [0.25, 0.0, 0.0]);
//! # Ok::<(), fmm::Error>(())
//! ```
//!
//! Runs keep their particles where forces are summed: [`store()`] returns a store of particles,
//! [`GridSolver`] solves on grids of blocks.
#![deny(missing_docs, unsafe_code)]

pub mod bindings;
mod coincident;
mod device;
mod error;
mod errors;
mod evaluation;
mod exclusions;
mod grid;
mod kernel;
pub mod names;
mod on_device;
mod problem;
pub mod ranks;
mod reference;
mod sample;
mod solver;
mod sums;

pub use device::{Device, Note, Team, store, vortex_store};
pub use error::Error;
pub use errors::Errors;
pub use evaluation::{Evaluation, Seconds};
pub use exclusions::in_order;
pub use fmm_core::ErrorKind;
pub use fmm_cuda::DeviceArrays;
pub use fmm_cuda::grid::fields::CudaFields;
pub use grid::{GridDevice, GridSolver, GridStore};
pub use kernel::{Family, Kernel, Outputs};
pub use problem::{Points, Problem};
pub use reference::Reference;
pub use solver::Solver;
