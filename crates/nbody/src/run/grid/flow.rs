//! `[grid]` with `[time]`: a flow that goes on, its files and its integrals.

mod memory;
mod report;
mod verify;

use std::borrow::Cow;
use std::time::Instant;

use fmm_core::grid::flow::Integrals;
use fmm_core::grid::remesh::Lattice;
use fmm_core::grid::{BLOCK, Flow, Solution, Solver, Vorticity};
use fmm_core::{Error, Stage};
use serde_json::{Value, json};

use crate::console::notes;
use crate::failure::{self, Failure};
use crate::files::checkpoint::{self, Checkpoint, State};
use crate::messages::{self, number};
use crate::run::course::Course;
use crate::run::directory::RunDirectory;
use crate::run::evolve::{self, Evolve};
use crate::run::grid::{output, sense};
use crate::run::plan::{Due, first_step};
use crate::run::progress::Progress;
use crate::run::report::Wall;
use crate::run::resume::{Resumable as _, Resumed};
use crate::run::verify::Verified;
use crate::run::{Options, identity};
use crate::scenario::clock::Clock;
use crate::scenario::grid::{GridScenario, Resolution, Steps};
use crate::signals::Stop;
use crate::times::TimeUnit;
use crate::units::System;
use fmm::{CudaFields, GridDevice, GridSolver, GridStore};

/// A scenario with a grid and steps.
#[derive(Debug, Clone)]
pub struct FlowScenario {
    /// All but the steps.
    pub grid: GridScenario,
    /// The steps, which are not in `grid`.
    pub steps: Steps,
}

impl FlowScenario {
    /// That of a grid with `[time]`.
    pub fn of(mut grid: GridScenario) -> Option<Self> {
        let steps = grid.steps.take()?;
        Some(FlowScenario { grid, steps })
    }

    /// The scenario with defaults and derived values; `split` is what the solver chose.
    fn resolved(&self, split: Option<usize>) -> String {
        let split = self.grid.solver.split.or(split);
        let solver = Solver { split, ..self.grid.solver };
        GridScenario { solver, steps: Some(self.steps), ..self.grid.clone() }.resolved()
    }

    fn lattice(&self) -> Lattice {
        let (Resolution::Uniform(n) | Resolution::Adapted(n, _)) = self.grid.resolution;
        Lattice { corner: self.grid.corner, side: self.grid.side, base: n / BLOCK as u32 }
    }

    /// The flow at its start.
    ///
    /// # Errors
    /// 65 for vorticity at the faces of the domain.
    pub fn start(&self, vorticity: &dyn Vorticity) -> Result<Flow, Failure> {
        let lattice = self.lattice();
        self.grid.solver.check().map_err(|e| refused(&e))?;
        let key = match self.grid.resolution {
            Resolution::Uniform(_) => "grid.n",
            Resolution::Adapted(..) => "grid.coarsest",
        };
        super::numbered(key, lattice.base * BLOCK as u32)?;
        let conditions = &self.grid.conditions;
        let flow = Flow::new(lattice, self.steps.method, conditions.clone(), vorticity).map_err(|e| refused(&e))?;
        if conditions.bodies.is_empty() {
            super::some(flow.vorticity())?;
        }
        Ok(flow)
    }
}

fn refused(e: &Error) -> Failure {
    let code = if matches!(e, Error::NotFinite { .. }) { 70 } else { failure::code(e) };
    Failure::new(code, messages::error(e))
}

