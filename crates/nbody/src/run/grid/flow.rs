//! `[grid]` with `[time]`: an inviscid flow that goes on, its files and its integrals.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use fmm_core::grid::flow::Integrals;
use fmm_core::grid::remesh::Lattice;
use fmm_core::grid::{BLOCK, Flow, Solution, Solver, Vorticity};
use fmm_core::{Error, Stage, StageTimes};
use serde_json::json;

use super::super::Options;
use super::super::directory::RunDirectory;
use super::super::events::Events;
use super::super::identity;
use super::super::report::{Wall, stage_table, timings_json};
use super::super::signals::Stop;
use crate::console;
use crate::device;
use crate::device::grid::{GridSolver, Place};
use crate::fault::Fault;
use crate::info::program;
use crate::scenario::grid::{GridScenario, Resolution, Steps};
use crate::told::{self, number, short};

/// Between lines on stderr.
const INTERVAL: Duration = Duration::from_secs(30);

/// The flow of a scenario at its start.
///
/// # Errors
/// 65 for vorticity at the faces of the domain.
pub fn start(scenario: &GridScenario, steps: &Steps, vorticity: &dyn Vorticity) -> Result<Flow, Fault> {
    // Reading refuses steps on adapted grids.
    let (Resolution::Uniform(n) | Resolution::Adapted(n, _)) = scenario.resolution;
    let lattice = Lattice { corner: scenario.corner, side: scenario.side, base: n / BLOCK as u32 };
    scenario.solver.check().map_err(|e| refused(&e))?;
    super::numbered("grid.n", n)?;
    let flow = Flow::new(lattice, vorticity, steps.method).map_err(|e| refused(&e))?;
    super::some(flow.vorticity())?;
    Ok(flow)
}

fn refused(e: &Error) -> Fault {
    let code = if matches!(e, Error::NotFinite { .. }) { 70 } else { device::code(e) };
    Fault::new(code, told::error(e))
}

/// Steps to the end, with files and diagnostics on the way.
///
/// # Errors
/// 65 where vorticity comes to the faces, 70 for values that are no longer finite, 74 for files that cannot be written, 75 for a signal.
pub fn run(
    scenario: &GridScenario,
    steps: &Steps,
    mut flow: Flow,
    who: impl FnOnce(f64) -> Result<GridSolver, Fault>,
    options: &Options,
    (threads, wall): (usize, Wall),
) -> Result<(), Fault> {
    let stop = Stop::install()?;
    // Each stage of each step is a solution.
    let mut solver = who(super::pairs(flow.vorticity()) * (3 * steps.count + 1) as f64)?;
    let id = identity::of_grid(scenario, flow.vorticity());
    let mut directory = RunDirectory::create(&scenario.directory, &scenario.text, options.force, id)?;
    directory.write_resolved(&scenario.resolved())?;
    directory.write_index()?;
    let events = Events::new(options.json);
    events.send("start", json!({ "threads": threads, "steps": steps.count, "cells": flow.grid().cells() }))?;
    let loud = !options.quiet && !options.json;
    if loud {
        let cells = flow.grid().cells();
        crate::console::tell(format_args!(
            "{}: {} steps, {cells} cells at first, {threads} threads",
            scenario.title, steps.count
        ));
    }
    let mut lines = Lines::create(&directory)?;
    let (mut times, mut told_at, mut files) = (StageTimes::default(), Instant::now(), 0);
    let (mut first, mut last, mut done, mut split) = (None, Integrals::default(), 0, 0);
    for step in 0..=steps.count {
        let time = steps.clock.time(step);
        let solution = flow.solve(&mut solver, &mut times).map_err(|e| refused(&e))?;
        split = solution.work.split;
        let ends = step == steps.count || stop.requested();
        if ends || step.is_multiple_of(steps.diagnostics_every) {
            last = flow.integrals(&solution);
            let start = *first.get_or_insert(last);
            let facts = lines.add(&flow, &solution, (step, time), [&last, &start])?;
            events.send("diagnostics", facts)?;
        }
        if ends || step.is_multiple_of(steps.every) {
            let write = || {
                super::write(scenario, &mut directory, flow.grid(), flow.vorticity(), &solution, (files, step, time))
            };
            times.time(Stage::Output, write)?;
            files += 1;
        }
        done = step;
        if ends {
            break;
        }
        if loud && told_at.elapsed() >= INTERVAL {
            told_at = Instant::now();
            crate::console::tell(format_args!(
                "step {step}/{}  t = {time:.6}  {} cells",
                steps.count,
                flow.grid().cells()
            ));
        }
        flow.step(&mut solver, steps.clock.dt, Some(solution), &mut times).map_err(|e| {
            let fault = refused(&e);
            let line =
                format!("step {}: {}; the files up to time {} are complete", step + 1, told::error(&e), number(time));
            Fault::new(fault.code, line)
        })?;
    }
    let first = first.unwrap_or_default();
    if let Place::Hybrid(_) = solver.place() {
        let chosen = GridScenario { solver: Solver { split: Some(split), ..scenario.solver }, ..scenario.clone() };
        directory.write_resolved(&chosen.resolved())?;
    }
    let run = json!({
        "program": "nbody",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": program::commit(),
        "title": scenario.title,
        "steps": done,
        "time": steps.clock.time(done),
        "complete": done == steps.count,
        "host": program::host(threads),
        "solver": {
            "integrator": steps.method.scheme.name(),
            "order": scenario.solver.order,
            "theta": scenario.solver.theta,
            "leaf_size": scenario.solver.leaf_size,
            "device": solver.place().to_string(),
            "split": split,
            "remeshing": steps.method.kernel.name(),
            "cutoff": steps.method.cutoff,
        },
        "energy_error": drift(last.energy, first.energy),
        "enstrophy_growth": last.enstrophy / first.enstrophy,
        "circulation": last.circulation,
    });
    let outside = wall.outside(&times);
    directory.finish(&run, &timings_json(&times, outside, [0, done]))?;
    if options.json {
        events.send("end", run)?;
    } else {
        let mut text = format!("{}\n", scenario.title);
        let time = short(steps.clock.time(done));
        let _ = writeln!(text, "  steps         {done} to time {time}, {}", steps.method.scheme.name());
        let _ = writeln!(text, "  cells         {} at the end", flow.grid().cells());
        let _ = writeln!(text, "  energy        {:.6e}, dE/E0 {:.2e}", last.energy, drift(last.energy, first.energy));
        let growth = last.enstrophy / first.enstrophy;
        let _ = writeln!(text, "  enstrophy     {:.6e}, {growth:.4} times that of the start", last.enstrophy);
        let [below, above] = last.circulation;
        let _ = writeln!(text, "  circulation   {below:.6} below the middle and {above:.6} above");
        let _ = writeln!(text, "  files         {}", directory.path().display());
        if !options.quiet {
            text.push_str(&stage_table(&times, outside));
        }
        console::print(&text)?;
    }
    match done == steps.count {
        true => Ok(()),
        false => {
            let line = format!(
                "stopped by a signal after step {done}; all files are complete, but runs on grids cannot be resumed"
            );
            Err(Fault::new(75, line))
        }
    }
}

