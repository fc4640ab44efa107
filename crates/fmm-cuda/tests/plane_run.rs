//! Particles of a run in the plane that live on the device: their sums against single ones, steps of vortices against those of the cores.

use crate::common::gpu;
use fmm_core::planar::{Blob, Kernel, Problem};
use fmm_core::{Complex64, Copied, CpuStore, Error, Method, ParticleStore, Particles, Precision, Settings, StageTimes};
use fmm_cuda::CudaStore;
use testkit::planar::{gamma, set, strengths};

fn particles(n: usize, seed: u64) -> Particles {
    let position: Vec<[f64; 3]> = set("normal", n, seed).iter().map(|x| [x[0], x[1], 0.0]).collect();
    let velocity = position.iter().map(|x| [0.5 - x[1], x[0] - 0.5, 0.0]).collect();
    Particles { position, velocity, strength: strengths(n, seed + 1), coupling: vec![0.25; n], ..Particles::default() }
}

fn flat(position: &[[f64; 3]]) -> Vec<Complex64> {
    position.iter().map(|x| Complex64::new(x[0], x[1])).collect()
}

#[test]
fn a_store_sums_what_single_sums_do() {
    let times = &mut StageTimes::default();
    for (n, kernel, blob, method) in [
        (30_000, Kernel::Log, Blob::Point, Method::Fmm),
        (30_000, Kernel::Harmonic, Blob::Algebraic(0.003), Method::Fmm),
        (3000, Kernel::Log, Blob::Gaussian(0.01), Method::Auto),
        (1, Kernel::Log, Blob::Point, Method::Auto),
        (0, Kernel::Log, Blob::Point, Method::Auto),
    ] {
        let Some(gpu) = gpu() else { return };
        let settings = Settings { tolerance: 1e-7, method, ..Settings::default() };
        let mut store = CudaStore::in_plane(gpu, settings.clone(), kernel, blob).unwrap();
        let mut p = particles(n, 1);
        // Somewhere else than at the origin, and two at one place.
        p.position.iter_mut().for_each(|x| (x[0], x[1]) = (3.0 * x[0] - 7.0, x[1] + 2.0));
        if n > 2 {
            p.position[n / 2] = p.position[5];
        }
        store.upload(&p).unwrap();
        assert!(store.choice().is_none() && store.field().unwrap().1.is_empty());
        for step in 0..3 {
            if step > 0 {
                store.drift(0.01, times).unwrap();
                store.kick(1e-3, times).unwrap();
            }
            // Viscosity widens blobs.
            let blob = blob.with_length(if step == 2 { 2.0 } else { 1.0 } * blob.length());
            store.set_core(blob.length());
            store.forces(times).unwrap();
            let Copied { particles, potential, field, .. } = store.copy().unwrap()().unwrap();
            let (points, q) = (flat(&particles.position), gamma(&p.strength, None));
            let problem = Problem::new(&settings, kernel, blob, &points, &q, None).unwrap();
            let single = fmm_cuda::planar::evaluate(store.gpu(), &problem, times).unwrap();
            let what = format!("{n} {kernel:?} {blob:?}, step {step}");
            assert!(field.iter().all(|e| e[2] == 0.0) && flat(&field) == single.field, "{what}: field");
            assert!(potential == single.potential, "{what}: potential");
            assert_eq!(store.choice(), Some(single.choice), "{what}");
            assert_eq!(store.coincident_pairs(), single.coincident_pairs, "{what}");
            assert_eq!(single.coincident_pairs, u64::from(n > 2 && step == 0), "{what}");
            assert!(particles.position.iter().all(|x| x[2] == 0.0), "{what}");
        }
    }
}

/// Stores on the cores and on the device, with the same particles.
fn both(gpu: fmm_cuda::Gpu, settings: &Settings, particles: &Particles) -> [Box<dyn ParticleStore>; 2] {
    let cpu = CpuStore::in_plane(settings.clone(), Kernel::Log, Blob::Gaussian(0.01)).unwrap();
    let gpu = CudaStore::in_plane(gpu, settings.clone(), Kernel::Log, Blob::Gaussian(0.01)).unwrap();
    let mut both: [Box<dyn ParticleStore>; 2] = [Box::new(cpu), Box::new(gpu)];
    both.iter_mut().for_each(|e| e.upload(particles).unwrap());
    both
}

