//! What a run takes from particles that live on the device: potentials, and copies that are brought to the host later.

use crate::common::{errors, gpu, plummer, scalar_errors, uniform};
use fmm_core::{CpuStore, Method, ParticleStore, Precision, Settings, Softening, StageTimes};
use fmm_cuda::CudaStore;

const SOFTENINGS: [Softening; 5] =
    [Softening::None, Softening::Plummer(1e-3), Softening::P1(1e-3), Softening::Spline(1e-3), Softening::Yukawa(8.0)];

fn bits(values: &[[f64; 3]]) -> Vec<u64> {
    values.as_flattened().iter().map(|x| x.to_bits()).collect()
}

#[test]
fn the_potential_changes_no_bit_of_the_field() {
    let Some(_) = gpu() else { return };
    let p = plummer(20_000, 21);
    for method in [Method::Direct, Method::Fmm, Method::Treecode] {
        for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::F64, 1e-7)] {
            for softening in SOFTENINGS {
                let settings = Settings { method, precision, softening, tolerance, ..Settings::default() };
                let mut store = CudaStore::new(gpu().unwrap(), settings).unwrap();
                store.upload(&p).unwrap();
                let mut found = [false, true, false].map(|wanted| {
                    store.want_potential(wanted);
                    store.forces(&mut StageTimes::default()).unwrap();
                    store.field().unwrap()
                });
                let what = format!("{method:?} {precision:?} {softening:?}");
                assert!(found.iter().all(|f| bits(&f.1) == bits(&found[0].1)), "{what}");
                // Summed at once and later it has other roundings.
                let (later, at_once) = (std::mem::take(&mut found[0].0), std::mem::take(&mut found[1].0));
                let (rms, _) = scalar_errors(&at_once, &later);
                assert!(rms < if precision == Precision::F32 { 1e-6 } else { 1e-14 }, "{what}: {rms:e}");
                assert!(later.iter().all(|p| *p > 0.0), "{what}");
            }
        }
    }
}

#[test]
fn a_copy_is_of_the_moment_that_it_was_made() {
    let Some(gpu) = gpu() else { return };
    let p = plummer(5000, 22);
    let mut store = CudaStore::new(gpu, Settings::default()).unwrap();
    let times = &mut StageTimes::default();
    store.upload(&p).unwrap();
    let before = store.copy().unwrap()().unwrap();
    assert_eq!((&before.particles, before.potential.len(), before.field.len()), (&p, 0, 0));
    store.forces(times).unwrap();
    let (potential, field) = store.field().unwrap();
    let pending = store.copy().unwrap();
    store.kick(0.1, times).unwrap();
    store.drift(0.1, times).unwrap();
    store.forces(times).unwrap();
    let copied = std::thread::spawn(pending).join().unwrap().unwrap();
    assert_eq!((&copied.particles, &copied.potential, bits(&copied.field)), (&p, &potential, bits(&field)));
    assert_ne!(store.particles().unwrap(), p);
    assert!(errors(&store.field().unwrap().1, &field).0 > 1e-3);
    // One that nobody takes leaves nothing behind.
    drop(store.copy().unwrap());
    store.forces(times).unwrap();
}

#[test]
fn totals_are_sums_over_what_is_copied() {
    let Some(gpu) = gpu() else { return };
    let mut store = CudaStore::new(gpu, Settings { tolerance: 1e-4, ..Settings::default() }).unwrap();
    let mut p = uniform(70_001, 0.3, 23);
    p.coupling = (0..p.len()).map(|i| -1.0 - (i % 3) as f64).collect();
    let mass: Vec<f64> = (0..p.len()).map(|i| 1.0 + (i % 7) as f64).collect();
    store.upload(&p).unwrap();
    assert_eq!(store.totals(&mass).unwrap(), None);
    store.forces(&mut StageTimes::default()).unwrap();
    let (potential, field) = store.field().unwrap();
    let dot = |a: [f64; 3], b: [f64; 3]| (0..3).map(|d| a[d] * b[d]).sum::<f64>();
    for mass in [&mass, &p.strength] {
        let all = |term: &dyn Fn(usize) -> f64| (0..p.len()).map(term).sum::<f64>();
        let found = store.totals(mass).unwrap().unwrap();
        assert_eq!(store.totals(mass).unwrap().unwrap(), found);
        let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-11 * b.abs().max(1e-3), "{a} {b}");
        near(found.kinetic, all(&|i| 0.5 * mass[i] * dot(p.velocity[i], p.velocity[i])));
        near(found.interaction, all(&|i| 0.5 * p.strength[i] * potential[i]));
        near(found.clausius, all(&|i| mass[i] * p.coupling[i] * dot(p.position[i], field[i])));
        for d in 0..3 {
            let (e, f) = ((d + 1) % 3, (d + 2) % 3);
            near(found.momentum[d], all(&|i| mass[i] * p.velocity[i][d]));
            let spin = |i: usize| p.position[i][e] * p.velocity[i][f] - p.position[i][f] * p.velocity[i][e];
            near(found.angular_momentum[d], all(&|i| mass[i] * spin(i)));
            near(found.extent.center_of_mass[d], all(&|i| mass[i] * p.position[i][d]) / all(&|i| mass[i]));
        }
        // The other masses are those of another set.
        store.upload(&p).unwrap();
        store.forces(&mut StageTimes::default()).unwrap();
    }
    // What the host has already is not summed for it.
    let mut cpu = CpuStore::new(Settings::default()).unwrap();
    cpu.upload(&uniform(10, 0.0, 24)).unwrap();
    assert_eq!(cpu.totals(&[1.0; 10]).unwrap(), None);
}
