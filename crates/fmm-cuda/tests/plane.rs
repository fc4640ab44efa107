//! Sums in the plane on the device against those of the CPU: pyramids and lists element by element, sums to rounding, and the contract
//! against direct sums.

use crate::common::gpu;
use fmm_core::planar::{Blob, Kernel, Plan, Problem, power};
use fmm_core::{Complex64, Error, Evaluation, Method, Precision, Settings, StageTimes};
use fmm_cuda::Gpu;
use fmm_cuda::planar::{self, Plane};
use testkit::planar::{Points, complex, errors, gamma, set, strengths};

#[expect(clippy::too_many_arguments, reason = "the arguments of the sum on the CPU, and a GPU")]
fn evaluate(
    gpu: &Gpu,
    settings: &Settings,
    kernel: Kernel,
    blob: Blob,
    sources: &[Complex64],
    strengths: &[Complex64],
    targets: Option<&[Complex64]>,
    times: &mut StageTimes,
) -> Result<Evaluation<Complex64>, Error> {
    planar::evaluate(gpu, &Problem::new(settings, kernel, blob, sources, strengths, targets)?, times)
}

/// Sets of all kinds and awkward sizes, with leaf sizes that split them deeply.
fn sets() -> Vec<(&'static str, Points, usize)> {
    let mut sets: Vec<(&str, Points, usize)> =
        [1, 2, 3, 5, 31, 33, 257, 2047, 2048, 2049, 4097].map(|n| ("a few", set("uniform", n, 1), 4)).to_vec();
    let line: Points = set("uniform", 5000, 2).iter().map(|x| [x[0], 0.25]).collect();
    // Ties along both axes, points twice, and one place more often than leaves hold.
    let mut lattice: Points = (0..6400).map(|i| [f64::from(i % 80), f64::from(i / 80) - 40.0]).collect();
    lattice.extend_from_within(100..1100);
    lattice.extend([[7.0, -0.0]; 300]);
    // Ever smaller towards a point, a factor of 1e12 in all.
    let spiral = |i: usize| {
        let (r, a) = (0.5f64.powf(i as f64 / 500.0), i as f64 * 0.7);
        [3.0 + r * a.cos(), r * a.sin() - 1.0]
    };
    sets.extend([
        ("uniform", set("uniform", 100_000, 3), 30),
        ("normal", set("normal", 60_000, 4), 20),
        ("layer", set("layer", 70_001, 5), 40),
        ("line", line, 10),
        ("lattice", lattice, 12),
        ("one place", vec![[0.5, -2.0]; 1000], 16),
        ("spiral", (0..20_000).map(spiral).collect(), 9),
        ("far away", set("normal", 9000, 6).iter().map(|x| [1e6 + x[0], x[1] - 3e5]).collect(), 25),
        ("tiny", set("uniform", 3000, 7).iter().map(|x| x.map(|c| c * 1e-150)).collect(), 25),
        ("huge", set("uniform", 3000, 8).iter().map(|x| x.map(|c| c * 1e150)).collect(), 25),
    ]);
    sets
}

fn settings(order: usize, leaf_size: usize) -> Settings {
    let precision = Precision::F64;
    Settings { method: Method::Fmm, precision, order: Some(order), leaf_size: Some(leaf_size), ..Settings::default() }
}

