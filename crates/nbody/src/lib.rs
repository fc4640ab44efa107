//! The parts of the `nbody` program: files, scenarios and runs around the sums of `fmm-core`.

pub mod files;
