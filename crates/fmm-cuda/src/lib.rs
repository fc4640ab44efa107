//! Execution of N-body sums on NVIDIA GPUs, through the CUDA driver alone.
//!
//! The program runs with or without a GPU: [`load`] binds the driver at run time, [`devices`] says what is there or why
//! nothing is, and [`Gpu::open`] makes a device ready. Kernels are the text of the folder `kernels/`, compiled to machine code
//! and PTX when the crate is built, and loaded when they are launched for the first time.
//!
//! No sum of floating-point numbers uses atomic operations and every order of summation is fixed by the input, so that repeats give the same bits.
#![deny(missing_docs)]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod arrays;
mod bath;
mod boxed;
mod buffer;
mod cartesian;
mod cells;
mod clock;
mod delivery;
mod description;
mod device;
mod direct;
mod driver;
mod error;
mod error_field;
mod evaluate;
mod ewald;
mod far;
mod fmm;
mod forces;
pub mod gauss;
pub mod geometry;
pub mod grid;
mod guard;
mod hessian;
mod inputs;
mod kernels;
mod layout;
mod m2l;
mod m2l_scales;
mod m2l_schedule;
mod m2l_variants;
pub mod mesh;
mod microbenchmarks;
mod mma_layout;
mod near;
mod needed;
mod numbers;
mod occupancy;
mod operators;
mod order;
mod place;
pub mod planar;
mod policy;
mod shares;
mod staging;
mod state;
mod store;
pub mod team;
mod ternary_root;
mod totals;
mod trial;
pub mod view;
mod vortices;

pub use arrays::{DeviceSums, Done, Results};
pub use buffer::Buffer;
pub use description::{Description, devices};
pub use device::Gpu;
pub use driver::{NAMES as FUNCTIONS, load};
pub use error::Unavailable;
pub use evaluate::{biot_savart, evaluate, evaluate_hessian, measure, watch};
pub use inputs::{DeviceArrays, Host};
pub use kernels::{Binary, MISSING, MODULES};
pub use layout::LAYOUTS;
pub use m2l_variants::{M2lVariant, M2lVariants, Ours};
pub use microbenchmarks::{DeviceWork, peak, time_stages};
pub use mma_layout::DeviceReal;
pub use occupancy::{Limiter, Occupancy};
pub use policy::choose;
pub use store::CudaStore;
pub use view::Points;
pub use vortices::CudaVortices;
