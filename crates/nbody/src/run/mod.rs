//! `nbody run`: from a scenario, or from a checkpoint, to a run directory.

mod arguments;
mod course;
mod directory;
mod dry;
mod events;
mod evolve;
pub(crate) mod grid;
pub(crate) mod identity;
mod kept;
mod names;
mod place;
mod plan;
mod progress;
pub mod ranks;
mod report;
mod resume;
mod sense;
mod simulation;
mod table;
mod verify;
mod writer;

pub use arguments::Arguments;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fmm_core::comm::Comm;

use crate::carried;
use crate::console;
use crate::failure::Failure;
use crate::files::checkpoint::{Checkpoint, State};
use crate::files::read_hdf5;
use crate::initial::{Initial, suspicious};
use crate::scenario::grid::GridScenario;
use crate::scenario::{Override, Scenario};
use crate::signals::Stop;
use directory::RunDirectory;
use grid::flow::{self, FlowScenario};
use nbody_sim::with_step;
use resume::Resumed;
use simulation::ParticleRun;

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
    pub device: Option<String>,
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
    /// How many ranks share the particles, where [`ranks`] run; the command line has none.
    pub ranks: Option<usize>,
}

impl Options {
    /// The keys that options override.
    fn overrides(&self) -> Vec<Override> {
        let sets = self.sets.iter().map(Override::set);
        let until = self.until.as_ref().map(|t| match t.trim().parse::<f64>() {
            Ok(_) => format!("time.end={}", t.trim()),
            Err(_) => format!("time.end={}", toml::Value::String(t.clone())),
        });
        let device = self.device.as_ref().map(|d| format!("solver.device=\"{d}\""));
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
    /// What the earlier part of the run has left; its particles are in `initial`.
    checkpoint: Option<Checkpoint>,
}

/// Runs a scenario and prints what it did on stdout.
///
/// # Errors
/// 65 and 66 for what the scenario asks, 69 for a device that is not there, 70 for values that are no longer finite, 71 for memory, 74 for files that
/// cannot be written, 75 for a run that was interrupted and can be resumed, 1 for forces that missed the tolerance
/// grossly where `verify.action` is `"stop"`, and for results that make no sense where `strict` is set.
pub fn run(options: &Options) -> Result<(), Failure> {
    let begun = Instant::now();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.unwrap_or(0))
        .build()
        .map_err(|e| Failure::new(71, format!("cannot start the worker threads: {e}")))?;
    pool.install(|| begin(options, None, begun))
}

/// The same in the present pool of threads, on the first of the `ranks`, where there are any.
fn begin(options: &Options, ranks: Option<&dyn Comm>, begun: Instant) -> Result<(), Failure> {
    let threads = rayon::current_num_threads();
    if let (Some(Some(folder)), Some(out)) = (&options.resume, &options.out) {
        let line = format!("--out {}: a run goes on in its own directory, {}", out.display(), folder.display());
        return Err(Failure::new(2, line));
    }
    let grid = grid::scenario(options)?;
    if options.resume.is_some() {
        return resumed(grid, options, (ranks, threads, begun));
    }
    if let Some(grid) = grid {
        if ranks.is_some() {
            return Err(ranks::no_grid(&options.scenario.as_deref().unwrap_or(&grid.directory).display().to_string()));
        }
        return grid::run(&grid, options, threads, begun);
    }
    if options.dry_run {
        return dry::run(scenario(options)?, options, threads);
    }
    let stop = Stop::install()?;
    evolve::run(ParticleRun::new(fresh(options)?, ranks, options, (threads, begun))?, &stop)
}

/// The scenario that the options name, with all that they override.
fn scenario(options: &Options) -> Result<Scenario, Failure> {
    let Some(path) = &options.scenario else {
        return Err(Failure::new(2, "name a scenario, or a run directory with --resume DIR"));
    };
    let mut scenario = Scenario::load(path, &options.overrides()).map_err(|f| carried::point_to(f, path))?;
    place::check(&scenario.directory, options)?;
    if options.ranks.is_some() {
        ranks::check(&path.display().to_string(), &scenario)?;
    }
    if let Some(out) = resume::folder(options) {
        scenario.directory = out;
    }
    Ok(scenario)
}

