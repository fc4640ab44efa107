//! `nbody run`: from a scenario to a run directory.

mod auto;
mod directory;
mod progress;
mod report;
mod signals;

use std::path::PathBuf;

use fmm_core::{CpuExecutor, Error, Executor, Stage, StageTimes};

use crate::diagnostics::{Diagnostics, State};
use crate::fault::Fault;
use crate::files::checkpoint::Checkpoint;
use crate::files::snapshot::{Field, Snapshot};
use crate::initial::Initial;
use crate::integrator::Stepper;
use crate::scenario::Scenario;
use directory::RunDirectory;
use progress::Progress;
use signals::Stop;

/// What the command line asks of a run beyond the scenario.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The scenario file.
    pub scenario: PathBuf,
    /// `key=value` each, laid over the scenario.
    pub sets: Vec<String>,
    /// Run directory instead of `output.directory`.
    pub out: Option<PathBuf>,
    /// Whether a directory that is in use may be overwritten.
    pub force: bool,
    /// Worker threads; all cores if absent.
    pub threads: Option<usize>,
    /// No progress and no notes.
    pub quiet: bool,
    /// Also print the resolved scenario.
    pub verbose: bool,
}

/// Runs a scenario and prints what it did on stdout.
///
/// # Errors
/// 65 and 66 for what the scenario asks, 70 for values that are no longer finite, 71 for memory, 74 for files that
/// cannot be written, 75 for a run that was interrupted.
pub fn run(options: &Options) -> Result<(), Fault> {
    let mut scenario = Scenario::load(&options.scenario, &options.sets)?;
    if let Some(out) = &options.out {
        scenario.directory.clone_from(out);
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.unwrap_or(0))
        .build()
        .map_err(|e| Fault::new(71, format!("cannot start the worker threads: {e}")))?;
    let threads = pool.current_num_threads();
    pool.install(|| simulate(&scenario, options, threads))
}

fn simulate(scenario: &Scenario, options: &Options, threads: usize) -> Result<(), Fault> {
    let initial = Initial::of(scenario)?;
    let scenario = &*auto::with_step(scenario, &initial, options.quiet)?;
    let executor = CpuExecutor::new(scenario.settings.clone()).map_err(|e| Fault::new(65, e.to_string()))?;
    let directory = RunDirectory::create(scenario, options.force)?;
    let stop = Stop::install()?;
    let progress = Progress::start(scenario, initial.len(), threads, options);
    let mut simulation = Simulation {
        scenario,
        stepper: Stepper::new(scenario.integrator, scenario.clock.dt),
        initial,
        executor: scenario.with_external(Box::new(executor)),
        directory,
        times: StageTimes::default(),
        first: None,
        last: Diagnostics::default(),
        worst: 0.0,
    };
    let outcome = simulation.advance(&stop, &progress);
    progress.finish();
    let end = outcome?;
    let pairs = simulation.executor.coincident_pairs();
    if pairs > 0 && !options.quiet {
        eprintln!("nbody: warning: {pairs} pairs of particles are at the same place; unsoftened they do not interact");
    }
    simulation.conclude(end, threads, options)
}

/// How far a run came.
#[derive(Debug, Clone, Copy)]
struct End {
    step: u64,
    interrupted: bool,
}

/// A run under way.
struct Simulation<'a> {
    scenario: &'a Scenario,
    initial: Initial,
    executor: Box<dyn Executor>,
    stepper: Stepper,
    directory: RunDirectory,
    times: StageTimes,
    /// At the start: energies drift from these.
    first: Option<Diagnostics>,
    last: Diagnostics,
    /// Largest |dE/E0| so far.
    worst: f64,
}

