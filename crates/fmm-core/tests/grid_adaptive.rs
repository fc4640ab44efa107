//! Flows on blocks that adapt: against exact solutions and runs on one level, with fewer cells, to the same bits.

use fmm_core::grid::flow::{Conditions, Integrals, Method};
use fmm_core::grid::forest::Forest;
use fmm_core::grid::remesh::{Kernel, Lattice};
use fmm_core::grid::{
    Block, CELLS, Flow, GaussianRing, Grid, Scheme, Solution, Solve, Solver, Thresholds, Vorticity, Work,
};
use fmm_core::{Error, StageTimes};

/// ∇ × (e_z exp(−|x|²/s²)), each component of which is a solution of the heat equation with s² = s₀² + 4νt, carried along.
#[derive(Clone, Copy)]
struct Swirl {
    /// s₀².
    square: f64,
    /// 4νt.
    grown: f64,
    center: [f64; 3],
}

impl Vorticity for Swirl {
    fn cell(&self, x: [f64; 3], _: f64) -> [f64; 3] {
        let [x, y, z] = std::array::from_fn(|d| x[d] - self.center[d]);
        let s2 = self.square + self.grown;
        let g = (self.square / s2).powf(1.5) * 2.0 / s2 * (-(x * x + y * y + z * z) / s2).exp();
        [-y * g, x * g, 0.0]
    }
}

/// A fluid that moves at one velocity, as that of weak vorticity in a stream does.
struct Stream([f64; 3]);

impl Solve for Stream {
    fn solve(&mut self, grid: &Grid, _: &[[f64; 3]], _: &mut StageTimes) -> Result<Solution, Error> {
        let (psi, velocity) = (vec![[0.0; 3]; grid.cells()], vec![self.0; grid.cells()]);
        Ok(Solution { psi, velocity, work: Work::default() })
    }
}

const LATTICE: Lattice = Lattice { corner: [-1.0; 3], side: 2.0, base: 2 };
const START: Swirl = Swirl { square: 0.005, grown: 0.0, center: [0.1, 0.26, 0.24] };

/// Up to 128 cells a side from 32 on, and 128 on one level. The largest vorticity is 10.
fn cases(viscosity: f64) -> [(Lattice, Method); 2] {
    let thresholds = Thresholds { refinement: 0.05, compression: 5e-4, finest: 2 };
    let scheme = Scheme::RungeKutta2;
    let adapted = Method { scheme, viscosity, cutoff: 1e-5, thresholds, ..Method::default() };
    let uniform = Method { thresholds: Thresholds::UNIFORM, ..adapted };
    [(LATTICE, adapted), (Lattice { base: 8, ..LATTICE }, uniform)]
}

fn begin((lattice, method): (Lattice, Method), vorticity: &dyn Vorticity) -> Flow {
    Flow::new(lattice, method, Conditions::default(), vorticity).unwrap()
}

fn volume(grid: &Grid, i: usize) -> f64 {
    grid.spacing(grid.blocks()[i / CELLS].level).powi(3)
}

/// ‖a − b‖/‖b‖ over the cells of `a`, and the integral of x ω_y.
fn compared(a: &Flow, b: &Swirl) -> [f64; 2] {
    let (mut sum, mut all, mut moment) = (0.0, 0.0, 0.0);
    for (i, w) in a.vorticity().iter().enumerate() {
        let (x, volume) = (a.grid().center_of(i / CELLS, i % CELLS), volume(a.grid(), i));
        let exact = b.cell(x, 0.0);
        sum += volume * (0..3).map(|k| (w[k] - exact[k]).powi(2)).sum::<f64>();
        all += volume * exact.iter().map(|e| e * e).sum::<f64>();
        moment += volume * x[0] * w[1];
    }
    [(sum / all).sqrt(), moment]
}

#[test]
fn blocks_follow_vorticity_that_is_carried_along() {
    const VELOCITY: [f64; 3] = [1.0, -0.1, 0.1];
    // 2.4 of the finest cells.
    const DT: f64 = 0.0375;
    let mut errors = vec![];
    for case in cases(0.0) {
        let mut flow = begin(case, &START);
        let (levels, first) = (flow.grid().finest(), flow.grid().clone());
        for _ in 0..4 {
            flow.step(&mut Stream(VELOCITY), (0.0, DT), None, &mut StageTimes::default()).unwrap();
        }
        assert!(flow.grid().finest() == levels && flow.grid() != &first);
        let center = std::array::from_fn(|d| START.center[d] + 4.0 * DT * VELOCITY[d]);
        let [error, moment] = compared(&flow, &Swirl { center, ..START });
        // ∫ x ω_y is that of Ψ_z.
        let exact = std::f64::consts::PI.powf(1.5) * START.square.powf(1.5);
        errors.push((error, (moment / exact - 1.0).abs(), flow.grid().cells()));
    }
    let [adapted, uniform] = [errors[0], errors[1]];
    assert!(adapted.0 < 2e-2 && (adapted.0 - uniform.0).abs() < 0.1 * uniform.0, "{errors:?}");
    assert!(adapted.1 < 1e-3 && adapted.2 < uniform.2, "{errors:?}");
}

