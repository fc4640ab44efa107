//! The command line.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::eval;
use crate::fault::Fault;
use crate::run;

/// N-body sums and simulations: direct, treecode and fast multipole method.
#[derive(Debug, Parser)]
#[command(name = "nbody", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario: particles, forces and steps in, snapshots for ParaView and yt out
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// The field of any set of particles: sources and targets from a file in, potential and field out
    #[command(after_help = eval::EXAMPLES)]
    Eval(Box<eval::Arguments>),
}

const RUN_EXAMPLES: &str = "\
Examples:
  nbody run scenarios/plummer.toml
  nbody run scenarios/plummer.toml --set particles.0.n=1000 --set time.end=1 --out /tmp/small
  nbody run scenarios/planets.toml --force

Exit codes: 0 done, 2 wrong option, 65 wrong scenario or data, 66 no such file, 70 values no longer finite,
74 files cannot be written, 75 stopped by a signal";

#[derive(Debug, Args)]
struct Run {
    /// The scenario, a TOML file; docs/scenario.md explains every key
    scenario: PathBuf,
    /// Overrides a key of the scenario, for example solver.tolerance=1e-6 or particles.0.n=1000
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Run directory, instead of output.directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Overwrite the files of an earlier run in the run directory
    #[arg(long)]
    force: bool,
    /// Worker threads, 1 to 1024 [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// No progress and no table of stages
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also tell what was resolved
    #[arg(short, long)]
    verbose: bool,
}

/// Runs the program.
pub fn main() -> ExitCode {
    // Wrong options end the process here, with exit code 2.
    let result = match Cli::parse().command {
        Command::Run(r) => run::run(&run::Options {
            scenario: r.scenario,
            sets: r.sets,
            out: r.out,
            force: r.force,
            threads: r.threads.map(usize::from),
            quiet: r.quiet,
            verbose: r.verbose,
        }),
        Command::Eval(arguments) => eval::run(&(*arguments).into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            tell(&fault);
            ExitCode::from(fault.code)
        }
    }
}

/// Prints a fault on stderr, in colour on a terminal unless NO_COLOR is set.
fn tell(fault: &Fault) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    // Nobody is left to tell where even this fails.
    let _ = std::io::stderr().write_all(fault.render(color).as_bytes());
}
