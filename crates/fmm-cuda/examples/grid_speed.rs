//! Times the Poisson solver on grids on the cores, on both, and on the device: the two rings of van Rees et al. (2014) in the unit cube.
//!
//! `cargo run --release -p fmm-cuda --example grid_speed -- [finest=256] [theta=0.5 ..] [order=6] [leaf=512] [split=N] [samples=5] [cpu] [hybrid] [cuda]`
//! prints a line of JSON for each place and θ: seconds, the stages of the fastest, the work, errors, and shares of what the device's double-precision
//! units and the cores can issue.

use std::time::Instant;

use fmm_core::grid::wavelet::Thresholds;
use fmm_core::grid::workload::Instructions;
use fmm_core::grid::{BLOCK, CELLS, Grid, Ring, Rings, Solution, Solve, Solver};
use fmm_core::math::Number;
use fmm_core::workload::peak;
use fmm_core::{Precision, Stage, StageTimes};
use fmm_cuda::Gpu;
use fmm_cuda::grid::workload::{direct_instructions, indirect_instructions};
use fmm_cuda::grid::{CudaSolver, Expanding};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rms of the error of Ψ and u, relative to that of the exact fields.
fn errors(grid: &Grid, rings: &Rings, solution: &Solution) -> [f64; 2] {
    let mut sums = [[0.0; 2]; 2];
    for i in (0..grid.cells()).step_by(7) {
        let x = grid.center_of(i / CELLS, i % CELLS);
        let volume = grid.spacing(grid.blocks()[i / CELLS].level).powi(3);
        for (f, (exact, found)) in
            [(rings.stream(x), solution.psi[i]), (rings.velocity(x), solution.velocity[i])].into_iter().enumerate()
        {
            for k in 0..3 {
                sums[f][0] += volume * (found[k] - exact[k]).powi(2);
                sums[f][1] += volume * exact[k].powi(2);
            }
        }
    }
    sums.map(|[e, v]| (e / v).sqrt())
}

/// Solves some times; all seconds, and the stages of the fastest.
fn timed(
    who: &mut dyn Solve,
    (grid, field): (&Grid, &[[f64; 3]]),
    samples: usize,
) -> Result<(Solution, Vec<f64>, StageTimes)> {
    let (mut best, mut seconds) = (None, vec![]);
    let mut last = who.solve(grid, field, &mut StageTimes::default())?;
    for _ in 0..samples {
        let (start, mut times) = (Instant::now(), StageTimes::default());
        last = who.solve(grid, field, &mut times)?;
        let span = start.elapsed().as_secs_f64();
        if seconds.iter().all(|&s| span < s) {
            best = Some(times);
        }
        seconds.push(span);
    }
    seconds.sort_by(f64::total_cmp);
    Ok((last, seconds, best.unwrap_or_default()))
}

