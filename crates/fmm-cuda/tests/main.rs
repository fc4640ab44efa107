//! The tests of the GPU, linked once. Without a GPU those that need one print `skipped: no device`.

mod common;

mod arguments;
mod bath;
mod box_stages;
mod contract;
mod copies;
mod driver;
mod far;
mod forces;
mod gauss_device;
mod geometry;
mod grid;
mod grid_fields;
mod guard;
mod hessian;
mod kept;
mod layout;
mod m2l_variants;
mod mesh;
mod modules;
mod parity;
mod periodic;
mod planar_versions;
mod plane;
mod plane_run;
mod team;
mod vortex;