/// Sums on the device and makes the plan of the CPU; both geometries must be the same.
fn same_geometry(
    gpu: &Gpu,
    plane: &mut Plane,
    settings: &Settings,
    blob: Blob,
    from: &Points,
    at: Option<&Points>,
    what: &str,
) {
    let q = strengths(from.len(), 9);
    let at = at.map(|t| &t[..]);
    let (places, others, given) = (complex(from), at.map(complex), gamma(&q, None));
    let problem = Problem::new(settings, Kernel::Harmonic, blob, &places, &given, others.as_deref()).unwrap();
    plane.upload(gpu, &problem).unwrap();
    let choice = plane.sum(gpu, &problem, &mut StageTimes::default()).unwrap();
    let (tolerance, scale) = (settings.tolerance, power(-problem.request.global));
    let plan = Plan::new(choice, tolerance, problem.request.blob, from, at, scale, &mut StageTimes::default());
    let (targets, sources, lists) = plane.geometry().unwrap();
    for (name, found, expected) in
        [("targets", Some(&targets), Some(&plan.targets)), ("sources", sources.as_ref(), plan.sources.as_ref())]
    {
        let (Some(f), Some(e)) = (found, expected) else {
            assert_eq!(found.is_some(), expected.is_some(), "{what}: {name}");
            continue;
        };
        assert_eq!(f.levels, e.levels, "{what}: levels of {name}");
        assert!(f.points == e.points, "{what}: points of {name}");
        assert!(f.center == e.center, "{what}: centers of {name}");
        assert!(f.radius == e.radius, "{what}: radii of {name}");
        assert!(f.exponent == e.exponent, "{what}: exponents of {name}");
        assert!(f.order == e.order, "{what}: order of {name}");
        assert!(f.x == e.x, "{what}: coordinates of {name}");
    }
    let e = &plan.lists;
    for (name, f, e) in
        [("m2l", lists.m2l, &e.m2l), ("m2p", lists.m2p, &e.m2p), ("p2l", lists.p2l, &e.p2l), ("p2p", lists.p2p, &e.p2p)]
    {
        assert!(f.start == e.start, "{what}: starts of {name}");
        assert!(f.items == e.items, "{what}: sources of {name}");
    }
}

#[test]
fn pyramids_and_lists_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let mut plane = Plane::default();
    for (name, points, leaf_size) in sets() {
        for (leaf_size, theta) in [(leaf_size, 0.5), (leaf_size, 0.7), (4 * leaf_size, 0.3), (1_000_000, 0.5)] {
            let what = format!("{name}, {} points, leaves of {leaf_size}, {theta}", points.len());
            let settings = Settings { theta: Some(theta), ..settings(2, leaf_size) };
            same_geometry(&gpu, &mut plane, &settings, Blob::Point, &points, None, &what);
        }
    }
}

#[test]
fn targets_apart_from_the_sources_have_a_pyramid_of_their_own() {
    let Some(gpu) = gpu() else { return };
    let mut plane = Plane::default();
    let targets = set("layer", 8000, 10);
    for (name, points, leaf_size) in sets() {
        let what = format!("{name}, {} points, at others", points.len());
        same_geometry(&gpu, &mut plane, &settings(3, leaf_size), Blob::Algebraic(0.01), &points, Some(&targets), &what);
        same_geometry(&gpu, &mut plane, &settings(3, leaf_size), Blob::Point, &targets, Some(&points), &what);
    }
}

/// The sum on the CPU, and on the device.
fn two(
    gpu: &Gpu,
    settings: &Settings,
    kernel: Kernel,
    blob: Blob,
    points: &Points,
    imaginary: bool,
    targets: Option<&Points>,
) -> [Evaluation<Complex64>; 2] {
    let (q, qi) = (strengths(points.len(), 11), strengths(points.len(), 12));
    let (points, given) = (&complex(points), &gamma(&q, imaginary.then_some(&qi)));
    let (targets, times) = (targets.map(|t| complex(t)), &mut StageTimes::default());
    let cpu = fmm_core::planar::evaluate(settings, kernel, blob, points, given, targets.as_deref(), times).unwrap();
    [cpu, evaluate(gpu, settings, kernel, blob, points, given, targets.as_deref(), times).unwrap()]
}