#[test]
fn vortices_flow_as_on_the_cores() {
    let Some(gpu) = gpu() else { return };
    let settings = Settings { tolerance: 1e-12, method: Method::Fmm, precision: Precision::F64, ..Settings::default() };
    let start = particles(5000, 3);
    let mut both = both(gpu, &settings, &start);
    let mut returned = [vec![], vec![]];
    for (store, returned) in both.iter_mut().zip(&mut returned) {
        for step in 0..2 {
            returned.push(store.begin_flow().unwrap());
            // The steps are so short that nothing moves far within the nearest blobs: their flow
            // would amplify differences of rounding.
            for (weight, h, summed) in [(0.25, 1e-5, false), (0.0, 2e-5, false), (0.75, 4e-5, true)] {
                store.forces(&mut StageTimes::default()).unwrap();
                let change = store.flow(weight).unwrap();
                assert_eq!(change.is_infinite(), returned.len() % 4 == 1, "step {step}: {change}");
                returned.push(if change.is_infinite() { 0.0 } else { change });
                store.flow_to(h, summed).unwrap();
            }
        }
    }
    let [cpu, gpu] = both.map(|mut e| e.particles().unwrap().position);
    let apart = |a: &[[f64; 3]], b: &[[f64; 3]]| {
        a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(apart(&cpu, &gpu) < 1e-12, "{:e}", apart(&cpu, &gpu));
    assert!(apart(&cpu, &start.position) > 1e-4, "nothing moves: {:e}", apart(&cpu, &start.position));
    // The sizes are exact, the changes as good as the sums.
    assert_eq!(returned[0][0].to_bits(), returned[1][0].to_bits());
    assert!(returned[0].iter().zip(&returned[1]).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs()), "{returned:?}");
    assert!(returned[0][2] > 0.0, "{returned:?}");
}

#[test]
fn totals_know_the_moments_of_vortices() {
    let Some(gpu) = gpu() else { return };
    let p = particles(20_000, 5);
    let mut store = CudaStore::in_plane(gpu, Settings::default(), Kernel::Log, Blob::Point).unwrap();
    store.upload(&p).unwrap();
    store.forces(&mut StageTimes::default()).unwrap();
    let mass: Vec<f64> = p.strength.iter().map(|q| q.abs()).collect();
    let totals = store.totals(&mass).unwrap().unwrap();
    let sum = |f: &dyn Fn(usize) -> f64| (0..p.len()).map(f).sum::<f64>();
    let potential = store.field().unwrap().0;
    for (found, expected) in [
        (totals.first_moment[0], sum(&|i| p.strength[i] * p.position[i][0])),
        (totals.first_moment[1], sum(&|i| p.strength[i] * p.position[i][1])),
        (totals.second_moment, sum(&|i| p.strength[i] * (p.position[i][0].powi(2) + p.position[i][1].powi(2)))),
        (totals.interaction, sum(&|i| 0.5 * p.strength[i] * potential[i])),
    ] {
        assert!((found - expected).abs() < 1e-10 * expected.abs().max(1.0), "{found} {expected}");
    }
    assert_eq!(totals.first_moment[2], 0.0);
}

#[test]
fn what_cannot_be_summed_is_refused() {
    let Some(gpu) = gpu() else { return };
    let mut store = CudaStore::in_plane(gpu, Settings::default(), Kernel::Log, Blob::Point).unwrap();
    let mut p = particles(1000, 7);
    p.velocity[123][1] = f64::MAX;
    store.upload(&p).unwrap();
    store.drift(2.0, &mut StageTimes::default()).unwrap();
    let e = store.forces(&mut StageTimes::default()).unwrap_err();
    assert!(matches!(e, Error::NotFinite { what: "position", index: 123, .. }), "{e}");
    assert!(store.check().is_err() && store.choice().is_none());
    let Some(gpu) = crate::common::gpu() else { return };
    let treecode = Settings { method: Method::Treecode, ..Settings::default() };
    assert!(CudaStore::in_plane(gpu, treecode, Kernel::Log, Blob::Point).is_err());
    let Some(gpu) = crate::common::gpu() else { return };
    assert!(CudaStore::in_plane(gpu, Settings::default(), Kernel::Log, Blob::Gaussian(-1.0)).is_err());
}
