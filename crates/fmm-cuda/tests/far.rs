//! The stages of fast sums on the device against those of the CPU, array by array, and the forces against direct sums.

use crate::common::{errors, gpu, hash, plummer, uniform};
use fmm_core::accuracy::{self, Problem};
use fmm_core::plan::OctreePlan;
use fmm_core::tree::Cube;
use fmm_core::{Family, Method, ParticleStore, Particles, Precision, Settings, Softening, Stage, StageTimes, cpu};
use fmm_cuda::{CudaStore, Gpu, evaluate, watch};

/// Multipoles, local expansions, potentials and fields after each stage.
type Stages = Vec<(Stage, [Vec<f64>; 4])>;

struct Case {
    name: &'static str,
    particles: Particles,
    targets: Option<Vec<[f64; 3]>>,
    order: usize,
    leaf_size: usize,
    method: Method,
    theta: Option<f64>,
    softening: Softening,
}

fn case(name: &'static str, particles: Particles, order: usize, leaf_size: usize) -> Case {
    let (method, softening) = (Method::Fmm, Softening::None);
    Case { name, particles, targets: None, order, leaf_size, method, theta: None, softening }
}

/// Two spheres, the second much smaller and far away.
pub fn two_clusters(n: usize, seed: u64) -> Particles {
    let mut p = plummer(n, seed);
    for x in p.position.iter_mut().skip(n / 2) {
        *x = [0.01 * x[0] + 40.0, 0.01 * x[1] + 3.0, 0.01 * x[2] - 7.0];
    }
    p
}

pub fn with_copies(mut p: Particles, copies: usize) -> Particles {
    for i in 1..copies {
        p.position[i] = p.position[0];
    }
    p
}

fn cases() -> Vec<Case> {
    let mut all = vec![
        case("one", uniform(1, 0.0, 1), 4, 8),
        case("leaf", uniform(100, 0.0, 2), 4, 128),
        case("order 1", uniform(3000, 0.0, 3), 1, 10),
        case("uniform", uniform(20_000, 0.0, 4), 4, 48),
        case("plummer", plummer(20_000, 5), 2, 40),
        case("plummer 4", plummer(20_000, 6), 4, 90),
        case("order 8", plummer(10_000, 7), 8, 100),
        case("two clusters", two_clusters(20_000, 8), 5, 64),
        case("order 12", uniform(8000, 0.0, 9), 12, 100),
        case("order 19", uniform(4000, 0.0, 10), 19, 100),
        case("copies", with_copies(uniform(5000, 0.0, 11), 300), 4, 40),
    ];
    all.push(Case { targets: Some(uniform(5000, 0.3, 12).position), ..case("targets", plummer(9000, 13), 4, 40) });
    all.push(Case { theta: Some(0.55), ..case("narrow", plummer(9000, 14), 3, 30) });
    all.push(Case { method: Method::Treecode, ..case("treecode", plummer(9000, 15), 4, 60) });
    all.push(Case { softening: Softening::Spline(1e-3), ..case("spline", plummer(9000, 16), 4, 60) });
    all.push(Case { softening: Softening::Plummer(1e-4), ..case("softened", plummer(9000, 17), 4, 60) });
    all.push(Case { softening: Softening::Plummer(0.3), ..case("wide plummer", plummer(9000, 26), 3, 40) });
    all.push(Case { softening: Softening::P1(0.2), ..case("wide p1", two_clusters(9000, 27), 6, 60) });
    all.push(Case { softening: Softening::Yukawa(8.0), ..case("wide screened", plummer(9000, 30), 5, 40) });
    let treecode =
        Case { softening: Softening::Yukawa(20.0), ..case("wide screened treecode", plummer(9000, 31), 4, 60) };
    all.push(Case { method: Method::Treecode, ..treecode });
    let treecode = Case { softening: Softening::P1(0.3), ..case("wide treecode", plummer(9000, 28), 4, 60) };
    all.push(Case { method: Method::Treecode, ..treecode });
    let elsewhere = Some(uniform(3000, 0.3, 29).position);
    all.push(Case {
        softening: Softening::Plummer(0.1),
        targets: elsewhere,
        ..case("wide targets", plummer(9000, 30), 5, 40)
    });
    all
}