fn main() -> Result<()> {
    let (mut finest, mut samples, mut thetas, mut places) = (256, 5, vec![], vec![]);
    let mut usual = Solver::default();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("finest", n)) => finest = n.parse::<usize>()?,
            Some(("theta", t)) => thetas.push(t.parse::<f64>()?),
            Some(("order", p)) => usual.order = p.parse()?,
            Some(("leaf", n)) => usual.leaf_size = n.parse()?,
            Some(("split", n)) => usual.split = Some(n.parse()?),
            Some(("samples", n)) => samples = n.parse()?,
            None if ["cpu", "hybrid", "cuda"].contains(&argument.as_str()) => places.push(argument),
            _ => return Err(argument.into()),
        }
    }
    if thetas.is_empty() {
        thetas.push(usual.theta);
    }
    let pair = [([0.25; 3], [0.0, 0.0, 1.0]), ([0.75; 3], [1.0, 0.0, 0.0])];
    let rings = Rings(pair.map(|(center, axis)| Ring::of_paper(center, axis, 0.125)).to_vec());
    let blocks = finest / BLOCK;
    let levels = blocks.trailing_zeros();
    let thresholds = Thresholds { refinement: 1e-2, compression: 1e-4, finest: levels as u8 };
    let grid = Grid::adapted(([0.0; 3], 1.0), (blocks >> levels) as u32, thresholds, &rings);
    let field = grid.sample(&rings);
    let threads = rayon::current_num_threads();
    for place in &places {
        let mut device = match place.as_str() {
            "cpu" => None,
            _ => Some(CudaSolver::new(Gpu::open(0)?, usual, Expanding::Device)?),
        };
        for &theta in &thetas {
            let mut solver = Solver { theta, ..usual };
            if let Some(device) = &mut device {
                device.configure(solver, if place == "cuda" { Expanding::Device } else { Expanding::Cores })?;
            }
            let who: &mut dyn Solve = if let Some(device) = &mut device { device } else { &mut solver };
            let (solution, seconds, times) = timed(who, (&grid, &field), samples)?;
            let (work, counted) = (solution.work, Instructions::of(solver.green, solver.order, solver.summed_in()));
            let lanes = if solver.summed_in() == Precision::F32 { f32::WIDTH } else { f64::WIDTH };
            let all: f64 = rayon::broadcast(|_| peak(solver.summed_in(), 0.05)).iter().sum();
            let rate = all / (2 * lanes) as f64;
            let share = |units: u64, each: f64, stage: Stage| units as f64 * each / rate / times.seconds(stage);
            let [psi, u] = errors(&grid, &rings, &solution);
            print!(
                "{{\"place\":\"{place}\",\"theta\":{theta},\"order\":{},\"leaf\":{},",
                solver.order, solver.leaf_size
            );
            print!("\"seconds\":{:.5},\"least\":{:.5},\"threads\":{threads},", seconds[seconds.len() / 2], seconds[0]);
            print!("\"cells\":{},\"sources\":{},\"nodes\":{},", work.targets, work.sources, work.nodes);
            print!(
                "\"split\":{},\"direct\":{:.4e},\"indirect\":{:.4e},",
                work.split, work.direct as f64, work.indirect as f64
            );
            print!("\"psi\":{psi:.3e},\"u\":{u:.3e},\"stages\":{{");
            let told: Vec<String> = Stage::ALL
                .into_iter()
                .filter(|s| times.calls(*s) > 0)
                .map(|s| format!("\"{}\":{:.5}", s.name(), times.seconds(s)))
                .collect();
            print!("{}}}", told.join(","));
            match &device {
                None => {
                    let direct = share(work.direct, counted.direct, Stage::P2P);
                    let indirect = share(work.indirect, counted.indirect, Stage::M2P);
                    print!(",\"cores_direct\":{direct:.4},\"cores_indirect\":{indirect:.4}");
                }
                Some(device) => {
                    let (gpu, sums) = (device.gpu(), device.sums());
                    let rate = fmm_cuda::peak(gpu, Precision::F64)? / 2.0;
                    let mut least = [f64::INFINITY; 2];
                    for _ in 0..5 {
                        least[0] = least[0].min(sums.direct_again(gpu, solver.green)?.as_secs_f64());
                        least[1] = least[1].min(sums.expand_again(gpu)?.as_secs_f64());
                    }
                    let each = direct_instructions(solver.green).unwrap_or(f64::NAN);
                    let direct = work.direct as f64 * each / rate / least[0];
                    print!(",\"peak\":{rate:.4e},\"kernel_direct\":{:.5},\"device_direct\":{direct:.4}", least[0]);
                    if place == "cuda" {
                        let indirect = work.indirect as f64 * indirect_instructions(solver.order) / rate / least[1];
                        print!(",\"kernel_indirect\":{:.5},\"device_indirect\":{indirect:.4}", least[1]);
                    } else {
                        let indirect = share(work.indirect, counted.indirect, Stage::M2P);
                        print!(",\"cores_indirect\":{indirect:.4},\"rates\":\"{:?}\"", device.rates());
                    }
                }
            }
            println!("}}");
        }
    }
    Ok(())
}
