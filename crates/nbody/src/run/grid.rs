//! Scenarios with a `[grid]`: the grid, Ψ and u on it, files, and the error where the solution is known.

pub(crate) mod flow;
mod output;
mod sense;

use std::fmt::Write as _;
use std::time::Instant;

use fmm_core::grid::sources::Cells;
use fmm_core::grid::{BLOCK, CELLS, Component, Grid, Parts, Rings, Sampled, Solution, Solve as _, Solver, Vorticity};
use fmm_core::{Stage, StageTimes};
use serde_json::{Value, json};

use super::Options;
use super::directory::RunDirectory;
use super::events::Events;
use super::identity;
use super::report::{Wall, stage_table, timings_json};
use crate::carried;
use crate::console::{self, notes};
use crate::failure::{self, Failure};
use crate::files::{Kind, csv, npy};
use crate::grid_errors::Errors;
use crate::info::program;
use crate::messages::{self, bytes, counted, short};
use crate::scenario::grid::{GridScenario, Origin, Resolution};
use crate::signals::Stop;
use flow::FlowScenario;
use fmm::{GridDevice, GridSolver};
use nbody_cli::machine;

/// The scenario that the options name, if it has a grid.
///
/// # Errors
/// Those of [`GridScenario::load`]; 2 for options that mean nothing to it.
pub fn scenario(options: &Options) -> Result<Option<GridScenario>, Failure> {
    let Some(path) = &options.scenario else { return Ok(None) };
    let (all, mut sets) = (options.overrides(), options.overrides());
    // A time.end from the command line would be a [time] of its own.
    sets.retain(|o| o.option != "--until");
    let bare = GridScenario::load(path, &sets).map_err(|f| carried::point_to(f, path));
    if let Ok(Some(GridScenario { steps: None, .. })) = &bare {
        for (given, name) in [
            (options.resume.is_some(), "--resume"),
            (options.until.is_some(), "--until"),
            (options.steps.is_some(), "--steps"),
            (options.max_wall.is_some(), "--max-wall"),
        ] {
            if given {
                let why = "has a [grid] and no [time]: one solution is all that it asks for, there are no steps";
                return Err(Failure::new(2, format!("{name}: {} {why}", path.display())));
            }
        }
    }
    let scenario = if options.until.is_some() { GridScenario::load(path, &all) } else { bare };
    let Some(mut scenario) = scenario? else { return Ok(None) };
    super::place::check(&scenario.directory, options)?;
    if let Some(out) = super::resume::folder(options) {
        scenario.directory = out;
    }
    Ok(Some(scenario))
}

