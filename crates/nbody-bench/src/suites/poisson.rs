//! The Poisson solver on grids: where its time goes, its time against θ and on fewer threads, its
//! share of what the cores can do, and a rival.

use std::time::{Duration, Instant};

use fmm_core::grid::wavelet::Thresholds;
use fmm_core::grid::workload::Instructions;
use fmm_core::grid::{BLOCK, Green, Grid, Ring, Rings, Solution, Solve as _, Solver};
use fmm_core::math::Number;
use fmm_core::workload::peak;
use fmm_core::{Precision, Stage, StageTimes};
use fmm_cuda::Gpu;
use fmm_cuda::grid::sums::Sums;
use fmm_cuda::grid::workload::{direct_instructions, indirect_instructions};

use super::poisson_figures::{figures, summary};
use super::{sphere, suite, threads};
use crate::hockney::Hockney;
use crate::measure::{Context, spread};
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep, Work};
use fmm::{Device, GridDevice, GridSolver};
use nbody_cli::grid_errors::Errors;
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    columns: &[
        ("method", "method"),
        ("device", "device"),
        ("n", "finest"),
        ("cells", "cells"),
        ("sources", "sources"),
        ("order", "p"),
        ("theta", "θ"),
        ("leaf", "leaf"),
        ("split", "split"),
        ("threads", "threads"),
        ("seconds", "s"),
        ("fraction_direct", "P2P of the bound"),
        ("fraction_indirect", "M2P of the bound"),
        ("psi_error", "error of Ψ"),
        ("u_error", "error of u"),
        ("bytes", "bytes"),
    ],
    ..suite("poisson", include_str!("../../../../configs/bench-poisson.toml"), cases, figures, summary)
};

/// The rings of the paper in the unit cube, the second turned by a quarter about y.
fn rings() -> Rings {
    let places = [([0.25; 3], [0.0, 0.0, 1.0]), ([0.75; 3], [1.0, 0.0, 0.0])];
    Rings(places.map(|(center, axis)| Ring::of_paper(center, axis, 0.125)).to_vec())
}

/// The thresholds of the paper.
const REFINEMENT: f64 = 1e-2;
const COMPRESSION: f64 = 1e-4;

/// What is solved by the treecode.
#[derive(Debug, Clone, Copy)]
struct Tree {
    /// Cells a side where the grid is finest.
    finest: usize,
    solver: Solver,
    place: GridDevice,
    threads: usize,
}

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let preset = &sweep.preset;
    let allowed = |n: usize| n >= BLOCK && n.is_multiple_of(BLOCK) && n <= 1024;
    let (largest, smallest) = (preset.n as usize, (preset.smallest as usize).min(preset.n as usize));
    for (name, n) in [("n", largest), ("smallest", smallest)] {
        if !allowed(n) {
            let line = format!(
                "poisson: {name} = {n} is not allowed; allowed: multiples of {BLOCK} from {BLOCK} to 1024, cells a side"
            );
            return Err(Failure::new(2, line));
        }
    }
    if let Some(theta) = preset.thetas.iter().find(|t| **t > 0.9) {
        return Err(Failure::new(
            65,
            format!("poisson: thetas = {} is not allowed; allowed: 0.2 to 0.9", number(*theta)),
        ));
    }
    // Doubled from the smallest on, and the largest itself.
    let mut sizes: Vec<usize> =
        std::iter::successors(Some(smallest), |n| Some(2 * n)).take_while(|&n| n < largest).collect();
    sizes.push(largest);
    let threads = sweep.threads;
    let mut all = vec![];
    let on = |device: &Device| match device {
        Device::Cuda(n) => vec![GridDevice::Hybrid(*n), GridDevice::Cuda(*n)],
        _ => vec![GridDevice::Cpu],
    };
    let places: Vec<GridDevice> = sweep.devices.iter().flat_map(on).collect();
    for &place in &places {
        for &order in &preset.orders {
            for &leaf in &preset.leaves {
                let usual = Solver { order: order as usize, leaf_size: leaf as usize, ..Solver::default() };
                let with = |finest: usize, theta: f64| {
                    tree(Tree { finest, solver: Solver { theta, ..usual }, place, threads })
                };
                all.extend(sizes.iter().map(|&n| with(n, usual.theta)));
                all.extend(preset.thetas.iter().filter(|&&t| t != usual.theta).map(|&t| with(largest, t)));
                if place == GridDevice::Cpu {
                    let fewer = threads::counts(sweep).into_iter().filter(|&t| t < threads);
                    all.extend(fewer.map(|threads| tree(Tree { finest: largest, solver: usual, place, threads })));
                }
            }
        }
    }
    for device in places {
        all.extend(sphere::cases(sphere::Place { n: largest, device, solver: Solver::default(), threads }));
    }
    if sweep.devices.contains(&Device::Cpu) {
        all.extend(sizes.iter().map(|&n| rival(n, threads)));
    }
    Ok(all)
}

