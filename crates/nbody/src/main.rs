//! `nbody`: N-body sums and simulations.

#[cfg(unix)]
mod memory;

fn main() -> std::process::ExitCode {
    nbody::cli::main()
}
