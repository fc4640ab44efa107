//! The fields of a flow on a device: every operation and whole steps against the cores, and the
//! same bits in every run.

use crate::common::gpu;
use fmm_core::grid::bodies::{Body, Inflow, Shape};
use fmm_core::grid::flow::{Conditions, FieldStore, Lost, Method, Now};
use fmm_core::grid::remesh::{Kernel, Lattice};
use fmm_core::grid::{Block, CELLS, Flow, GaussianRing, Grid, Parts, Rings, Scheme, Solver, Thresholds, Vorticity};
use fmm_core::{Error, Precision, StageTimes};
use fmm_cuda::grid::fields::CudaFields;
use fmm_cuda::grid::{CudaSolver, Expanding};

const LATTICE: Lattice = Lattice { corner: [-1.0, -0.9, 0.2], side: 2.0, base: 3 };

fn solver() -> Solver {
    Solver { order: 5, theta: 0.5, leaf_size: 64, split: Some(24), precision: Precision::F64, ..Solver::default() }
}

fn device(expanding: Expanding, solver: Solver) -> Option<CudaFields> {
    Some(CudaFields::new(CudaSolver::new(gpu()?, solver, expanding).unwrap()))
}

/// Blocks of three levels around the middle, and none in a corner.
fn nested() -> Grid {
    let start = LATTICE.grid((0..27).map(|n| Block { level: 0, index: [n % 3, n / 3 % 3, n / 9] }));
    let middle = Block { level: 0, index: [1; 3] };
    let deep = Block { level: 1, index: [2, 3, 2] };
    let coarse = start.blocks().iter().copied().filter(|b| *b != middle && b.index != [0; 3]);
    let parts = middle.children().into_iter().filter(|b| *b != deep).chain(deep.children());
    start.with(coarse.chain(parts).collect::<Vec<_>>())
}

/// A smooth field with a rough part, zero away from the middle.
fn field(grid: &Grid) -> Vec<[f64; 3]> {
    let value = |i: usize| {
        let x = grid.center_of(i / CELLS, i % CELLS);
        let from = [0, 1, 2].map(|d| x[d] - LATTICE.corner[d] - 1.0);
        let r2 = from.iter().map(|x| x * x).sum::<f64>();
        let size = if r2 > 0.3 { 0.0 } else { (-8.0 * r2).exp() };
        [0, 1, 2].map(|k| size * ((3.0 + k as f64) * x[k] + 2.0 * x[(k + 1) % 3] + 0.01 * (i as f64).sin()).cos())
    };
    (0..grid.cells()).map(value).collect()
}

/// Whether `found` is `expected` to `limit` of its largest number.
fn close(what: &str, found: &[f64], expected: &[f64], limit: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(a == b || (a - b).abs() <= limit * size, "{what} {i}: {a} {b} of {size}");
    }
}