impl Simulation<'_> {
    /// All steps, with what is due after each.
    fn advance(&mut self, stop: &Stop, progress: &Progress) -> Result<End, Fault> {
        let s = self.scenario;
        let particles = self.initial.particles(s.law, s.constant());
        self.executor.upload(&particles).map_err(|e| Fault::new(65, format!("initial particles: {e}")))?;
        self.output(0, true)?;
        // Written once the solver has chosen, and before the long part of the run.
        let resolved = s.resolved(self.executor.choice().as_ref(), self.initial.len());
        self.directory.write_resolved(&resolved)?;
        progress.note(&resolved);
        for step in 1..=s.steps {
            let advanced = self.stepper.step(self.executor.as_mut(), &mut self.times);
            advanced.and_then(|()| self.executor.check()).map_err(|e| self.broken(step, &e))?;
            let interrupted = stop.requested();
            let last = interrupted || step == s.steps;
            if last || step.is_multiple_of(s.snapshot_every) || step.is_multiple_of(s.diagnostics_every) {
                // An interrupted run ends with a snapshot, whatever the cadence.
                self.output(step, last)?;
            }
            progress.at(step, s.clock.time(step), self.last.drift_from(&self.first.unwrap_or_default()));
            if interrupted {
                return Ok(End { step, interrupted: step < s.steps });
            }
        }
        Ok(End { step: s.steps, interrupted: false })
    }

    /// The fault of a step whose state is no longer finite.
    fn broken(&self, step: u64, error: &Error) -> Fault {
        let time = self.scenario.clock.time(step);
        let line = format!(
            "stopped at step {step}, time {time}: {error}; the files up to the step before are complete. A smaller \
             time.dt or a softening keeps close encounters finite"
        );
        Fault::new(70, line)
    }

    /// Diagnostics, and a snapshot where it is due; a snapshot and a checkpoint where the run is at its `last` step.
    fn output(&mut self, step: u64, last: bool) -> Result<(), Fault> {
        let s = self.scenario;
        let refreshed = self.stepper.refresh(self.executor.as_mut(), &mut self.times);
        refreshed.map_err(|e| self.broken(step, &e))?;
        let start = std::time::Instant::now();
        let particles = self.executor.particles();
        let (mut potential, field) = self.executor.field();
        // Attraction: φ = −G Σ m/r. Repulsion of like charges: φ = k_e Σ q/r.
        let sign = if s.charged() { s.constant() } else { -s.constant() };
        potential.iter_mut().for_each(|p| *p *= sign);
        let external = s.external_potential(&particles.position);
        let acceleration: Vec<[f64; 3]> =
            particles.coupling.iter().zip(&field).map(|(c, e)| e.map(|e| c * e)).collect();
        let state = State {
            position: &particles.position,
            velocity: &particles.velocity,
            mass: &self.initial.mass,
            strength: &particles.strength,
            potential: &potential,
            external: &external,
            acceleration: &acceleration,
        };
        let now = Diagnostics::of(state);
        // Snapshots show the whole potential.
        potential.iter_mut().zip(&external).for_each(|(p, e)| *p += e);
        let first = *self.first.get_or_insert(now);
        (self.last, self.worst) = (now, self.worst.max(now.drift_from(&first).abs()));
        if !now.total().is_finite() {
            let what = Error::NotFinite { what: "energy", index: 0, value: now.total(), count: 1 };
            return Err(self.broken(step, &what));
        }
        if last || step.is_multiple_of(s.diagnostics_every) {
            self.directory.diagnostics(step, s.clock.time(step), &now.named(&first))?;
        }
        if last && step > 0 {
            let state = Checkpoint {
                step,
                time: s.clock.time(step),
                scenario: s.text.clone(),
                id: (0..self.initial.len() as u64).collect(),
                position: particles.position.clone(),
                velocity: particles.velocity.clone(),
                acceleration: acceleration.clone(),
                mass: self.initial.mass.clone(),
                charge: s.charged().then(|| self.initial.charge.clone()),
            };
            self.directory.checkpoint(&state)?;
        }
        if last || step.is_multiple_of(s.snapshot_every) {
            let wanted = |field| s.layout.fields.contains(&field);
            let snapshot = Snapshot {
                time: s.clock.time(step),
                step,
                id: (0..self.initial.len() as u64).collect(),
                position: particles.position,
                velocity: particles.velocity,
                mass: self.initial.mass.clone(),
                charge: s.charged().then(|| self.initial.charge.clone()),
                potential: wanted(Field::Potential).then_some(potential),
                acceleration: wanted(Field::Acceleration).then_some(acceleration),
                units: s.units.snapshot(),
                box_size: 0.0,
                diagnostics: now.named(&first).map(|(name, value)| (name.to_string(), value)).to_vec(),
            };
            self.directory.snapshot(&snapshot, &s.layout)?;
        }
        self.times.add(Stage::Output, start.elapsed());
        Ok(())
    }

    /// The last files, and the tables on stdout.
    fn conclude(mut self, end: End, threads: usize, options: &Options) -> Result<(), Fault> {
        let facts = report::Facts {
            scenario: self.scenario,
            particles: self.initial.len(),
            threads,
            steps: end.step,
            energy_error: self.last.drift_from(&self.first.unwrap_or_default()),
            largest_energy_error: self.worst,
            choice: self.executor.choice(),
            coincident_pairs: self.executor.coincident_pairs(),
        };
        self.directory.finish(&facts.run_json(), &report::timings_json(&self.times))?;
        let mut text = facts.summary(&self.last, self.directory.path());
        if !options.quiet {
            text.push_str(&report::stage_table(&self.times));
        }
        report::print(&text)?;
        if end.interrupted {
            let time = self.scenario.clock.time(end.step);
            let line = format!("stopped by a signal after step {}, time {time}; all files are complete", end.step);
            return Err(Fault::new(75, line));
        }
        Ok(())
    }
}