/// Makes all steps of a flow from its start; `who` makes the solver for a number of pairs.
///
/// # Errors
/// 74 for a directory that is in use, those of `who`, and those of [`evolve::run`].
pub fn fresh(
    mut scenario: FlowScenario,
    flow: Flow,
    who: impl FnOnce(f64) -> Result<GridSolver, Failure>,
    (options, threads, begun): (&Options, usize, Instant),
    stop: &Stop,
) -> Result<(), Failure> {
    // Each stage of each step is a solution. Those of the scenario: with fewer by --steps the run
    // goes on where the whole one would be.
    let cells = flow.grid().cells() as f64;
    // Bodies make vorticity: in some cells of the blocks around them, in the end.
    let each = if flow.loads().bodies.is_empty() { super::pairs(flow.vorticity()) } else { cells * cells / 4.0 };
    let pairs = each * (3 * scenario.steps.count + 1) as f64;
    let solver = who(pairs)?;
    scenario.steps.count = options.steps.unwrap_or(scenario.steps.count);
    let id = identity::of_grid(&scenario.resolved(None), flow.vorticity());
    let grid = &scenario.grid;
    let directory = RunDirectory::create(&grid.directory, (&grid.text, &grid.inputs()), options.force, id)?;
    let held = sense::held(grid, flow.grid());
    sense::warned(grid, &held);
    let start = Start { scenario, flow, directory, checkpoint: None, files: 0, pairs, held };
    start.run(solver, (options, threads, Wall::from(begun)), stop)
}

/// Goes on with a flow.
///
/// # Errors 65 for a state that is not one of its grid, 69 without the GPU that is asked for, and
/// those of
/// [`evolve::run`].
pub fn go_on(
    resumed: Resumed<FlowScenario>,
    directory: RunDirectory,
    (options, threads, begun): (&Options, usize, Instant),
    stop: &Stop,
) -> Result<(), Failure> {
    let Resumed { scenario, mut latest, files } = resumed;
    let state = std::mem::take(&mut latest.checkpoint.state);
    let State::Flow(checkpoint::Flow { blocks, vorticity }) = state else { unreachable!("the caller has looked") };
    let (method, conditions) = (scenario.steps.method, scenario.grid.conditions.clone());
    let time = latest.checkpoint.time;
    let flow = Flow::resume(scenario.lattice(), method, conditions, time, (&blocks, vorticity));
    let flow = flow.map_err(|e| Failure::new(65, format!("{}: {}", latest.path.display(), messages::error(&e))))?;
    let number = |name: &str| latest.checkpoint.number(name);
    let pairs = number(memory::PAIRS).unwrap_or(0.0);
    // Another measurement could choose another split, and other bits.
    let chosen = number(memory::SPLIT).map(|split| split as usize);
    let hybrid = matches!(scenario.grid.device, GridDevice::Hybrid(_));
    let split = scenario.grid.solver.split.or(chosen.filter(|_| hybrid));
    let settings = Solver { split, ..scenario.grid.solver };
    let solver = GridSolver::new(scenario.grid.device, settings, pairs, &mut notes(options.quiet))?;
    let (checkpoint, files) = (Some(latest.checkpoint), files.unwrap_or(0));
    let start = Start { scenario, flow, directory, checkpoint, files, pairs, held: vec![] };
    start.run(solver, (options, threads, Wall::from(begun)), stop)
}

/// What a flow begins with, or goes on from.
struct Start {
    scenario: FlowScenario,
    flow: Flow,
    directory: RunDirectory,
    checkpoint: Option<Checkpoint>,
    files: u64,
    pairs: f64,
    /// What the grid holds of each ring, if it is the first.
    held: Vec<f64>,
}

impl Start {
    /// Makes all steps with the fields where the solver is.
    fn run(self, solver: GridSolver, place: (&Options, usize, Wall), stop: &Stop) -> Result<(), Failure> {
        match solver {
            GridSolver::Cores(solver) => evolve::run(FlowRun::new(self, solver, place)?, stop),
            GridSolver::Device(solver, _) => evolve::run(FlowRun::new(self, CudaFields::new(*solver), place)?, stop),
        }
    }
}

