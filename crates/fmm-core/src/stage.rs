//! The stages of a step, and the time spent in each.

use std::time::Duration;

use crate::Cancel;

/// One stage of the schedule, in the order in which the tables print them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Keys, sort and cells.
    Tree,
    /// Interaction lists.
    Lists,
    /// Particles to multipoles.
    P2M,
    /// Multipoles of children to their parent's.
    M2M,
    /// The images of the root in a periodic box.
    Lattice,
    /// Multipoles to local expansions.
    M2L,
    /// Particles to local expansions.
    P2L,
    /// Local expansions of parents to their children's.
    L2L,
    /// Local expansions to particles.
    L2P,
    /// Multipoles to particles.
    M2P,
    /// Particles to particles, directly.
    P2P,
    /// Strengths of particles to the points of a mesh.
    Spread,
    /// Fourier transforms of a mesh.
    Fft,
    /// Potential and field from the points of a mesh to particles.
    Gather,
    /// The sample of direct sums that guards the tolerance.
    Guard,
    /// Sums that GPUs copy from each other.
    Exchange,
    /// Velocities.
    Kick,
    /// Positions.
    Drift,
    /// Results in the rows' order; snapshots, diagnostics, checkpoints.
    Output,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 19] = [
        Stage::Tree,
        Stage::Lists,
        Stage::P2M,
        Stage::M2M,
        Stage::Lattice,
        Stage::M2L,
        Stage::P2L,
        Stage::L2L,
        Stage::L2P,
        Stage::M2P,
        Stage::P2P,
        Stage::Spread,
        Stage::Fft,
        Stage::Gather,
        Stage::Guard,
        Stage::Exchange,
        Stage::Kick,
        Stage::Drift,
        Stage::Output,
    ];

    /// The name printed in tables and written to `timings.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Tree => "tree",
            Stage::Lists => "lists",
            Stage::P2M => "P2M",
            Stage::M2M => "M2M",
            Stage::Lattice => "lattice",
            Stage::M2L => "M2L",
            Stage::P2L => "P2L",
            Stage::L2L => "L2L",
            Stage::L2P => "L2P",
            Stage::M2P => "M2P",
            Stage::P2P => "P2P",
            Stage::Spread => "spread",
            Stage::Fft => "FFT",
            Stage::Gather => "gather",
            Stage::Guard => "guard",
            Stage::Exchange => "exchange",
            Stage::Kick => "kick",
            Stage::Drift => "drift",
            Stage::Output => "output",
        }
    }
}

/// Wall time by stage, summed over calls; and the flag that ends the stages early.
#[derive(Debug, Clone, Default)]
pub struct StageTimes {
    seconds: [f64; Stage::ALL.len()],
    calls: [u64; Stage::ALL.len()],
    cancel: Cancel,
}

impl StageTimes {
    /// No time yet, of sums that `cancel` ends.
    pub fn with_cancel(cancel: Cancel) -> Self {
        StageTimes { cancel, ..StageTimes::default() }
    }

    /// The flag that ends the sums.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Adds one span.
    pub fn add(&mut self, stage: Stage, span: Duration) {
        self.seconds[stage as usize] += span.as_secs_f64();
        self.calls[stage as usize] += 1;
    }

    /// Adds seconds and calls that were recorded elsewhere.
    pub fn add_calls(&mut self, stage: Stage, seconds: f64, calls: u64) {
        self.seconds[stage as usize] += seconds;
        self.calls[stage as usize] += calls;
    }

    /// Runs `work` and adds its time to `stage`.
    pub fn time<R>(&mut self, stage: Stage, work: impl FnOnce() -> R) -> R {
        let start = std::time::Instant::now();
        let result = work();
        self.add(stage, start.elapsed());
        result
    }

    /// Runs `work` as a further part of the last call of `stage`.
    pub fn time_more<R>(&mut self, stage: Stage, work: impl FnOnce() -> R) -> R {
        let start = std::time::Instant::now();
        let result = work();
        self.seconds[stage as usize] += start.elapsed().as_secs_f64();
        result
    }

    /// Seconds spent in `stage`.
    pub fn seconds(&self, stage: Stage) -> f64 {
        self.seconds[stage as usize]
    }

    /// How often `stage` ran.
    pub fn calls(&self, stage: Stage) -> u64 {
        self.calls[stage as usize]
    }

    /// Seconds over all stages.
    pub fn total(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// Adds another record to this one.
    pub fn merge(&mut self, other: &StageTimes) {
        for i in 0..self.seconds.len() {
            self.seconds[i] += other.seconds[i];
            self.calls[i] += other.calls[i];
        }
    }
}