/// The particles of a scenario at its start, and the scenario with its step chosen. Warns of what
/// is suspicious.
fn start(scenario: Scenario, options: &Options) -> Result<(Scenario, Initial), Failure> {
    let initial = Initial::of(&scenario, read_hdf5)?;
    let warn = |text: String| console::tell(format_args!("nbody: warning: {text}"));
    suspicious(&scenario)?.into_iter().for_each(warn);
    let (mut scenario, chosen) = with_step(scenario, &initial)?;
    chosen.into_iter().for_each(warn);
    // On resuming they are counted from the checkpoint.
    if let Some(steps) = options.steps {
        scenario.steps = steps;
    }
    Ok((scenario, initial))
}

fn fresh(options: &Options) -> Result<Start, Failure> {
    let (scenario, initial) = start(scenario(options)?, options)?;
    let id = identity::of_particles(&scenario, &initial);
    let directory = RunDirectory::create(&scenario.directory, (&scenario.text, &scenario.inputs()), options.force, id)?;
    Ok(Start { scenario, initial, directory, checkpoint: None })
}

/// Goes on with the run of a directory: with the flow `grid`, or with the run that its checkpoint
/// and the options describe.
fn resumed(
    grid: Option<GridScenario>,
    options: &Options,
    (ranks, threads, begun): (Option<&dyn Comm>, usize, Instant),
) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let flow = grid.and_then(FlowScenario::of);
    let with_step = |s: Scenario| match s.auto_step {
        // The step that the first run came to: it depends on nothing but the scenario.
        Some(_) => {
            let initial = Initial::of(&s, read_hdf5)?;
            with_step(s, &initial).map(|(s, _)| s)
        }
        None => Ok(s),
    };
    let named = options.scenario.as_ref().filter(|_| flow.is_none());
    let particles = named.map(|_| scenario(options).and_then(with_step)).transpose()?;
    let directory = flow.as_ref().map(|f| &f.grid.directory).or(particles.as_ref().map(|s| &s.directory));
    let Some(folder) = directory.cloned().or_else(|| resume::folder(options)) else {
        return Err(Failure::new(2, "--resume needs a run directory or a scenario: nbody run --resume DIR"));
    };
    let opened = resume::open(&folder)?;
    match &opened.1.checkpoint.state {
        State::Particles(_) if flow.is_none() => {
            let (directory, Resumed { scenario, latest, .. }) = resume::go_on(particles, opened, options)?;
            let start = Start::after(scenario, directory, latest.checkpoint);
            evolve::run(ParticleRun::new(start, ranks, options, (threads, begun))?, &stop)
        }
        State::Flow(_) if particles.is_none() => {
            let (directory, resumed) = resume::go_on(flow, opened, options)?;
            flow::go_on(resumed, directory, (options, threads, begun), &stop)
        }
        state => {
            let (path, scenario) = (opened.1.path.display(), options.scenario.as_deref().unwrap_or(&folder).display());
            let asked = if flow.is_some() { "has a [grid]" } else { "is one of particles" };
            Err(Failure::new(65, format!("{path}: a checkpoint of {}, and {scenario} {asked}", state.kind())))
        }
    }
}

impl Start {
    /// The state of a checkpoint of particles.
    fn after(scenario: Scenario, directory: RunDirectory, mut checkpoint: Checkpoint) -> Self {
        let mut initial = Initial::default();
        if let State::Particles(p) = std::mem::take(&mut checkpoint.state) {
            let charge = p.charge.unwrap_or_else(|| vec![0.0; p.id.len()]);
            let vorticity = p.vorticity.unwrap_or_default();
            initial = Initial { position: p.position, velocity: p.velocity, mass: p.mass, charge, vorticity };
        }
        Start { scenario, initial, directory, checkpoint: Some(checkpoint) }
    }
}
