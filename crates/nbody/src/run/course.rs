//! What every run under way has, of particles or on a grid: its steps, its directory and its clocks, and what is due when.

use std::time::{Duration, Instant};

use fmm_core::{Stage, StageTimes};
use serde_json::{Value, json};

use super::Options;
use super::directory::RunDirectory;
use super::events::Events;
use super::plan::{Due, Plan, first_step};
use super::progress::Progress;
use super::report::{self, Wall};
use super::resume;
use super::writer::Written;
use crate::console;
use crate::failure::{Failure, Report};
use crate::files::checkpoint::{Checkpoint, Stored};
use crate::messages::number;
use crate::signals::Stop;

/// Why a run does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All steps are done.
    Complete,
    /// Ctrl-C, SIGTERM or SIGHUP.
    Signal,
    /// `--max-wall`.
    Wall,
}

/// The course of a run.
pub struct Course {
    /// What the command line asks.
    pub options: Options,
    /// Worker threads.
    pub threads: usize,
    /// What is to be done.
    pub plan: Plan,
    /// Where files go.
    pub directory: RunDirectory,
    /// `--json`.
    pub events: Events,
    /// On stderr.
    pub progress: Progress,
    /// Of the parts of the run before a checkpoint too.
    pub times: StageTimes,
    /// Steps done.
    pub step: u64,
    /// The step of the checkpoint that it went on from.
    pub resumed_at: Option<u64>,
    /// Whether anything was written since the start or the checkpoint.
    pub wrote: bool,
    wall: Wall,
    /// The step from which on there are times.
    timed_from: u64,
    /// When the last checkpoint was written.
    checkpointed: Instant,
    /// The step of the last checkpoint.
    saved: Option<u64>,
}

impl Course {
    /// That of a run with `threads`, whose initial state, which the program began with at `begun`, is there now. Where it goes on
    /// from `state` it remembers the times of the parts before.
    pub fn new(
        plan: Plan,
        directory: RunDirectory,
        progress: Progress,
        state: Option<&Checkpoint>,
        options: &Options,
        (threads, wall): (usize, Wall),
    ) -> Self {
        let step = first_step(&plan, state);
        let mut course = Course {
            options: options.clone(),
            threads,
            plan,
            directory,
            events: Events::new(options.json),
            progress,
            times: StageTimes::default(),
            step,
            resumed_at: state.map(|c| c.step),
            wall,
            timed_from: step,
            wrote: false,
            checkpointed: Instant::now(),
            saved: state.map(|c| c.step),
        };
        if let Some(from) = state.and_then(|c| c.number("timed_from_step")) {
            let kept = |name: &str| state.and_then(|c| c.number(name)).unwrap_or(0.0);
            course.timed_from = from as u64;
            course.wall.before = ["initial_state_seconds", "other_seconds"].map(kept);
            for stage in Stage::ALL {
                let kept = |what: &str| kept(&format!("{}_{what}", stage.name()));
                course.times.add_calls(stage, kept("seconds"), kept("calls") as u64);
            }
            course.wall.stages_before = course.times.total();
        }
        course.remember();
        course
    }

    /// The present time.
    pub fn time(&self) -> f64 {
        self.plan.clock.time(self.step)
    }

    /// Whether a run that was complete was resumed: nothing was left to do.
    pub fn idle(&self) -> bool {
        self.resumed_at.is_some() && !self.wrote && self.step == self.plan.steps
    }

    /// Why the run ends after the present step, if it does. The longest step took `longest`.
    pub fn ending(&self, stop: &Stop, longest: Duration) -> Option<Ending> {
        match self.options.max_wall {
            _ if self.step == self.plan.steps => Some(Ending::Complete),
            _ if stop.requested() => Some(Ending::Signal),
            // Time for another step, and as much again to write.
            Some(wall) if self.wall.begun.elapsed() + 2 * longest > wall => Some(Ending::Wall),
            _ => None,
        }
    }

    /// What is due after the present step.
    pub fn due(&self, ending: Option<Ending>) -> Due {
        let mut due = self.plan.due(self.step, ending == Some(Ending::Complete));
        // An interrupted run leaves a checkpoint and nothing else that an unbroken one would not leave.
        due.checkpoint |= ending.is_some() || self.checkpointed.elapsed() >= self.plan.checkpoint_wall;
        due
    }

    /// What checkpoints remember of the times.
    fn numbers(&self) -> Vec<(String, f64)> {
        let [initial, other] = self.wall.outside(&self.times);
        let mut numbers = vec![
            ("timed_from_step".into(), self.timed_from as f64),
            ("initial_state_seconds".into(), initial),
            ("other_seconds".into(), other),
        ];
        for (stage, seconds, calls) in report::stages(&self.times) {
            numbers.push((format!("{}_seconds", stage.name()), seconds));
            numbers.push((format!("{}_calls", stage.name()), calls as f64));
        }
        numbers
    }

