//! Sums of the Poisson solver within a flow past a sphere that starts at once, Re 550: van Rees et
//! al., Fig. 5.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use fmm_core::grid::bodies::{Body, Inflow, Shape};
use fmm_core::grid::flow::{Conditions, Method};
use fmm_core::grid::remesh::Lattice;
use fmm_core::grid::{BLOCK, Flow, Grid, Parts, Scheme, Solution, Solve, Solver};
use fmm_core::{Error, StageTimes};

use crate::lines::{figure, lines};
use crate::measure::Context;
use crate::record::Record;
use crate::suite::{Case, Work};
use fmm::{GridDevice, GridSolver};
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;

/// The domain, in diameters: its lower corner and its side.
const CORNER: [f64; 3] = [-2.0, -3.0, -3.0];
const SIDE: f64 = 6.0;

/// The fewest cells along a side of the domain, where the sphere is ten cells wide, and the most on
/// the cores.
const FEWEST: usize = 64;
const MOST_ON_CORES: usize = 128;

/// Steps of a case, and cases of a flow.
const STEPS: usize = 3;
const CASES: usize = 4;

/// A sum of the solver: pairs of a cell and a source or a node, and seconds.
type Sum = (f64, f64);

/// A solver that notes what each of its sums takes.
struct Timed {
    solver: GridSolver,
    sums: Vec<Sum>,
}

impl Solve for Timed {
    fn solve(&mut self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Solution, Error> {
        let start = Instant::now();
        let solution = self.solver.solve(grid, vorticity, times)?;
        self.sums.push(((solution.work.direct + solution.work.indirect) as f64, start.elapsed().as_secs_f64()));
        Ok(solution)
    }
}

/// A flow under way.
struct Run {
    flow: Flow,
    solver: Timed,
    steps: usize,
    dt: f64,
}

/// Where a flow is computed.
#[derive(Clone, Copy)]
pub struct Place {
    /// Cells along a side of the domain.
    pub n: usize,
    /// The cores, or a GPU.
    pub device: GridDevice,
    /// The usual one.
    pub solver: Solver,
    /// Worker threads.
    pub threads: usize,
}

impl Run {
    fn begin(place: Place) -> Result<Self, Failure> {
        let still = Body {
            shape: Shape::Sphere(0.5),
            center: [0.0; 3],
            rotation: [0.0; 3],
            velocity: [0.0; 3],
            spin: [0.0; 3],
        };
        let inflow = Inflow { velocity: [1.0, 0.0, 0.0], ramp: 0.0 };
        let conditions = Conditions { inflow, bodies: vec![still], penalty: 100.0 };
        let method = Method { scheme: Scheme::RungeKutta2, viscosity: 1.0 / 550.0, cutoff: 3e-4, ..Method::default() };
        let lattice = Lattice { corner: CORNER, side: SIDE, base: (place.n / BLOCK) as u32 };
        let flow = Flow::new(lattice, method, conditions, &Parts(vec![])).map_err(fmm::Error::from)?;
        let solver = GridSolver::new(place.device, place.solver, 0.0, &mut |_| {})?;
        // Half a cell a step.
        let dt = 0.5 * SIDE / place.n as f64;
        Ok(Run { flow, solver: Timed { solver, sums: vec![] }, steps: 0, dt })
    }

    /// Makes steps up to this many; returns the sums of the last [`STEPS`] that have more than half
    /// of the most pairs: those of penalisation are over the blocks around the sphere alone.
    fn reach(&mut self, steps: usize) -> Result<Vec<Sum>, Failure> {
        while self.steps < steps {
            if self.steps + STEPS <= steps {
                self.solver.sums.clear();
            }
            let now = (self.steps as f64 * self.dt, self.dt);
            let step = self.flow.step(&mut self.solver, now, None, &mut StageTimes::default());
            step.map_err(fmm::Error::from)?;
            self.steps += 1;
        }
        let most = self.solver.sums.iter().map(|sum| sum.0).fold(0.0, f64::max);
        Ok(self.solver.sums.iter().filter(|sum| sum.0 > 0.5 * most).copied().collect())
    }
}

/// Parts of a flow, one after the other: what a case left out has to be computed, but is not
/// recorded. None on too few cells.
pub fn cases(mut place: Place) -> Vec<Case> {
    if place.n < FEWEST {
        return vec![];
    }
    if place.device == GridDevice::Cpu {
        place.n = place.n.min(MOST_ON_CORES);
    }
    let run: Rc<RefCell<Option<Run>>> = Rc::default();
    let case = |part: usize| {
        let (run, steps) = (run.clone(), (part + 1) * STEPS);
        let key = format!("{}/sphere/n{}/step{steps}/{}t", place.device, place.n, place.threads);
        let work = move |context: &mut Context| part_of_flow(&run, place, steps, context);
        Case { key, weight: 1.0 + 1e-5 * (place.n as f64).powi(3), work: Work::Other(Box::new(work)) }
    };
    (0..CASES).map(case).collect()
}

fn part_of_flow(
    run: &RefCell<Option<Run>>,
    place: Place,
    steps: usize,
    context: &mut Context,
) -> Result<Option<Record>, Failure> {
    if context.stopped() {
        return Ok(None);
    }
    let run = &mut *run.borrow_mut();
    let run = match run {
        Some(run) => run,
        None => run.insert(context.threads(place.threads, || Run::begin(place))??),
    };
    let sums = context.threads(place.threads, || run.reach(steps))??;
    let total = |of: fn(&Sum) -> f64| sums.iter().map(of).sum::<f64>();
    let (pairs, seconds, count) = (total(|sum| sum.0), total(|sum| sum.1), sums.len() as f64);
    let mut record = Record::default();
    record.set("method", "sphere").set("n", place.n).set("step", steps).set("cells", run.flow.grid().cells());
    record.set("sums", sums.len()).set("pairs", pairs / count).set("rate", pairs / seconds);
    record.set("seconds", seconds / count).set("device", place.device.to_string()).set("threads", place.threads);
    record.set("order", place.solver.order).set("theta", place.solver.theta).set("leaf", place.solver.leaf_size);
    context.machine(&mut record, place.device.device());
    Ok(Some(record))
}

/// Rate against the number of pairs.
pub fn figures(records: &[Record]) -> Option<(String, Figure)> {
    let here: Vec<Record> = records.iter().filter(|r| r.text("method") == "sphere").cloned().collect();
    if here.is_empty() {
        return None;
    }
    let name = |r: &Record| format!("{}, {} cells a side", r.text("device"), r.number("n"));
    let content = Content::Lines {
        x: Axis::log("pairs of a sum"),
        y: Axis::log("pairs per second"),
        lines: lines(&here, "pairs", "rate", name),
        marks: vec![],
    };
    let subtitle = format!("flow past a sphere, Re 550, the first {} steps; means over {STEPS} steps", STEPS * CASES);
    Some(("flow".into(), figure(&here, "Rate of the Poisson solver in a flow", &subtitle, content)))
}
