//! Flows on grids: rings move, stretch, are resumed, and keep their integrals.

use fmm_core::StageTimes;
use fmm_core::grid::flow::{Conditions, Integrals, Method};
use fmm_core::grid::remesh::{Kernel, Lattice};
use fmm_core::grid::{Block, CELLS, Flow, GaussianRing, Parts, Scheme, Solver, Vorticity};

fn solver() -> Solver {
    Solver { leaf_size: 256, order: 4, theta: 0.6, ..Solver::default() }
}

fn lattice(base: u32) -> Lattice {
    Lattice { corner: [-0.5; 3], side: 1.0, base }
}

fn flow(method: Method, base: u32, rings: &[GaussianRing]) -> Flow {
    let rings = rings.iter().map(|&r| Box::new(r) as Box<dyn Vorticity>).collect();
    Flow::new(lattice(base), method, Conditions::default(), &Parts(rings)).unwrap()
}

fn by(scheme: Scheme) -> Method {
    Method { scheme, ..Method::default() }
}

fn ring(z: f64, up: f64) -> GaussianRing {
    GaussianRing { center: [0.0, 0.0, z], axis: [0.0, 0.0, up], radius: 0.2, core: 0.06, circulation: 1.0 }
}

fn integrals(flow: &Flow) -> Integrals {
    let mut flow = flow.clone();
    let solution = flow.solve(&mut solver(), 0.0, &mut StageTimes::default()).unwrap();
    flow.integrals(&solution)
}

/// Where the impulse is: ½ ∫ z (x × ω)_z over its integral.
fn height(flow: &Flow) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for (i, w) in flow.vorticity().iter().enumerate() {
        let [x, y, z] = flow.grid().center_of(i / CELLS, i % CELLS);
        sum += z * (x * w[1] - y * w[0]);
        all += x * w[1] - y * w[0];
    }
    sum / all
}

#[test]
fn a_ring_moves_at_its_speed_and_keeps_what_it_should() {
    for (scheme, up) in [(Scheme::RungeKutta2, 1.0), (Scheme::RungeKutta3, -1.0)] {
        let mut flow = flow(by(scheme), 3, &[ring(0.0, up)]);
        let first = integrals(&flow);
        // Γ = 1, and the impulse πR²Γ of a thin ring grows by σ²/2R² of it.
        let circulation = |i: &Integrals| up * (i.circulation[0] + i.circulation[1]);
        assert!((circulation(&first) - 1.0).abs() < 2e-3, "{first:?}");
        let impulse = std::f64::consts::PI * (0.04 + 0.06 * 0.06 / 2.0);
        assert!((first.impulse[2] * up / impulse - 1.0).abs() < 2e-3, "{first:?}");
        for _ in 0..4 {
            flow.step(&mut solver(), (0.0, 0.005), None, &mut StageTimes::default()).unwrap();
        }
        let (last, speed) = (integrals(&flow), height(&flow) * up / 0.02);
        // The formula is of thin rings, and cells of a third of the core widen it.
        let thin = ((8.0f64 * 0.2 / 0.06).ln() - 0.558) / (4.0 * std::f64::consts::PI * 0.2);
        assert!((0.88..1.0).contains(&(speed / thin)), "{speed} {thin}");
        let close = |a: f64, b: f64, by: f64| (a - b).abs() < by * b.abs();
        assert!(close(last.energy, first.energy, 5e-3), "{last:?} {first:?}");
        assert!(close(last.impulse[2], first.impulse[2], 1e-3), "{last:?} {first:?}");
        assert!(close(circulation(&last), circulation(&first), 2e-3), "{last:?} {first:?}");
        let size = first.impulse[2].abs();
        assert!(last.impulse[0].abs() < 1e-4 * size && last.total.iter().all(|t| t.abs() < 1e-4 * size), "{last:?}");
    }
}

