//! The steps of a run, from the first to what it ends with.

mod memory;
mod output;

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fmm_core::{Error, Executor, Precision, Stage, StageTimes};
use serde_json::json;

use self::output::Due;
use super::directory::RunDirectory;
use super::events::Events;
use super::progress::Progress;
use super::report::Wall;
use super::sense::Sense;
use super::signals::Stop;
use super::verify::Verified;
use super::{Options, Start, report, resume};
use crate::diagnostics::Diagnostics;
use crate::fault::{Fault, Report};
use crate::initial::Initial;
use crate::integrator::Stepper;
use crate::scenario::Scenario;
use crate::told::number;

/// Why a run does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// All steps are done.
    Complete,
    /// Ctrl-C or SIGTERM.
    Signal,
    /// `--max-wall`.
    Wall,
}

/// A run under way.
pub struct Simulation<'a> {
    options: &'a Options,
    threads: usize,
    scenario: Scenario,
    initial: Arc<Initial>,
    executor: Box<dyn Executor>,
    stepper: Stepper,
    directory: RunDirectory,
    events: Events,
    progress: Progress,
    /// Of the parts of the run before a checkpoint too.
    times: StageTimes,
    wall: Wall,
    /// The step from which on there are times.
    timed_from: u64,
    /// Steps done.
    step: u64,
    resumed_at: Option<u64>,
    /// At the start: energies drift from these.
    first: Option<Diagnostics>,
    last: Diagnostics,
    /// Whether `last` is of this part of the run: of an earlier one, checkpoints keep the energies alone.
    measured: bool,
    /// Largest |dE/E0| so far.
    worst: f64,
    verified: Verified,
    sense: Sense,
    /// When the last checkpoint was written.
    checkpointed: Instant,
    /// The step of the last checkpoint.
    saved: Option<u64>,
}

impl<'a> Simulation<'a> {
    /// Hands the particles to the solver.
    ///
    /// `begun` is when the program began with the initial state, which is there now.
    pub fn new(start: Start, options: &'a Options, threads: usize, begun: Instant) -> Result<Self, Fault> {
        let Start { scenario, initial, directory, resumed } = start;
        let wall = Wall::from(begun);
        let mut executor = scenario.executor(initial.len(), &initial.mass, options.quiet || options.json)?;
        let particles = initial.particles(scenario.law, scenario.signed_constant());
        executor
            .upload(&particles)
            .map_err(|e| Fault::new(crate::device::code(&e), format!("initial particles: {e}")))?;
        let state = resumed.as_ref().map(|r| &r.latest.checkpoint);
        // Resuming has made sure that this is a whole number of steps.
        let step = state.map_or(0, |c| scenario.clock.steps(c.time).unwrap_or(c.step));
        let mut simulation = Simulation {
            options,
            threads,
            stepper: Stepper::new(scenario.integrator, scenario.clock.dt),
            executor,
            directory,
            events: Events::new(options.json),
            progress: Progress::start(&scenario, initial.len(), threads, step, options),
            times: StageTimes::default(),
            wall,
            timed_from: step,
            step,
            resumed_at: state.map(|c| c.step),
            first: None,
            last: Diagnostics::default(),
            measured: false,
            worst: 0.0,
            verified: Verified::default(),
            sense: Sense::new(initial.mass.iter().sum()),
            checkpointed: Instant::now(),
            saved: state.map(|c| c.step),
            scenario,
            initial: Arc::new(initial),
        };
        if let Some(checkpoint) = state {
            simulation.recall(&checkpoint.numbers);
        }
        Ok(simulation)
    }