/// What a store makes of a field: names and numbers.
fn operations<S: FieldStore + ?Sized>(store: &mut S) -> Result<Vec<(&'static str, Vec<f64>)>, Error> {
    let (grid, values) = (nested(), field(&nested()));
    let mut w = store.upload(values.clone())?;
    let u = store.upload(values.iter().map(|w| [w[1] + 0.1, -w[0], 0.2 - w[2]]).collect())?;
    let mut all = vec![];
    let mut keep = |name, numbers: Vec<f64>| all.push((name, numbers));
    let flat = |v: &[[f64; 3]]| v.as_flattened().to_vec();
    keep("upload", flat(&store.download(&w)?));
    let curl = store.curl(&grid, &u)?;
    keep("curl", flat(&store.download(&curl)?));
    let diffused = store.laplacian(&grid, &w, 0.01)?;
    keep("laplacian", flat(&store.download(&diffused)?));
    let motion = store.motion(&grid, &u)?;
    keep("steepest", vec![store.steepest(&w, &motion)?, store.fastest(&w, &u)?]);
    let other = Grid::uniform(LATTICE.corner, LATTICE.side, LATTICE.base);
    let deeper = Block { level: 3, index: [12, 11, 9] };
    let mut forest = fmm_core::grid::forest::Forest::of(&other);
    forest.reach(deeper);
    for to in [other.clone(), forest.grid(&other)] {
        let moved = store.onto(&grid, &w, &to)?;
        keep("onto", flat(&store.download(&moved)?));
    }
    let cells: Vec<u32> = (0..grid.cells() as u32).step_by(977).collect();
    let picked = store.pick(&w, &cells)?;
    keep("pick", flat(&picked));
    let put = store.put(&grid, &cells, &picked)?;
    keep("put", flat(&store.download(&put)?));
    let impulse = store.impulse(&grid, &w, [0.1, 0.2, 0.9])?;
    keep("impulse", [impulse.linear, impulse.angular].concat());
    let hierarchy = fmm_core::grid::hierarchy::Hierarchy::of(&grid);
    let whole = grid.blocks().len() + 2;
    let details = store.details(&grid, &w, 2)?(&hierarchy.blocks()[..whole])?;
    keep("details", details);
    let now = Now { vorticity: &w, velocity: &u, motion: &motion, diffused: Some(&diffused) };
    let paths = store.paths(&grid, &now, 0.03)?;
    keep("paths", paths.into_iter().map(|p| p.map_or(vec![9.0], |p| p.concat())).collect::<Vec<_>>().concat());
    for kernel in [Kernel::M4, Kernel::M6] {
        let wider = [&grid, &grid];
        let (mut particles, rates) = store.particles(wider, &now, 0.03)?;
        store.advance(&mut particles, &rates, 0.03)?;
        let placed = store.place(&LATTICE, kernel, &particles).unwrap();
        let roots = store.roots(&placed);
        keep("roots", roots.iter().flat_map(|b| b.index.map(f64::from)).collect());
        let cells = store.scatter(&grid, &placed, &particles)?;
        keep("scatter", flat(&store.download(&cells)?));
        let mut again = store.rates(&grid, (&placed, &particles), &motion, Some(&diffused))?;
        store.blend(&mut again, -0.5, &rates)?;
        let mut moved = store.copy(&particles)?;
        store.advance(&mut moved, &again, 0.02)?;
        let placed = store.place(&LATTICE, kernel, &moved).unwrap();
        let cells = store.scatter(&grid, &placed, &moved)?;
        keep("rates", flat(&store.download(&cells)?));
        store.advance(&mut moved, &again, 1e3)?;
        assert!(matches!(store.place(&LATTICE, kernel, &moved), Err(Lost::Outside(_))));
    }
    store.shift(&mut w, [0.0, 1e-3, 0.0])?;
    store.add(&mut w, &curl)?;
    store.project(&grid, &mut w, &u)?;
    keep("project", flat(&store.download(&w)?));
    store.cut(&mut w, 0.05)?;
    keep("cut", flat(&store.download(&w)?));
    let filled = store.filled(&w)?.into_iter().flat_map(|f| f.map_or(vec![], |f| [f.low, f.high].concat()));
    keep("filled", filled.map(|n| n as f64).collect());
    Ok(all)
}

#[test]
fn operations_are_those_of_the_cores() {
    let Some(mut device) = device(Expanding::Device, solver()) else { return };
    let (found, expected) = (operations(&mut device).unwrap(), operations(&mut solver()).unwrap());
    assert_eq!(found.len(), expected.len());
    for ((name, a), (_, b)) in found.iter().zip(&expected) {
        let exact = ["upload", "pick", "put", "roots", "filled"].contains(name);
        close(name, a, b, if exact { 0.0 } else { 1e-12 });
    }
    assert!(operations(&mut device).unwrap() == found, "a repeat has the same bits");
}

/// A flow, and the state after some steps.
struct Case {
    method: Method,
    conditions: Conditions,
    solver: Solver,
    vorticity: Box<dyn Vorticity>,
    dt: f64,
    steps: usize,
}