#[test]
fn diffusion_on_blocks_that_adapt_is_that_on_one_level() {
    const VISCOSITY: f64 = 0.02;
    const DT: f64 = 1.5e-3;
    let start = Swirl { square: 0.0081, ..START };
    let mut errors = vec![];
    for case in cases(VISCOSITY) {
        let mut flow = begin(case, &start);
        for _ in 0..2 {
            flow.step(&mut Stream([0.0; 3]), (0.0, DT), None, &mut StageTimes::default()).unwrap();
        }
        let [error, moment] = compared(&flow, &Swirl { grown: 2.0 * 4.0 * VISCOSITY * DT, ..start });
        let exact = std::f64::consts::PI.powf(1.5) * start.square.powf(1.5);
        errors.push((error, (moment / exact - 1.0).abs(), flow.grid().cells()));
    }
    let [adapted, uniform] = [errors[0], errors[1]];
    assert!(adapted.0 < 1e-3 && adapted.0 < 1.5 * uniform.0 + 1e-4, "{errors:?}");
    assert!(adapted.1 < 1e-3 && 10 * adapted.2 < 9 * uniform.2, "{errors:?}");
    let mut flow = begin(cases(VISCOSITY)[0], &START);
    let h = flow.grid().spacing(flow.grid().finest());
    let longest = 0.125 * h * h / VISCOSITY;
    let mut by = |dt: f64| flow.step(&mut Stream([0.0; 3]), (0.0, dt), None, &mut StageTimes::default());
    assert!(by(longest).is_ok() && by(1.01 * longest).unwrap_err().to_string().contains("viscosity*dt/h^2"));
}

#[test]
fn steps_in_which_particles_pass_a_block_are_refused_or_divided() {
    let [(lattice, method), _] = cases(0.0);
    let long = (0.0, 0.13);
    let mut flow = begin((lattice, method), &START);
    let refused = flow.step(&mut Stream([1.0, 0.0, 0.0]), long, None, &mut StageTimes::default()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("8.32 of the smallest cells, and on blocks that adapt 8 are allowed; make time.dt at most 0.124"),
        "{refused}"
    );
    let mut flow = begin((lattice, Method { lagrangian: Some(1.0), ..method }), &START);
    flow.step(&mut Stream([1.0, 0.0, 0.0]), long, None, &mut StageTimes::default()).unwrap();
    let [error, _] = compared(&flow, &Swirl { center: [0.23, 0.26, 0.24], ..START });
    assert!(error < 1e-2, "{error}");
}

fn solver() -> Solver {
    Solver { leaf_size: 256, order: 4, theta: 0.6, correction: true, ..Solver::default() }
}

/// Near the middle of one of the eight blocks of level 1.
const RING: GaussianRing =
    GaussianRing { center: [0.45, 0.46, 0.44], axis: [0.0, 0.0, 1.0], radius: 0.16, core: 0.07, circulation: 1.0 };

/// A ring on up to 64 cells a side from 16 on, and on 64.
fn ring_cases() -> [(Lattice, Method); 2] {
    let thresholds = Thresholds { refinement: 3.0, compression: 0.05, finest: 2 };
    let lattice = Lattice { corner: [-1.0; 3], side: 2.0, base: 1 };
    let method = Method { scheme: Scheme::RungeKutta2, kernel: Kernel::M6, cutoff: 1e-3, ..Method::default() };
    [(lattice, Method { thresholds, ..method }), (Lattice { base: 4, ..lattice }, method)]
}

fn integrals(flow: &Flow) -> Integrals {
    let mut flow = flow.clone();
    let solution = flow.solve(&mut solver(), 0.0, &mut StageTimes::default()).unwrap();
    flow.integrals(&solution)
}

