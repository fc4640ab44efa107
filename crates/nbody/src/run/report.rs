//! What a run tells at its end: a summary, the table of stages, `run.json` and `timings.json`.

use std::fmt::Write as _;
use std::path::Path;

use fmm_core::{Choice, Stage, StageTimes};
use serde_json::{Value, json};

use super::verify::Verified;
use crate::diagnostics::Diagnostics;
use crate::info::program;
use crate::scenario::Scenario;
use crate::told::number;

/// What is known of a finished run.
pub struct Facts<'a> {
    /// What was asked.
    pub scenario: &'a Scenario,
    /// N.
    pub particles: usize,
    /// Worker threads.
    pub threads: usize,
    /// Steps done.
    pub steps: u64,
    /// dE/E0 at the end.
    pub energy_error: f64,
    /// Largest |dE/E0| at any line of the diagnostics.
    pub largest_energy_error: f64,
    /// What the solver chose.
    pub choice: Option<Choice>,
    /// Particles at the same place at the end.
    pub coincident_pairs: u64,
    /// The step of the checkpoint that it went on from.
    pub resumed_at: Option<u64>,
    /// What checks of the forces have shown.
    pub verified: Verified,
    /// Whether the diagnostics were measured since the start or the checkpoint.
    pub measured: bool,
}

impl Facts<'_> {
    /// Whether a run that was complete was resumed: nothing was left to do.
    pub fn idle(&self) -> bool {
        self.resumed_at.is_some() && !self.measured && self.steps == self.scenario.steps
    }

    /// `run.json`.
    pub fn run_json(&self) -> Value {
        let s = self.scenario;
        let choice = self.choice.as_ref();
        json!({
            "program": "nbody",
            "version": env!("CARGO_PKG_VERSION"),
            "commit": program::commit(),
            "title": s.title,
            "seed": s.seed,
            "particles": self.particles,
            "steps": self.steps,
            "time": s.clock.time(self.steps),
            "complete": self.steps == s.steps,
            "host": program::host(self.threads),
            "solver": {
                "method": choice.map(|c| c.method.name()),
                "precision": choice.map(|c| c.precision.name()),
                "order": choice.and_then(|c| c.order),
                "theta": choice.and_then(|c| c.theta),
                "leaf_size": choice.map(|c| c.leaf_size),
                "tolerance": s.settings.tolerance,
            },
            "energy_error": self.energy_error,
            "largest_energy_error": self.largest_energy_error,
            "coincident_pairs": self.coincident_pairs,
            "resumed_from_step": self.resumed_at,
            "force_error": (self.verified.count > 0).then(|| json!({
                "norm": "rms over a sample of |da|/max(|a|, 1e-3 largest single term)",
                "last": self.verified.last,
                "largest": self.verified.largest,
                "samples": self.verified.count,
                "particles_per_sample": s.verify.map(|v| v.sample),
            })),
        })
    }

    /// The result in a few lines.
    pub fn summary(&self, last: &Diagnostics, directory: &Path) -> String {
        let s = self.scenario;
        let solver = self.choice.as_ref().map_or("none".to_string(), |c| {
            let mut text = format!("{} in {}", c.method.name(), c.precision.name());
            if let Some(p) = c.order {
                let _ = write!(text, ", order {p}");
            }
            if let Some(theta) = c.theta {
                let _ = write!(text, ", theta {theta}");
            }
            text
        });
        let time = number(s.clock.time(self.steps));
        let measured = match self.verified {
            Verified { count: 0, .. } => String::new(),
            v => format!(
                "  force error   {:.1e} at most of {} samples, {:e} asked\n",
                v.largest, v.count, s.settings.tolerance
            ),
        };
        // A checkpoint keeps the energies and no other diagnostics.
        let virial = match self.measured && !s.vortices() {
            true => format!("  virial ratio  {:.6}\n", last.virial_ratio()),
            false => String::new(),
        };
        let (conserved, symbol) = if s.vortices() { ("hamiltonian", 'H') } else { ("energy     ", 'E') };
        let idle = match self.idle() {
            true => "  nothing was left to do: the run was complete, and these are its last results\n",
            false => "",
        };
        format!(
            "{}\n{idle}  particles     {}\n  steps         {} to time {time}\n  solver        {solver}\n  {conserved}   \
             {:.9e}, d{symbol}/{symbol}0 {:.2e}, largest {:.2e}\n{virial}{measured}  files         {}\n",
            s.title,
            self.particles,
            self.steps,
            last.total(),
            self.energy_error,
            self.largest_energy_error,
            directory.display(),
        )
    }
}

/// Stages that took part, in their order.
pub fn stages(times: &StageTimes) -> impl Iterator<Item = (Stage, f64, u64)> + '_ {
    Stage::ALL.into_iter().map(|s| (s, times.seconds(s), times.calls(s))).filter(|&(_, _, calls)| calls > 0)
}

/// `timings.json`: seconds and calls of every stage, from one step to another, in all parts of a run that was resumed. Steps that were done again
/// after a kill count once.
pub fn timings_json(times: &StageTimes, [from, to]: [u64; 2]) -> Value {
    let stage = |s: Stage| (s.name().to_string(), json!({ "seconds": times.seconds(s), "calls": times.calls(s) }));
    json!({
        "from_step": from,
        "to_step": to,
        "total_seconds": times.total(),
        "stages": Stage::ALL.into_iter().map(stage).collect::<serde_json::Map<_, _>>(),
    })
}

/// Where the time went.
pub fn stage_table(times: &StageTimes) -> String {
    let total = times.total();
    let mut text = format!("\n{:<8} {:>10} {:>7} {:>9}\n", "stage", "seconds", "%", "calls");
    for (stage, seconds, calls) in stages(times) {
        let share = if total > 0.0 { 100.0 * seconds / total } else { 0.0 };
        let _ = writeln!(text, "{:<8} {seconds:>10.3} {share:>7.1} {calls:>9}", stage.name());
    }
    let _ = writeln!(text, "{:<8} {total:>10.3} {:>7.1}", "total", 100.0);
    text
}