fn cases() -> Vec<Case> {
    let ring = |z: f64, sign: f64| GaussianRing {
        center: [0.0, 0.1, 1.2 + z],
        axis: [0.0, 0.0, sign],
        radius: 0.3,
        core: 0.08,
        circulation: 1.0,
    };
    let rings = || Box::new(Parts(vec![Box::new(ring(-0.15, 1.0)), Box::new(ring(0.15, -1.0))]));
    let levels = Thresholds { refinement: 1.0, compression: 0.02, finest: 1 };
    let adaptive = Method { kernel: Kernel::M6, viscosity: 1e-3, thresholds: levels, ..Method::default() };
    let sphere = Body {
        shape: Shape::Sphere(0.25),
        center: [0.0, 0.1, 1.2],
        rotation: [0.0; 3],
        velocity: [0.0; 3],
        spin: [0.0; 3],
    };
    let past =
        Conditions { inflow: Inflow { velocity: [1.0, 0.0, 0.0], ramp: 0.0 }, bodies: vec![sphere], penalty: 100.0 };
    let rk2 = Method { scheme: Scheme::RungeKutta2, viscosity: 5e-3, lagrangian: Some(0.2), ..Method::default() };
    vec![
        Case {
            method: Method::default(),
            conditions: Conditions::default(),
            solver: solver(),
            vorticity: rings(),
            dt: 0.01,
            steps: 2,
        },
        Case {
            method: adaptive,
            conditions: Conditions::default(),
            solver: Solver { correction: true, ..solver() },
            vorticity: rings(),
            dt: 0.01,
            steps: 2,
        },
        Case {
            method: Method { thresholds: levels, ..rk2 },
            conditions: past,
            solver: solver(),
            vorticity: Box::new(Rings::default()),
            dt: 0.04,
            steps: 1,
        },
    ]
}

/// The grid, ω, Ψ, u and loads at the end.
type State = (Grid, [Vec<[f64; 3]>; 3], Vec<f64>, u64);

fn run<S: FieldStore + ?Sized>(store: &mut S, case: &Case, resumed: bool) -> State {
    let times = &mut StageTimes::default();
    let flow = Flow::new(LATTICE, case.method, case.conditions.clone(), &*case.vorticity).unwrap();
    let mut flow = flow.move_to(store).unwrap();
    for step in 0..case.steps {
        let time = step as f64 * case.dt;
        if resumed {
            let (blocks, values) = (flow.grid().blocks().to_vec(), store.download(flow.field()).unwrap().to_vec());
            let again = Flow::resume(LATTICE, case.method, case.conditions.clone(), time, (&blocks, values));
            flow = again.unwrap().move_to(store).unwrap();
        }
        flow.step(store, (time, case.dt), None, times).unwrap();
    }
    let steps = flow.steps();
    let solution = flow.solve(store, case.steps as f64 * case.dt, times).unwrap();
    let fields = [flow.field(), &solution.psi, &solution.velocity].map(|f| store.download(f).unwrap().to_vec());
    (flow.grid().clone(), fields, flow.loads().numbers(), steps)
}

#[test]
fn steps_are_those_of_the_cores() {
    for expanding in [Expanding::Device, Expanding::Cores] {
        let Some(mut device) = device(expanding, solver()) else { return };
        for (n, case) in cases().iter().enumerate() {
            device.configure(case.solver, expanding).unwrap();
            let (grid, fields, loads, steps) = run(&mut device, case, false);
            let (on_cores, expected, expected_loads, expected_steps) = run(&mut case.solver.clone(), case, false);
            assert!(grid == on_cores, "{n}: {} {}", grid.blocks().len(), on_cores.blocks().len());
            assert_eq!(steps, expected_steps);
            assert!(steps >= case.steps as u64 && (n < 2 || steps > 1), "{n}: {steps}");
            // Solutions differ by rounding of sums and by the orders of expansions not at all.
            for (name, a, b) in [("vorticity", 0, 0), ("psi", 1, 1), ("velocity", 2, 2)] {
                close(name, fields[a].as_flattened(), expected[b].as_flattened(), 1e-9);
            }
            close("loads", &loads, &expected_loads, 1e-8);
        }
    }
}

#[test]
fn repeated_and_resumed_steps_have_the_same_bits() {
    for expanding in [Expanding::Device, Expanding::Cores] {
        let Some(mut device) = device(expanding, solver()) else { return };
        for case in &cases() {
            device.configure(case.solver, expanding).unwrap();
            let first = run(&mut device, case, false);
            let mut again = self::device(expanding, case.solver).unwrap();
            assert!(run(&mut again, case, false) == first);
            let resumed = run(&mut again, case, true);
            assert!(resumed.0 == first.0 && resumed.1 == first.1);
        }
    }
}