#[test]
fn rings_that_meet_stretch_and_those_that_leave_are_told() {
    let (method, rings) = (by(Scheme::RungeKutta3), [ring(-0.06, 1.0), ring(0.06, -1.0)]);
    let mut meeting = flow(method, 3, &rings);
    let mut finer = flow(Method { kernel: Kernel::M6, ..method }, 3, &rings);
    let first = integrals(&meeting);
    for _ in 0..3 {
        meeting.step(&mut solver(), (0.0, 0.01), None, &mut StageTimes::default()).unwrap();
        finer.step(&mut solver(), (0.0, 0.01), None, &mut StageTimes::default()).unwrap();
    }
    let last = integrals(&meeting);
    // They widen, and so their vorticity grows.
    assert!(last.enstrophy > 1.02 * first.enstrophy && last.impulse[2].abs() < 1e-4, "{first:?} {last:?}");
    assert!((last.energy / first.energy - 1.0).abs() < 2e-2, "{first:?} {last:?}");
    // Beyond the plane between them each has 1 − erf(1) of its core, and keeps what it has as well as the kernel can.
    let [a, b, c] = [&first, &last, &integrals(&finer)].map(|i| i.circulation);
    let away = |b: [f64; 2]| (0..2).fold(0.0, |m: f64, i| m.max((b[i] - a[i]).abs()));
    assert!((a[0] - 0.8427).abs() < 6e-3 && (a[0] + a[1]).abs() < 1e-5, "{a:?}");
    assert!(away(b) < 1.5e-2 && away(c) < 8e-3 && away(c) < away(b), "{a:?} {b:?} {c:?}");
    let mut leaving = flow(by(Scheme::RungeKutta2), 2, &[ring(0.15, 1.0)]);
    let end = (0..20).find_map(|_| leaving.step(&mut solver(), (0.0, 0.02), None, &mut StageTimes::default()).err());
    assert!(end.unwrap().to_string().contains("faces of the domain"));
}

#[test]
fn a_saved_state_goes_on_to_the_same_bits() {
    let method = by(Scheme::RungeKutta3);
    let mut whole = flow(method, 3, &[ring(-0.06, 1.0), ring(0.06, -1.0)]);
    let mut saved = None;
    for step in 0..3 {
        if step == 1 {
            saved = Some((whole.grid().blocks().to_vec(), whole.vorticity().to_vec()));
        }
        let solution = whole.solve(&mut solver(), 0.0, &mut StageTimes::default()).unwrap();
        whole.step(&mut solver(), (0.0, 0.01), Some(solution), &mut StageTimes::default()).unwrap();
    }
    let (blocks, vorticity) = saved.unwrap();
    let resume = |blocks: &[Block], vorticity: Vec<[f64; 3]>| {
        Flow::resume(lattice(3), method, Conditions::default(), 0.0, (blocks, vorticity))
    };
    let mut parts = resume(&blocks, vorticity.clone()).unwrap();
    (0..2).for_each(|_| parts.step(&mut solver(), (0.0, 0.01), None, &mut StageTimes::default()).unwrap());
    assert!(parts.grid() == whole.grid() && parts.vorticity() == whole.vorticity());
    let refused = |blocks: &[Block], vorticity: Vec<[f64; 3]>| resume(blocks, vorticity).unwrap_err().to_string();
    let changed = |change: fn(&mut [Block])| {
        let mut other = blocks.clone();
        change(&mut other);
        refused(&other, vorticity.clone())
    };
    assert!(changed(|b| b[0].index[1] = 3).contains("[0, 3, 0] of level 0 lies outside of 3^3 blocks"));
    assert!(changed(|b| b[0].level = 1).contains("outside"));
    assert!(changed(|b| b.swap(0, 1)).contains("in the order of a grid"));
    assert!(changed(|b| b[1] = b[0]).contains("each once"));
    assert!(refused(&blocks, vorticity[1..].to_vec()).contains("in place of the"));
    let mut bad = vorticity.clone();
    bad[7][1] = f64::NAN;
    assert!(refused(&blocks, bad).contains("vorticity of particle 7 is NaN"));
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut flow = flow(by(Scheme::RungeKutta2), 2, &[ring(0.0, 1.0)]);
            flow.step(&mut solver(), (0.0, 0.01), None, &mut StageTimes::default()).unwrap();
            (integrals(&flow), flow.vorticity().to_vec())
        })
    };
    assert_eq!(run(1), run(3));
}