/// Solves, writes and reports.
///
/// # Errors
/// 65 for vorticity that does not fit the grid, 69 for a device that cannot, 74 for files that cannot be written, 1 for results that
/// make no sense where `--strict` asks.
pub fn run(scenario: &GridScenario, options: &Options, threads: usize, begun: Instant) -> Result<(), Failure> {
    // An explicit device is opened first, so that its absence is reported before anything else.
    let given = match scenario.device {
        GridDevice::Auto => None,
        place => Some(GridSolver::new(place, scenario.solver, 0.0, &mut notes(options.quiet))?),
    };
    let who = |pairs: f64| match given {
        Some(solver) => Ok(solver),
        None => Ok(GridSolver::new(GridDevice::Auto, scenario.solver, pairs, &mut notes(options.quiet))?),
    };
    let source = source(scenario)?;
    if let Some(flowing) = FlowScenario::of(scenario.clone()) {
        let flow = flowing.start(&*source)?;
        if options.dry_run {
            return plan(scenario, (flow.grid(), flow.vorticity()), options, threads);
        }
        let stop = Stop::install()?;
        return flow::fresh(flowing, flow, who, (options, threads, begun), &stop);
    }
    if options.dry_run {
        let grid = build(scenario, &*source)?;
        return plan(scenario, (&grid, &grid.sample(&*source)), options, threads);
    }
    let building = Instant::now();
    let grid = build(scenario, &*source)?;
    let field = grid.sample(&*source);
    some(&field)?;
    let wall = Wall::from(begun);
    let id = identity::of_grid(&scenario.resolved(), &field);
    let mut directory =
        RunDirectory::create(&scenario.directory, (&scenario.text, &scenario.inputs()), options.force, id)?;
    let events = Events::new(options.json);
    let mut times = StageTimes::default();
    let mut facts = about(&grid);
    facts["seconds"] = building.elapsed().as_secs_f64().into();
    events.send("start", json!({ "threads": threads, "grid": facts }))?;
    if !options.quiet && !options.json {
        let (cells, blocks) = (grid.cells(), grid.blocks().len());
        let on = counted(threads, "thread");
        console::tell(format_args!("{}: {cells} cells in {blocks} blocks on {on}", scenario.title));
    }
    let nonsense = sense::warned(scenario, &sense::held(scenario, &grid));
    let nonsense = nonsense.first().filter(|_| options.strict);
    let refuse = |e: fmm_core::Error| Failure::new(failure::code(&e), messages::error(&e));
    let mut solver = who(pairs(&field))?;
    let solution = solver.solve(&grid, &field, &mut times).map_err(refuse)?;
    let place = solver.device();
    let split = match place {
        // It was chosen from measured speeds, and is written so that a repeated run has the same one.
        GridDevice::Hybrid(_) => Some(solution.work.split),
        _ => scenario.solver.split,
    };
    let fields = [&field[..], &solution.psi, &solution.velocity];
    // An earlier run's files are there until now.
    output::fit(scenario, &directory, &grid, fields)?;
    let chosen = GridScenario { solver: Solver { split, ..scenario.solver }, ..scenario.clone() };
    directory.write_resolved(&chosen.resolved())?;
    directory.write_index()?;
    let errors =
        scenario.rings().map(|rings| Errors::of(&grid, &field, &solution, (&Rings(rings), scenario.component)));
    times.time_more(Stage::Output, || output::write(scenario, &mut directory, &grid, fields, (0, 0, 0.0)))?;
    let run = run_json(scenario, facts, (&solution, place), errors.as_ref(), threads);
    let outside = wall.outside(&times);
    directory.finish(&run, &timings_json(&times, outside, [0, 0]))?;
    if options.json {
        let mut end = run;
        end["exit_code"] = i32::from(nonsense.is_some()).into();
        events.send("end", end)?;
    } else {
        let mut text = summary(scenario, &grid, (&solution, place), errors.as_ref());
        let _ = writeln!(text, "  files         {}", directory.path().display());
        if !options.quiet {
            text.push_str(&stage_table(&times, outside));
        }
        console::print(&text)?;
    }
    nonsense.map_or(Ok(()), |text| Err(Failure::new(1, format!("{text} (--strict)"))))
}

/// What is solved for.
fn source(scenario: &GridScenario) -> Result<Box<dyn Vorticity>, Failure> {
    let mut parts: Vec<Box<dyn Vorticity>> = vec![];
    let mut rings = vec![];
    for origin in &scenario.vorticity {
        match origin {
            Origin::Ring(ring) => rings.push(*ring),
            Origin::Gaussian(ring) => parts.push(Box::new(*ring)),
            Origin::File(path, n) => {
                const COLUMNS: [&str; 6] = ["x", "y", "z", "wx", "wy", "wz"];
                let table = match Kind::of(path) {
                    Some(Kind::Npy) => match npy::read(path, &COLUMNS)? {
                        npy::Npy::Table(table) => table,
                        npy::Npy::Array { .. } => {
                            let line = format!(
                                "{}: an array without names; a table has the fields {COLUMNS:?}",
                                path.display()
                            );
                            return Err(Failure::new(65, line));
                        }
                    },
                    _ => csv::read(path, &COLUMNS)?,
                };
                let [x, y, z, wx, wy, wz] = COLUMNS.map(|name| table.need(&[name]));
                let rows = |[a, b, c]: [&[f64]; 3]| -> Vec<[f64; 3]> {
                    (0..table.rows()).map(|i| [a[i], b[i], c[i]]).collect()
                };
                let (position, values) = (rows([x?, y?, z?]), rows([wx?, wy?, wz?]));
                let sampled = Sampled::new((scenario.corner, scenario.side), *n, &position, &values);
                let sampled = sampled.map_err(|e| Failure::new(65, format!("{}: {e}", path.display())))?;
                parts.push(Box::new(sampled));
            }
        }
    }
    parts.push(Box::new(Rings(rings)));
    let all = Box::new(Parts(parts));
    Ok(match scenario.component {
        Some(component) => Box::new(Component(component, all)),
        None => all,
    })
}

