//! The integration tests of the library, linked once.

mod accuracy;
mod contract;
mod counting;
mod error_field;
mod gauss;
mod grid;
mod grid_adaptive;
mod grid_bodies;
mod grid_diffusion;
mod grid_flow;
mod hessian;
mod mesh;
mod periodic;
mod planar;
mod planar_errors;
mod properties;
mod ranks;
mod repeatability;
mod workloads;
