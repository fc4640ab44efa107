//! Bodies in flows: a sphere's drag by two formulas, bodies that change nothing, and steps that follow the gradients.

use fmm_core::StageTimes;
use fmm_core::grid::bodies::{Body, Inflow, Shape};
use fmm_core::grid::flow::{Conditions, Load, Loads, Method};
use fmm_core::grid::remesh::{Kernel, Lattice};
use fmm_core::grid::{CELLS, Flow, GaussianRing, Parts, Scheme, Solver, Thresholds};

const DIAMETER: f64 = 0.5;

fn solver() -> Solver {
    Solver { leaf_size: 256, order: 4, theta: 0.7, ..Solver::default() }
}

fn sphere(center: [f64; 3]) -> Body {
    let still = [0.0; 3];
    Body { shape: Shape::Sphere(0.5 * DIAMETER), center, rotation: still, velocity: still, spin: still }
}

fn past(inflow: Inflow, bodies: Vec<Body>) -> Conditions {
    Conditions { inflow, bodies, penalty: 100.0 }
}

/// Cells of a sixteenth.
const LATTICE: Lattice = Lattice { corner: [-1.5; 3], side: 3.0, base: 3 };

fn go(flow: &mut Flow, (from, dt): (f64, f64), steps: usize) -> Vec<Loads> {
    let step = |i: usize| {
        flow.step(&mut solver(), (from + i as f64 * dt, dt), None, &mut StageTimes::default()).unwrap();
        flow.loads().clone()
    };
    (0..steps).map(step).collect()
}

/// Force over ½ U² π R² with U = 1.
fn coefficient(force: f64) -> f64 {
    8.0 * force / (std::f64::consts::PI * DIAMETER * DIAMETER)
}

#[test]
fn the_drag_of_a_sphere_is_that_of_both_formulas() {
    // Re 100, eight cells a diameter.
    let method =
        Method { scheme: Scheme::RungeKutta2, kernel: Kernel::M6, viscosity: DIAMETER / 100.0, ..Method::default() };
    let inflow = Inflow { velocity: [1.0, 0.0, 0.0], ramp: 0.0 };
    let mut flow = Flow::new(LATTICE, method, past(inflow, vec![sphere([-0.5, 0.02, 0.01])]), &Parts(vec![])).unwrap();
    let loads = go(&mut flow, (0.0, 0.05), 14);
    // The start is singular: an impulse accelerates the fluid around the sphere.
    let [first, last] = [&loads[0], &loads[13]].map(|l| coefficient(l.total.force[0]));
    assert!(first > 5.0 && (1.0..3.0).contains(&last), "{first} {last}");
    let impulse = coefficient(loads[13].impulse.force[0]);
    assert!((impulse / last - 1.0).abs() < 0.05, "{impulse} {last}");
    // What is left out is no force on the sphere, but the flow is another one.
    let coarse = Method { cutoff: 1e-2, ..method };
    let mut flow = Flow::new(LATTICE, coarse, past(inflow, vec![sphere([-0.5, 0.02, 0.01])]), &Parts(vec![])).unwrap();
    let rough = go(&mut flow, (0.0, 0.05), 14).pop().unwrap();
    let [total, impulse, lost] = [rough.total, rough.impulse, rough.lost].map(|l| coefficient(l.force[0]));
    assert!((impulse / total - 1.0).abs() < 0.05 && lost < -0.05 * total, "{total} {impulse} {lost}");
    assert!((total / last - 1.0).abs() < 0.1, "{total} {last}");
    assert!(loads[13].lost.force[0].abs() < 0.01 * loads[13].total.force[0], "{:?}", loads[13]);
    // One body is all of them, and its moment is about its center.
    assert_eq!(loads[13].bodies[0].force, loads[13].total.force);
    let side = loads[13].bodies[0];
    assert!(side.force[1].abs() < 0.02 * side.force[0] && side.force[2].abs() < 0.02 * side.force[0], "{side:?}");
    assert!(side.moment.iter().all(|m| m.abs() < 0.01 * side.force[0]), "{side:?}");
}