    /// All steps, and the last files.
    pub fn run(mut self, stop: &Stop) -> Result<(), Fault> {
        let s = &self.scenario;
        let facts = json!({
            "title": s.title, "directory": self.directory.path().to_string_lossy(), "particles": self.initial.len(),
            "step": self.step, "steps": s.steps, "time": s.clock.time(self.step), "end": s.end(),
            "threads": self.threads,
        });
        self.events.send("start", facts)?;
        let outcome = self.advance(stop).and_then(|ending| self.wait().map(|()| ending));
        self.progress.finish();
        let ending = match outcome {
            Ok(ending) => ending,
            Err(fault) => {
                // The snapshot of an earlier step is complete, whatever has failed since.
                let _ = self.settle(true);
                let fault = self.with_way_back(fault);
                let facts = json!({ "step": self.step, "exit_code": fault.code, "error": fault.render(false).trim() });
                self.events.send("end", facts)?;
                return Err(fault);
            }
        };
        let pairs = self.executor.coincident_pairs();
        if pairs > 0 {
            let text = format!("{pairs} pairs of particles are at the same place; unsoftened they do not interact");
            self.progress.warn(&text, self.options.quiet);
        }
        let nonsense = self.sense.end(&self.scenario, self.initial.len());
        nonsense.iter().for_each(|text| self.progress.warn(text, self.options.quiet));
        self.conclude(ending)?;
        match nonsense.first().filter(|_| self.options.strict) {
            Some(text) => Err(Fault::new(1, format!("{text} (--strict)"))),
            None => Ok(()),
        }
    }

    /// Waits for the snapshot that is being written.
    fn wait(&mut self) -> Result<(), Fault> {
        let start = Instant::now();
        let settled = self.settle(true);
        self.times.add(Stage::Output, start.elapsed());
        settled
    }

    fn advance(&mut self, stop: &Stop) -> Result<Ending, Fault> {
        let steps = self.scenario.steps;
        let first = self.due(self.step, false);
        self.executor.want_potential(self.resumed_at.is_none());
        match self.resumed_at {
            // A checkpoint too: from there on no fault loses the run.
            None => self.output(Due { snapshot: true, diagnostics: true, checkpoint: true, ..first })?,
            // A run that was stopped in passing, and is now to end here.
            Some(_) if self.step == steps && self.directory.last_snapshot() != Some(self.time()) => {
                self.output(Due { snapshot: true, diagnostics: true, checkpoint: true, verify: false })?;
            }
            Some(_) => self.refresh()?,
        }
        // What a run begins with is on the disk before its long part.
        self.wait()?;
        // Written once the solver has chosen.
        let resolved = self.scenario.resolved(self.executor.choice().as_ref(), self.initial.len());
        self.directory.write_resolved(&resolved)?;
        self.progress.note(&resolved);
        let mut longest = Duration::ZERO;
        while self.step < steps {
            self.directory.reserve_checkpoint()?;
            let start = Instant::now();
            let next = self.due(self.step + 1, self.step + 1 == steps);
            self.executor.want_potential(next.diagnostics || next.snapshot);
            let advanced = self.stepper.step(self.executor.as_mut(), &mut self.times);
            self.step += 1;
            let bathed = advanced.and_then(|()| self.executor.bathe(self.step, self.scenario.clock.dt));
            bathed.and_then(|()| self.executor.check()).map_err(|e| self.failed(e))?;
            let ending = match self.options.max_wall {
                _ if self.step == steps => Some(Ending::Complete),
                _ if stop.requested() => Some(Ending::Signal),
                // Time for another step, and as much again to write.
                Some(wall) if self.wall.begun.elapsed() + 2 * longest.max(start.elapsed()) > wall => Some(Ending::Wall),
                _ => None,
            };
            let mut due = self.due(self.step, ending == Some(Ending::Complete));
            // An interrupted run leaves a checkpoint and nothing else that an unbroken one would not leave.
            due.checkpoint |= ending.is_some() || self.checkpointed.elapsed() >= self.scenario.checkpoint_wall;
            if due.any() {
                self.output(due)?;
            }
            self.settle(false)?;
            let (time, drift) = (self.time(), self.last.drift_from(&self.first.unwrap_or_default()));
            self.progress.at(self.step, time, drift);
            self.events.progress(self.step, steps, time, drift)?;
            if let Some(ending) = ending {
                return Ok(ending);
            }
            longest = longest.max(start.elapsed());
        }
        Ok(Ending::Complete)
    }

    /// The present time.
    fn time(&self) -> f64 {
        self.scenario.clock.time(self.step)
    }