/// ‖a − b‖/‖b‖ of potential and field.
fn difference([cpu, gpu]: &[Evaluation<Complex64>; 2]) -> [f64; 2] {
    assert_eq!((cpu.potential.len(), cpu.field.len()), (gpu.potential.len(), gpu.field.len()));
    assert_eq!(cpu.coincident_pairs, gpu.coincident_pairs);
    let norm = |a: &[f64], b: &[f64]| {
        let (mut wrong, mut right) = (0.0, 0.0);
        for (a, b) in a.iter().zip(b) {
            assert!(a.is_finite() == b.is_finite(), "{a} for {b}");
            (wrong, right) = (wrong + (a - b).powi(2), right + b * b);
        }
        if wrong == 0.0 { 0.0 } else { (wrong / right).sqrt() }
    };
    let flat = |field: &[Complex64]| field.iter().flat_map(|e| [e.re, e.im]).collect::<Vec<_>>();
    [norm(&gpu.potential, &cpu.potential), norm(&flat(&gpu.field), &flat(&cpu.field))]
}

#[test]
fn every_operator_does_what_the_cpus_does() {
    let Some(gpu) = gpu() else { return };
    let targets = set("uniform", 3001, 13);
    for (name, points, leaf_size) in sets() {
        // Squares of fields leave the numbers.
        if name == "tiny" || name == "huge" {
            continue;
        }
        for order in [1, 3, 13, 16, 17, 31, 34] {
            for (kernel, imaginary) in [(Kernel::Log, false), (Kernel::Harmonic, false), (Kernel::Harmonic, true)] {
                for at in [None, Some(&targets)] {
                    if points.len() > 10_000 && (order != 13 && order != 34 || at.is_some()) {
                        continue;
                    }
                    let sums = two(&gpu, &settings(order, leaf_size), kernel, Blob::Point, &points, imaginary, at);
                    let [p, f] = difference(&sums);
                    let what =
                        format!("{name}, {}, {kernel:?} {imaginary}, order {order}, {}", points.len(), at.is_some());
                    assert_eq!(sums[0].choice, sums[1].choice, "{what}");
                    // Ever smaller leaves far from the origin: coordinates are rounded there.
                    let bound = if name == "spiral" || name == "far away" { 1e-9 } else { 2e-13 };
                    assert!(p < bound && f < bound, "{what}: {p:e} {f:e}");
                }
            }
        }
    }
}

#[test]
fn blobs_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let mut points = set("normal", 9000, 14);
    points.extend_from_within(0..50);
    let targets = set("uniform", 777, 15);
    for blob in [Blob::Algebraic(0.003), Blob::Gaussian(0.004), Blob::Gaussian(1e-4), Blob::Algebraic(0.3)] {
        for kernel in [Kernel::Log, Kernel::Harmonic] {
            for at in [None, Some(&targets)] {
                let direct = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
                for settings in [settings(20, 30), direct] {
                    let [p, f] =
                        difference(&two(&gpu, &settings, kernel, blob, &points, kernel == Kernel::Harmonic, at));
                    assert!(p < 1e-12 && f < 1e-12, "{blob:?} {kernel:?} {:?}: {p:e} {f:e}", settings.method);
                }
            }
        }
    }
}

#[test]
fn direct_sums_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let direct = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
    let targets = set("layer", 2500, 16);
    for (name, points, _) in sets().into_iter().filter(|s| s.1.len() <= 10_000 && s.0 != "tiny" && s.0 != "huge") {
        for (kernel, imaginary) in [(Kernel::Log, false), (Kernel::Harmonic, true)] {
            for at in [None, Some(&targets)] {
                let [p, f] = difference(&two(&gpu, &direct, kernel, Blob::Point, &points, imaginary, at));
                assert!(p < 1e-12 && f < 1e-12, "{name} {} {kernel:?}: {p:e} {f:e}", points.len());
            }
        }
    }
}

