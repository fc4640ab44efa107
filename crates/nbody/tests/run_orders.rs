//! Order in time of the integrators, through the store that runs use: two bodies on a Kepler orbit, e = 0.5.

use std::f64::consts::PI;

use fmm_core::{CpuStore, Method, ParticleStore, Particles, Precision, Settings, StageTimes};
use nbody::integrator::{Integrator, Stepper};

/// The distance from the start after one period in `steps` steps; G M = a = 1, the masses are 1/4 and 3/4.
fn error_after_a_period(integrator: Integrator, steps: u32) -> f64 {
    let (m1, m2, r, v) = (0.25, 0.75, 0.5, 3f64.sqrt()); // periapsis: r = 1 − e, v² = (1 + e)/(1 − e)
    let particles = Particles {
        position: vec![[m2 * r, 0.0, 0.0], [-m1 * r, 0.0, 0.0]],
        velocity: vec![[0.0, m2 * v, 0.0], [0.0, -m1 * v, 0.0]],
        strength: vec![m1, m2],
        coupling: vec![-1.0; 2],
        ..Particles::default()
    };
    let settings = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
    let mut store = CpuStore::new(settings).unwrap();
    store.upload(&particles).unwrap();
    let (mut stepper, mut times) = (Stepper::new(integrator, 2.0 * PI / f64::from(steps)), StageTimes::default());
    for _ in 0..steps {
        stepper.step(&mut store, &mut times).unwrap();
    }
    let end = store.particles().unwrap();
    let relative: Vec<f64> = (0..3).map(|k| end.position[0][k] - end.position[1][k]).collect();
    (relative[0] - r).hypot(relative[1]).hypot(relative[2])
}

fn order(integrator: Integrator, steps: u32) -> f64 {
    (error_after_a_period(integrator, steps) / error_after_a_period(integrator, 2 * steps)).log2()
}

#[test]
fn leapfrogs_are_of_second_order() {
    for integrator in [Integrator::LeapfrogKdk, Integrator::LeapfrogDkd] {
        let order = order(integrator, 1000);
        assert!((order - 2.0).abs() <= 0.05, "{} has order {order}", integrator.name());
    }
}

#[test]
fn yoshida_is_of_fourth_order() {
    let order = order(Integrator::Yoshida4, 1000);
    assert!((order - 4.0).abs() <= 0.1, "order {order}");
}

#[test]
fn errors_are_those_of_the_schemes() {
    // Known position errors after one period in 1000 steps; a scheme with a wrong coefficient misses them.
    for (integrator, known) in
        [(Integrator::LeapfrogKdk, 1.8e-3), (Integrator::LeapfrogDkd, 4.8e-4), (Integrator::Yoshida4, 5.3e-7)]
    {
        let error = error_after_a_period(integrator, 1000);
        assert!((error / known - 1.0).abs() < 0.1, "{}: {error:.2e}, known {known:.1e}", integrator.name());
    }
}

#[test]
fn kick_drift_kick_sums_forces_once_a_step() {
    use fmm_core::Stage;
    for (integrator, per_step) in
        [(Integrator::LeapfrogKdk, 1), (Integrator::LeapfrogDkd, 1), (Integrator::Yoshida4, 3)]
    {
        let mut store = CpuStore::new(Settings { method: Method::Direct, ..Settings::default() }).unwrap();
        let (x, v) = (vec![[0.0; 3], [1.0, 0.0, 0.0]], vec![[0.0; 3]; 2]);
        let particles = Particles {
            position: x,
            velocity: v,
            strength: vec![1.0; 2],
            coupling: vec![-1.0; 2],
            ..Particles::default()
        };
        store.upload(&particles).unwrap();
        let (mut stepper, mut times) = (Stepper::new(integrator, 1e-3), StageTimes::default());
        stepper.refresh(&mut store, &mut times).unwrap();
        for _ in 0..10 {
            stepper.step(&mut store, &mut times).unwrap();
        }
        // Drift-kick-drift starts with a drift: the forces of the start serve the output only.
        assert_eq!(times.calls(Stage::P2P), 10 * per_step + 1, "{}", integrator.name());
    }
}