#[test]
fn impulse_and_energy_change_little_with_the_step() {
    let viscosity = DIAMETER / 100.0;
    let after = |steps: usize| {
        let method = Method { scheme: Scheme::RungeKutta2, kernel: Kernel::M6, viscosity, ..Method::default() };
        let inflow = Inflow { velocity: [1.0, 0.0, 0.0], ramp: 0.0 };
        let mut flow = Flow::new(LATTICE, method, past(inflow, vec![sphere([0.0; 3])]), &Parts(vec![])).unwrap();
        go(&mut flow, (0.0, 0.0625 / steps as f64), steps);
        let solution = flow.solve(&mut solver(), 0.0625, &mut StageTimes::default()).unwrap();
        let integrals = flow.integrals(&solution);
        (-integrals.impulse[0], integrals.energy)
    };
    let (coarse, fine) = (after(4), after(16));
    assert!((coarse.0 / fine.0 - 1.0).abs() < 0.04, "{coarse:?} {fine:?}");
    assert!((coarse.1 / fine.1 - 1.0).abs() < 0.06, "{coarse:?} {fine:?}");
}

#[test]
fn a_body_that_leaves_the_domain_is_reported() {
    let body = Body { velocity: [0.0, 10.0, 0.0], ..sphere([0.0, 0.9, 0.0]) };
    let mut flow = Flow::new(LATTICE, Method::default(), past(Inflow::default(), vec![body]), &Parts(vec![])).unwrap();
    let error = flow.step(&mut solver(), (0.02, 0.01), None, &mut StageTimes::default()).unwrap_err().to_string();
    assert!(error.contains("body 0, whose center is at 0, 1.1, 0, is nearer to a face"), "{error}");
}

#[test]
fn moments_are_those_of_both_formulas() {
    // A box that turns in still fluid, away from the middle of the domain.
    let body = Body { shape: Shape::Box([0.5, 0.3, 0.4]), spin: [0.0, 0.5, 2.0], ..sphere([0.1, -0.2, 0.0]) };
    let method = Method { kernel: Kernel::M6, cutoff: 1e-4, viscosity: 5e-3, ..Method::default() };
    let mut flow = Flow::new(LATTICE, method, past(Inflow::default(), vec![body]), &Parts(vec![])).unwrap();
    let loads = go(&mut flow, (0.0, 0.02), 3).pop().unwrap();
    // The fluid resists.
    let [total, impulse] = [loads.total.moment[2], loads.impulse.moment[2]];
    assert!(loads.bodies[0].moment[2] < 0.0 && total < 0.0, "{loads:?}");
    assert!((impulse / total - 1.0).abs() < 0.05, "{loads:?}");
}

#[test]
fn a_stream_that_grows_is_penalised_by_half_cells() {
    // dU/dt = 10 accelerates the fluid around the sphere too, but not that which is too far away to be there yet.
    let method = Method { scheme: Scheme::RungeKutta2, kernel: Kernel::M6, lagrangian: Some(1.0), ..Method::default() };
    let ramped = Inflow { velocity: [1.0, 0.0, 0.0], ramp: 0.1 };
    let mut flow = Flow::new(LATTICE, method, past(ramped, vec![sphere([0.0; 3])]), &Parts(vec![])).unwrap();
    // Steps of at most 1/32: four in one of 0.1.
    let loads = go(&mut flow, (0.0, 0.1), 1).pop().unwrap();
    let volume = std::f64::consts::PI * DIAMETER.powi(3) / 6.0;
    // The first three have added 3/4 of the velocity; the added mass is half of the volume's.
    let whole = 1.5 * volume * 0.75 / 0.1;
    assert!((0.7..1.1).contains(&(loads.total.force[0] / whole)), "{} {whole}", loads.total.force[0]);
    assert!((loads.impulse.force[0] / loads.total.force[0] - 1.0).abs() < 0.03, "{loads:?}");
}

#[test]
fn a_body_in_fluid_at_rest_changes_nothing() {
    let method = Method { viscosity: 1e-3, ..Method::default() };
    let mut flow = Flow::new(LATTICE, method, past(Inflow::default(), vec![sphere([0.0; 3])]), &Parts(vec![])).unwrap();
    let loads = go(&mut flow, (0.0, 0.05), 2).pop().unwrap();
    assert!(flow.vorticity().iter().all(|w| *w == [0.0; 3]) && !flow.grid().blocks().is_empty());
    assert_eq!(loads, Loads::none(1));
}