fn compare(
    gpu: &Gpu,
    case: &Case,
    precision: Precision,
    tolerance: f64,
    [coefficients, sums]: [f64; 2],
) -> Vec<(Stage, f64)> {
    let settings = Settings {
        method: case.method,
        order: Some(case.order),
        leaf_size: Some(case.leaf_size),
        theta: case.theta,
        softening: case.softening,
        precision,
        tolerance,
        ..Settings::default()
    };
    let (x, q) = (&case.particles.position[..], &case.particles.strength[..]);
    let targets = case.targets.as_deref();
    let cube = Cube::around(&[x, targets.unwrap_or(&[])]);
    let count = targets.map_or(x.len(), <[_]>::len);
    let choice = accuracy::choose(&settings, Problem::of(x, &[q], count, &cube)).unwrap();
    let plan = OctreePlan::new(&settings, choice, cube, x, targets, &mut StageTimes::default());
    let cartesian = plan.choice.expansion == Some(Family::Cartesian);
    assert_eq!(cartesian, case.name.starts_with("wide"), "{}", case.name);
    let mut expected: Stages = vec![];
    cpu::watch(&settings, &plan, (x, q), targets, &mut |stage, m, l, s, _| {
        let potential = s.iter().map(|s| s.potential).collect();
        let field = s.iter().flat_map(|s| s.field).collect();
        expected.push((stage, [m.to_vec(), l.to_vec(), potential, field]));
    });
    let n = expected[0].1[0].len() / plan.source_tree().len();
    let mut found: Stages = vec![];
    let mut see = |stage, m, l, s: Vec<fmm_cuda::view::Sum>, _| {
        let potential = s.iter().map(|s| s.potential).collect();
        let field = s.iter().flat_map(|s| s.field).collect();
        found.push((stage, [m, l, potential, field]));
    };
    watch(gpu, &settings, &plan, (x, q), targets, &mut see).unwrap();
    assert_eq!(found.len(), expected.len(), "{}", case.name);
    let mut worst = vec![];
    for ((stage, found), (same, expected)) in found.iter().zip(&expected) {
        assert_eq!(stage, same);
        for (k, (a, b)) in found.iter().zip(expected).enumerate() {
            // Local expansions are zeroed with the multipoles, treecodes have none.
            if case.method == Method::Treecode && k == 1 {
                continue;
            }
            let (width, limit) = if k < 2 { (n, coefficients) } else { (if k == 2 { 1 } else { 3 }, sums) };
            let error = difference(a, b, width);
            assert!(error <= limit, "{} {}: {} {k} differs by {error:e}", case.name, precision.name(), stage.name());
            worst.push((*stage, error));
        }
    }
    worst
}

/// The largest rms difference of a column of rows of `width` numbers, relative to the column's rms.
fn difference(a: &[f64], b: &[f64], width: usize) -> f64 {
    assert_eq!(a.len(), b.len());
    let mut worst = 0.0f64;
    for k in 0..width {
        let column = |v: &[f64]| v.iter().skip(k).step_by(width).copied().collect::<Vec<_>>();
        let (a, b) = (column(a), column(b));
        let norm: f64 = b.iter().map(|x| x * x).sum();
        let delta: f64 = a.iter().zip(&b).map(|(x, y)| (x - y) * (x - y)).sum();
        assert!(delta.is_finite());
        if delta > 0.0 {
            worst = worst.max((delta / norm.max(1e-300)).sqrt());
        }
    }
    worst
}

