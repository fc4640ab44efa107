//! `nbody run`: from a scenario, or from a checkpoint, to a run directory.

mod auto;
mod directory;
mod dry;
mod events;
pub(crate) mod grid;
pub(crate) mod identity;
mod place;
mod progress;
mod report;
mod resume;
mod sense;
pub(crate) mod signals;
mod simulation;
mod tables;
mod taker;
mod verify;
mod writer;

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::device::grid::Place;
use crate::fault::Fault;
use crate::initial::Initial;
use crate::scenario::{Override, Scenario};
use directory::RunDirectory;
use resume::Resumed;
use signals::Stop;
use simulation::Simulation;

/// What the command line asks of a run beyond the scenario.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The scenario file; with `resume` it may be absent.
    pub scenario: Option<PathBuf>,
    /// `key=value` each, laid over the scenario.
    pub sets: Vec<String>,
    /// Run directory instead of `output.directory`.
    pub out: Option<PathBuf>,
    /// Whether a directory that is in use may be overwritten; with `resume`, whether the physics may differ.
    pub force: bool,
    /// Where forces are summed, instead of `solver.device`.
    pub device: Option<Place>,
    /// Worker threads; all cores if absent.
    pub threads: Option<usize>,
    /// Go on from the newest checkpoint: of the directory, or of the scenario's where none is named.
    pub resume: Option<Option<PathBuf>>,
    /// End of the run, a number or a quantity, instead of `time.end`.
    pub until: Option<String>,
    /// Number of steps, from the start or the checkpoint, instead of `time.end`.
    pub steps: Option<u64>,
    /// Stop, to be resumed, before this much wall time is over.
    pub max_wall: Option<Duration>,
    /// Only tell what would be done.
    pub dry_run: bool,
    /// Events on stdout, one JSON object a line.
    pub json: bool,
    /// No progress and no notes.
    pub quiet: bool,
    /// Results that make no sense end the run with 1.
    pub strict: bool,
    /// Also print the resolved scenario.
    pub verbose: bool,
}

impl Options {
    /// The keys that options override.
    fn overrides(&self) -> Vec<Override> {
        let sets = self.sets.iter().map(Override::set);
        let until = self.until.as_ref().map(|t| match t.trim().parse::<f64>() {
            Ok(_) => format!("time.end={}", t.trim()),
            Err(_) => format!("time.end={}", toml::Value::String(t.clone())),
        });
        let device = self.device.map(|d| format!("solver.device=\"{d}\""));
        sets.chain(until.map(|text| Override { option: "--until", text }))
            .chain(device.map(|text| Override { option: "--device", text }))
            .collect()
    }
}

/// What is known of a run before its first step.
struct Start {
    scenario: Scenario,
    /// The state to begin with; masses and charges in any case.
    initial: Initial,
    directory: RunDirectory,
    /// The earlier part of the run.
    resumed: Option<Resumed>,
}

/// Runs a scenario and prints what it did on stdout.
///
/// # Errors
/// 65 and 66 for what the scenario asks, 69 for a device that is not there, 70 for values that are no longer finite, 71 for memory, 74 for files that
/// cannot be written, 75 for a run that was interrupted and can be resumed, 1 for forces that missed the tolerance
/// grossly where `verify.action` is `"stop"`, and for results that make no sense where `strict` is set.
pub fn run(options: &Options) -> Result<(), Fault> {
    let begun = Instant::now();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.unwrap_or(0))
        .build()
        .map_err(|e| Fault::new(71, format!("cannot start the worker threads: {e}")))?;
    let threads = pool.current_num_threads();
    pool.install(|| {
        if let Some(grid) = grid::scenario(options)? {
            return grid::run(&grid, options, threads, begun);
        }
        if options.dry_run {
            return dry::run(&scenario(options)?, options, threads);
        }
        let stop = Stop::install()?;
        let start = if options.resume.is_some() { continued(options)? } else { fresh(options)? };
        Simulation::new(start, options, threads, begun)?.run(&stop)
    })
}