/// Sees that there is vorticity.
fn some(field: &[[f64; 3]]) -> Result<(), Failure> {
    if field.iter().any(|w| *w != [0.0; 3]) {
        return Ok(());
    }
    let line = "no vorticity lies in the domain; look at grid.corner, grid.side and the [[vorticity]]";
    Err(Failure::new(65, line))
}

/// Sees that `n` cells a side, which `key` asks for, can be numbered.
fn numbered(key: &str, n: u32) -> Result<(), Failure> {
    let count = u64::from(n / BLOCK as u32).pow(3) * CELLS as u64;
    if count > u64::from(u32::MAX) {
        let line = format!("{key} = {n}: {count} cells are more than the {} that can be numbered", u32::MAX);
        return Err(Failure::new(65, line));
    }
    Ok(())
}

/// The grid of a scenario.
fn build(scenario: &GridScenario, vorticity: &dyn Vorticity) -> Result<Grid, Failure> {
    let blocks = |cells: u32| cells / BLOCK as u32;
    match scenario.resolution {
        Resolution::Uniform(n) => {
            numbered("grid.n", n)?;
            Ok(Grid::uniform(scenario.corner, scenario.side, blocks(n)))
        }
        Resolution::Adapted(coarsest, thresholds) => {
            numbered("grid.coarsest", coarsest)?;
            Ok(Grid::adapted((scenario.corner, scenario.side), blocks(coarsest), thresholds, vorticity))
        }
    }
}

/// Cells times those with vorticity.
fn pairs(field: &[[f64; 3]]) -> f64 {
    field.len() as f64 * field.iter().filter(|w| **w != [0.0; 3]).count() as f64
}

/// What a grid is like.
fn about(grid: &Grid) -> Value {
    let by_level: Vec<usize> =
        (0..=grid.finest()).map(|l| grid.blocks().iter().filter(|b| b.level == l).count()).collect();
    let coarsest = grid.blocks().iter().map(|b| b.level).min().unwrap_or(0);
    json!({
        "blocks": grid.blocks().len(),
        "cells": grid.cells(),
        "blocks_by_level": by_level,
        "largest_spacing": grid.spacing(coarsest),
        "smallest_spacing": grid.spacing(grid.finest()),
    })
}

