//! Sums of pairwise interactions: directly, by treecode or by fast multipole method.
//!
//! **A summation is a plan (integers) executed with an expansion (mathematics) by a place (the cores, a GPU).**
#![deny(missing_docs, unsafe_code)]

pub mod accuracy;
pub mod bath;
pub mod bodies;
pub mod boundary;
pub mod cancel;
pub mod comm;
pub mod cpu;
pub mod csr;
pub mod error;
pub mod error_model;
pub mod ewald;
pub mod expansion;
pub mod forces;
pub mod gauss;
pub mod grid;
pub mod guard;
pub mod kept;
pub mod kernel;
pub mod lists;
pub mod math;
pub mod mesh;
pub mod plan;
pub mod planar;
pub mod prediction;
pub mod random;
pub mod ranks;
pub mod settings;
pub mod solve;
pub mod stage;
pub mod store;
pub mod totals;
pub mod tree;
pub mod vortices;
pub mod workload;

pub use bodies::Particles;
pub use boundary::{Boundary, PeriodicBox, Surroundings};
pub use cancel::Cancel;
pub use cpu::{CpuStore, WithHessian, biot_savart, evaluate, evaluate_hessian};
pub use csr::Csr;
pub use error::{Error, ErrorKind};
pub use kept::{Kept, KeptMesh, Weights};
pub use kernel::{Hessian, Softening};
pub use num_complex::Complex64;
pub use settings::{Choice, Family, Method, Precision, Settings, Uniform};
pub use solve::Evaluation;
pub use stage::{Stage, StageTimes};
pub use store::{Copied, ForceReport, ParticleStore, Pending};
pub use totals::Totals;
