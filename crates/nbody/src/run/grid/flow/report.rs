//! What a flow reports: lines of `diagnostics.csv`, `run.json` and a summary.

use std::fmt::Write as _;

use fmm_core::grid::flow::Integrals;
use serde_json::{Value, json};

use super::FlowRun;
use crate::info::program;
use crate::messages::short;
use crate::run::evolve::Evolve as _;
use crate::run::report::idle;
use nbody_cli::machine;

/// Columns of `diagnostics.csv`.
pub const COLUMNS: &str = "step,time,energy,energy_error,enstrophy,circulation_below,circulation_above,total_x,total_y,total_z,impulse_x,impulse_y,\
                           impulse_z,largest_vorticity,divergence,cells,sources";

/// The cells of a line, step and time left out; numbers read back to the same bits.
pub fn cells(i: &Integrals, first: &Integrals, cells: usize, sources: usize) -> Vec<String> {
    let reals = [i.energy, drift(i.energy, first.energy), i.enstrophy]
        .into_iter()
        .chain(i.circulation)
        .chain(i.total)
        .chain(i.impulse)
        .chain([i.largest, i.divergence]);
    reals.map(|v| format!("{v:?}")).chain([cells.to_string(), sources.to_string()]).collect()
}

/// (E − E₀)/|E₀|.
pub fn drift(now: f64, first: f64) -> f64 {
    if first == 0.0 { now } else { (now - first) / first.abs() }
}

impl FlowRun {
    /// `run.json`.
    pub(super) fn run_json(&self) -> Value {
        let (grid, method) = (&self.scenario.grid, self.scenario.steps.method);
        let (step, first) = (self.course.step, self.first.unwrap_or_default());
        json!({
            "program": "nbody",
            "version": env!("CARGO_PKG_VERSION"),
            "commit": program::commit(),
            "title": grid.title,
            "steps": step,
            "time": self.course.time(),
            "complete": step == self.course.plan.steps,
            "host": machine::host(self.course.threads),
            "solver": {
                "integrator": method.scheme.name(),
                "order": grid.solver.order,
                "theta": grid.solver.theta,
                "leaf_size": grid.solver.leaf_size,
                "device": self.solver.device().to_string(),
                "split": self.split,
                "remeshing": method.kernel.name(),
                "cutoff": method.cutoff,
                "viscosity": method.viscosity,
            },
            "energy_error": self.drift(),
            "enstrophy_growth": self.last.enstrophy / first.enstrophy,
            "circulation": self.last.circulation,
            "resumed_from_step": self.course.resumed_at,
        })
    }

    /// The result in a few lines.
    pub(super) fn summary(&self) -> String {
        let (last, first) = (&self.last, self.first.unwrap_or_default());
        let (step, scheme) = (self.course.step, self.scenario.steps.method.scheme.name());
        let mut text = format!("{}\n", self.scenario.grid.title);
        if self.course.idle() {
            text.push_str(&idle(&short(self.course.time())));
        }
        let _ = writeln!(text, "  steps         {step} to time {}, {scheme}", short(self.course.time()));
        let _ = writeln!(text, "  cells         {} at the end", self.flow.grid().cells());
        let _ = writeln!(text, "  energy        {:.6e}, dE/E0 {:.2e}", last.energy, self.drift());
        let growth = last.enstrophy / first.enstrophy;
        let _ = writeln!(text, "  enstrophy     {:.6e}, {growth:.4} times that of the start", last.enstrophy);
        let [below, above] = last.circulation;
        let _ = writeln!(text, "  circulation   {below:.6} below the middle and {above:.6} above");
        let _ = writeln!(text, "  files         {}", self.course.directory.path().display());
        text
    }
}
