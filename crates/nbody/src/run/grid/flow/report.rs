//! What a flow reports: lines of `diagnostics.csv`, `run.json` and a summary.

use std::fmt::Write as _;

use fmm_core::grid::flow::{Integrals, Load, Loads};
use serde_json::{Value, json};

use super::FlowRun;
use crate::info::program;
use crate::messages::short;
use crate::run::evolve::Evolve as _;
use crate::run::report::idle;
use fmm::GridStore;
use nbody_cli::machine;

/// Columns of `diagnostics.csv` without bodies.
const COLUMNS: &str = "step,time,energy,energy_error,enstrophy,circulation_below,circulation_above,total_x,total_y,total_z,impulse_x,impulse_y,\
                           impulse_z,largest_vorticity,divergence,cells,sources";

/// The last column, and what `run.json` and checkpoints call the errors that `[verify]` measures.
pub const VELOCITY_ERROR: &str = "velocity_error";
/// Their norm.
const NORM: &str = "L2 over a sample of the cells, sqrt(sum |du|^2/sum |u|^2), without the inflow";

/// Columns of `diagnostics.csv` with so many bodies.
pub fn columns(bodies: usize) -> String {
    let mut columns = COLUMNS.to_string();
    let all = (bodies > 0).then(|| [String::new(), "impulse_".into(), "lost_".into()]);
    let names = all.into_iter().flatten().chain((0..bodies).map(|b| format!("body{b}_")));
    for name in names {
        for what in ["force", "moment"] {
            ["x", "y", "z"].iter().for_each(|k| columns.push_str(&format!(",{name}{what}_{k}")));
        }
    }
    columns + "," + VELOCITY_ERROR
}

/// The cells of a line, step and time left out; numbers read back to the same bits. `error` is the
/// last measured one.
pub fn cells(
    i: &Integrals,
    first: &Integrals,
    loads: &Loads,
    [cells, sources]: [usize; 2],
    error: Option<f64>,
) -> Vec<String> {
    let growth = drift(i.energy, first.energy);
    let reals = [i.energy, growth, i.enstrophy]
        .into_iter()
        .chain(i.circulation)
        .chain(i.total)
        .chain(i.impulse)
        .chain([i.largest, i.divergence]);
    let forces = if loads.bodies.is_empty() { vec![] } else { loads.numbers() };
    // Empty where a flow starts at rest.
    let text = |v: f64| if v.is_nan() { String::new() } else { format!("{v:?}") };
    let texts = reals.map(text).chain([cells.to_string(), sources.to_string()]);
    let error = error.map_or(String::new(), |e| format!("{e:?}"));
    texts.chain(forces.into_iter().map(|v| format!("{v:?}"))).chain([error]).collect()
}

/// (E − E₀)/|E₀|; no number where a flow starts at rest.
pub fn drift(now: f64, first: f64) -> f64 {
    if first == 0.0 { f64::NAN } else { (now - first) / first.abs() }
}

impl<S: GridStore> FlowRun<S> {
    /// `run.json`.
    pub(super) fn run_json(&self) -> Value {
        let (grid, method) = (&self.scenario.grid, self.scenario.steps.method);
        let (step, first) = (self.course.step, self.first.unwrap_or_default());
        let load = |l: &Load| json!({ "force": l.force, "moment": l.moment });
        let forces: Vec<Value> = self.flow.loads().bodies.iter().map(load).collect();
        json!({
            "program": "nbody",
            "version": env!("CARGO_PKG_VERSION"),
            "commit": program::commit(),
            "title": grid.title,
            "steps": step,
            "parts": self.parts(),
            "time": self.course.time(),
            "complete": step == self.course.plan.steps,
            "host": machine::host(self.course.threads),
            "solver": {
                "integrator": method.scheme.name(),
                "order": grid.solver.order,
                "theta": grid.solver.theta,
                "leaf_size": grid.solver.leaf_size,
                "device": self.store.device().to_string(),
                "split": self.store.settings().rule().fewest,
                "remeshing": method.kernel.name(),
                "cutoff": method.cutoff,
                "viscosity": method.viscosity,
                "lagrangian_cfl": method.lagrangian,
            },
            "energy_error": self.drift(),
            "enstrophy_growth": (first.enstrophy > 0.0).then(|| self.last.enstrophy / first.enstrophy),
            "circulation": self.last.circulation,
            "bodies": forces,
            VELOCITY_ERROR: self.verified.json(NORM, "cells", self.scenario.steps.verify.map(|c| c.verify.sample)),
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
        // Each step is divided where its length is automatic.
        let parts =
            self.parts().filter(|&parts| parts > step).map(|parts| format!(", in {parts} parts")).unwrap_or_default();
        let _ = writeln!(text, "  steps         {step} to time {}, {scheme}{parts}", short(self.course.time()));
        let _ = writeln!(text, "  cells         {} at the end", self.flow.grid().cells());
        if first.enstrophy > 0.0 {
            let growth = last.enstrophy / first.enstrophy;
            let _ = writeln!(text, "  energy        {:.6e}, dE/E0 {:.2e}", last.energy, self.drift());
            let _ = writeln!(text, "  enstrophy     {:.6e}, {growth:.4} times that of the start", last.enstrophy);
        } else {
            // Fluid that bodies set in motion.
            let _ = writeln!(text, "  energy        {:.6e}", last.energy);
            let _ = writeln!(text, "  enstrophy     {:.6e}", last.enstrophy);
        }
        let [below, above] = last.circulation;
        let _ = writeln!(text, "  circulation   {below:.6} below the middle and {above:.6} above");
        for (b, load) in self.flow.loads().bodies.iter().enumerate() {
            let [x, y, z] = load.force.map(short);
            let _ = writeln!(text, "  body {b}        force {x}, {y}, {z} over the last step");
        }
        text.push_str(&self.verified.line("error of u", self.scenario.steps.verify.map(|c| c.tolerance)));
        let _ = writeln!(text, "  files         {}", self.course.directory.path().display());
        text
    }
}