#[test]
fn an_inflow_carries_a_ring_along() {
    let ring =
        GaussianRing { center: [-0.2, 0.0, 0.0], axis: [0.0, 0.0, 1.0], radius: 0.3, core: 0.12, circulation: 0.1 };
    let centroid = |inflow: [f64; 3]| {
        let method = Method { kernel: Kernel::M6, ..Method::default() };
        let ramped = Inflow { velocity: inflow, ramp: 0.1 };
        let mut flow = Flow::new(LATTICE, method, past(ramped, vec![]), &ring).unwrap();
        go(&mut flow, (0.0, 0.1), 2);
        let solution = flow.solve(&mut solver(), 0.2, &mut StageTimes::default()).unwrap();
        let (mut sum, mut all) = ([0.0; 3], 0.0);
        for (i, w) in flow.vorticity().iter().enumerate() {
            let x = flow.grid().center_of(i / 4096, i % 4096);
            let square = w.iter().map(|w| w * w).sum::<f64>();
            (0..3).for_each(|k| sum[k] += square * x[k]);
            all += square;
        }
        (sum.map(|s| s / all), solution.velocity[0])
    };
    let ([still, moved], mut far) = ([[0.0; 3], [1.0, -0.5, 0.0]].map(centroid), [0.0; 3]);
    (0..3).for_each(|k| far[k] = moved.0[k] - still.0[k]);
    // Half of the way while it grows.
    assert!((far[0] - 0.15).abs() < 2e-3 && (far[1] + 0.075).abs() < 2e-3 && far[2].abs() < 2e-3, "{far:?}");
    assert!((moved.1[0] - still.1[0] - 1.0).abs() < 0.02, "{:?} {:?}", moved.1, still.1);
}

#[test]
fn steps_are_divided_as_gradients_and_diffusion_ask() {
    let ring = GaussianRing { center: [0.0; 3], axis: [0.0, 0.0, 1.0], radius: 0.3, core: 0.12, circulation: 1.0 };
    let after = |lagrangian: Option<f64>, viscosity: f64, steps: usize| {
        let method = Method { scheme: Scheme::RungeKutta2, lagrangian, viscosity, ..Method::default() };
        let mut flow = Flow::new(LATTICE, method, Conditions::default(), &ring).unwrap();
        let mut times = StageTimes::default();
        let dt = 0.04 / steps as f64;
        (0..steps).for_each(|i| flow.step(&mut solver(), (i as f64 * dt, dt), None, &mut times).unwrap());
        (flow.vorticity().to_vec(), times.calls(fmm_core::Stage::Tree))
    };
    // |∇u| is about |ω| = Γ/(πσ²) = 22 in the core: a step of 0.04 has about half of a turn.
    let (whole, fixed) = (after(Some(1.5), 0.0, 1), after(None, 0.0, 1));
    assert!(whole == fixed && fixed.1 == 2, "{} {}", whole.1, fixed.1);
    let (divided, two) = (after(Some(0.3), 0.0, 1), after(None, 0.0, 2));
    assert_eq!((divided.1, two.1), (4, 4));
    // The second part is of what is left, which may have other bits.
    let apart =
        divided.0.as_flattened().iter().zip(two.0.as_flattened()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-9, "{apart}");
    // h²/(8ν) = 0.0122.
    assert_eq!(after(Some(1.5), 0.04, 1).1, 8);
}

/// Cells of a sixteenth at the finest, Re 100: on three levels, and on one.
fn on_levels() -> [(Lattice, Method); 2] {
    let lattice = Lattice { corner: [-2.0; 3], side: 4.0, base: 1 };
    let thresholds = Thresholds { refinement: 6.0, compression: 2.0, finest: 2 };
    let viscosity = DIAMETER / 100.0;
    let method =
        Method { scheme: Scheme::RungeKutta2, kernel: Kernel::M6, viscosity, cutoff: 1e-3, ..Method::default() };
    [(lattice, Method { thresholds, ..method }), (Lattice { base: 4, ..lattice }, method)]
}

