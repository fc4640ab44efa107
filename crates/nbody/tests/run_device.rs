//! Diagnostics of a GPU against those of the host.

use crate::common::gpu;
use fmm_core::{Copied, ParticleStore, Particles, Settings, Softening, StageTimes};
use fmm_cuda::CudaStore;
use nbody::diagnostics::{Diagnostics, State};
use nbody::initial::no_hdf5;
use nbody::scenario::Scenario;
use nbody_sim::Simulation;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A ball that is dense in its middle.
fn ball(n: usize, center: [f64; 3]) -> Particles {
    let mut rng = StdRng::seed_from_u64(n as u64);
    let mut place = || {
        let r = rng.random::<f64>().powi(2);
        center.map(|c| c + r * (rng.random::<f64>() - 0.5))
    };
    let position: Vec<[f64; 3]> = (0..n).map(|_| place()).collect();
    let velocity = position.iter().map(|x| [x[1], 0.5 - x[2], x[0] * x[1]]).collect();
    let strength = (0..n).map(|i| (1 + i % 5) as f64 / n as f64).collect();
    Particles { position, velocity, strength, coupling: vec![-1.0; n], ..Particles::default() }
}

#[test]
fn sums_on_the_device_are_the_hosts() {
    let Some(gpu) = gpu() else { return };
    // Softened, so that no close pair drowns the virial in its rounding.
    let settings = Settings { softening: Softening::Spline(0.02), ..Settings::default() };
    let mut store = CudaStore::new(gpu, settings).unwrap();
    let heap = Particles { position: vec![[7.0; 3]; 500], ..ball(500, [0.0; 3]) };
    let mut far = ball(30_000, [3.0, -1.0, 0.5]);
    // One that is so far away that spheres shrink a hundred times.
    far.position[17] = [1e5, 2e5, -1e5];
    for (name, p, massless) in [
        ("one", ball(1, [1.0; 3]), false),
        ("hundred", ball(100, [1.0; 3]), false),
        ("a hundred and one", ball(101, [1.0; 3]), false),
        ("ball", ball(200_000, [3.0, -1.0, 0.5]), false),
        ("heap", heap, false),
        ("far", far, false),
        ("massless", ball(9000, [0.0; 3]), true),
    ] {
        let mass = if massless { vec![0.0; p.len()] } else { p.strength.clone() };
        store.upload(&p).unwrap();
        store.forces(&mut StageTimes::default()).unwrap();
        let Copied { particles, potential, field, .. } = store.copy().unwrap()().unwrap();
        let acceleration: Vec<[f64; 3]> = field.iter().map(|e| e.map(|e| -e)).collect();
        let state = State {
            position: &particles.position,
            velocity: &particles.velocity,
            mass: &mass,
            strength: &particles.strength,
            potential: &potential,
            external: &[],
            acceleration: &acceleration,
        };
        let expected = Diagnostics::of(&fmm_core::comm::Solo, state);
        let found = Diagnostics::from_totals(&store.totals(&mass).unwrap().unwrap(), 1.0, false);
        let first = Diagnostics::default();
        for ((name_of, a), (_, b)) in found.named(&first).into_iter().zip(expected.named(&first)) {
            assert!((a - b).abs() <= 1e-11 * b.abs().max(1e-2), "{name}, {name_of}: {a} on the device, {b}");
        }
    }
}

/// In a box a GPU says of ions and of masses what the cores say.
#[test]
fn diagnostics_in_boxes_are_the_hosts() {
    if gpu().is_none() {
        return;
    }
    let of_charge = |q: i32| format!("[[particles]]\nmodel = 'uniform-cube'\nn = 200\ncharge = {q}\n");
    let ions = format!("[force]\nlaw = 'coulomb'\n{}{}", of_charge(1), of_charge(-1));
    let masses = "[[particles]]\nmodel = 'uniform-cube'\nn = 300\n";
    for particles in [&ions[..], masses] {
        let of = |device: &str| {
            let text = format!(
                "{particles}[boundary]\nkind = 'periodic'\nside = 1\n[solver]\ndevice = '{device}'\ntolerance = 1e-8\n\
                 [time]\ndt = 1e-4\nend = 1\n"
            );
            let scenario = Scenario::parse("s.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
            let mut s = Simulation::new(scenario, no_hdf5, &mut |_| {}).unwrap().0;
            s.step(true).unwrap();
            s.diagnostics().unwrap()
        };
        let [found, expected] = ["cuda", "cpu"].map(of);
        assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
        for ((name, a), (same, b)) in found.into_iter().zip(expected) {
            assert_eq!(name, same);
            // The error of the energy is one of rounding.
            let scale = if name == "energy_error" { 1.0 } else { b.abs().max(1e-2) };
            assert!((a - b).abs() <= 1e-6 * scale, "{name}: {a} on the device, {b}");
        }
    }
}