/// The contract against direct sums of the host: L2 below the tolerance; 99 % of the targets, and the worst of them, as docs/accuracy.md
/// has it.
#[test]
fn the_tolerance_is_kept() {
    let Some(gpu) = gpu() else { return };
    for name in ["uniform", "normal", "layer"] {
        let points = set(name, 200_000, 17);
        let q = strengths(points.len(), 18);
        for kernel in [Kernel::Log, Kernel::Harmonic] {
            for tolerance in [1e-3, 1e-4, 2e-5, 1e-6, 1e-12] {
                let settings = Settings { tolerance, method: Method::Fmm, ..Settings::default() };
                let (places, given, times) = (complex(&points), gamma(&q, None), &mut StageTimes::default());
                let sum = evaluate(&gpu, &settings, kernel, Blob::Point, &places, &given, None, times).unwrap();
                let e = errors(kernel, &sum, &points, &q, None, None, 150);
                assert!(e.l2 <= tolerance, "{name} {kernel:?} {tolerance:e}: {e:?}");
                assert_eq!(
                    sum.choice.precision == Precision::F32,
                    tolerance >= 2e-5,
                    "{name} {kernel:?} {tolerance:e}"
                );
                assert!(
                    e.p99 <= 10.0 * tolerance && e.max <= 300.0 * tolerance,
                    "{name} {kernel:?} {tolerance:e}: {e:?}"
                );
            }
        }
    }
}

/// Single precision against double on the device, with the same pyramid and order: rounding is all that differs.
#[test]
fn single_precision_rounds() {
    let Some(gpu) = gpu() else { return };
    let targets = set("uniform", 3001, 13);
    for (name, mut points, leaf_size) in sets() {
        if name == "tiny" || name == "huge" || points.len() < 30 {
            continue;
        }
        // Pairs much closer than single precision can resolve, and pairs at one place.
        for i in 0..points.len() / 50 {
            let [x, y] = points[i];
            let last = points.len() - 1 - i;
            points[last] = if i % 3 == 0 { [x, y] } else { [x + 1e-4, y] };
        }
        for order in [5, 12, 16, 20, 30] {
            for (kernel, imaginary, blob) in [
                (Kernel::Log, false, Blob::Point),
                (Kernel::Harmonic, false, Blob::Point),
                (Kernel::Harmonic, true, Blob::Point),
                (Kernel::Log, false, Blob::Algebraic(1e-3)),
                (Kernel::Harmonic, true, Blob::Algebraic(1e-3)),
                (Kernel::Log, false, Blob::Gaussian(1e-3)),
            ] {
                for at in [None, Some(&targets[..])] {
                    if points.len() > 10_000 && (order != 12 || at.is_some()) || name == "one place" && at.is_none() {
                        continue;
                    }
                    let (q, qi) = (strengths(points.len(), 11), strengths(points.len(), 12));
                    let (places, given) = (complex(&points), gamma(&q, imaginary.then_some(&qi)));
                    let (others, times) = (at.map(complex), &mut StageTimes::default());
                    let sums = [Precision::F64, Precision::F32].map(|precision| {
                        let settings = Settings { precision, ..settings(order, leaf_size) };
                        evaluate(&gpu, &settings, kernel, blob, &places, &given, others.as_deref(), times).unwrap()
                    });
                    let what = format!("{name}, {kernel:?} {imaginary} {blob:?}, order {order}, {}", at.is_some());
                    assert_eq!([0, 1].map(|k| sums[k].choice.precision), [Precision::F64, Precision::F32], "{what}");
                    let [p, f] = difference(&sums);
                    assert!(p < 2e-5 && f < 3e-6, "{what}: {p:e} {f:e}");
                    let spread = ["uniform", "normal", "layer"].contains(&name);
                    // Of the others the pairs stay in double precision, as all else.
                    let single = matches!((kernel, blob), (_, Blob::Algebraic(_)) | (Kernel::Log, Blob::Point));
                    assert!(f > 1e-12 || !spread || !single, "{what}: {f:e} is no single precision");
                }
            }
        }
    }
}

