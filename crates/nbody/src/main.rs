//! `nbody`: N-body sums and simulations.

#[cfg(unix)]
mod memory;

fn main() -> std::process::ExitCode {
    #[cfg(unix)]
    memory::keep_freed();
    nbody::cli::main()
}