/// The scenario that the options name, with all that they override.
fn scenario(options: &Options) -> Result<Scenario, Fault> {
    let Some(path) = &options.scenario else {
        return Err(Fault::new(2, "name a scenario, or a run directory with --resume DIR"));
    };
    let mut scenario = Scenario::load(path, &options.overrides())?;
    place::check(&scenario.directory, options)?;
    if let Some(out) = resume::folder(options) {
        scenario.directory = out;
    }
    Ok(scenario)
}

/// The scenario with its step chosen, for a run from the start.
fn stepped(scenario: &Scenario, initial: &Initial, options: &Options) -> Result<Scenario, Fault> {
    let mut scenario = auto::with_step(scenario, initial, options.quiet)?.into_owned();
    // On resuming they are counted from the checkpoint.
    if let Some(steps) = options.steps {
        scenario.steps = steps;
    }
    Ok(scenario)
}

fn fresh(options: &Options) -> Result<Start, Fault> {
    let scenario = scenario(options)?;
    let initial = tables::read(&scenario, options.quiet)?;
    let scenario = stepped(&scenario, &initial, options)?;
    let id = identity::of_particles(&scenario, &initial);
    let directory = RunDirectory::create(&scenario.directory, &scenario.text, options.force, id)?;
    Ok(Start { scenario, initial, directory, resumed: None })
}

fn continued(options: &Options) -> Result<Start, Fault> {
    let with_step = |s: Scenario| match s.auto_step {
        // The step that the first run came to: it depends on nothing but the scenario.
        Some(_) => auto::with_step(&s, &Initial::of(&s)?, true).map(Cow::into_owned),
        None => Ok(s),
    };
    let asked = options.scenario.as_ref().map(|_| scenario(options).and_then(with_step)).transpose()?;
    let given = asked.as_ref().map(|s| s.text.clone());
    let folder = asked.as_ref().map(|s| s.directory.clone()).or_else(|| resume::folder(options));
    let Some(folder) = folder else {
        return Err(Fault::new(2, "--resume needs a run directory or a scenario: nbody run --resume DIR"));
    };
    resume::must_be_folder(&folder)?;
    let mut directory = RunDirectory::open(&folder)?;
    let latest = resume::latest(&folder)?;
    if let Some(damage) = latest.damaged.as_ref().filter(|_| !options.quiet) {
        let from = (latest.path.display(), latest.checkpoint.step);
        crate::console::tell(format_args!("nbody: warning: {damage}; going on from {}, step {}", from.0, from.1));
    }
    let mut resumed = resume::resume(asked, latest, options, &options.overrides())?;
    let (now, before) = (&mut resumed.scenario, &resumed.before);
    now.directory.clone_from(&folder);
    let state = &resumed.latest.checkpoint;
    // What the earlier run wrote only because it ended, and this one would not have written in passing.
    let ended = |every_before: u64, every_now: u64| {
        let step = now.clock.steps(state.time).unwrap_or(state.step);
        state.step > 0
            && step < now.steps
            && !state.step.is_multiple_of(every_before)
            && !step.is_multiple_of(every_now)
    };
    let surplus =
        [ended(before.snapshot_every, now.snapshot_every), ended(before.diagnostics_every, now.diagnostics_every)];
    directory.rewind(&resumed.latest, before, surplus)?;
    if let Some(text) = given {
        directory.write_given(&text)?;
    }
    let state = &mut resumed.latest.checkpoint;
    let initial = Initial {
        position: std::mem::take(&mut state.position),
        velocity: std::mem::take(&mut state.velocity),
        mass: std::mem::take(&mut state.mass),
        charge: state.charge.take().unwrap_or_else(|| vec![0.0; state.id.len()]),
    };
    Ok(Start { scenario: resumed.scenario.clone(), initial, directory, resumed: Some(resumed) })
}