#[test]
fn stages_in_double_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    for case in cases() {
        let worst = compare(&gpu, &case, Precision::F64, 1e-6, [1e-11, 1e-11]);
        println!("{}: {:.1e}", case.name, worst.iter().map(|w| w.1).fold(0.0, f64::max));
    }
    // An order whose harmonics no longer fit shared memory, and whose products are divided among
    // blocks.
    let order_30 = case("order 30", uniform(3000, 0.0, 18), 30, 300);
    compare(&gpu, &order_30, Precision::F64, 1e-6, [1e-9, 1e-11]);
}

#[test]
fn stages_in_single_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    for case in cases() {
        let worst = compare(&gpu, &case, Precision::F32, 1e-4, [1e-4, 1e-5]);
        println!("{}: {:.1e}", case.name, worst.iter().map(|w| w.1).fold(0.0, f64::max));
        // One product in TF32.
        let worst = compare(&gpu, &case, Precision::F32, 1e-3, [1e-2, 1e-3]);
        println!("{} in TF32: {:.1e}", case.name, worst.iter().map(|w| w.1).fold(0.0, f64::max));
    }
}

/// With pairs in single precision M2L multiplies numbers in two halves, which have few exponents: sums round as if to single
/// precision, with strengths, lengths and orders of any size.
#[test]
fn stages_with_halves_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    let strengths = |strength: &dyn Fn(usize) -> f64| (0..9000).map(strength).collect::<Vec<f64>>();
    let scattered = strengths(&|i| 10f64.powi((i * 7919 % 25) as i32 - 12));
    let heavy = strengths(&|i| if i % 2000 == 77 { 1e9 } else { 1.0 });
    let signed = strengths(&|i| if i % 3 == 0 { -1e-20 } else { 1e-20 });
    let mut far_apart = two_clusters(9000, 62);
    far_apart.position.iter_mut().flatten().for_each(|x| *x *= 1e20);
    let mut all = cases();
    for order in [9, 13, 15, 30] {
        all.push(case("far apart", far_apart.clone(), order, 60));
        all.push(case("scattered", Particles { strength: scattered.clone(), ..uniform(9000, 0.0, 63) }, order, 60));
        all.push(case("heavy", Particles { strength: heavy.clone(), ..plummer(9000, 64) }, order, 60));
        all.push(case("signed", Particles { strength: signed.clone(), ..uniform(9000, 0.0, 65) }, order, 60));
    }
    for case in all {
        // Coefficients of the highest degrees, which count least, have few bits.
        let coefficients = if case.order > 15 { 1e-2 } else { 1e-5 };
        let worst = compare(&gpu, &case, Precision::Mixed, 5e-6, [coefficients, 1e-5]);
        println!("{} {}: {:.1e}", case.name, case.order, worst.iter().map(|w| w.1).fold(0.0, f64::max));
    }
}

/// Every list is met in some case: a comparison of empty lists would say nothing.
#[test]
fn the_cases_have_all_lists() {
    let mut lengths = [0; 4];
    for case in cases() {
        let settings = Settings {
            method: case.method,
            order: Some(case.order),
            leaf_size: Some(case.leaf_size),
            precision: Precision::F32,
            tolerance: 1e-3,
            ..Settings::default()
        };
        let x = &case.particles.position[..];
        let cube = Cube::around(&[x]);
        let choice = accuracy::choose(&settings, Problem::of(x, &[&case.particles.strength], x.len(), &cube)).unwrap();
        let lists = OctreePlan::new(&settings, choice, cube, x, None, &mut StageTimes::default()).lists;
        for (length, list) in lengths.iter_mut().zip([&lists.m2l, &lists.m2p, &lists.p2l, &lists.p2p]) {
            *length += list.len();
        }
    }
    assert!(lengths.iter().all(|&n| n > 100), "{lengths:?}");
}