fn tree(t: Tree) -> Case {
    let (s, cells) = (&t.solver, t.finest as f64);
    // Keys of cases on the CPU do not name the device.
    let place = if t.place == GridDevice::Cpu { String::new() } else { format!("{}/", t.place) };
    let key = format!("{place}treecode/n{}/p{}/theta{}/leaf{}/{}t", t.finest, s.order, s.theta, s.leaf_size, t.threads);
    let work = move |context: &mut Context| solve(&t, context);
    Case { key, weight: 0.5 + 2e-7 * cells.powi(3), work: Work::Other(Box::new(work)) }
}

fn rival(n: usize, threads: usize) -> Case {
    let key = format!("hockney/n{n}/{threads}t");
    let work = move |context: &mut Context| convolve(n, threads, context);
    Case { key, weight: 0.2 + 1e-6 * (n as f64).powi(3), work: Work::Other(Box::new(work)) }
}

/// Runs `work` until there are enough samples; its last result and the seconds of each.
fn sampled<R>(context: &Context, mut work: impl FnMut() -> R) -> (R, Vec<f64>) {
    let (begun, limits, mut seconds) = (Instant::now(), context.limits, vec![]);
    loop {
        let start = Instant::now();
        let result = work();
        seconds.push(start.elapsed().as_secs_f64());
        if seconds.len() >= limits.samples || begun.elapsed().as_secs_f64() >= limits.budget || context.stopped() {
            return (result, seconds);
        }
    }
}

fn solve(t: &Tree, context: &mut Context) -> Result<Option<Record>, Failure> {
    if context.stopped() {
        return Ok(None);
    }
    let (rings, solver) = (rings(), t.solver);
    let blocks = t.finest / BLOCK;
    let base = blocks >> blocks.trailing_zeros();
    let thresholds =
        Thresholds { refinement: REFINEMENT, compression: COMPRESSION, finest: blocks.trailing_zeros() as u8 };
    let mut record = Record::default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(t.threads).build();
    let pool = pool.map_err(|e| Failure::new(71, format!("cannot start the worker threads: {e}")))?;
    let limits: &Context = context;
    let done: Result<(), Failure> = pool.install(|| {
        let grid = Grid::adapted(([0.0; 3], 1.0), base as u32, thresholds, &rings);
        let field = grid.sample(&rings);
        let mut who = GridSolver::new(t.place, solver, 0.0, &mut |_| {})?;
        if t.place != GridDevice::Cpu {
            // The first makes memory and chooses the split.
            let first = who.solve(&grid, &field, &mut StageTimes::default());
            first.map_err(fmm::Error::from)?;
        }
        // The times of the fastest: what is reported of stages belongs to one run.
        let mut best: Option<(f64, StageTimes)> = None;
        let (solution, mut seconds) = sampled(limits, || {
            let (start, mut times) = (Instant::now(), StageTimes::default());
            let solution = who.solve(&grid, &field, &mut times);
            let span = start.elapsed().as_secs_f64();
            if best.as_ref().is_none_or(|b| span < b.0) {
                best = Some((span, times));
            }
            solution
        });
        let solution = solution.map_err(fmm::Error::from)?;
        spread(&mut record, &mut seconds);
        let times = best.map(|b| b.1).unwrap_or_default();
        for stage in Stage::ALL.into_iter().filter(|s| times.calls(*s) > 0) {
            record.set(&format!("stage_{}", stage.name()), times.seconds(stage));
        }
        let (precision, work) = (solver.summed_in(), solution.work);
        let lanes = if precision == Precision::F32 { f32::WIDTH } else { f64::WIDTH };
        // Multiply-adds are two operations a lane. Of all threads at once: they may share cores, and cores their power.
        let brief = limits.limits.budget.min(0.05);
        let all: f64 = rayon::broadcast(|_| peak(precision, brief)).iter().sum();
        let rate = all / (2 * lanes) as f64;
        let counted = Instructions::of(solver.green, solver.order, precision);
        let share = |units: u64, each: f64, stage: Stage| units as f64 * each / rate / times.seconds(stage);
        let indirect = share(work.indirect, counted.indirect, Stage::M2P);
        record.set("peak_instructions", rate).set("instructions_indirect", counted.indirect);
        record.set("fraction_indirect", indirect);
        match &who {
            GridSolver::Cores(_) => {
                record.set("fraction_direct", share(work.direct, counted.direct, Stage::P2P));
                record.set("instructions_direct", counted.direct);
            }
            GridSolver::Device(solver, place) => {
                device_shares(
                    &mut record,
                    solver.gpu(),
                    solver.sums(),
                    (t.solver.green, solver.settings()),
                    *place,
                    work,
                )?;
            }
        }
        record.set("direct_pairs", work.direct).set("indirect_pairs", work.indirect).set("split", work.split);
        record.set("sources", work.sources).set("nodes", work.nodes).set("cells", work.targets);
        // Sums of bricks and both fields; sources and weights of the nodes.
        let weights = size_of_number(precision) * (6 * (solver.order + 1).pow(2) + 3 * (2 * solver.order + 3));
        record.set("bytes", 96 * work.targets + 72 * work.sources + weights * work.nodes);
        errors(&mut record, &grid, &field, &solution, &rings);
        Ok(())
    });
    done?;
    record.set("method", "treecode").set("n", t.finest).set("order", solver.order).set("theta", solver.theta);
    record.set("leaf", solver.leaf_size).set("threads", t.threads).set("precision", solver.summed_in().name());
    record.set("device", t.place.to_string());
    context.machine(&mut record, t.place.device());
    Ok(Some(record))
}