/// `--dry-run`.
fn plan(
    scenario: &GridScenario,
    (grid, field): (&Grid, &[[f64; 3]]),
    options: &Options,
    threads: usize,
) -> Result<(), Failure> {
    sense::warned(scenario, &sense::held(scenario, grid));
    let sources = Cells::numbers(field).len();
    // Of a flow what was measured, 1,250 to 1,450 bytes a cell on one level and 2,000 on several: its particles, fields
    // between levels, a checkpoint and its file.
    let flow = match (&scenario.steps, &scenario.resolution) {
        (None, _) => 0,
        (Some(_), Resolution::Uniform(_)) => 1330,
        (Some(_), Resolution::Adapted(..)) => 1880,
    };
    // Sums of a brick and both fields in double precision, the vorticity, and what is written.
    // The program itself has some 25 MiB.
    let memory = (grid.cells() * (48 + 48 + 24 + 3 * 8 * scenario.fields.len() + flow) + (25 << 20)) as u64;
    if options.json {
        let facts = json!({
            "event": "dry-run", "threads": threads, "grid": about(grid), "sources": sources, "memory_bytes": memory,
            "scenario": scenario.resolved(),
        });
        return console::print(&format!("{facts}\n"));
    }
    console::print(&format!(
        "{}\n# Nothing was run. {} cells in {} blocks, {sources} with vorticity, on {} would need about {}\n",
        scenario.resolved(),
        grid.cells(),
        grid.blocks().len(),
        counted(threads, "thread"),
        bytes(memory),
    ))
}

fn run_json(
    scenario: &GridScenario,
    grid: Value,
    (solution, place): (&Solution, GridDevice),
    errors: Option<&Errors>,
    threads: usize,
) -> Value {
    let (s, w) = (&scenario.solver, &solution.work);
    json!({
        "program": "nbody",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": program::commit(),
        "title": scenario.title,
        "complete": true,
        "host": machine::host(threads),
        "grid": grid,
        "solver": {
            "method": if s.theta == 0.0 { "direct" } else { "treecode" },
            "precision": s.summed_in().name(),
            "order": s.order,
            "theta": s.theta,
            "leaf_size": s.leaf_size,
            "guard": s.guard,
            "correction": s.correction,
            "device": place.to_string(),
            "split": w.split,
        },
        "work": {
            "sources": w.sources, "targets": w.targets, "nodes": w.nodes, "direct_pairs": w.direct,
            "indirect_pairs": w.indirect,
        },
        "errors": errors.map(Errors::json),
    })
}

fn summary(
    scenario: &GridScenario,
    grid: &Grid,
    (solution, place): (&Solution, GridDevice),
    errors: Option<&Errors>,
) -> String {
    let (s, w) = (&scenario.solver, &solution.work);
    let coarsest = grid.blocks().iter().map(|b| b.level).min().unwrap_or(0);
    let mut text = format!("{}\n", scenario.title);
    let spacing = match grid.is_uniform() {
        true => format!("h = {}", short(grid.spacing(coarsest))),
        false => format!("h from {} to {}", short(grid.spacing(coarsest)), short(grid.spacing(grid.finest()))),
    };
    let _ = writeln!(text, "  grid          {} cells in {} blocks, {spacing}", grid.cells(), grid.blocks().len());
    let _ = writeln!(text, "  sources       {} cells with vorticity", w.sources);
    // A device sums in double precision, and the cores what is left to them in theirs.
    let precision = match place {
        GridDevice::Cuda(_) => "f64",
        GridDevice::Hybrid(_) if s.theta == 0.0 => "f64",
        _ => s.summed_in().name(),
    };
    let how = match s.theta == 0.0 {
        true => format!("direct sum in {precision}"),
        false => {
            format!("treecode in {precision}, order {}, theta {}, leaves of {}", s.order, short(s.theta), s.leaf_size)
        }
    };
    let corrected = if s.correction { ", leading error taken away" } else { "" };
    let _ = writeln!(text, "  solver        {how}{corrected}");
    match place {
        GridDevice::Hybrid(n) => {
            let nodes = format!("nodes of fewer than {} sources act directly", w.split);
            let _ = writeln!(text, "  device        direct sums on GPU {n} in f64, expansions on the cores; {nodes}");
        }
        GridDevice::Cuda(n) => {
            let _ = writeln!(text, "  device        GPU {n}");
        }
        _ => {}
    }
    let _ = writeln!(text, "  pairs         {:.3e} direct, {:.3e} with expansions", w.direct as f64, w.indirect as f64);
    if let Some(errors) = errors {
        text.push_str(&errors.text());
    }
    text
}
