//! Flows with viscosity: against the exact solution of the heat equation, and by the balance of energy.

use std::f64::consts::PI;

use fmm_core::grid::flow::{Conditions, FOURIER, Method};
use fmm_core::grid::remesh::{Kernel, Lattice};
use fmm_core::grid::{CELLS, Flow, GaussianRing, Grid, Scheme, Solution, Solve, Solver, Vorticity};
use fmm_core::{Error, StageTimes};

/// ∇ × (e_z exp(−|x|²/s²)), each component of which is a solution of the heat equation with s² = s₀² + 4νt.
#[derive(Clone, Copy)]
struct Swirl {
    /// s₀².
    square: f64,
    /// 4νt.
    grown: f64,
}

impl Vorticity for Swirl {
    fn cell(&self, [x, y, z]: [f64; 3], _: f64) -> [f64; 3] {
        let s2 = self.square + self.grown;
        let g = (self.square / s2).powf(1.5) * 2.0 / s2 * (-(x * x + y * y + z * z) / s2).exp();
        [-y * g, x * g, 0.0]
    }
}

/// A fluid that stays where it is, as that of weak vorticity does: what is left of the equation is diffusion.
struct Still;

impl Solve for Still {
    fn solve(&mut self, grid: &Grid, _: &[[f64; 3]], _: &mut StageTimes) -> Result<Solution, Error> {
        let none = vec![[0.0; 3]; grid.cells()];
        Ok(Solution { psi: none.clone(), velocity: none, work: fmm_core::grid::Work::default() })
    }
}

const START: Swirl = Swirl { square: 0.0064, grown: 0.0 };
const VISCOSITY: f64 = 0.05;

/// The flow with `base`·16 cells a side after `steps` steps to `time`.
fn diffused(base: u32, scheme: Scheme, steps: usize, time: f64) -> Flow {
    let lattice = Lattice { corner: [-0.5; 3], side: 1.0, base };
    let method = Method { scheme, cutoff: 1e-6, viscosity: VISCOSITY, ..Method::default() };
    let mut flow = Flow::new(lattice, method, Conditions::default(), &START).unwrap();
    let dt = time / steps as f64;
    (0..steps).for_each(|_| flow.step(&mut Still, (0.0, dt), None, &mut StageTimes::default()).unwrap());
    flow
}

/// ‖a − b‖/‖b‖ over the cells of `a`.
fn difference(a: &Flow, b: impl Fn([f64; 3]) -> [f64; 3]) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for (i, w) in a.vorticity().iter().enumerate() {
        let exact = b(a.grid().center_of(i / CELLS, i % CELLS));
        sum += (0..3).map(|k| (w[k] - exact[k]).powi(2)).sum::<f64>();
        all += exact.iter().map(|e| e * e).sum::<f64>();
    }
    (sum / all).sqrt()
}

#[test]
fn diffusion_is_of_fourth_order_in_space() {
    const TIME: f64 = 2e-3;
    let exact = Swirl { grown: 4.0 * VISCOSITY * TIME, ..START };
    let errors = [(2, 4), (3, 8)]
        .map(|(base, steps)| difference(&diffused(base, Scheme::RungeKutta3, steps, TIME), |x| exact.cell(x, 0.0)));
    let order = (errors[0] / errors[1]).log2() / 1.5f64.log2();
    assert!(errors[1] < 1e-3 && (3.5..4.6).contains(&order), "{errors:?}: order {order}");
}

#[test]
fn diffusion_is_of_the_order_of_the_scheme_in_time() {
    // Of one grid, so that errors in space are the same. The longest step is a third of the time.
    const TIME: f64 = 3.0 * FOURIER / (1024.0 * VISCOSITY);
    for (scheme, expected) in [(Scheme::RungeKutta2, 2.0), (Scheme::RungeKutta3, 3.0)] {
        let [one, two, four] = [3, 6, 12].map(|steps| diffused(2, scheme, steps, TIME));
        let at = |flow: &Flow, x: [f64; 3]| {
            let cell = x.map(|x| ((x + 0.5) * 32.0) as u32);
            let b = flow.grid().number(fmm_core::grid::Block { level: 0, index: cell.map(|c| c / 16) });
            let c = cell.map(|c| (c % 16) as usize);
            b.map_or([0.0; 3], |b| flow.vorticity()[b * CELLS + c[0] + 16 * (c[1] + 16 * c[2])])
        };
        let apart = [difference(&one, |x| at(&two, x)), difference(&two, |x| at(&four, x))];
        let order = (apart[0] / apart[1]).log2();
        assert!((order - expected).abs() < 0.35, "{}: {apart:?}: order {order}", scheme.name());
    }
}

#[test]
fn steps_that_diffusion_does_not_allow_are_refused() {
    let lattice = Lattice { corner: [-0.5; 3], side: 1.0, base: 2 };
    let method = Method { viscosity: VISCOSITY, ..Method::default() };
    let longest = method.longest_step(1.0 / 32.0);
    assert!((longest * VISCOSITY * 1024.0 - 0.125).abs() < 1e-15 && Method::default().longest_step(0.1).is_infinite());
    let mut flow = Flow::new(lattice, method, Conditions::default(), &START).unwrap();
    flow.step(&mut Still, (0.0, longest), None, &mut StageTimes::default()).unwrap();
    let refused = flow.step(&mut Still, (0.0, 1.001 * longest), None, &mut StageTimes::default()).unwrap_err();
    assert!(matches!(refused, Error::Range { what: "viscosity*dt/h^2", .. }), "{refused}");
}

#[test]
fn energy_falls_by_the_viscosity_times_the_enstrophy() {
    const VISCOUS: f64 = 4e-3;
    const DT: f64 = 0.005;
    let lattice = Lattice { corner: [-0.5; 3], side: 1.0, base: 3 };
    let method = Method { kernel: Kernel::M6, viscosity: VISCOUS, ..Method::default() };
    let ring = GaussianRing { center: [0.0; 3], axis: [0.0, 0.0, 1.0], radius: 0.2, core: 0.06, circulation: 1.0 };
    let mut flow = Flow::new(lattice, method, Conditions::default(), &ring).unwrap();
    let mut solver = Solver { leaf_size: 256, order: 4, theta: 0.6, correction: true, ..Solver::default() };
    let mut seen = vec![];
    for step in 0..=3 {
        let solution = flow.solve(&mut solver, 0.0, &mut StageTimes::default()).unwrap();
        seen.push(flow.integrals(&solution));
        if step < 3 {
            flow.step(&mut solver, (0.0, DT), Some(solution), &mut StageTimes::default()).unwrap();
        }
    }
    // Simpson's rule of three intervals.
    let mean = [1.0, 3.0, 3.0, 1.0].iter().zip(&seen).map(|(f, i)| f / 8.0 * i.enstrophy).sum::<f64>();
    let (lost, expected) = (seen[0].energy - seen[3].energy, VISCOUS * mean * 3.0 * DT);
    assert!(lost > 0.02 * seen[0].energy && (lost / expected - 1.0).abs() < 0.03, "{lost} {expected}: {seen:?}");
    // Diffusion keeps the impulse, and the circulation but for what crosses the axis.
    assert!((seen[3].impulse[2] / seen[0].impulse[2] - 1.0).abs() < 1e-3, "{seen:?}");
    assert!((seen[0].impulse[2] - PI * (0.04 + 0.0018)).abs() < 2e-3 * PI * 0.04, "{seen:?}");
}
