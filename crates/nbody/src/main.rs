//! `nbody`: N-body sums and simulations.

#[cfg(unix)]
mod memory;

/// What the allocator reads as it starts: long arrays lie in huge pages where the system has them on request.
#[cfg(unix)]
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static ALLOCATOR_OPTIONS: &[u8; 29] = b"thp:always,dirty_decay_ms:-1\0";

fn main() -> std::process::ExitCode {
    nbody::cli::main()
}
