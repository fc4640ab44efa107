//! The steps of a run, and what is due after each.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fmm_core::{Boundary, Copied, Error, Executor, Particles, Pending, Precision, Stage, StageTimes};
use serde_json::json;

use super::directory::{Extra, RunDirectory};
use super::events::Events;
use super::progress::Progress;
use super::signals::Stop;
use super::taker::Taker;
use super::verify::{GROSS, Kernel, Verified, sampled_error};
use super::writer::Written;
use super::{Options, Start, report, resume};
use crate::diagnostics::Diagnostics;
use crate::fault::{Fault, Report};
use crate::files::checkpoint::Checkpoint;
use crate::files::snapshot::Snapshot;
use crate::initial::Initial;
use crate::integrator::Stepper;
use crate::scenario::{Action, Law, Scenario};
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

/// What is written at a step.
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    snapshot: bool,
    diagnostics: bool,
    checkpoint: bool,
    verify: bool,
}

impl Due {
    fn any(self) -> bool {
        self.snapshot || self.diagnostics || self.checkpoint || self.verify
    }
}

/// The fault of an executor that fails to copy.
fn device(error: Error) -> Fault {
    Fault::new(crate::device::code(&error).max(70), error.to_string())
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
    /// When the last checkpoint was written.
    checkpointed: Instant,
    /// The step of the last checkpoint.
    saved: Option<u64>,
}