/// The cases with names in "wide" use Cartesian expansions at every tolerance of the comparisons;
/// the others never do.
#[test]
fn wide_cases_are_cartesian() {
    for case in cases() {
        for (tolerance, precision) in [(1e-3, Precision::F32), (1e-4, Precision::F32), (1e-6, Precision::F64)] {
            let settings = Settings {
                method: case.method,
                order: Some(case.order),
                theta: case.theta,
                softening: case.softening,
                precision,
                tolerance,
                ..Settings::default()
            };
            let x = &case.particles.position[..];
            let targets = case.targets.as_deref();
            let cube = Cube::around(&[x, targets.unwrap_or(&[])]);
            let count = targets.map_or(x.len(), <[_]>::len);
            let choice =
                accuracy::choose(&settings, Problem::of(x, &[&case.particles.strength], count, &cube)).unwrap();
            let cartesian = choice.expansion == Some(Family::Cartesian);
            assert_eq!(cartesian, case.name.starts_with("wide"), "{} {tolerance:e}", case.name);
        }
    }
}

/// Every stage, the choice and the guard on a set so small that a checker of memory gets through it.
fn small_sum(method: Method, tolerance: f64, targets: Option<&[[f64; 3]]>) {
    let Some(gpu) = gpu() else { return };
    let p = two_clusters(600, 46);
    let times = &mut StageTimes::default();
    let exact = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
    let settings = Settings { method, tolerance, leaf_size: Some(8), ..Settings::default() };
    let sum = evaluate(&gpu, &settings, &p.position, &p.strength, targets, times).unwrap();
    let truth = fmm_core::evaluate(&exact, &p.position, &p.strength, targets, times).unwrap();
    let (rms, _) = errors(&sum.field, &truth.field);
    assert!(sum.choice.method == method && rms <= tolerance, "{} {rms:e}", method.name());
}

#[test]
fn a_small_sum_runs_through_every_stage() {
    small_sum(Method::Fmm, 1e-3, None);
}

#[test]
fn a_small_sum_in_double_precision_is_at_other_targets() {
    small_sum(Method::Fmm, 1e-6, Some(&uniform(100, 0.1, 47).position));
}

#[test]
fn a_small_treecode_keeps_the_tolerance() {
    small_sum(Method::Treecode, 1e-4, None);
}

/// Clusters so distant that keys do not resolve them: the host makes their tree, all else is done
/// on the device.
#[test]
fn sets_beyond_the_keys_are_summed() {
    let Some(gpu) = gpu() else { return };
    let mut p = plummer(20_000, 45);
    for x in p.position.iter_mut().skip(10_000) {
        *x = x.map(|c| 0.1 * c + 1e9);
    }
    let times = &mut StageTimes::default();
    let exact = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
    let truth = fmm_core::evaluate(&exact, &p.position, &p.strength, None, times).unwrap();
    let settings = Settings { method: Method::Fmm, tolerance: 1e-4, ..Settings::default() };
    let sum = evaluate(&gpu, &settings, &p.position, &p.strength, None, times).unwrap();
    let (rms, _) = errors(&sum.field, &truth.field);
    assert!(sum.choice.method == Method::Fmm && rms <= 1e-4, "{rms:e} {:?}", sum.choice);
}

#[test]
fn a_hundred_fast_sums_have_one_hash() {
    let Some(gpu) = gpu() else { return };
    let p = plummer(30_000, 23);
    let settings = Settings { method: Method::Fmm, tolerance: 1e-3, ..Settings::default() };
    let mut store = CudaStore::new(gpu, settings).unwrap();
    store.upload(&p).unwrap();
    let mut hashes = vec![];
    for _ in 0..100 {
        store.forces(&mut StageTimes::default()).unwrap();
        let (potential, field) = store.field().unwrap();
        let potential: Vec<[f64; 3]> = potential.iter().map(|&p| [p, 0.0, 0.0]).collect();
        hashes.push((hash(&field), hash(&potential)));
    }
    assert_eq!(store.choice().unwrap().method, Method::Fmm);
    assert!(hashes[0].0 != hash(&vec![[0.0; 3]; p.len()]));
    assert!(hashes.iter().all(|h| *h == hashes[0]), "{hashes:?}");
}

