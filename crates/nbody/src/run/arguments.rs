//! The options of `nbody run`, as they are typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fmm::{Device, GridDevice};

use super::Options;

/// The options of the command line.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scenario, a TOML file; docs/scenario.md explains every key
    #[arg(required_unless_present = "resume")]
    scenario: Option<PathBuf>,
    /// Overrides a key of the scenario, for example solver.tolerance=1e-6 or particles.0.n=1000
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Run directory, instead of output.directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Overwrite the files of an earlier run in the run directory; with --resume: go on although the physics differ
    #[arg(long)]
    force: bool,
    /// Go on from the newest checkpoint in DIR (or in the run directory of SCENARIO), to the same bits as without a break
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    resume: Option<Option<PathBuf>>,
    /// End of the run, instead of time.end, for example 2.5 or "3 Gyr"
    #[arg(long, value_name = "TIME", conflicts_with = "steps", allow_negative_numbers = true)]
    until: Option<String>,
    /// Do N steps from the start (or from the checkpoint), instead of going to time.end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1 << 52))]
    steps: Option<u64>,
    /// Stop with a checkpoint before this much wall time is over, for example 11h50m; exit code 75
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_wall: Option<Duration>,
    /// Tell what the run would need, and run nothing
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
    /// Tell what happens as one JSON object a line on stdout
    #[arg(long)]
    json: bool,
    /// Where forces are summed, instead of solver.device: auto, cpu, cuda, cuda:N, several of these with commas, or
    /// cuda:all; with a [grid] hybrid or hybrid:N, and one GPU
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    device: Option<String>,
    /// Worker threads, 1 to 1024 [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// No progress and no table of stages; warnings stay
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also tell what was resolved
    #[arg(short, long)]
    verbose: bool,
    /// End with exit code 1 if results make no sense: energy off by more than 1 %, a virial ratio above 20, a temperature away from its
    /// bath, no particles. Without it such runs print a warning
    #[arg(long)]
    strict: bool,
}

impl From<Arguments> for Options {
    fn from(a: Arguments) -> Self {
        Options {
            scenario: a.scenario,
            sets: a.sets,
            out: a.out,
            force: a.force,
            device: a.device,
            threads: a.threads.map(usize::from),
            resume: a.resume,
            until: a.until,
            steps: a.steps,
            max_wall: a.max_wall,
            dry_run: a.dry_run,
            json: a.json,
            quiet: a.quiet,
            strict: a.strict,
            verbose: a.verbose,
            ranks: None,
        }
    }
}

/// A device of particles or of a grid.
fn device(text: &str) -> Result<String, String> {
    let of_grid = text.parse::<GridDevice>().map(|device| device.to_string());
    let of_particles = || text.parse::<Device>().map(|device| device.to_string());
    of_grid
        .or_else(|_| of_particles())
        .map_err(|why| format!("{why}; with a [grid] auto, cpu, cuda, cuda:N, hybrid, hybrid:N"))
}

/// A length of time, as 90s, 30min or "2h 15min".
fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|e| format!("{e}; allowed: a length of time, for example 90s, 30min or 2h"))
}
