//! Sums and steps on the device against those of the CPU.

use crate::common::{errors, gpu, hash, plummer, scalar_errors, uniform};
use fmm_core::{
    Boundary, CpuStore, Error, Method, ParticleStore, Particles, PeriodicBox, Precision, Settings, Softening,
    StageTimes, Uniform,
};
use fmm_cuda::{CudaStore, Gpu, evaluate};

const SOFTENINGS: [Softening; 5] =
    [Softening::None, Softening::Plummer(0.02), Softening::P1(0.02), Softening::Spline(0.02), Softening::Yukawa(0.5)];

fn direct(softening: Softening, precision: Precision) -> Settings {
    let tolerance = if precision == Precision::F32 { 1e-4 } else { 1e-10 };
    Settings { method: Method::Direct, softening, precision, tolerance, ..Settings::default() }
}

/// Sets of all kinds and awkward sizes.
fn sets() -> Vec<(&'static str, Particles)> {
    vec![
        ("one", uniform(1, 0.0, 1)),
        ("two", uniform(2, 0.0, 2)),
        ("uniform", uniform(3001, 0.0, 3)),
        ("plummer", plummer(20_000, 4)),
        ("far from the origin", uniform(5000, 1e6, 5)),
        ("tiny", scaled(plummer(3000, 6), 1e-25)),
        ("huge", scaled(plummer(3000, 7), 1e20)),
        ("close pairs", with_close_pairs(uniform(4096, 0.0, 8))),
        ("coincident", with_copies(uniform(2000, 0.0, 9))),
    ]
}

fn scaled(mut p: Particles, by: f64) -> Particles {
    p.position.iter_mut().for_each(|x| *x = x.map(|c| c * by));
    p
}

/// Every hundredth body gets a companion at a distance of 1e-9.
fn with_close_pairs(mut p: Particles) -> Particles {
    for i in (0..p.len() - 1).step_by(100) {
        p.position[i + 1] = p.position[i];
        p.position[i + 1][0] += 1e-9;
    }
    p
}

fn with_copies(mut p: Particles) -> Particles {
    for i in (0..p.len() - 2).step_by(50) {
        p.position[i + 1] = p.position[i];
        p.position[i + 2] = p.position[i];
    }
    p
}

fn compare(gpu: &Gpu, precision: Precision, rms: f64, worst: f64) {
    for (name, p) in sets() {
        for softening in SOFTENINGS {
            let extent = p.position.iter().flatten().fold(0.0f64, |m, c| m.max(c.abs()));
            let softening = if name == "far from the origin" && softening.length() > 0.0 {
                softening
            } else {
                softening.scaled(extent)
            };
            let mut times = StageTimes::default();
            let exact = direct(softening, Precision::F64);
            let cpu = fmm_core::evaluate(&exact, &p.position, &p.strength, None, &mut times).unwrap();
            let settings = direct(softening, precision);
            let own = evaluate(gpu, &settings, &p.position, &p.strength, None, &mut times).unwrap();
            let what = format!("{name}, {softening:?}, {}", precision.name());
            let (r, w) = errors(&own.field, &cpu.field);
            assert!(r <= rms && w <= worst, "{what}: field {r:e} {w:e}");
            let (r, w) = scalar_errors(&own.potential, &cpu.potential);
            assert!(r <= rms && w <= worst, "{what}: potential {r:e} {w:e}");
            assert_eq!(own.coincident_pairs, cpu.coincident_pairs, "{what}");
            assert_eq!((own.choice.method, own.choice.precision), (Method::Direct, precision));
            // Other targets, some of them at sources.
            let mut targets = uniform(777, 0.1, 10).position;
            targets.iter_mut().for_each(|x| *x = x.map(|c| c * extent));
            targets[5] = p.position[0];
            let at = Some(&targets[..]);
            let cpu = fmm_core::evaluate(&exact, &p.position, &p.strength, at, &mut times).unwrap();
            let other = evaluate(gpu, &settings, &p.position, &p.strength, at, &mut times).unwrap();
            let (r, w) = errors(&other.field, &cpu.field);
            assert!(r <= rms && w <= worst, "{what}, other targets: field {r:e} {w:e}");
            let (r, w) = scalar_errors(&other.potential, &cpu.potential);
            assert!(r <= rms && w <= worst, "{what}, other targets: potential {r:e} {w:e}");
        }
    }
}