/// Shares of what the double-precision units of a GPU can do: each kernel by itself, the best of five, over the multiply-adds that it issues.
fn device_shares(
    record: &mut Record,
    gpu: &Gpu,
    sums: &Sums,
    (green, solver): (Green, Solver),
    place: GridDevice,
    work: fmm_core::grid::Work,
) -> Result<(), Failure> {
    let failed = fmm::Error::from;
    let rate = fmm_cuda::peak(gpu, Precision::F64).map_err(failed)? / 2.0;
    let least = |run: &dyn Fn() -> Result<Duration, fmm_core::Error>| -> Result<f64, Failure> {
        let mut least = f64::INFINITY;
        for _ in 0..5 {
            least = least.min(run().map_err(failed)?.as_secs_f64());
        }
        Ok(least)
    };
    let direct = least(&|| sums.direct_again(gpu, green))?;
    record.set("seconds_direct", direct).set("peak_device_instructions", rate);
    if let Some(each) = direct_instructions(green) {
        record.set("fraction_direct", work.direct as f64 * each / rate / direct).set("instructions_direct", each);
    }
    if let GridDevice::Cuda(_) = place {
        let (each, seconds) = (indirect_instructions(solver.order), least(&|| sums.expand_again(gpu))?);
        record.set("fraction_indirect", work.indirect as f64 * each / rate / seconds);
        record.set("instructions_indirect", each).set("seconds_indirect", seconds);
    }
    Ok(())
}

/// Bytes of a number.
fn size_of_number(precision: Precision) -> usize {
    if precision == Precision::F32 { 4 } else { 8 }
}

fn convolve(n: usize, threads: usize, context: &mut Context) -> Result<Option<Record>, Failure> {
    if context.stopped() {
        return Ok(None);
    }
    let (rings, green) = (rings(), Solver::default().green);
    let mut record = Record::default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Failure::new(71, format!("cannot start the worker threads: {e}")))?;
    let limits: &Context = context;
    pool.install(|| {
        let grid = Grid::uniform([0.0; 3], 1.0, (n / BLOCK) as u32);
        let field = grid.sample(&rings);
        let start = Instant::now();
        let hockney = Hockney::new(n, 1.0 / n as f64, green);
        record.set("setup_seconds", start.elapsed().as_secs_f64());
        let (solution, mut seconds) = sampled(limits, || hockney.solve(&grid, &field));
        spread(&mut record, &mut seconds);
        // Its arrays, three components of Ψ, the one that is transformed, and both fields.
        record.set("bytes", hockney.bytes() + (32 + 48) * grid.cells()).set("cells", grid.cells());
        record.set("sources", field.iter().filter(|w| **w != [0.0; 3]).count());
        errors(&mut record, &grid, &field, &solution, &rings);
    });
    record.set("method", "hockney").set("n", n).set("threads", threads).set("precision", "f64").set("device", "cpu");
    context.machine(&mut record, Device::Cpu);
    Ok(Some(record))
}

fn errors(record: &mut Record, grid: &Grid, field: &[[f64; 3]], solution: &Solution, rings: &Rings) {
    let errors = Errors::of(grid, field, solution, (rings, None));
    record.set("psi_error", errors.stream.rms);
    if let Some(velocity) = errors.velocity {
        record.set("u_error", velocity.rms);
    }
}
