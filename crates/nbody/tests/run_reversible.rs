//! Symmetry in time: a cluster that goes 1,000 steps forward and 1,000 back is where it began.

use fmm_core::{CpuStore, ParticleStore, StageTimes};
use nbody::initial::Initial;
use nbody::integrator::{Integrator, Stepper};
use nbody::scenario::Scenario;

const CLUSTER: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.02 }
[[particles]]
model = "plummer"
n = 500
virial_radius = 1
[solver]
method = "direct"
precision = "f64"
[time]
dt = 0.0078125
end = 7.8125
"#;

/// The largest distance from the start, in position and velocity, after `steps` there and back.
fn distance(integrator: Integrator, steps: u32) -> f64 {
    let scenario = Scenario::parse("cluster.toml", CLUSTER.into(), None, &[]).unwrap();
    let start = Initial::of(&scenario, nbody::files::read_hdf5).unwrap().particles(scenario.law, scenario.constant());
    let mut store = CpuStore::new(scenario.settings.clone()).unwrap();
    store.upload(&start).unwrap();
    let mut times = StageTimes::default();
    let mut moved = 0.0;
    for dt in [scenario.clock.dt, -scenario.clock.dt] {
        let mut stepper = Stepper::new(integrator, dt);
        (0..steps).for_each(|_| stepper.step(&mut store, &mut times).unwrap());
        if dt > 0.0 {
            moved = farthest(&store.particles().unwrap().position, &start.position);
        }
    }
    assert!(moved > 0.5, "the cluster did not move");
    let end = store.particles().unwrap();
    farthest(&end.position, &start.position).max(farthest(&end.velocity, &start.velocity))
}

fn farthest(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn a_thousand_steps_forward_and_back() {
    for integrator in [Integrator::LeapfrogKdk, Integrator::LeapfrogDkd] {
        let distance = distance(integrator, 1000);
        println!("{}: {distance:.2e}", integrator.name());
        assert!(distance < 1e-10, "{}: {distance:.2e} from the start", integrator.name());
    }
    let distance = distance(Integrator::Yoshida4, 250);
    assert!(distance < 1e-10, "yoshida4: {distance:.2e} from the start");
}