#[test]
fn double_precision_is_the_cpus() {
    let Some(gpu) = gpu() else { return };
    // The largest is of bodies whose forces cancel: both sums round there.
    compare(&gpu, Precision::F64, 1e-13, 2e-12);
}

#[test]
fn single_precision_keeps_its_digits() {
    let Some(gpu) = gpu() else { return };
    compare(&gpu, Precision::F32, 2e-6, 1e-4);
}

#[test]
fn nothing_sums_to_nothing() {
    let Some(gpu) = gpu() else { return };
    let settings = direct(Softening::None, Precision::F64);
    let times = &mut StageTimes::default();
    let empty = evaluate(&gpu, &settings, &[], &[], Some(&[[1.0; 3]]), times).unwrap();
    assert_eq!((empty.potential, empty.field), (vec![0.0], vec![[0.0; 3]]));
    assert!(evaluate(&gpu, &settings, &[], &[], None, times).unwrap().field.is_empty());
    let mut store = CudaStore::new(gpu, settings).unwrap();
    store.upload(&Particles::default()).unwrap();
    store.forces(times).unwrap();
    store.kick(1.0, times).unwrap();
    store.check().unwrap();
    assert!(store.particles().unwrap().is_empty());
}

#[test]
fn a_hundred_repeats_have_one_hash() {
    let Some(gpu) = gpu() else { return };
    let p = plummer(30_000, 11);
    let mut store = CudaStore::new(gpu, direct(Softening::Plummer(0.01), Precision::F32)).unwrap();
    let mut hashes = vec![];
    for _ in 0..100 {
        store.upload(&p).unwrap();
        store.forces(&mut StageTimes::default()).unwrap();
        let (potential, field) = store.field().unwrap();
        let potential: Vec<[f64; 3]> = potential.iter().map(|&p| [p, 0.0, 0.0]).collect();
        hashes.push((hash(&field), hash(&potential)));
    }
    assert!(hashes[0].0 != hash(&vec![[0.0; 3]; p.len()]));
    assert!(hashes.iter().all(|h| *h == hashes[0]), "{hashes:?}");
}

#[test]
fn steps_have_the_bits_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let p = plummer(1001, 12);
    let settings = direct(Softening::Plummer(0.01), Precision::F64);
    let mut device = CudaStore::new(gpu, settings).unwrap();
    let times = &mut StageTimes::default();
    device.upload(&p).unwrap();
    device.forces(times).unwrap();
    let (_, field) = device.field().unwrap();
    let (h, k) = (0.1234567, -0.7654321);
    device.kick(h, times).unwrap();
    device.drift(k, times).unwrap();
    let mut expected = p.clone();
    for i in 0..p.len() {
        for d in 0..3 {
            expected.velocity[i][d] += h * (p.coupling[i] * field[i][d]);
            expected.position[i][d] += k * expected.velocity[i][d];
        }
    }
    assert_eq!(device.particles().unwrap(), expected);
    // The field is that of the last forces, although the bodies have moved since.
    assert_eq!(device.field().unwrap().1, field);
}

