//! `nbody eval`: the field of any set of particles in one command.
//!
//! Read, evaluate, check, write. What depends on the kernel (the columns that it needs and gives, its sum and its
//! reference) is behind [`Kernel`]; the rest does not know which kernel it serves.

pub(crate) mod arguments;
mod check;
mod exclusions;
mod gauss;
mod input;
mod kernel;
mod laplace;
mod output;
mod plane;
mod reference;
mod report;
mod vortex;

use std::path::PathBuf;
use std::time::Instant;

use fmm_core::planar::Blob;
use fmm_core::{Boundary, Precision, Settings, Softening};

use crate::device::Device;
use crate::fault::Fault;

pub use arguments::{Arguments, EXAMPLES};
pub use check::Errors;
pub use kernel::Kernel;
pub use reference::Reference;

use input::Points;
use kernel::{Answer, Problem};
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
    /// What is summed.
    pub kernel: Kernel,
    /// File of pairs of sources that do not see each other.
    pub exclusions: Option<PathBuf>,
    /// How.
    pub settings: Settings,
    /// The blobs that sources in the plane are.
    pub blob: Blob,
    /// Whether a softening was asked for.
    pub softened: bool,
    /// Where.
    pub device: Device,
    /// Worker threads; all cores if absent.
    pub threads: Option<usize>,
    /// Targets that are compared with the direct sum.
    pub check: Option<usize>,
    /// One JSON object on stdout.
    pub json: bool,
    /// Where the values go; CSV on stdout if absent.
    pub output: Option<PathBuf>,
    /// No warnings, and no result of the check unless it misses.
    pub quiet: bool,
    /// Also tell what was chosen and where the time went.
    pub verbose: bool,
}

/// Sums, and writes the sums.
///
/// # Errors
/// 1 if `check` finds an error above the tolerance (the output is written all the same), 2 for a request that cannot
/// be met, 65 and 66 for the input, 70 for sums that are not finite, 71 without threads, 74 for the output.
pub fn run(options: &Options) -> Result<(), Fault> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.unwrap_or(0))
        .build()
        .map_err(|e| Fault::new(71, format!("cannot start the worker threads: {e}")))?;
    let threads = pool.current_num_threads();
    pool.install(|| evaluate(options, threads))
}

/// Seconds of the parts of the command around the stages of the sum.
#[derive(Debug, Clone, Copy, Default)]
struct Seconds {
    read: f64,
    evaluate: f64,
    check: f64,
    write: f64,
}

fn evaluate(options: &Options, threads: usize) -> Result<(), Fault> {
    cores(options)?;
    space(options)?;
    // An output that cannot be written is told before the work, not after it.
    let output = Output::of(options.output.as_deref())?;
    let mut seconds = Seconds::default();
    let (sources, targets) = timed(&mut seconds.read, || read(options))?;
    let problem = Problem {
        kernel: options.kernel,
        settings: &options.settings,
        blob: options.blob,
        device: options.device,
        quiet: options.quiet || options.json,
        dimension: sources.dimension,
        sources: &sources.position,
        strengths: &sources.strengths,
        targets: targets.as_ref().map(|t| &t.position[..]),
    };
    let exclusions = options
        .exclusions
        .as_deref()
        .map(|path| crate::exclusions::read(path, sources.position.len(), "row of the sources"));
    let exclusions = exclusions.transpose()?.unwrap_or_default();
    let mut answer = timed(&mut seconds.evaluate, || problem.sum())?;
    let check = options.check.map(|n| timed(&mut seconds.check, || check::measure(&problem, &answer, n)));
    exclusions::leave_out(&problem, &exclusions, &mut answer);
    let at = targets.as_ref().unwrap_or(&sources);
    finite(&answer, at)?;
    let pairs = coincident(&problem, &answer);
    if pairs > 0 && !options.quiet {
        crate::console::tell(format_args!("nbody: warning: {}", report::coincident(pairs, targets.is_some())));
    }
    timed(&mut seconds.write, || output.write(at, &answer))?;
    let facts = report::Facts {
        options,
        sources: sources.position.len(),
        targets: at.position.len(),
        answer: &answer,
        coincident_pairs: pairs,
        totals: report::Totals::of(&problem, &answer),
        threads,
        seconds,
        check,
    };
    facts.tell()
}

fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = work();
    *seconds = start.elapsed().as_secs_f64();
    result
}

