//! `nbody eval`: the field of any set of particles in one command.
//!
//! Read, evaluate, write. [`fmm::Kernel`] names the columns that each kernel needs and gives.

pub(crate) mod arguments;
mod input;
mod output;
pub mod ranks;
mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use fmm::{Device, Kernel, Problem, Solver};

use crate::console::{notes, tell};
use crate::failure::Failure;
use crate::{exclusions, messages};

pub use arguments::{Arguments, EXAMPLES};

use input::Points;
use output::Output;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// File of the sources.
    pub sources: PathBuf,
    /// File of the strengths, where that of the sources has none.
    pub strengths: Option<PathBuf>,
    /// File of the targets; the sources themselves, without their own pairs, if absent.
    pub targets: Option<PathBuf>,
    /// What is summed and how, without exclusions.
    pub problem: Problem,
    /// File of pairs of sources that do not see each other.
    pub exclusions: Option<PathBuf>,
    /// Where.
    pub device: Device,
    /// Worker threads; all cores if absent.
    pub threads: Option<usize>,
    /// One JSON object on stdout.
    pub json: bool,
    /// Where the values go; CSV on stdout if absent.
    pub output: Option<PathBuf>,
    /// No warnings, and no result of the check unless it fails.
    pub quiet: bool,
    /// Also print what was chosen and where the time went.
    pub verbose: bool,
}

impl Options {
    /// The files that are read, with the names of their options.
    fn inputs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let rest = [("strengths", &self.strengths), ("targets", &self.targets), ("exclusions", &self.exclusions)];
        let rest = rest.into_iter().filter_map(|(name, path)| path.as_deref().map(|path| (name, path)));
        std::iter::once(("sources", self.sources.as_path())).chain(rest)
    }
}

/// Sums, and writes the sums.
///
/// # Errors
/// 1 if `check` finds an error above the tolerance (the output is written all the same), 2 for a request that cannot
/// be met, 65 and 66 for the input, 70 for sums that are not finite, 71 without threads, 74 for the output.
pub fn run(options: &Options) -> Result<(), Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.unwrap_or(0))
        .build()
        .map_err(|e| Failure::new(71, format!("cannot start the worker threads: {e}")))?;
    let threads = pool.current_num_threads();
    pool.install(|| evaluate(options, threads))
}

/// Seconds of the parts of the command around the sum.
#[derive(Debug, Clone, Copy, Default)]
struct Seconds {
    read: f64,
    write: f64,
}

fn evaluate(options: &Options, threads: usize) -> Result<(), Failure> {
    // What cannot be summed or written is refused before the work, not after it.
    options.problem.check().map_err(failure)?;
    let output = Output::of(options)?;
    let kernel = options.problem.kernel;
    if options.exclusions.is_some() {
        options.problem.check_exclusions().map_err(failure)?;
    }
    let mut seconds = Seconds::default();
    let (sources, targets) = timed(&mut seconds.read, || read(options))?;
    let in_open_space = options.problem.settings.boundary.periodic().is_none();
    if sources.side > 0.0 && in_open_space && kernel == Kernel::Laplace && !options.quiet {
        tell(format_args!("nbody: warning: {}", report::in_a_box(&options.sources, sources.side)));
    }
    for name in options.problem.settings.unused().into_iter().filter(|_| !options.quiet) {
        tell(format_args!("nbody: warning: --{} has no effect on direct sums", name.replace('_', "-")));
    }
    let exclusions = options.exclusions.as_deref();
    let exclusions = exclusions.map(|path| exclusions::read(path, sources.position.len(), "row of the sources"));
    let problem = Problem { exclusions: exclusions.transpose()?.unwrap_or_default(), ..options.problem.clone() };
    let columns: Vec<&[f64]> = sources.strengths.iter().map(|q| &q[..]).collect();
    let points = fmm::Points {
        dimension: sources.dimension,
        sources: &sources.position,
        strengths: &columns,
        targets: targets.as_ref().map(|t| &t.position[..]),
    };
    let mut solver = Solver::new(options.device).with_notes(notes(options.quiet || options.json));
    let mut sum = solver.evaluate(&problem, &points).map_err(failure)?;
    if sum.coincident_pairs > 0 && !options.quiet {
        tell(format_args!("nbody: warning: {}", report::coincident(sum.coincident_pairs, targets.is_some())));
    }
    let at = targets.as_ref().unwrap_or(&sources);
    let totals = report::Totals::of(kernel, &points, &sum);
    let columns = output::columns(kernel, sources.dimension, &mut sum);
    timed(&mut seconds.write, || output.write(at, &columns))?;
    report::Facts { options, points: &points, sum: &sum, totals, threads, seconds }.print()
}

/// The error of a sum, in terms of the options.
fn failure(e: fmm::Error) -> Failure {
    use fmm_core::Error as Refused;
    match &e {
        fmm::Error::Request { parameter, why } => Failure::new(2, format!("--{parameter}: {why}")),
        fmm::Error::Sum(refused @ (Refused::Range { .. } | Refused::Unsupported(_) | Refused::Tolerance { .. })) => {
            Failure::new(2, messages::error(refused))
        }
        _ => e.into(),
    }
}

fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = work();
    *seconds = start.elapsed().as_secs_f64();
    result
}

/// Reads sources and targets, and checks that they have the same axes.
fn read(options: &Options) -> Result<(Points, Option<Points>), Failure> {
    let kernel = options.problem.kernel;
    let own = options.targets.is_none();
    let sources = Points::sources(&options.sources, options.strengths.as_deref(), kernel, own)?;
    let Some(path) = &options.targets else { return Ok((sources, None)) };
    let targets = Points::targets(path, kernel)?;
    if targets.dimension != sources.dimension {
        let axes = |d: usize| ["x", "x, y", "x, y, z"][d - 1];
        let line = format!(
            "{}: positions have {}, those of {} {}; both need the same axes (a column of zeros adds one)",
            path.display(),
            axes(targets.dimension),
            options.sources.display(),
            axes(sources.dimension)
        );
        return Err(Failure::new(65, line));
    }
    Ok((sources, Some(targets)))
}
