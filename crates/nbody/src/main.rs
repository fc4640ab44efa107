//! `nbody`: N-body sums and simulations.

fn main() -> std::process::ExitCode {
    nbody::cli::main()
}