#[test]
fn twenty_repeats_have_one_hash() {
    let Some(gpu) = gpu() else { return };
    let points = set("normal", 150_000, 19);
    let (q, qi) = (strengths(points.len(), 20), strengths(points.len(), 21));
    let (points, given) = (complex(&points), gamma(&q, Some(&qi)));
    let settings = Settings { tolerance: 1e-7, ..Settings::default() };
    let problem = Problem::new(&settings, Kernel::Harmonic, Blob::Point, &points, &given, None).unwrap();
    let mut plane = Plane::default();
    let mut hashes = vec![];
    for repeat in 0..20 {
        if repeat % 5 == 0 {
            plane = Plane::default();
        }
        plane.upload(&gpu, &problem).unwrap();
        plane.sum(&gpu, &problem, &mut StageTimes::default()).unwrap();
        let field: Vec<[f64; 3]> = plane.download().unwrap().1.iter().map(|g| [g.re, g.im, 0.0]).collect();
        assert!(field.iter().any(|g| g[0] != 0.0));
        hashes.push(crate::common::hash(&field));
    }
    assert!(hashes.iter().all(|h| *h == hashes[0]), "{hashes:?}");
}

#[test]
fn little_and_nothing() {
    let Some(gpu) = gpu() else { return };
    let sum = |settings: &Settings, kernel, from: &[[f64; 2]], q: &[f64], at: Option<&[[f64; 2]]>| {
        let (from, at, given) = (complex(from), at.map(complex), gamma(q, None));
        evaluate(&gpu, settings, kernel, Blob::Point, &from, &given, at.as_deref(), &mut StageTimes::default())
    };
    let single = Settings { precision: Precision::F32, tolerance: 1e-3, ..Settings::default() };
    for settings in [Settings::default(), settings(5, 10), single.clone()] {
        let one = |kernel| sum(&settings, kernel, &[[0.0; 2]], &[2.0], Some(&[[1.0, 0.0]])).unwrap();
        assert_eq!(
            (one(Kernel::Log).potential[0].abs() < 1e-15, one(Kernel::Log).field[0]),
            (true, Complex64::from(-2.0))
        );
        assert_eq!(one(Kernel::Harmonic).field[0], Complex64::from(-2.0));
        let empty = sum(&settings, Kernel::Log, &[], &[], Some(&[[1.0; 2]])).unwrap();
        assert_eq!((empty.potential, empty.field), (vec![0.0], vec![Complex64::ZERO]));
        assert!(sum(&settings, Kernel::Log, &[], &[], None).unwrap().field.is_empty());
        assert!(sum(&settings, Kernel::Log, &[[1.0; 2]], &[1.0], Some(&[])).unwrap().field.is_empty());
        let own = sum(&settings, Kernel::Log, &[[0.3; 2]], &[1.0], None).unwrap();
        assert_eq!((own.potential, own.field), (vec![0.0], vec![Complex64::ZERO]));
    }
    assert_eq!(sum(&single, Kernel::Log, &[[0.0; 2]], &[1.0], None).unwrap().field, [Complex64::ZERO]);
    let pair = sum(&single, Kernel::Harmonic, &[[0.0; 2], [4.0, 0.0]], &[1.0, 2.0], None).unwrap();
    assert!((pair.field[0].re - 0.5).abs() < 1e-6 && (pair.field[1].re + 0.25).abs() < 1e-6, "{:?}", pair.field);
    assert_eq!(pair.choice.precision, Precision::F32);
    for settings in [Settings { method: Method::Direct, ..single.clone() }, Settings { tolerance: 1e-7, ..single }] {
        let e = sum(&settings, Kernel::Log, &[[0.0; 2]], &[1.0], None).unwrap_err();
        assert!(matches!(&e, Error::Unsupported(text) if text.contains("precision")), "{e}");
    }
    let bad = sum(&Settings::default(), Kernel::Log, &[[0.0, f64::NAN]], &[1.0], None).unwrap_err();
    assert!(matches!(bad, Error::NotFinite { what: "position", .. }), "{bad}");
}