    /// What the cadences ask for; everything at the end of a run.
    fn due(&self, step: u64, end: bool) -> Due {
        let s = &self.scenario;
        Due {
            snapshot: end || step.is_multiple_of(s.snapshot_every),
            diagnostics: end || step.is_multiple_of(s.diagnostics_every),
            checkpoint: end,
            verify: s.verify.is_some_and(|v| step.is_multiple_of(v.every)),
        }
    }

    /// The fault of a step whose state is no longer finite.
    fn broken(&self, error: &dyn Display) -> Fault {
        let f32 = self.executor.choice().is_some_and(|c| c.precision == Precision::F32);
        let range = if f32 { "solver.precision = \"f64\", " } else { "" };
        let (step, time) = (self.step, number(self.time()));
        let line = match step {
            0 => format!(
                "the initial particles, before any step: {error}; {range}other units or a softening bring it back into \
                 the range of numbers"
            ),
            _ => format!(
                "stopped at step {step}, time {time}: {error}; the files up to the step before are complete; \
                 {range}a smaller time.dt or a softening keep close encounters finite"
            ),
        };
        Fault::new(70, line)
    }

    fn refresh(&mut self) -> Result<(), Fault> {
        let refreshed = self.stepper.refresh(self.executor.as_mut(), &mut self.times);
        refreshed.map_err(|e| self.failed(e))
    }

    /// The fault of a sum: of its numbers, or of the device.
    fn failed(&self, error: Error) -> Fault {
        if let (0, Error::Magnitude { .. }) = (self.step, &error) {
            return Fault::new(65, format!("the initial particles: {error}"));
        }
        if !matches!(error, Error::Device(_)) {
            return self.broken(&error);
        }
        let place = match self.step {
            0 => "before any step".to_string(),
            step => format!("stopped at step {step}, time {}", number(self.time())),
        };
        let line = format!("{place}: {error}; nothing of it was written, and the files from before are complete");
        Fault::new(crate::device::code(&error), line)
    }

    /// The fault with the command that goes on from the last checkpoint, if there is one.
    fn with_way_back(&self, mut fault: Fault) -> Fault {
        if let (Some(step), Report::Line(line)) = (self.saved, &mut fault.report) {
            let command = resume::command(self.directory.path());
            line.push_str(&format!(". The last checkpoint is that of step {step}. To go on from there:\n{command}"));
        }
        fault
    }

    /// The last files, and the tables on stdout.
    fn conclude(&mut self, ending: Ending) -> Result<(), Fault> {
        let facts = report::Facts {
            scenario: &self.scenario,
            particles: self.initial.len(),
            threads: self.threads,
            steps: self.step,
            energy_error: self.last.drift_from(&self.first.unwrap_or_default()),
            largest_energy_error: self.worst,
            choice: self.executor.choice(),
            coincident_pairs: self.executor.coincident_pairs(),
            resumed_at: self.resumed_at,
            verified: self.verified,
            measured: self.measured,
        };
        let run = facts.run_json();
        let outside = self.wall.outside(&self.times);
        // A complete run keeps what it has reported: nothing was computed since.
        let kept = facts.idle() && self.directory.is_reported(self.step);
        if !kept {
            let timings = report::timings_json(&self.times, outside, [self.timed_from, self.step]);
            self.directory.finish(&run, &timings)?;
        }
        let command = resume::command(self.directory.path());
        if self.options.json {
            let mut end = run;
            end["resume"] = (ending != Ending::Complete).then(|| command.clone()).into();
            let strict = self.options.strict && !self.sense.end(&self.scenario, self.initial.len()).is_empty();
            end["exit_code"] = if ending == Ending::Complete { i32::from(strict) } else { 75 }.into();
            self.events.send("end", end)?;
        } else {
            let mut text = facts.summary(&self.last, self.directory.path());
            if !self.options.quiet && !kept {
                text.push_str(&report::stage_table(&self.times, outside));
            }
            crate::console::print(&text)?;
        }
        let why = match ending {
            Ending::Complete => return Ok(()),
            Ending::Signal => "by a signal",
            Ending::Wall => "before --max-wall is over",
        };
        let (step, time) = (self.step, number(self.time()));
        let line =
            format!("stopped {why} after step {step}, time {time}; all files are complete. To go on:\n{command}");
        Err(Fault::new(75, line))
    }
}