    /// Writes a checkpoint of the present step: its state, the scenario that goes on, and what the run remembers. `since` is when the
    /// outputs of this step began, whose times the checkpoint remembers: they must be on the disk.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn save(
        &mut self,
        state: impl Stored,
        scenario: String,
        mut numbers: Vec<(String, f64)>,
        since: Instant,
    ) -> Result<(), Failure> {
        self.times.add(Stage::Output, since.elapsed());
        let start = Instant::now();
        numbers.extend(self.numbers());
        let (step, time) = (self.step, self.time());
        let path = self.directory.checkpoint(Checkpoint { step, time, scenario, state, numbers, run: None })?;
        (self.checkpointed, self.saved) = (Instant::now(), Some(step));
        self.remember();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        self.times.add_calls(Stage::Output, start.elapsed().as_secs_f64(), 0);
        self.events.send("checkpoint", json!({ "step": step, "time": time, "file": name }))
    }

    /// Reports a snapshot that has been written; with `wait` one that is still being written too.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn settle(&mut self, wait: bool) -> Result<(), Failure> {
        self.directory.settle(wait)?.map_or(Ok(()), |written| self.report(written))
    }

    /// Reports a snapshot that has been written.
    ///
    /// # Errors
    /// 74 where nothing can be reported.
    pub fn report(&mut self, Written { name, bytes, step, time }: Written) -> Result<(), Failure> {
        self.events.send("snapshot", json!({ "step": step, "time": time, "file": name, "bytes": bytes }))
    }

    /// Waits for the snapshot that is being written.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn wait(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let settled = self.settle(true);
        self.times.add(Stage::Output, start.elapsed());
        settled
    }

    /// The failure with the command that goes on from the last checkpoint, if there is one.
    pub fn with_way_back(&self, mut failure: Failure) -> Failure {
        if let (Some(text), Report::Line(line)) = (self.way_back(), &mut failure.report) {
            // What the scenario asks for would fail again.
            line.push_str(&match failure.code {
                65 => format!(
                    ". {} --force --set KEY=VALUE",
                    text.replacen("To go on from there:", "To go on from there with another value:", 1)
                ),
                // A miss of [verify], which would be missed again.
                1 => format!(". {text} --set verify.action=warn"),
                _ => format!(". {text}"),
            });
        }
        failure
    }

    /// The last checkpoint, and the command that goes on from there.
    fn way_back(&self) -> Option<String> {
        let command = resume::command(self.directory.path(), self.options.ranks);
        self.saved.map(|step| format!("The last checkpoint is that of step {step}. To go on from there:\n{command}"))
    }

    /// Has other ranks know the way back, should this one be lost.
    fn remember(&self) {
        if self.options.ranks.is_some() {
            self.way_back().into_iter().for_each(console::remember);
        }
    }

    /// The last files, and the tables on stdout: `run.json`, and the result in a few lines. `strict` is whether the results make no
    /// sense where that is a failure.
    ///
    /// # Errors
    /// 75 for a run that was interrupted, 74 for files that cannot be written.
    pub fn conclude(&mut self, ending: Ending, (run, mut text): (Value, String), strict: bool) -> Result<(), Failure> {
        let outside = self.wall.outside(&self.times);
        // A complete run keeps what it has reported: nothing was computed since.
        let kept = self.idle() && self.directory.is_reported(self.step);
        if !kept {
            let timings = report::timings_json(&self.times, outside, [self.timed_from, self.step]);
            self.directory.finish(&run, &timings)?;
        }
        let command = resume::command(self.directory.path(), self.options.ranks);
        if self.options.json {
            let mut end = run;
            end["resume"] = (ending != Ending::Complete).then(|| command.clone()).into();
            end["exit_code"] = if ending == Ending::Complete { i32::from(strict) } else { 75 }.into();
            self.events.send("end", end)?;
        } else {
            if !self.options.quiet && !kept {
                text.push_str(&report::stage_table(&self.times, outside));
            }
            console::print(&text)?;
        }
        let why = match ending {
            Ending::Complete => return Ok(()),
            Ending::Signal => "by a signal",
            Ending::Wall => "before --max-wall is over",
        };
        let (step, time) = (self.step, number(self.time()));
        let line =
            format!("stopped {why} after step {step}, time {time}; all files are complete. To go on:\n{command}");
        Err(Failure::new(75, line))
    }
}
