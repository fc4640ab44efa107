//! `nbody-mpi`: commands of `nbody` on several processes that `mpirun` has started.
//!
//! The main thread passes messages ([`post`]), a second one works. The two share channels alone.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![deny(unsafe_code)]

mod comm;
mod post;
mod same;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fmm_core::comm::Comm;
use nbody::{eval, run};
use nbody_cli::console::tell;
use nbody_sim::failure::{Failure, Report};

/// Sums and simulations of several processes: mpirun -n 4 nbody-mpi run scenarios/plummer.toml
///
/// Gravity, Coulomb and screened charges in open space, by FMM, treecode or directly, on the cores. Sums and particles have the bits
/// of `nbody` with `--device cpu`, for any number of processes and threads.
#[derive(Debug, Parser)]
#[command(name = "nbody-mpi", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    /// Expert: most bytes of one MPI message; longer ones go in pieces
    #[arg(long, value_name = "BYTES", global = true, default_value_t = post::PIECE,
          value_parser = clap::value_parser!(u32).range(64..=1 << 30))]
    piece: u32,
    /// Seconds without a sign of life after which a rank is taken for lost, and all end with exit code 70
    #[arg(long, value_name = "SECONDS", global = true, default_value_t = 6, value_parser = clap::value_parser!(u16).range(2..=3600))]
    patience: u16,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The field of a set of particles at themselves: the options of `nbody eval`
    ///
    /// Not on ranks: --targets, --exclusions, --periodic, --check, GPUs, and kernels other than laplace and yukawa.
    #[command(after_help = EXAMPLES)]
    Eval(Box<eval::Arguments>),
    /// Run a scenario: the options of `nbody run`
    ///
    /// Not on ranks: boxes, the plane, grids, external fields, exclusions, short-range forces, thermostats, [verify], GPUs, --dry-run.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<run::Arguments>),
}

const RUN_EXAMPLES: &str = "\
Examples:
  mpirun -n 4 nbody-mpi run scenarios/plummer.toml
  mpirun -n 8 nbody-mpi run --resume out/plummer --until 20

The first rank reads and writes. Any number of ranks, and nbody run, go on from a checkpoint to the same bits. Exit codes are those of nbody run;
70 if a rank panics or is lost, 65 if ranks differ in program or options";

const EXAMPLES: &str = "\
Examples:
  mpirun -n 4 nbody-mpi eval --sources stars.csv --output field.npy
  mpirun -n 2 --bind-to socket nbody-mpi eval --sources snap_000010.hdf --softening plummer:0.01 --output field.hdf -v

The first rank reads and writes. Exit codes are those of nbody eval; 70 if a rank panics or is lost, 65 if ranks differ in program or options";

/// The exit code of what must not happen.
const INTERNAL: u8 = 70;

fn main() -> ExitCode {
    nbody_cli::signals::outlive_limits();
    // Before MPI, so that the help needs no mpirun.
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let Some(mut post) = post::Post::new(cli.piece, u64::from(cli.patience)) else {
        tell("nbody-mpi: MPI cannot be initialized");
        return ExitCode::from(INTERNAL);
    };
    let (comm, office) = comm::pair(post.rank(), post.size());
    let worker = std::thread::spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&comm, cli.command)));
        // The hook has printed the message.
        done.unwrap_or_else(|_| {
            post::say_last(comm.rank(), "ends early");
            comm.abort(INTERNAL.into())
        })
    });
    // Were it dropped while this thread unwinds, MPI would wait for the others.
    if catch_unwind(AssertUnwindSafe(|| post.serve(&office))).is_err() {
        post.abort(INTERNAL.into());
    }
    ExitCode::from(worker.join().unwrap_or(INTERNAL))
}

fn work(comm: &dyn Comm, command: Command) -> u8 {
    let same = same::check(comm);
    let done = same.and_then(|()| match command {
        Command::Eval(arguments) => eval::ranks::run(comm, &(*arguments).into()),
        Command::Run(arguments) => run::ranks::run(comm, &(*arguments).into()),
    });
    comm.barrier();
    done.map_or_else(report, |()| 0)
}

/// Prints the message of the rank that has it.
fn report(failure: Failure) -> u8 {
    if !matches!(&failure.report, Report::Line(line) if line.is_empty()) {
        tell(failure.render(false).trim_end());
    }
    failure.code
}
