//! What a run is to do: its steps, and what is due when.

use std::time::Duration;

use crate::files::checkpoint::Checkpoint;
use crate::scenario::clock::Clock;

/// The steps of a run, and how often it writes; 0 steps between outputs are none between the first and the last state.
#[derive(Debug, Clone)]
pub struct Plan {
    /// A line for people.
    pub title: String,
    /// Steps and their times.
    pub clock: Clock,
    /// Number of steps.
    pub steps: u64,
    /// Steps between snapshots, or files of fields.
    pub snapshot_every: u64,
    /// Steps between lines of `diagnostics.csv`.
    pub diagnostics_every: u64,
    /// Steps between checks of the forces or velocities.
    pub verify_every: Option<u64>,
    /// Wall time between checkpoints.
    pub checkpoint_wall: Duration,
}

impl Plan {
    /// What the cadences ask for; everything at the end of a run.
    pub fn due(&self, step: u64, end: bool) -> Due {
        Due {
            snapshot: end || step.is_multiple_of(self.snapshot_every),
            diagnostics: end || step.is_multiple_of(self.diagnostics_every),
            checkpoint: end,
            verify: self.verify_every.is_some_and(|every| step.is_multiple_of(every)),
        }
    }
}

/// What is written at a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Due {
    /// A snapshot, or the fields on a grid.
    pub snapshot: bool,
    /// A line of `diagnostics.csv`.
    pub diagnostics: bool,
    /// A checkpoint.
    pub checkpoint: bool,
    /// A check of the forces or velocities.
    pub verify: bool,
}

impl Due {
    /// Whether anything is.
    pub fn any(self) -> bool {
        self.snapshot || self.diagnostics || self.checkpoint || self.verify
    }
}

/// The step that a run begins with: 0, or that of a checkpoint. Resuming has made sure that it is a whole one.
pub fn first_step(plan: &Plan, state: Option<&Checkpoint>) -> u64 {
    state.map_or(0, |c| plan.clock.steps(c.time).unwrap_or(c.step))
}