impl<'a> Simulation<'a> {
    /// Hands the particles to the solver.
    pub fn new(start: Start, options: &'a Options, threads: usize) -> Result<Self, Fault> {
        let Start { scenario, initial, directory, resumed } = start;
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
            timed_from: step,
            step,
            resumed_at: state.map(|c| c.step),
            first: None,
            last: Diagnostics::default(),
            measured: false,
            worst: 0.0,
            verified: Verified::default(),
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

    /// What a checkpoint keeps beside the state of the particles.
    fn numbers(&self) -> Vec<(String, f64)> {
        let first = self.first.unwrap_or_default();
        let energies = |name: &str, d: &Diagnostics| {
            [(format!("{name}_kinetic"), d.kinetic), (format!("{name}_potential"), d.potential)]
        };
        let mut numbers = [energies("first", &first), energies("last", &self.last)].concat();
        numbers.push(("largest_energy_error".into(), self.worst));
        numbers.push(("timed_from_step".into(), self.timed_from as f64));
        for (stage, seconds, calls) in report::stages(&self.times) {
            numbers.push((format!("{}_seconds", stage.name()), seconds));
            numbers.push((format!("{}_calls", stage.name()), calls as f64));
        }
        if let Some(last) = self.verified.last.filter(|_| self.verified.largest.is_finite()) {
            numbers.push(("force_error_last".into(), last));
            numbers.push(("force_error_largest".into(), self.verified.largest));
            numbers.push(("force_error_count".into(), self.verified.count as f64));
        }
        numbers
    }

    /// The reverse of [`numbers`](Self::numbers).
    fn recall(&mut self, numbers: &[(String, f64)]) {
        let get = |name: &str| numbers.iter().find(|(n, _)| n == name).map(|&(_, v)| v);
        let energies = |name: &str| {
            let kinetic = get(&format!("{name}_kinetic"))?;
            Some(Diagnostics { kinetic, potential: get(&format!("{name}_potential"))?, ..Diagnostics::default() })
        };
        self.first = energies("first");
        self.last = energies("last").unwrap_or_default();
        self.worst = get("largest_energy_error").unwrap_or(0.0);
        if let Some(from) = get("timed_from_step") {
            self.timed_from = from as u64;
            for stage in Stage::ALL {
                let kept = |what: &str| get(&format!("{}_{what}", stage.name())).unwrap_or(0.0);
                self.times.add_calls(stage, kept("seconds"), kept("calls") as u64);
            }
        }
        self.verified = Verified {
            last: get("force_error_last"),
            largest: get("force_error_largest").unwrap_or(0.0),
            count: get("force_error_count").unwrap_or(0.0) as u64,
        };
    }

    /// All steps, and the last files.
    pub fn run(mut self, stop: &Stop, begun: Instant) -> Result<(), Fault> {
        let s = &self.scenario;
        let facts = json!({
            "title": s.title, "directory": self.directory.path().to_string_lossy(), "particles": self.initial.len(),
            "step": self.step, "steps": s.steps, "time": s.clock.time(self.step), "end": s.end(),
            "threads": self.threads,
        });
        self.events.send("start", facts)?;
        let outcome = self.advance(stop, begun).and_then(|ending| self.settle(true).map(|()| ending));
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
        self.conclude(ending)
    }

    fn advance(&mut self, stop: &Stop, begun: Instant) -> Result<Ending, Fault> {
        let steps = self.scenario.steps;
        let first = self.due(self.step, false);
        self.executor.want_potential(self.resumed_at.is_none());
        match self.resumed_at {
            None => self.output(Due { snapshot: true, diagnostics: true, checkpoint: steps == 0, ..first })?,
            // A run that was stopped in passing, and is now to end here.
            Some(_) if self.step == steps && self.directory.last_snapshot() != Some(self.time()) => {
                self.output(Due { snapshot: true, diagnostics: true, checkpoint: true, verify: false })?;
            }
            Some(_) => self.refresh()?,
        }
        // What a run begins with is on the disk before its long part.
        self.settle(true)?;
        // Written once the solver has chosen.
        let resolved = self.scenario.resolved(self.executor.choice().as_ref(), self.initial.len());
        self.directory.write_resolved(&resolved)?;
        self.progress.note(&resolved);
        let mut longest = Duration::ZERO;
        while self.step < steps {
            let start = Instant::now();
            let next = self.due(self.step + 1, self.step + 1 == steps);
            self.executor.want_potential(next.diagnostics || next.snapshot);
            let advanced = self.stepper.step(self.executor.as_mut(), &mut self.times);
            self.step += 1;
            self.executor.bathe(self.step, self.scenario.clock.dt);
            advanced.and_then(|()| self.executor.check()).map_err(|e| self.failed(e))?;
            let ending = match self.options.max_wall {
                _ if self.step == steps => Some(Ending::Complete),
                _ if stop.requested() => Some(Ending::Signal),
                // Time for another step, and as much again to write.
                Some(wall) if begun.elapsed() + 2 * longest.max(start.elapsed()) > wall => Some(Ending::Wall),
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

    /// Writes what is due. What the executor sums where the particles are comes from there; particles are copied for all else.
    fn output(&mut self, due: Due) -> Result<(), Fault> {
        self.refresh()?;
        let start = Instant::now();
        let diagnosed = due.diagnostics || due.snapshot;
        let totals = if diagnosed { self.executor.totals(&self.initial.mass).map_err(device)? } else { None };
        let host = due.verify || due.checkpoint || diagnosed && totals.is_none();
        let copied = if host { Some(self.copy()?) } else { None };
        if let Some(Copied { particles, field, .. }) = copied.as_ref().filter(|_| due.verify) {
            let own = self.scenario.without_external(&particles.position, field);
            self.verify(particles, &self.scenario.without_others(particles, own))?;
        }
        // A checkpoint in passing remembers nothing that an unbroken run would not know.
        if diagnosed {
            let now = match (totals, &copied) {
                (Some(totals), _) => {
                    let s = &self.scenario;
                    Diagnostics::from_totals(&totals, s.potential_factor(), s.law == Law::Vortex)
                }
                (None, Some(copied)) => self.taker().diagnostics(copied, self.executor.beside()),
                (None, None) => unreachable!("copied where there are no totals"),
            };
            self.diagnose(now, due.diagnostics)?;
        }
        let mut last = copied.filter(|_| due.snapshot || due.checkpoint);
        if due.snapshot {
            let pending: Pending = match last.take_if(|_| !due.checkpoint).or_else(|| last.clone()) {
                Some(copied) => Box::new(move || Ok(copied)),
                None => self.executor.copy().map_err(device)?,
            };
            self.snapshot(pending)?;
        }
        // After the outputs of its step: a run that goes on from here need not write them.
        if let Some(copied) = last.filter(|_| due.checkpoint) {
            self.settle(true)?;
            self.checkpoint(copied)?;
        }
        self.times.add(Stage::Output, start.elapsed());
        Ok(())
    }

    /// Particles and forces on the host.
    fn copy(&mut self) -> Result<Copied, Fault> {
        self.executor.copy().and_then(|pending| pending()).map_err(device)
    }

    /// What makes diagnostics and snapshots of copies.
    fn taker(&self) -> Taker {
        let s = &self.scenario;
        Taker {
            initial: self.initial.clone(),
            external: s.external,
            law: s.law,
            boundary: s.settings.boundary,
            boltzmann: s.units.boltzmann(),
            constant: s.constant(),
            factor: s.potential_factor(),
        }
    }

    /// Measures the error of the forces.
    fn verify(&mut self, particles: &Particles, field: &[[f64; 3]]) -> Result<(), Fault> {
        let s = &self.scenario;
        let Some(verify) = s.verify else { return Ok(()) };
        let kernel = match (s.settings.boundary, s.plane) {
            (Boundary::Periodic(cell), _) => Kernel::Periodic(cell, s.settings.softening),
            (Boundary::Open, Some(blob)) => Kernel::Plane(blob),
            (Boundary::Open, None) => Kernel::Space(s.settings.softening),
        };
        let error = sampled_error(particles, field, kernel, verify.sample, self.step);
        self.verified.add(error);
        let tolerance = s.settings.tolerance;
        if error <= tolerance {
            return Ok(());
        }
        let text = format!(
            "step {}, time {}: the {} force error of {} particles is {error:.1e}, above solver.tolerance = {tolerance:e}",
            self.step,
            self.time(),
            kernel.norm(),
            verify.sample.min(particles.len())
        );
        if verify.action == Action::Stop && (error.is_nan() || error > GROSS * tolerance) {
            let line = format!(
                "stopped at {text} by more than {GROSS} times; the files up to the step before are complete. Leave out \
                 solver.order and solver.theta, or choose precision = \"f64\"; verify.action = \"warn\" goes on"
            );
            return Err(Fault::new(1, line));
        }
        self.progress.warn(&text, self.options.quiet);
        Ok(())
    }

    /// Keeps the diagnostics, and adds their line if it is due.
    fn diagnose(&mut self, now: Diagnostics, line: bool) -> Result<(), Fault> {
        let first = *self.first.get_or_insert(now);
        if let Some((name, value)) = now.named(&first).into_iter().find(|(_, v)| !v.is_finite()) {
            return Err(self.broken(&format!("{name} = {value}")));
        }
        (self.last, self.measured, self.worst) = (now, true, self.worst.max(now.drift_from(&first).abs()));
        if !line {
            return Ok(());
        }
        let force_error = self.verified.last;
        self.directory.diagnostics(self.step, self.time(), &now, Extra { first: &first, force_error })?;
        let mut facts = json!({ "step": self.step, "time": self.time(), "force_error": force_error });
        for (name, value) in now.named(&first) {
            facts[name] = value.into();
        }
        self.events.send("diagnostics", facts)
    }

    /// Begins to take and write a snapshot, which goes on beside the next steps.
    fn snapshot(&mut self, pending: Pending) -> Result<(), Fault> {
        // Memory holds one at a time.
        self.settle(true)?;
        let s = &self.scenario;
        let named = self.last.named(&self.first.unwrap_or_default());
        let force_error = self.verified.last.filter(|e| e.is_finite()).map(|e| ("force_error", e));
        let (step, time, units, fields) = (self.step, self.time(), s.units.snapshot(), s.layout.fields.clone());
        let diagnostics = named.into_iter().chain(force_error).map(|(n, v)| (n.to_string(), v)).collect();
        let taker = self.taker();
        let taking = move || {
            let copied = pending().map_err(device)?;
            Ok(Snapshot { time, step, units, diagnostics, ..taker.snapshot(copied, &fields) })
        };
        self.directory.snapshot((step, time), Box::new(taking), &s.layout)
    }

    /// Tells of a snapshot that has been written; with `wait` of one that is still being written too.
    fn settle(&mut self, wait: bool) -> Result<(), Fault> {
        let Some(Written { name, bytes, step, time }) = self.directory.settle(wait)? else { return Ok(()) };
        self.events.send("snapshot", json!({ "step": step, "time": time, "file": name, "bytes": bytes }))
    }

    fn checkpoint(&mut self, Copied { mut particles, field, .. }: Copied) -> Result<(), Fault> {
        let acceleration = self.taker().motion(&mut particles, &field);
        let s = &self.scenario;
        let state = Checkpoint {
            step: self.step,
            time: self.time(),
            // Without what the solver chose: it chooses anew for every sum.
            scenario: s.resolved(None, particles.len()),
            id: (0..particles.len() as u64).collect(),
            position: particles.position,
            velocity: particles.velocity,
            acceleration,
            mass: self.initial.mass.clone(),
            charge: s.charged().then(|| self.initial.charge.clone()),
            numbers: self.numbers(),
        };
        let path = self.directory.checkpoint(&state)?;
        (self.checkpointed, self.saved) = (Instant::now(), Some(self.step));
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        self.events.send("checkpoint", json!({ "step": self.step, "time": self.time(), "file": name }))
    }

    /// The last files, and the tables on stdout.
    fn conclude(mut self, ending: Ending) -> Result<(), Fault> {
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
        self.directory.finish(&run, &report::timings_json(&self.times, [self.timed_from, self.step]))?;
        let command = resume::command(self.directory.path());
        if self.options.json {
            let mut end = run;
            end["resume"] = (ending != Ending::Complete).then(|| command.clone()).into();
            end["exit_code"] = if ending == Ending::Complete { 0 } else { 75 }.into();
            self.events.send("end", end)?;
        } else {
            let mut text = facts.summary(&self.last, self.directory.path());
            if !self.options.quiet {
                text.push_str(&report::stage_table(&self.times));
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