/// Forces come without the potential, which is summed when asked for, at the places of the last forces.
#[test]
fn the_potential_follows_the_forces() {
    let Some(gpu) = gpu() else { return };
    let p = plummer(20_000, 25);
    for (tolerance, precision) in [(1e-4, Precision::F32), (1e-8, Precision::F64)] {
        let settings = Settings {
            method: Method::Fmm,
            tolerance,
            precision,
            softening: Softening::Spline(1e-3),
            ..Settings::default()
        };
        let times = &mut StageTimes::default();
        let expected = evaluate(&gpu, &settings, &p.position, &p.strength, None, times).unwrap();
        let mut store = CudaStore::new(Gpu::open(0).unwrap(), settings).unwrap();
        store.upload(&p).unwrap();
        store.forces(times).unwrap();
        store.drift(0.5, times).unwrap();
        let (potential, field) = store.field().unwrap();
        assert!(crate::common::scalar_errors(&potential, &expected.potential).0 < 1e-6);
        assert!(errors(&field, &expected.field).0 < 1e-6);
    }
}

/// Neighbors so much larger than a leaf that single precision cannot square their distances: these
/// leaves are summed in double precision.
#[test]
fn sums_beyond_single_precision_are_done_in_double() {
    let Some(gpu) = gpu() else { return };
    let mut p = uniform(400, 0.0, 33);
    // Half of the bodies in a speck whose leaf is 1e22 times smaller than its neighbours.
    for x in p.position.iter_mut().skip(200) {
        *x = x.map(|c| 0.3 + 1e-22 * c);
    }
    p.position.truncate(201);
    p.strength.truncate(201);
    let mut at = p.position.clone();
    at.push([0.3; 3]);
    let times = &mut StageTimes::default();
    let settings = Settings { method: Method::Fmm, tolerance: 1e-3, precision: Precision::F32, ..Settings::default() };
    let sum = evaluate(&gpu, &settings, &p.position, &p.strength, Some(&at), times).unwrap();
    assert!(sum.field.as_flattened().iter().all(|f| f.is_finite()));
    let exact = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
    let truth = fmm_core::evaluate(&exact, &p.position, &p.strength, Some(&at), times).unwrap();
    assert!(errors(&sum.field, &truth.field).0 < 1e-3);
}

/// Trees and lists that are made on the device lead to the bits that the CPU's lead to.
#[test]
fn plans_made_here_have_the_bits_of_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let p = two_clusters(20_000, 31);
    let elsewhere = uniform(5000, 0.3, 32).position;
    for (method, precision, targets) in [
        (Method::Fmm, Precision::F32, None),
        (Method::Fmm, Precision::F64, Some(&elsewhere[..])),
        (Method::Treecode, Precision::F32, None),
    ] {
        let (order, leaf_size) = (Some(5), Some(50));
        let settings = Settings { method, order, leaf_size, precision, tolerance: 1e-4, ..Settings::default() };
        let (x, q) = (&p.position[..], &p.strength[..]);
        let cube = Cube::around(&[x, targets.unwrap_or(&[])]);
        let count = targets.map_or(x.len(), <[_]>::len);
        let choice = accuracy::choose(&settings, Problem::of(x, &[q], count, &cube)).unwrap();
        let plan = OctreePlan::new(&settings, choice, cube, x, targets, &mut StageTimes::default());
        let mut expected = vec![[0.0; 3]; count];
        let mut see = |_, _, _, sums: Vec<fmm_cuda::view::Sum>, scale: f64| {
            for (s, &i) in sums.iter().zip(&plan.targets.order) {
                expected[i as usize] = s.field.map(|f| f / scale);
            }
        };
        watch(&gpu, &settings, &plan, (x, q), targets, &mut see).unwrap();
        let found = evaluate(&gpu, &settings, x, q, targets, &mut StageTimes::default()).unwrap();
        assert!(found.field == expected && expected[0] != [0.0; 3], "{method:?} in {precision:?}");
    }
}
