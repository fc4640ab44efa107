//! The report of a run at its end: a summary, the table of stages, `run.json` and `timings.json`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use fmm_core::{Choice, Stage, StageTimes};
use serde_json::{Value, json};

use super::verify::Verified;
use crate::diagnostics::Diagnostics;
use crate::info::program;
use crate::messages::{digits, short};
use crate::scenario::{Group, Scenario};
use crate::times::TimeUnit;
use crate::units::Dimension;
use nbody_cli::machine;

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
    /// Whether nothing was left to do.
    pub idle: bool,
}

/// What the summary of a run says that had nothing left to do at `time`: the end of the scenario, or
/// one that an option has set before.
pub fn idle(time: &str) -> String {
    format!(
        "  nothing was left to do: the run is at the last end that it has been given, time {time};\n  --until T goes \
         on to a later one. These are its last results:\n"
    )
}

/// The norm of errors of forces.
const NORM: &str = "rms over a sample of |da|/max(|a|, 1e-3 largest single term)";

impl Facts<'_> {
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
            "groups": self.groups(),
            "steps": self.steps,
            "time": s.clock.time(self.steps),
            "complete": self.steps == s.steps,
            "host": machine::host(self.threads),
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
            "force_error": self.verified.json(NORM, "particles", s.verify.map(|v| v.sample)),
        })
    }

    /// Model and number of particles of each group; null where several are of files, of which only the sum is known.
    fn groups(&self) -> Option<Vec<Value>> {
        let counts: Vec<Option<u64>> = self.scenario.groups.iter().map(|g| g.model.count()).collect();
        let known: u64 = counts.iter().flatten().sum();
        let one_unknown = counts.iter().filter(|c| c.is_none()).count() <= 1;
        let rest = (self.particles as u64).checked_sub(known).filter(|_| one_unknown)?;
        let group =
            |(group, n): (&Group, Option<u64>)| json!({ "model": group.model.name(), "particles": n.unwrap_or(rest) });
        Some(self.scenario.groups.iter().zip(counts).map(group).collect())
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
                let _ = write!(text, ", theta {}", short(theta));
            }
            text
        });
        let time = s.clock.time(self.steps);
        let time = TimeUnit::of(s.units, time).text(time);
        let measured = self.verified.line("force error", Some(s.settings.tolerance));
        // A checkpoint keeps the energies and no other diagnostics.
        let virial = match self.measured && !s.vortices() {
            true => format!("  virial ratio  {}\n", short(last.virial_ratio())),
            false => String::new(),
        };
        let (conserved, symbol) =
            if s.plane.is_some() && s.vortices() { ("hamiltonian", 'H') } else { ("energy     ", 'E') };
        let total = format!("{} {}", digits(last.total(), 6), s.units.unit(Dimension::Energy));
        let total = total.trim_end();
        let idle = if self.idle { idle(&time) } else { String::new() };
        format!(
            "{}\n{idle}  particles     {}\n  steps         {} to time {time}\n  solver        {solver}\n  {conserved}   \
             {total}, d{symbol}/{symbol}0 {:.2e}, largest {:.2e}\n{virial}{measured}  files         {}\n",
            s.title,
            self.particles,
            self.steps,
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

/// The wall time of a run, of which stages are a part.
#[derive(Debug, Clone, Copy)]
pub struct Wall {
    /// When this part of the run began.
    pub begun: Instant,
    /// Seconds of its initial state: models, files, a checkpoint.
    initial: f64,
    /// Seconds of the parts before a checkpoint outside of the stages: of initial states, and of anything else.
    pub before: [f64; 2],
    /// Seconds of the stages in the parts before.
    pub stages_before: f64,
}

impl Wall {
    /// That of a run that began then, and whose initial state is there now.
    pub fn from(begun: Instant) -> Self {
        Wall { begun, initial: begun.elapsed().as_secs_f64(), before: [0.0; 2], stages_before: 0.0 }
    }

    /// Seconds outside of the stages until now: of initial states, and of anything else.
    pub fn outside(&self, times: &StageTimes) -> [f64; 2] {
        // Stages overlap where a device sums while the host waits for something else.
        let other = self.begun.elapsed().as_secs_f64() - self.initial - (times.total() - self.stages_before);
        [self.before[0] + self.initial, self.before[1] + other.max(0.0)]
    }
}

/// Rows of the table that are no stages of sums: the initial state, and all that is measured nowhere else.
const OUTSIDE: [&str; 2] = ["initial state", "other"];

/// `timings.json`: seconds and calls of every stage, and seconds outside of them, from one step to another, in all parts of a run that was
/// resumed. Steps that were done again after a kill count once.
pub fn timings_json(times: &StageTimes, outside: [f64; 2], [from, to]: [u64; 2]) -> Value {
    let stage = |s: Stage| (s.name().to_string(), json!({ "seconds": times.seconds(s), "calls": times.calls(s) }));
    json!({
        "from_step": from,
        "to_step": to,
        "wall_seconds": times.total() + outside.iter().sum::<f64>(),
        "initial_state_seconds": outside[0],
        "other_seconds": outside[1],
        "total_seconds": times.total(),
        "stages": Stage::ALL.into_iter().map(stage).collect::<serde_json::Map<_, _>>(),
    })
}

/// Where the wall time went.
pub fn stage_table(times: &StageTimes, outside: [f64; 2]) -> String {
    let total = times.total() + outside.iter().sum::<f64>();
    let mut text = format!("\n{:<13} {:>10} {:>7} {:>9}\n", "stage", "seconds", "%", "calls");
    let stages = stages(times).map(|(stage, seconds, calls)| (stage.name(), seconds, calls.to_string()));
    let outside = OUTSIDE.into_iter().zip(outside).map(|(name, seconds)| (name, seconds, String::new()));
    for (name, seconds, calls) in stages.chain(outside) {
        let share = if total > 0.0 { 100.0 * seconds / total } else { 0.0 };
        let row = format!("{name:<13} {seconds:>10.3} {share:>7.1} {calls:>9}");
        let _ = writeln!(text, "{}", row.trim_end());
    }
    let _ = writeln!(text, "{:<13} {total:>10.3} {:>7.1}", "total", 100.0);
    text
}