/// Sees that the kernel knows the softening.
fn cores(options: &Options) -> Result<(), Fault> {
    let (blob, softening) = (options.blob != Blob::Point, options.settings.softening);
    let allowed = match options.kernel {
        Kernel::Log | Kernel::Harmonic if softening != Softening::None => "none, algebraic:E, gaussian:E",
        Kernel::Yukawa(_) if options.softened => "none",
        Kernel::Gauss(_) if blob || softening != Softening::None => "none",
        Kernel::Laplace if blob => "none, plummer:E, spline:E, p1:E",
        Kernel::Vortex if blob || !matches!(softening, Softening::None | Softening::P1(_)) => "none, p1:E",
        _ => return Ok(()),
    };
    Err(Fault::new(2, format!("--softening: with --kernel {} allowed: {allowed}", options.kernel.name())))
}

/// Sees that images, exclusions and depths are asked of the kernel that has them.
fn space(options: &Options) -> Result<(), Fault> {
    let asked = match (options.settings.boundary, &options.exclusions) {
        _ if options.kernel == Kernel::Laplace => return Ok(()),
        (Boundary::Open, _) if matches!(options.kernel, Kernel::Yukawa(_)) => return Ok(()),
        (Boundary::Periodic(_), _) => "--periodic",
        (Boundary::Open, Some(_)) => "--exclusions",
        (Boundary::Open, None) if options.settings.uniform.is_some() => "--depth",
        (Boundary::Open, None) => return Ok(()),
    };
    let kernel = options.kernel.name();
    Err(Fault::new(2, format!("{asked}: the kernel {kernel} has none; it goes with --kernel laplace alone")))
}

/// Reads sources and targets, and sees that they live in the same space.
fn read(options: &Options) -> Result<(Points, Option<Points>), Fault> {
    let kernel = options.kernel;
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
        return Err(Fault::new(65, line));
    }
    Ok((sources, Some(targets)))
}

/// Refuses sums that left the range of numbers.
fn finite(answer: &Answer, at: &Points) -> Result<(), Fault> {
    for (name, values) in &answer.columns {
        if let Some(i) = values.iter().position(|v| !v.is_finite()) {
            let [x, y, z] = at.position[i];
            let f32 = answer.choice.precision == Precision::F32;
            let precision = if f32 { "--precision f64, " } else { "" };
            let line = format!(
                "{name} of target {i} (counted from 0, at {x:e}, {y:e}, {z:e}) is {}: the true value may be beyond \
                 the range of {}-bit numbers; {precision}other units or a softening bring it back",
                values[i],
                if f32 { 32 } else { 64 }
            );
            return Err(Fault::new(70, line));
        }
    }
    Ok(())
}

/// Pairs at distance zero that contributed nothing although they are not a particle's own.
fn coincident(problem: &Problem, answer: &Answer) -> u64 {
    match problem.targets {
        _ if matches!(problem.kernel, Kernel::Gauss(_)) => 0,
        _ if problem.settings.clone().simplified().softening != Softening::None || problem.blob.length() > 0.0 => 0,
        None => answer.coincident_pairs,
        Some(targets) => match problem.settings.boundary.periodic() {
            None => coincident_between(problem.sources, targets),
            Some(cell) => coincident_between(&cell.wrap(problem.sources), &cell.wrap(targets)),
        },
    }
}

/// Pairs of a source and a target at the same place.
fn coincident_between(sources: &[[f64; 3]], targets: &[[f64; 3]]) -> u64 {
    use rayon::prelude::*;
    // −0 and 0 are the same place.
    let sorted = |points: &[[f64; 3]]| -> Vec<[u64; 3]> {
        let mut keys: Vec<_> = points.par_iter().map(|x| x.map(|c| (c + 0.0).to_bits())).collect();
        keys.par_sort_unstable();
        keys
    };
    let (sources, targets) = (sorted(sources), sorted(targets));
    let mut rest = &sources[..];
    let mut pairs = 0;
    for place in targets.chunk_by(|a, b| a == b) {
        rest = &rest[rest.partition_point(|s| *s < place[0])..];
        let here = rest.partition_point(|s| *s <= place[0]);
        pairs += here as u64 * place.len() as u64;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_at_the_same_place_are_counted() {
        let (a, b, c) = ([0.0, 1.0, 2.0], [-0.0, 1.0, 2.0], [3.0, -1.0, 0.5]);
        assert_eq!(coincident_between(&[a, c, b], &[b, c, a, [9.0; 3]]), 5);
        assert_eq!(coincident_between(&[], &[a]), 0);
    }
}