#[test]
fn a_ring_on_blocks_that_adapt_moves_as_on_one_level() {
    let [adapted, uniform] = ring_cases().map(|case| {
        let mut flow = begin(case, &RING);
        let first = integrals(&flow);
        for _ in 0..2 {
            flow.step(&mut solver(), (0.0, 0.01), None, &mut StageTimes::default()).unwrap();
        }
        (first, integrals(&flow), flow)
    });
    let close = |a: f64, b: f64, by: f64| (a - b).abs() < by * b.abs();
    for (first, last, _) in [&adapted, &uniform] {
        assert!(close(last.impulse[2], first.impulse[2], 1e-3), "{first:?} {last:?}");
        assert!(last.total.iter().all(|t| t.abs() < 5e-4 * first.impulse[2]), "{last:?}");
    }
    assert!(close(adapted.1.energy, uniform.1.energy, 1e-3), "{:?} {:?}", adapted.1, uniform.1);
    assert!(close(adapted.1.impulse[2], uniform.1.impulse[2], 1e-3), "{:?} {:?}", adapted.1, uniform.1);
    // Cells of the finest level by place: the same vorticity.
    let (a, b) = (&adapted.2, &uniform.2);
    let (mut sum, mut all) = (0.0, 0.0);
    for (n, block) in a.grid().blocks().iter().enumerate().filter(|(_, b)| b.level == 2) {
        let Some(m) = b.grid().number(Block { level: 0, ..*block }) else { continue };
        for c in 0..CELLS {
            let (x, y) = (a.vorticity()[n * CELLS + c], b.vorticity()[m * CELLS + c]);
            sum += (0..3).map(|k| (x[k] - y[k]).powi(2)).sum::<f64>();
            all += y.iter().map(|y| y * y).sum::<f64>();
        }
    }
    assert!(all > 0.0 && (sum / all).sqrt() < 3e-3, "{}", (sum / all).sqrt());
}

#[test]
fn what_takes_divergence_away_makes_none_where_levels_meet() {
    // A ring that goes on from cells of one level to those of the other.
    let ring = GaussianRing { center: [0.0, 0.0, 0.05], radius: 0.3, core: 0.1, ..RING };
    let thresholds = Thresholds { refinement: 1.0, compression: 0.03, finest: 1 };
    let flow = begin((Lattice { base: 3, ..LATTICE }, Method { thresholds, ..Method::default() }), &ring);
    let turning = flow.grid().blocks().iter().zip(flow.vorticity().chunks(CELLS));
    let levels: Vec<u8> = turning.filter(|(_, w)| w.iter().any(|w| *w != [0.0; 3])).map(|(b, _)| b.level).collect();
    assert!(levels.contains(&0) && levels.contains(&1));
    let mut solved = flow.clone();
    // Errors of the sums are differentiated twice.
    let mut exact = Solver { order: 7, theta: 0.5, ..solver() };
    let solution = solved.solve(&mut exact, 0.0, &mut StageTimes::default()).unwrap();
    let [before, after] = [&flow, &solved].map(|f| f.integrals(&solution).divergence);
    assert!(after < 1.2 * before, "{before:e} {after:e}");
}

#[test]
fn bits_depend_neither_on_threads_nor_on_a_stop() {
    let step = |flow: &mut Flow| flow.step(&mut solver(), (0.0, 0.01), None, &mut StageTimes::default()).unwrap();
    let run = |threads: usize, stop: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let [(lattice, method), _] = ring_cases();
            let mut flow = begin((lattice, method), &RING);
            step(&mut flow);
            if stop {
                let (blocks, vorticity) = (flow.grid().blocks().to_vec(), flow.vorticity().to_vec());
                flow = Flow::resume(lattice, method, Conditions::default(), 0.01, (&blocks, vorticity)).unwrap();
            }
            step(&mut flow);
            (flow.grid().blocks().to_vec(), flow.vorticity().to_vec())
        })
    };
    let whole = run(1, false);
    assert!(whole.0.iter().any(|b| b.level == 1) && whole.0.iter().any(|b| b.level == 2));
    assert!(whole == run(2, true));
}

#[test]
fn blocks_that_are_no_octree_are_refused() {
    let [(lattice, method), _] = cases(0.0);
    let flow = begin((lattice, method), &START);
    assert!(Forest::is_of(flow.grid()));
    let resume = |blocks: &[Block], method: Method| {
        let field = vec![[0.0; 3]; blocks.len() * CELLS];
        Flow::resume(lattice, method, Conditions::default(), 0.0, (blocks, field))
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let blocks = flow.grid().blocks().to_vec();
    assert_eq!(resume(&blocks, method), Ok(()));
    // A part of one that is there too.
    let twice: Vec<Block> =
        blocks.iter().copied().flat_map(|b| [Some(b), (b == blocks[0]).then(|| b.children()[1])]).flatten().collect();
    let deeper = Method { thresholds: Thresholds { finest: 3, ..method.thresholds }, ..method };
    assert!(resume(&twice, deeper).unwrap_err().contains("not those of an octree"));
    let coarser = Method { thresholds: Thresholds { finest: 1, ..method.thresholds }, ..method };
    assert!(resume(&blocks, coarser).unwrap_err().contains("of level 2 lies outside of 2^3 blocks and 1 finer levels"));
}