/// A flow under way, with its fields in a store.
struct FlowRun<S: GridStore> {
    course: Course,
    scenario: FlowScenario,
    flow: Flow<S::Field>,
    /// That of the present state, once it is known.
    solution: Option<Solution<S::Field>>,
    store: S,
    /// At the start: energies drift from these.
    first: Option<Integrals>,
    last: Integrals,
    /// Number of files.
    files: u64,
    /// The step of the last one.
    last_file: Option<u64>,
    /// Pairs of a cell and a cell with vorticity of the whole run, which `auto` chose the device by.
    pairs: f64,
    /// Parts of steps that were made before the checkpoint that it went on from, if that says.
    parts_before: Option<u64>,
    verified: Verified,
    /// The part of the vorticity of each ring that the first grid held.
    held: Vec<f64>,
    /// Whether a change of the energy was reported.
    energy_reported: bool,
}

impl<S: GridStore> FlowRun<S> {
    fn new(start: Start, mut store: S, (options, threads, wall): (&Options, usize, Wall)) -> Result<Self, Failure> {
        let Start { scenario, flow, directory, checkpoint, files, pairs, held } = start;
        let (plan, state) = (scenario.plan(), checkpoint.as_ref());
        let what = format!("{} cells", flow.grid().cells());
        let unit = TimeUnit::of(System::Nbody, plan.clock.time(plan.steps));
        let progress = Progress::start(&plan, (&what, unit), threads, first_step(&plan, state), options);
        let mut run = FlowRun {
            course: Course::new(plan, directory, progress, state, options, (threads, wall)),
            scenario,
            flow: flow.move_to(&mut store).map_err(|e| refused(&e))?,
            solution: None,
            store,
            first: None,
            last: Integrals::default(),
            files,
            last_file: None,
            pairs,
            parts_before: Some(0),
            verified: Verified::default(),
            held,
            energy_reported: false,
        };
        if let Some(checkpoint) = state {
            run.recall(checkpoint);
        }
        Ok(run)
    }

    /// The steps that were made, where each of the scenario's may be divided into several; `None`
    /// where an earlier version has made some of them.
    fn parts(&self) -> Option<u64> {
        Some(self.parts_before? + self.flow.steps())
    }

    /// What is wrong with the energy at the last diagnostics.
    fn energy(&self) -> Option<String> {
        sense::of_energy(&self.scenario.grid, self.scenario.steps.method.viscosity, self.drift())
    }

    fn clock(&self) -> Clock {
        self.scenario.steps.clock
    }

    /// Adds a line to `diagnostics.csv`.
    fn diagnose(&mut self, solution: &Solution<S::Field>) -> Result<(), Failure> {
        let mut seen = |field| self.store.download(field).map_err(|e| refused(&e));
        let (vorticity, psi) = (seen(self.flow.field())?, seen(&solution.psi)?);
        self.last = self.flow.integrals_of(&vorticity, &psi);
        let first = *self.first.get_or_insert(self.last);
        if let Some(text) = self.energy().filter(|_| !self.energy_reported) {
            self.energy_reported = true;
            self.course.progress.warn(&text);
        }
        let (step, time) = (self.course.step, self.course.time());
        let numbers = [self.flow.grid().cells(), solution.work.sources];
        let cells = report::cells(&self.last, &first, self.flow.loads(), numbers, self.verified.last);
        let columns = report::columns(self.flow.loads().bodies.len());
        self.course.directory.diagnostics(&columns, (step, time), &cells)?;
        let mut facts = serde_json::Map::new();
        let fields = [step.to_string(), format!("{time:?}")].into_iter().chain(cells);
        for (name, field) in columns.split(',').zip(fields) {
            facts.insert(name.into(), serde_json::from_str(&field).unwrap_or_default());
        }
        self.course.events.send("diagnostics", facts.into())
    }

    /// Begins to write: an earlier run's files are there until the first ones of this run are known to be good.
    fn begin(&mut self, solution: &Solution<S::Field>) -> Result<(), Failure> {
        let mut seen = |field| self.store.download(field).map_err(|e| refused(&e));
        let (vorticity, psi, u) = (seen(self.flow.field())?, seen(&solution.psi)?, seen(&solution.velocity)?);
        output::fit(&self.scenario.grid, &self.course.directory, self.flow.grid(), [&vorticity, &psi, &u])?;
        self.course.directory.write_index()
    }