fn drift(now: f64, first: f64) -> f64 {
    if first == 0.0 { now } else { (now - first) / first.abs() }
}

/// `diagnostics.csv`.
struct Lines {
    file: File,
    path: std::path::PathBuf,
}

const HEADER: &str = "step,time,energy,energy_error,enstrophy,circulation_below,circulation_above,total_x,total_y,total_z,impulse_x,impulse_y,\
                      impulse_z,largest_vorticity,divergence,cells,sources";

impl Lines {
    fn create(directory: &RunDirectory) -> Result<Self, Fault> {
        let path = directory.path().join("diagnostics.csv");
        let cannot = |e| Fault::new(74, format!("{}: cannot write: {e}", path.display()));
        let mut file = File::create(&path).map_err(cannot)?;
        let id = directory.id().map_or(String::new(), |id| format!(",{}", id.column()));
        file.write_all(format!("{HEADER}{id}\n").as_bytes()).map_err(cannot)?;
        Ok(Lines { file, path })
    }

    /// Adds a line; tells it as an object.
    fn add(
        &mut self,
        flow: &Flow,
        solution: &Solution,
        (step, time): (u64, f64),
        [i, first]: [&Integrals; 2],
    ) -> Result<serde_json::Value, Fault> {
        let reals = [time, i.energy, drift(i.energy, first.energy), i.enstrophy]
            .into_iter()
            .chain(i.circulation)
            .chain(i.total)
            .chain(i.impulse)
            .chain([i.largest, i.divergence]);
        let mut fields = vec![step.to_string()];
        fields.extend(reals.map(|v| format!("{v:?}")));
        fields.extend([flow.grid().cells().to_string(), solution.work.sources.to_string()]);
        // The cell below the run's id is empty.
        let line = format!("{},\n", fields.join(","));
        self.file
            .write_all(line.as_bytes())
            .map_err(|e| Fault::new(74, format!("{}: cannot write: {e}", self.path.display())))?;
        let mut facts = serde_json::Map::new();
        for (name, field) in HEADER.split(',').zip(&fields) {
            facts.insert(name.into(), serde_json::from_str(field).unwrap_or_default());
        }
        Ok(facts.into())
    }
}