#[test]
fn the_drag_of_a_sphere_that_moves_on_several_levels_is_that_on_one() {
    // It leaves the blocks that it starts in, which are joined behind it.
    let body = Body { velocity: [-1.0, 0.0, 0.0], ..sphere([0.0, 0.02, 0.01]) };
    let [adapted, uniform] = on_levels().map(|(lattice, method)| {
        let mut flow = Flow::new(lattice, method, past(Inflow::default(), vec![body.clone()]), &Parts(vec![])).unwrap();
        (go(&mut flow, (0.0, 0.05), 18), flow)
    });
    let close = |a: &Load, b: &Load, by: f64| (a.force[0] - b.force[0]).abs() < by * b.force[0].abs();
    for (a, b) in adapted.0.iter().zip(&uniform.0) {
        assert!(close(&a.total, &b.total, 0.01) && close(&a.impulse, &b.impulse, 0.03), "{a:?} {b:?}");
    }
    let flow = &adapted.1;
    let turning = |level: u8| {
        let own = flow.grid().blocks().iter().zip(flow.vorticity().chunks(CELLS)).filter(|(b, _)| b.level == level);
        own.filter(|(_, w)| w.iter().any(|w| *w != [0.0; 3])).count()
    };
    assert!(turning(1) > 0 && turning(2) > 0, "{:?}", flow.grid().blocks());
    // All that the body reaches is of the finest level.
    let pose = body.at(0.9);
    for (b, block) in flow.grid().blocks().iter().enumerate().filter(|(_, block)| block.level < 2) {
        let nearest = (0..CELLS).map(|c| pose.distance(flow.grid().center_of(b, c))).fold(f64::INFINITY, f64::min);
        assert!(nearest > 8.0 / 16.0, "{block:?}: {nearest}");
    }
}

#[test]
fn steps_in_which_the_stream_passes_a_body_by_many_cells_are_refused_or_divided() {
    let [(lattice, method), (single, uniform)] = on_levels();
    // Two cells of a sixteenth at a speed of 200.
    let inflow = Inflow { velocity: [200.0, 0.0, 0.0], ramp: 0.0 };
    let conditions = past(inflow, vec![sphere([0.0; 3])]);
    let longest = 2.0 / 16.0 / 200.0;
    assert!((conditions.longest_step(1.0 / 16.0) / longest - 1.0).abs() < 1e-12);
    for (lattice, method) in [(lattice, method), (single, uniform)] {
        let begin = |method| Flow::new(lattice, method, conditions.clone(), &Parts(vec![])).unwrap();
        let step = |flow: &mut Flow, dt: f64| flow.step(&mut solver(), (0.0, dt), None, &mut StageTimes::default());
        let refused = step(&mut begin(method), 20.0 * longest).unwrap_err().to_string();
        let words =
            "the stream passes a body by 40 of the smallest cells, and 2 are allowed; make time.dt at most 0.000622";
        assert!(refused.contains(words), "{refused}");
        let mut flow = begin(method);
        step(&mut flow, longest).unwrap();
        assert!(flow.loads().total.force[0] > 0.0);
        let mut flow = begin(Method { lagrangian: Some(1.0), ..method });
        step(&mut flow, longest).unwrap();
        assert!(flow.loads().total.force[0] > 0.0);
    }
}

#[test]
fn a_flow_that_goes_on_with_a_body_elsewhere_or_smaller_cells_has_blocks_for_it() {
    let inflow = Inflow { velocity: [1.0, 0.0, 0.0], ramp: 0.0 };
    for (n, (lattice, method)) in on_levels().into_iter().enumerate() {
        let body = sphere([-0.6, 0.02, 0.01]);
        let mut flow = Flow::new(lattice, method, past(inflow, vec![body.clone()]), &Parts(vec![])).unwrap();
        go(&mut flow, (0.0, 0.05), 1);
        let state = || (flow.grid().blocks(), flow.vorticity().to_vec());
        let resumed = |method: Method, body: Body| {
            Flow::resume(lattice, method, past(inflow, vec![body]), 0.05, state()).unwrap()
        };
        // As it was: nothing is added.
        let same = resumed(method, body.clone());
        assert!(same.grid() == flow.grid() && same.vorticity() == flow.vorticity());
        let mut elsewhere = resumed(method, sphere([0.8, 0.02, 0.01]));
        let loads = go(&mut elsewhere, (0.05, 0.05), 1).pop().unwrap();
        assert!(coefficient(loads.total.force[0]) > 5.0, "{n}: {loads:?}");
        if n == 0 {
            let thresholds = Thresholds { finest: 3, ..method.thresholds };
            let mut finer = resumed(Method { thresholds, viscosity: 1e-3, ..method }, body);
            assert_eq!(finer.grid().finest(), 3);
            let loads = go(&mut finer, (0.05, 0.025), 1).pop().unwrap();
            assert!(coefficient(loads.total.force[0]) > 0.5, "{loads:?}");
        }
    }
}