    /// Writes the files of the present step.
    fn write(&mut self, solution: &Solution<S::Field>) -> Result<(), Failure> {
        let mut seen = |field| self.store.download(field).map_err(|e| refused(&e));
        let (vorticity, psi, u) = (seen(self.flow.field())?, seen(&solution.psi)?, seen(&solution.velocity)?);
        let (step, time) = (self.course.step, self.course.time());
        let of = (self.files, step, time);
        let directory = &mut self.course.directory;
        let written = output::write(&self.scenario.grid, directory, self.flow.grid(), [&vorticity, &psi, &u], of)?;
        (self.files, self.last_file) = (self.files + 1, Some(step));
        written.into_iter().try_for_each(|(name, bytes)| {
            self.course.events.send("snapshot", json!({ "step": step, "time": time, "file": name, "bytes": bytes }))
        })
    }
}

impl<S: GridStore> Evolve for FlowRun<S> {
    fn course(&self) -> &Course {
        &self.course
    }

    fn course_mut(&mut self) -> &mut Course {
        &mut self.course
    }

    fn size(&self) -> (&'static str, usize) {
        ("cells", self.flow.grid().cells())
    }

    fn refresh(&mut self) -> Result<(), Failure> {
        // A step solves its own state where no output did.
        Ok(())
    }

    fn step(&mut self, _: Due) -> Result<(), Failure> {
        let (step, clock, solution) = (self.course.step, self.clock(), self.solution.take());
        let span = (clock.time(step - 1), clock.dt);
        self.flow.step(&mut self.store, span, solution, &mut self.course.times).map_err(|e| {
            let (before, code) = (number(clock.time(step - 1)), refused(&e).code);
            Failure::new(
                code,
                format!("step {step}: {}; the files up to time {before} are complete", messages::error(&e)),
            )
        })
    }

    fn output(&mut self, due: Due) -> Result<(), Failure> {
        // Checkpoints and checks take the vorticity from before it is solved, which changes it.
        let before =
            (due.checkpoint || due.verify).then(|| self.store.download(self.flow.field()).map(Cow::into_owned));
        let before = before.transpose().map_err(|e| refused(&e))?;
        let wanted = due.snapshot || due.diagnostics || due.verify;
        let time = self.course.time();
        let solved = wanted.then(|| self.flow.solve(&mut self.store, time, &mut self.course.times)).transpose();
        let solved = solved.map_err(|e| refused(&e))?;
        let start = Instant::now();
        if let Some(solution) = solved {
            if self.course.step == 0 {
                self.begin(&solution)?;
            }
            if let Some(vorticity) = before.as_ref().filter(|_| due.verify) {
                self.verify(vorticity, &solution)?;
            }
            if due.diagnostics {
                self.diagnose(&solution)?;
            }
            if due.snapshot {
                self.write(&solution)?;
            }
            self.solution = Some(solution);
        }
        let Some(vorticity) = before.filter(|_| due.checkpoint) else {
            self.course.times.add(Stage::Output, start.elapsed());
            return Ok(());
        };
        let state = State::Flow(checkpoint::Flow { blocks: self.flow.grid().blocks().to_vec(), vorticity });
        let (scenario, numbers) = (self.scenario.resolved(None), self.numbers());
        self.course.save(state, scenario, numbers, start)
    }

    fn is_written(&self) -> bool {
        self.last_file == Some(self.course.step)
    }

    fn resolved(&self) -> String {
        self.scenario.resolved(self.store.settings().split)
    }

    fn drift(&self) -> f64 {
        report::drift(self.last.energy, self.first.unwrap_or_default().energy)
    }

    fn judge(&self) -> Vec<String> {
        let rings = sense::of_rings(&self.scenario.grid, &self.held);
        rings.into_iter().chain(self.energy()).collect()
    }

    fn report(&self) -> (Value, String) {
        (self.run_json(), self.summary())
    }
}
