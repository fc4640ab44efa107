//! Runs of particles: their steps, and what a run remembers of them.

mod memory;
mod output;

use std::fmt::Display;
use std::time::Instant;

use fmm_core::comm::Comm;
use fmm_core::{Error, Precision};
use nbody_sim::Motion;
use serde_json::Value;

use super::course::Course;
use super::evolve::Evolve;
use super::plan::{Due, first_step};
use super::progress::Progress;
use super::report::{self, Wall};
use super::sense::Sense;
use super::verify::Verified;
use super::{Options, Start};
use crate::console::notes;
use crate::diagnostics::Diagnostics;
use crate::failure::Failure;
use crate::messages::number;
use crate::run::resume::Resumable as _;
use crate::scenario::Scenario;
use crate::times::TimeUnit;

/// A run of particles under way.
pub struct ParticleRun<'a> {
    course: Course,
    scenario: Scenario,
    motion: Motion<'a>,
    /// At the start: energies drift from these.
    first: Option<Diagnostics>,
    last: Diagnostics,
    /// Whether `last` is of this part of the run: of an earlier one, checkpoints keep the energies alone.
    measured: bool,
    /// Largest |dE/E0| so far.
    worst: f64,
    verified: Verified,
    sense: Sense,
}

impl<'a> ParticleRun<'a> {
    /// Hands the particles to the solver, or to the `ranks` that share them.
    ///
    /// `begun` is when the program began with the initial state, which is there now.
    ///
    /// # Errors
    /// 69 to 71 for a device that fails, 65 for particles that it cannot take.
    pub fn new(
        start: Start,
        ranks: Option<&'a dyn Comm>,
        options: &Options,
        (threads, begun): (usize, Instant),
    ) -> Result<Self, Failure> {
        let Start { scenario, initial, directory, checkpoint } = start;
        let wall = Wall::from(begun);
        let (particles, sense) = (initial.len(), Sense::new(&initial.mass));
        let note = &mut notes(options.quiet || options.json);
        let mut motion = match ranks {
            None => Motion::new(&scenario, None, initial, note)?,
            Some(comm) => nbody_sim::ranks::begin(comm, &scenario, initial, note)?,
        };
        motion.want_potential(checkpoint.is_none());
        let (plan, state) = (scenario.plan(), checkpoint.as_ref());
        let what = format!("{particles} particles");
        let unit = TimeUnit::of(scenario.units, scenario.end());
        let progress = Progress::start(&plan, (&what, unit), threads, first_step(&plan, state), options);
        let mut run = ParticleRun {
            course: Course::new(plan, directory, progress, state, options, (threads, wall)),
            motion,
            first: None,
            last: Diagnostics::default(),
            measured: false,
            worst: 0.0,
            verified: Verified::default(),
            sense,
            scenario,
        };
        if let Some(checkpoint) = state {
            run.motion.set_time(checkpoint.time);
            run.recall(&checkpoint.numbers);
        }
        Ok(run)
    }

    /// The present time.
    fn time(&self) -> f64 {
        self.course.time()
    }

    /// The failure of a step whose state is no longer finite.
    fn broken(&self, error: &dyn Display) -> Failure {
        let f32 = self.motion.store().choice().is_some_and(|c| c.precision == Precision::F32);
        let range = if f32 { "solver.precision = \"f64\", " } else { "" };
        let (step, time) = (self.course.step, number(self.time()));
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
        Failure::new(70, line)
    }

    /// The present step, as messages name it.
    fn place(&self) -> String {
        match self.course.step {
            0 => "before any step".to_string(),
            step => format!("stopped at step {step}, time {}", number(self.time())),
        }
    }

    /// The failure of a sum: of what the scenario asks for, of its numbers, or of the device.
    fn failed(&self, error: Error) -> Failure {
        if let (0, Error::Magnitude { .. }) = (self.course.step, &error) {
            return Failure::new(65, format!("the initial particles: {error}"));
        }
        if let Some(text) = self.scenario.refused(&error) {
            let line = match self.course.step {
                0 => format!("the initial particles: {text}"),
                _ => format!("{}: {text}; the files up to the step before are complete", self.place()),
            };
            return Failure::new(65, line);
        }
        if !matches!(error, Error::Device(_)) {
            return self.broken(&error);
        }
        let place = self.place();
        let line = format!("{place}: {error}; nothing of it was written, and the files from before are complete");
        Failure::new(crate::failure::code(&error), line)
    }
}

impl Evolve for ParticleRun<'_> {
    fn course(&self) -> &Course {
        &self.course
    }

    fn course_mut(&mut self) -> &mut Course {
        &mut self.course
    }

    fn size(&self) -> (&'static str, usize) {
        ("particles", self.motion.count())
    }

    fn refresh(&mut self) -> Result<(), Failure> {
        self.motion.refresh(&mut self.course.times).map_err(|e| self.failed(e))
    }

    fn step(&mut self, next: Due) -> Result<(), Failure> {
        let (step, potential) = (self.course.step, next.diagnostics || next.snapshot);
        self.motion.step(step, potential, &mut self.course.times).map_err(|e| self.failed(e))
    }

    fn output(&mut self, due: Due) -> Result<(), Failure> {
        self.write(due)
    }

    fn is_written(&self) -> bool {
        self.course.directory.last_snapshot() == Some(self.time())
    }

    fn resolved(&self) -> String {
        self.scenario.resolved(self.motion.store().choice().as_ref(), self.motion.count())
    }

    fn drift(&self) -> f64 {
        self.last.drift_from(&self.first.unwrap_or_default())
    }

    fn judge(&self) -> Vec<String> {
        let pairs = self.motion.store().coincident_pairs();
        if pairs > 0 && self.scenario.softening_length() == 0.0 {
            let pairs =
                if pairs == 1 { "1 pair of particles is".into() } else { format!("{pairs} pairs of particles are") };
            let text = format!("{pairs} at the same place; unsoftened they do not interact");
            self.course.progress.warn(&text);
        }
        self.sense.end(&self.scenario, self.motion.count())
    }

    fn report(&self) -> (Value, String) {
        let facts = report::Facts {
            scenario: &self.scenario,
            particles: self.motion.count(),
            threads: self.course.threads,
            steps: self.course.step,
            energy_error: self.drift(),
            largest_energy_error: self.worst,
            choice: self.motion.store().choice(),
            coincident_pairs: self.motion.store().coincident_pairs(),
            resumed_at: self.course.resumed_at,
            verified: self.verified,
            measured: self.measured,
            idle: self.course.idle(),
        };
        (facts.run_json(), facts.summary(&self.last, self.course.directory.path()))
    }
}