#[test]
fn the_potential_is_of_the_last_forces() {
    let Some(gpu) = gpu() else { return };
    let p = plummer(3000, 13);
    let settings = direct(Softening::None, Precision::F32);
    let mut device = CudaStore::new(gpu, settings.clone()).unwrap();
    let mut cpu = CpuStore::new(Settings { precision: Precision::F64, ..settings }).unwrap();
    let times = &mut StageTimes::default();
    assert_eq!((device.choice(), device.field().unwrap()), (None, (vec![], vec![])));
    device.upload(&p).unwrap();
    cpu.upload(&p).unwrap();
    device.forces(times).unwrap();
    cpu.forces(times).unwrap();
    device.drift(1.0, times).unwrap();
    let (found, expected) = (device.field().unwrap(), cpu.field().unwrap());
    assert!(scalar_errors(&found.0, &expected.0).0 < 1e-6);
    assert!(errors(&found.1, &expected.1).0 < 1e-6);
    device.forces(times).unwrap();
    assert!(errors(&device.field().unwrap().1, &expected.1).0 > 1e-3);
}

#[test]
fn numbers_that_are_not_finite_are_found() {
    let Some(gpu) = gpu() else { return };
    let mut p = uniform(10_000, 0.0, 14);
    let mut device = CudaStore::new(gpu, direct(Softening::None, Precision::F64)).unwrap();
    p.coupling[7654] = f64::INFINITY;
    p.coupling[9000] = f64::NAN;
    device.upload(&p).unwrap();
    device.check().unwrap();
    device.forces(&mut StageTimes::default()).unwrap();
    device.kick(1.0, &mut StageTimes::default()).unwrap();
    match device.check().unwrap_err() {
        Error::NotFinite { what, index, value, count } => {
            assert_eq!((what, index, count), ("velocity", 7654, 6));
            assert!(!value.is_finite());
        }
        other => panic!("{other}"),
    }
    p.position[3][1] = f64::NAN;
    assert!(matches!(device.upload(&p), Err(Error::NotFinite { what: "position", index: 3, .. })));
}

#[test]
fn devices_that_are_not_there_are_refused() {
    let Some(_) = gpu() else { return };
    assert!(Gpu::open(4711).is_err_and(|e| e.to_string().contains("no GPU 4711")));
}

#[test]
fn trees_of_one_depth_are_those_of_the_cores() {
    let Some(gpu) = gpu() else { return };
    let targets = uniform(900, 0.1, 31).position;
    // Small enough for expansions of screened charges.
    for (name, p) in [("uniform", uniform(4000, 0.0, 30)), ("plummer", scaled(plummer(3000, 32), 0.1))] {
        for (depth, separation) in [(0, 1), (2, 1), (3, 1), (3, 2), (4, 2)] {
            for at in [None, Some(&targets[..])] {
                for softening in [Softening::None, Softening::Yukawa(0.5)] {
                    let settings = Settings {
                        method: Method::Fmm,
                        precision: Precision::F64,
                        order: Some(6),
                        softening,
                        uniform: Some(Uniform { depth, separation }),
                        ..Settings::default()
                    };
                    let times = &mut StageTimes::default();
                    let cpu = fmm_core::evaluate(&settings, &p.position, &p.strength, at, times).unwrap();
                    let own = evaluate(&gpu, &settings, &p.position, &p.strength, at, times).unwrap();
                    let what = format!("{name}, {softening:?}, depth {depth}, {separation}, {}", at.is_some());
                    assert_eq!(own.choice, cpu.choice, "{what}");
                    let (rms, worst) = errors(&own.field, &cpu.field);
                    assert!(rms < 1e-11 && worst < 1e-9, "{what}: field {rms:e} {worst:e}");
                    let (rms, worst) = scalar_errors(&own.potential, &cpu.potential);
                    assert!(rms < 1e-11 && worst < 1e-9, "{what}: potential {rms:e} {worst:e}");
                }
            }
        }
    }
    let settings = Settings { uniform: Some(Uniform { depth: 2, separation: 1 }), ..Settings::default() };
    let boxed = Settings { boundary: Boundary::Periodic(PeriodicBox::cube(1.0)), ..settings };
    let p = uniform(100, 0.5, 33);
    let refused = evaluate(&gpu, &boxed, &p.position, &p.strength, None, &mut StageTimes::default());
    assert!(matches!(refused, Err(Error::Unsupported(why)) if why.contains("periodic")));
}
