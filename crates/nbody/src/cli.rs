//! The command line.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::{Failure, Report};
#[cfg(unix)]
use crate::files::{look, probe};
use crate::info::program;
use crate::terminal::{width, wrapped};
use crate::{bench, check, console, convert, eval, info, init, manual, paraview, plot, run, signals};

/// N-body sums and simulations: direct, treecode and fast multipole method.
#[derive(Debug, Parser)]
#[command(name = "nbody", version = program::version(), arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario: particles, forces and steps, or a grid and its vorticity in, files for ParaView and yt out
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<run::Arguments>),
    /// The field of any set of particles: sources and targets from a file in, potential and field out
    #[command(after_help = eval::EXAMPLES)]
    Eval(Box<eval::Arguments>),
    /// Write a commented scenario to begin with
    Init(init::Init),
    /// Tell what a file or run directory holds, or what this program is
    Info(info::Info),
    /// Verify checksums, structure and values; with --hash tell the SHA-256 of the data
    Check(check::Check),
    /// Convert between our snapshots, CSV, NumPy, GADGET's HDF5 and temporal VTKHDF, to the last bit
    Convert(convert::Convert),
    /// Draw a run (particles, energy drift, Lagrangian radii, stage times) or the records of a benchmark, as SVG and PNG
    Plot(plot::Plot),
    /// Write a script that opens a run in ParaView, with camera, colors and a representation that show it
    Paraview(paraview::Paraview),
    /// Measure: which method is fastest where, the papers' figures, other codes; records, tables and plots
    #[command(after_help = bench::EXAMPLES)]
    Bench(Box<bench::Bench>),
    /// Print completions for a shell
    Completions(manual::Completions),
    /// Print the manual page, or write all of them to a folder
    Man(manual::Man),
}

const RUN_EXAMPLES: &str = "\
Examples:
  nbody run scenarios/plummer.toml
  nbody run scenarios/plummer.toml --set particles.0.n=1000 --set time.end=1 --out /tmp/small
  nbody run scenarios/planets.toml --force
  nbody run scenarios/plummer.toml --dry-run
  nbody run scenarios/vortex-rings.toml --set grid.n=64
  nbody run --resume out/plummer --until 20 --max-wall 11h50m

Ctrl-C finishes the step, writes a checkpoint and prints the command to go on; a second one stops at once.

Exit codes: 0 done, 1 error above verify's limit, 2 wrong option, 65 wrong scenario or data, 66 no such file, 69 no such GPU, 70 values no longer finite,
71 out of memory, 74 files cannot be written, 75 stopped by a signal";

/// Runs the program.
pub fn main() -> ExitCode {
    signals::outlive_limits();
    #[cfg(unix)]
    {
        if let Some(path) = probe::asked() {
            look::look(&path);
            return ExitCode::SUCCESS;
        }
        probe::enable();
    }
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return ExitCode::from(other_than_a_command(&error)),
    };
    let result = match command {
        Command::Run(arguments) => run::run(&(*arguments).into()),
        Command::Eval(arguments) => eval::run(&(*arguments).into()),
        Command::Init(o) => init::init(&o),
        Command::Info(o) => info::info(&o),
        Command::Check(o) => check::check(&o),
        Command::Convert(o) => convert::convert(&o),
        Command::Plot(o) => plot::plot(&o),
        Command::Paraview(o) => paraview::paraview(&o),
        Command::Bench(o) => bench::bench(&o, program::commit()),
        Command::Completions(o) => manual::completions(&o, &mut Cli::command()),
        Command::Man(o) => manual::man(&o, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure);
            // At once: HDF5 would try again as the process ends to write what it could not write before.
            signals::exit(failure.code)
        }
    }
}

/// Prints help or version on stdout, or what is wrong with the options on stderr; returns the exit code.
fn other_than_a_command(error: &clap::Error) -> u8 {
    match console::outcome(error.print()) {
        Err(failure) if !error.use_stderr() => {
            tell(&failure);
            failure.code
        }
        // 0 or 2.
        _ => error.exit_code() as u8,
    }
}

/// Prints a failure on stderr, in colour on a terminal unless NO_COLOR is set.
fn tell(failure: &Failure) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    // Nobody is left to tell where even this fails.
    let text = failure.render(color);
    let shown = match failure.report {
        Report::Line(_) => wrapped(&text, width()),
        // Laid out already.
        Report::Scenario(_) => text.as_str().into(),
    };
    let _ = std::io::stderr().write_all(shown.as_bytes());
}
