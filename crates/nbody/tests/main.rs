//! The tests of the program, linked once: HDF5 makes every link slow.

mod common;

mod bench;
mod corpus;
mod eval;
mod eval_degenerate;
mod eval_gauss;
mod eval_periodic;
mod eval_plane;
mod faults_device;
mod faults_disk;
mod faults_files;
mod faults_limits;
mod faults_soak;
mod files_checkpoint;
mod files_snapshot;
mod readers;
mod readers_bad;
mod refusals;
mod run_device;
mod run_exclusions;
mod run_external;
mod run_formats;
mod run_grid;
mod run_options;
mod run_orders;
mod run_periodic;
mod run_plane;
mod run_planets;
mod run_program;
mod run_resume;
mod run_reversible;
mod run_scenario;
mod scenarios;
mod tools;
mod tools_convert;
