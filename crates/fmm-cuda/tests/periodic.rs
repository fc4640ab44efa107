//! Periodic boxes on the device: Ewald's sum, trees, lists and stages against those of the CPU, and whole sums against Ewald's.

mod common;

use common::{gpu, hash, plummer, uniform};
use fmm_core::accuracy::{self, Problem};
use fmm_core::ewald::{self, At, EXACT, Sums};
use fmm_core::expansion::Spherical;
use fmm_core::lists::{Lists, Space};
use fmm_core::plan::Plan;
use fmm_core::real::Real;
use fmm_core::tree::{Cube, Growth, Tree};
use fmm_core::{
    Boundary, Choice, Evaluation, Executor, Family, Method, PeriodicBox, Precision, Settings, Softening, Stage,
    StageTimes, Surroundings, cpu,
};
use fmm_cuda::geometry::{DeviceLists, DeviceTree, Work};
use fmm_cuda::{Buffer, CudaExecutor, Gpu, evaluate, measure, watch};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

type Points = Vec<[f64; 3]>;

const FOIL: Surroundings = Surroundings::TinFoil;
const LONG: [f64; 3] = [4.9163, 4.5981, 2.3];

fn random_in(side: [f64; 3], n: usize, seed: u64) -> Points {
    uniform(n, 0.0, seed).position.iter().map(|x| std::array::from_fn(|d| x[d] * side[d])).collect()
}

fn alternating(n: usize) -> Vec<f64> {
    (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect()
}

/// A crystal of sodium chloride of `cells`³ cells of side 2 whose ions have left their places a little.
fn crystal(cells: usize) -> (Points, Vec<f64>) {
    let mut rng = StdRng::seed_from_u64(8);
    let n = 2 * cells;
    let places = (0..n.pow(3)).map(|k| [k % n, k / n % n, k / n / n]);
    places
        .map(|k| {
            let sign = if (k[0] + k[1] + k[2]) % 2 == 0 { 1.0 } else { -1.0 };
            (k.map(|c| c as f64 + 0.1 * (rng.random::<f64>() - 0.5)), sign)
        })
        .unzip()
}

/// Name, sides, points and strengths.
fn boxes(n: usize) -> Vec<(&'static str, [f64; 3], Points, Vec<f64>)> {
    let cube = [2.0; 3];
    let drop: Points = plummer(n, 4).position.iter().map(|x| x.map(|c| 1.0 + 0.03 * c)).collect();
    let cells = ((n as f64 / 8.0).cbrt().round() as usize).max(1);
    let (ions, charges) = crystal(cells);
    vec![
        ("random neutral", cube, random_in(cube, n, 1), alternating(n)),
        ("rectangular", LONG, random_in(LONG, n, 2), alternating(n)),
        ("long", [4.0, 1.5, 1.0], random_in([4.0, 1.5, 1.0], n, 3), alternating(n)),
        ("drop", cube, drop, alternating(n)),
        ("crystal", [2.0 * cells as f64; 3], ions, charges),
        ("charged", cube, random_in(cube, n, 5), (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect()),
        ("gravitating", cube, random_in(cube, n, 6), vec![1.0 / n as f64; n]),
    ]
}

fn close(what: &str, found: &[f64], expected: &[f64], limit: f64) {
    let unit = expected.iter().fold(0.0, |m: f64, e| m.max(e.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= limit * unit, "{what}: {i}: {a} {b}");
    }
}

fn direct(softening: Softening, cell: PeriodicBox) -> Settings {
    Settings { method: Method::Direct, softening, boundary: Boundary::Periodic(cell), ..Settings::default() }
}

#[test]
fn ewald_sums_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    let vacuum = Surroundings::Dielectric(1.0);
    for (side, softening, surroundings, n) in [
        ([1.0; 3], Softening::None, FOIL, 1),
        ([1.0; 3], Softening::None, FOIL, 700),
        ([0.9, 2.0, 1.3], Softening::None, vacuum, 700),
        ([3.0e-7; 3], Softening::None, FOIL, 300),
        ([1.0, 0.8, 1.2], Softening::Spline(0.14), FOIL, 600),
        ([1.0, 1.0, 7.0], Softening::None, FOIL, 500),
    ] {
        let cell = PeriodicBox { side, surroundings };
        let mut points = random_in(side, n, 3);
        if n > 5 {
            // One beside another, one at its place, one just across the edge, and one far outside.
            points[1] = points[0].map(|c| c + 1e-2 * side[0]);
            points[2] = points[0];
            (points[3], points[4]) =
                ([1e-3 * side[0], points[3][1], points[3][2]], [-1e-3 * side[0], points[3][1], points[3][2]]);
            points[5][1] += 7.0 * side[1];
        }
        let q = if n == 1 { vec![1.0] } else { alternating(n) };
        let targets = random_in(side, 40, 9);
        for at in [None, Some(&targets[..])] {
            let exact = ewald::evaluate(&cell, softening, EXACT, &points, &q, at.map_or(At::Sources, At::Points));
            let times = &mut StageTimes::default();
            let found = evaluate(&gpu, &direct(softening, cell), &points, &q, at, times).unwrap();
            assert_eq!(found.choice.method, Method::Direct);
            let what = format!("{side:?} {softening:?} {}", at.is_some());
            close(&what, &found.potential, &exact.potential, 3e-13);
            // A body alone feels nothing but rounding.
            if n > 1 {
                close(&what, found.field.as_flattened(), exact.field.as_flattened(), 3e-13);
            }
            if n == 1 && at.is_none() {
                assert!((found.potential[0] + 2.837_297_479_480_619_6).abs() < 1e-13, "{}", found.potential[0]);
                assert!(found.field[0].iter().all(|e| e.abs() < 1e-13), "{:?}", found.field[0]);
            }
        }
        if n > 5 {
            let times = &mut StageTimes::default();
            let found = evaluate(&gpu, &direct(softening, cell), &points, &q, None, times).unwrap();
            assert_eq!(found.coincident_pairs, 1);
        }
    }
}

fn choice(method: Method, theta: f64, order: usize, precision: Precision, leaf_size: usize) -> Choice {
    let (expansion, order, theta) = (Some(Family::Spherical), Some(order), Some(theta));
    Choice { method, precision, expansion, order, theta, leaf_size }
}

fn in_box(cell: PeriodicBox) -> Settings {
    Settings { boundary: Boundary::Periodic(cell), ..Settings::default() }
}

#[test]
fn trees_and_lists_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    gpu.enter().unwrap();
    let (mut work, mut tree, mut lists) = (Work::default(), DeviceTree::default(), DeviceLists::default());
    for (name, side, mut points, _) in boxes(20_000) {
        points.truncate(if name == "drop" { 20_000 } else { 9000 });
        points[0] = points[1];
        let cell = PeriodicBox { side, surroundings: FOIL };
        let points = cell.wrap(&points);
        for (method, theta, leaf_size) in
            [(Method::Fmm, 0.866, 40), (Method::Fmm, 0.6, 9), (Method::Treecode, 0.7, 40), (Method::Treecode, 1.0, 9)]
        {
            let settings = in_box(cell);
            let choice = choice(method, theta, 4, Precision::F64, leaf_size);
            let rule = accuracy::rule(&settings, &choice);
            let space = Space::periodic(side, &rule);
            let longest = cell.longest();
            let stretched: Points =
                points.iter().map(|x| std::array::from_fn(|d| x[d] * (longest / side[d]))).collect();
            let mut position = Buffer::new();
            position.upload(stretched.as_flattened()).unwrap();
            tree.build(&gpu, &mut work, &position, Cube { corner: [0.0; 3], side: longest }, leaf_size).unwrap();
            let expected = Tree::octree_in_box(&points, side, Growth::Leaves(leaf_size));
            if side == [longest; 3] {
                assert!(tree.download().unwrap() == expected, "{name}: tree");
            } else {
                // With centres in the box.
                tree.upload(&expected).unwrap();
            }
            let plan = Plan::in_box(&settings, choice, side, &points, None, &mut StageTimes::default());
            if method == Method::Fmm {
                lists.fmm(&gpu, &mut work, &space, &tree, &tree, rule, plan.classes).unwrap();
            } else {
                lists.treecode(&gpu, &mut work, &space, &tree, &tree, rule).unwrap();
            }
            let (found, expected) = (lists.download().unwrap(), plan.lists);
            let of = |l: &Lists| [l.m2l.clone(), l.m2p.clone(), l.p2l.clone(), l.p2p.clone()];
            for ((what, f), e) in ["m2l", "m2p", "p2l", "p2p"].iter().zip(of(&found)).zip(of(&expected)) {
                assert!(f == e, "{name} {method:?} {theta} {leaf_size}: {what}");
            }
        }
    }
}

/// Multipoles, local expansions, potentials and fields after each stage.
type Stages = Vec<(Stage, [Vec<f64>; 4])>;

/// The largest rms difference of a column of rows of `width` numbers, relative to the column's rms or a millionth of the largest.
fn difference(a: &[f64], b: &[f64], width: usize) -> f64 {
    assert_eq!(a.len(), b.len());
    let column = |v: &[f64], k: usize| v.iter().skip(k).step_by(width).copied().collect::<Vec<_>>();
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let largest = (0..width).map(|k| norm(&column(b, k))).fold(0.0, f64::max);
    let of = |k: usize| {
        let (a, b) = (column(a, k), column(b, k));
        let delta: f64 = a.iter().zip(&b).map(|(x, y)| (x - y) * (x - y)).sum();
        assert!(delta.is_finite());
        if delta > 0.0 { (delta / norm(&b).max(1e-12 * largest).max(1e-300)).sqrt() } else { 0.0 }
    };
    (0..width).map(of).fold(0.0, f64::max)
}

fn compare<T: Real>(
    gpu: &Gpu,
    side: [f64; 3],
    (points, q): (&Points, &[f64]),
    targets: Option<&[[f64; 3]]>,
    choice: Choice,
    limits: [f64; 2],
) {
    let cell = PeriodicBox { side, surroundings: FOIL };
    let points = cell.wrap(points);
    let tolerance = if T::NAME == "f32" { 1e-4 } else { 1e-6 };
    let settings = Settings { order: choice.order, tolerance, ..in_box(cell) };
    let what = format!("{side:?} {choice:?}");
    let plan = Plan::in_box(&settings, choice, side, &points, targets, &mut StageTimes::default());
    let mut expected: Stages = vec![];
    let see = |stage, m: &[T], l: &[T], s: &[cpu::Sum<3>], _| {
        let numbers = |a: &[T]| a.iter().map(|c| c.to_f64()).collect();
        let potential = s.iter().map(|s| s.potential).collect();
        expected.push((stage, [numbers(m), numbers(l), potential, s.iter().flat_map(|s| s.field).collect()]));
    };
    let order = plan.choice.order.unwrap();
    let expansion = Spherical::<T>::new(order, plan.classes);
    cpu::watch(&expansion, &Softening::None, &plan, (&points, q), targets, see);
    let n = (order + 1) * (order + 1);
    let mut found: Stages = vec![];
    let mut see = |stage, m, l, s: Vec<fmm_cuda::view::Sum>, _| {
        let potential = s.iter().map(|s| s.potential).collect();
        found.push((stage, [m, l, potential, s.iter().flat_map(|s| s.field).collect()]));
    };
    watch(gpu, &settings, &plan, (&points, q), targets, &mut see).unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    for ((stage, found), (same, expected)) in found.iter().zip(&expected) {
        assert_eq!(stage, same);
        for (k, (a, b)) in found.iter().zip(expected).enumerate() {
            let width = [n, n, 1, 3][k];
            let error = difference(a, b, width);
            assert!(error <= limits[k / 2], "{what} {}: {} {k} differs by {error:e}", T::NAME, stage.name());
        }
    }
}

#[test]
fn stages_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    for side in [[2.0; 3], LONG] {
        let mut points = random_in(side, 5000, 7);
        // A cluster, so that all lists are met.
        for (i, x) in points.iter_mut().enumerate().take(2500) {
            *x = std::array::from_fn(|d| 0.02 * x[d] + if i % 2 == 0 { 0.0 } else { 0.49 * side[d] });
        }
        let q: Vec<f64> = (0..5000).map(|i| 0.5 + (i % 7) as f64 - if i % 3 == 0 { 4.0 } else { 0.0 }).collect();
        let other = random_in(side, 1500, 8);
        for (method, theta, order, leaf_size) in [
            (Method::Fmm, 0.866, 4, 60),
            (Method::Fmm, 0.7, 3, 20),
            (Method::Treecode, 0.8, 4, 60),
            (Method::Fmm, 0.866, 12, 100),
            (Method::Fmm, 0.866, 5, 100_000),
        ] {
            for targets in [None, Some(&other[..])] {
                let double = choice(method, theta, order, Precision::F64, leaf_size);
                let single = Choice { precision: Precision::F32, ..double.clone() };
                compare::<f64>(&gpu, side, (&points, &q), targets, double, [1e-9, 1e-10]);
                compare::<f32>(&gpu, side, (&points, &q), targets, single, [1e-2, 1e-3]);
            }
        }
    }
}

/// rms and L2 of the field and L2 of the potential against Ewald's sums, the 99 % quantile and the largest.
fn errors(exact: &Sums, sum: &Evaluation) -> [f64; 5] {
    let (mut all, mut wrong, mut right, mut pwrong, mut pright) = (vec![], 0.0, 0.0, 0.0, 0.0);
    for i in 0..exact.potential.len() {
        let d2: f64 = (0..3).map(|d| (sum.field[i][d] - exact.field[i][d]).powi(2)).sum();
        let f2: f64 = exact.field[i].iter().map(|c| c * c).sum();
        all.push(d2.sqrt() / f2.sqrt().max(1e-3 * exact.largest[i]));
        wrong += d2;
        right += f2;
        pwrong += (sum.potential[i] - exact.potential[i]).powi(2);
        pright += exact.potential[i].powi(2);
    }
    all.sort_by(f64::total_cmp);
    let rms = (all.iter().map(|e| e * e).sum::<f64>() / all.len() as f64).sqrt();
    [rms, (wrong / right).sqrt(), (pwrong / pright).sqrt(), all[(all.len() - 1) * 99 / 100], all[all.len() - 1]]
}

/// Trees of thirds of the box, where they are chosen, err as trees of halves do, which a leaf size that is given asks for.
#[test]
fn thirds_err_as_halves() {
    let Some(gpu) = gpu() else { return };
    for (n, order, charge) in [(12_000, 3, -1.0), (12_000, 10, -1.0), (12_000, 10, -0.5), (40_000, 15, -1.0)] {
        let points = random_in([2.0; 3], n, 21);
        let q: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { charge }).collect();
        let cell = PeriodicBox { side: [2.0; 3], surroundings: FOIL };
        let sum =
            |settings: &Settings| evaluate(&gpu, settings, &points, &q, None, &mut StageTimes::default()).unwrap();
        let exact = sum(&direct(Softening::None, cell));
        let exact = Sums { potential: exact.potential, field: exact.field, largest: vec![0.0; n] };
        let (method, order, precision, tolerance) = (Method::Fmm, Some(order), Precision::F64, 1e-4);
        let settings = Settings { method, order, precision, tolerance, ..in_box(cell) };
        let found = sum(&settings);
        let halves = sum(&Settings { leaf_size: Some(found.choice.leaf_size), ..settings });
        // Other trees, other bits.
        assert!(found.field != halves.field, "{n} {order:?}: no thirds");
        let [a, b] = [&found, &halves].map(|sum| errors(&exact, sum));
        println!(
            "{n} {charge} p {order:?}: L2 {:.1e}, potential {:.1e}; halves {:.1e}, {:.1e}",
            a[1], a[2], b[1], b[2]
        );
        assert!((1..3).all(|k| a[k] <= 2.0 * b[k]), "{n} {order:?}: {a:?} {b:?}");
    }
}

fn keeps(gpu: &Gpu, n: usize, method: Method, softening: Softening, asked: &[f64]) {
    for (name, side, points, q) in boxes(n) {
        let cell = PeriodicBox { side, surroundings: FOIL };
        let exact = ewald::evaluate(&cell, softening, EXACT, &points, &q, At::Sources);
        for &tolerance in asked {
            let settings = Settings { method, softening, tolerance, ..in_box(cell) };
            let sum = evaluate(gpu, &settings, &points, &q, None, &mut StageTimes::default()).unwrap();
            let c = &sum.choice;
            let [rms, l2, potential, p99, max] = errors(&exact, &sum);
            // Over the sum of their magnitudes.
            let force = |d: usize| sum.field.iter().zip(&q).map(move |(e, q)| e[d] * q);
            let total = (0..3).map(|d| force(d).sum::<f64>().powi(2)).sum::<f64>().sqrt();
            let whole = (0..3).map(|d| force(d).map(f64::abs).sum::<f64>()).sum::<f64>();
            println!(
                "{name:14} {method:?} asked {tolerance:.0e} rms {rms:.1e} 99 % {p99:.1e} max {max:.1e} L2 {l2:.1e} potential {potential:.1e} |sum F| {:.1e} {} {} p {:?} theta {:?} leaf {}",
                total / whole,
                c.method.name(),
                c.precision.name(),
                c.order,
                c.theta,
                c.leaf_size
            );
            assert_eq!(c.method, method, "{name}");
            let worst = rms.max(l2).max(potential);
            assert!(worst <= tolerance, "{name} {method:?} asked {tolerance:e}: {worst:e} {c:?}");
            assert!(total <= tolerance * whole, "{name}: |sum F| {:e}", total / whole);
        }
    }
}

#[test]
fn the_fmm_keeps_its_tolerance_in_boxes() {
    let Some(gpu) = gpu() else { return };
    keeps(&gpu, 8000, Method::Fmm, Softening::None, &[1e-3, 1e-5, 1e-8]);
}

#[test]
fn the_treecode_keeps_its_tolerance_in_boxes() {
    let Some(gpu) = gpu() else { return };
    keeps(&gpu, 3000, Method::Treecode, Softening::None, &[1e-3, 1e-5, 1e-8]);
}

#[test]
fn softened_boxes_keep_their_tolerance() {
    let Some(gpu) = gpu() else { return };
    keeps(&gpu, 3000, Method::Fmm, Softening::Spline(0.02), &[1e-4, 1e-8]);
}

/// What the guard measures on its sample is the error over all targets.
#[test]
fn the_guard_measures_the_error_in_boxes() {
    let Some(gpu) = gpu() else { return };
    for (name, side, points, q) in boxes(8000) {
        let cell = PeriodicBox { side, surroundings: FOIL };
        let exact = ewald::evaluate(&cell, Softening::None, EXACT, &points, &q, At::Sources);
        for (order, precision, tolerance) in [(4, Precision::F32, 1e-3), (10, Precision::F64, 1e-6)] {
            let settings = Settings { method: Method::Fmm, order: Some(order), precision, tolerance, ..in_box(cell) };
            let (_, error) = measure(&gpu, &settings, &points, &q, None).unwrap();
            let sum = evaluate(&gpu, &settings, &points, &q, None, &mut StageTimes::default()).unwrap();
            let [rms, l2, potential, ..] = errors(&exact, &sum);
            let whole = rms.max(l2).max(potential);
            println!("{name} p {order}: guard {error:.2e}, all {whole:.2e}");
            assert!(error > 0.4 * whole && error < 2.5 * whole, "{name} p {order}: {error:e} {whole:e}");
        }
    }
}

#[test]
fn no_sum_is_refused_by_single_precision_of_the_guard() {
    // Ions of a crystal feel next to nothing: what single precision adds up there errs by more than what it measures.
    let Some(gpu) = gpu() else { return };
    for away in [0.0, 1e-3, 1.0] {
        let n = 28;
        let place = |k: usize| [k % n, k / n % n, k / n / n];
        let (_, charges) = crystal(n / 2);
        let (shaken, _) = crystal(n / 2);
        let points: Points = shaken
            .iter()
            .enumerate()
            .map(|(k, x)| std::array::from_fn(|d| (1.0 - away) * place(k)[d] as f64 + away * x[d]))
            .collect();
        let settings = Settings { tolerance: 1e-4, ..in_box(PeriodicBox { side: [n as f64; 3], surroundings: FOIL }) };
        let settings = Settings { method: Method::Fmm, ..settings };
        let found = evaluate(&gpu, &settings, &points, &charges, None, &mut StageTimes::default()).unwrap();
        assert_eq!(found.choice.method, Method::Fmm, "{away}: {:?}", found.choice);
    }
}

#[test]
fn separate_targets_positions_anywhere_and_surroundings() {
    let Some(gpu) = gpu() else { return };
    let mut rng = StdRng::seed_from_u64(12);
    for surroundings in [FOIL, Surroundings::Dielectric(1.0), Surroundings::Dielectric(78.0)] {
        let cell = PeriodicBox { side: [1.0, 1.5, 1.2], surroundings };
        let (n, tolerance) = (4000, 1e-6);
        let points: Points = random_in(cell.side, n, 11)
            .iter()
            .map(|x| std::array::from_fn(|d| x[d] + cell.side[d] * f64::from(rng.random_range(-3..4))))
            .collect();
        let targets: Points = random_in(cell.side, 500, 13).iter().map(|x| x.map(|c| c - 2.0)).collect();
        let q = alternating(n);
        for at in [None, Some(&targets[..])] {
            let exact = ewald::evaluate(&cell, Softening::None, EXACT, &points, &q, at.map_or(At::Sources, At::Points));
            for method in [Method::Fmm, Method::Treecode] {
                let settings = Settings { method, tolerance, ..in_box(cell) };
                let sum = evaluate(&gpu, &settings, &points, &q, at, &mut StageTimes::default()).unwrap();
                let [_, l2, potential, ..] = errors(&exact, &sum);
                assert!(l2.max(potential) < tolerance, "{surroundings:?} {method:?}: {l2:e} {potential:e}");
            }
        }
        let charged = evaluate(&gpu, &in_box(cell), &points, &vec![1.0; n], None, &mut StageTimes::default());
        assert_eq!(charged.is_err(), surroundings != FOIL);
    }
}

#[test]
fn repeats_have_the_same_bits_and_particles_move() {
    let Some(gpu) = gpu() else { return };
    let (n, side) = (20_000, LONG);
    let cell = PeriodicBox { side, surroundings: Surroundings::Dielectric(1.0) };
    let mut particles = uniform(n, 0.0, 5);
    particles.position = random_in(side, n, 5);
    particles.strength = alternating(n);
    let settings = Settings { method: Method::Fmm, tolerance: 1e-4, ..in_box(cell) };
    let sum = |_| {
        let found =
            evaluate(&gpu, &settings, &particles.position, &particles.strength, None, &mut StageTimes::default())
                .unwrap();
        (hash(&found.field), found.potential)
    };
    let first = sum(0);
    assert!((1..20).map(sum).all(|other| other == first));
    let mut executor = CudaExecutor::new(Gpu::open(0).unwrap(), settings.clone()).unwrap();
    executor.upload(&particles).unwrap();
    let times = &mut StageTimes::default();
    executor.forces(times).unwrap();
    let (potential, field) = executor.field();
    assert_eq!((hash(&field), potential), first);
    // Across the edges: places in the box are found anew.
    executor.drift(40.0, times);
    executor.forces(times).unwrap();
    let (potential, field) = executor.field();
    let at = executor.particles().position;
    let again = evaluate(&gpu, &settings, &at, &particles.strength, None, times).unwrap();
    assert!(again.field == field && again.potential == potential);
    assert!(at.iter().any(|x| cell.wrapped(*x) != *x));
}

#[test]
fn bodies_at_one_place_see_their_images() {
    let Some(gpu) = gpu() else { return };
    let cell = PeriodicBox::cube(1.0);
    let mut points = random_in(cell.side, 300, 1);
    points.extend([[0.99, 0.5, 0.01]; 600]);
    let q: Vec<f64> = (0..points.len()).map(|i| 0.5 + (i % 7) as f64).collect();
    let exact = ewald::evaluate(&cell, Softening::None, EXACT, &points, &q, At::Sources);
    for method in [Method::Fmm, Method::Treecode] {
        let settings = Settings { method, tolerance: 1e-8, ..in_box(cell) };
        let sum = evaluate(&gpu, &settings, &points, &q, None, &mut StageTimes::default()).unwrap();
        assert_eq!(sum.coincident_pairs, 600 * 599 / 2);
        let [rms, l2, potential, ..] = errors(&exact, &sum);
        assert!(rms.max(l2).max(potential) < 1e-8, "{method:?}: {rms:e} {l2:e} {potential:e}");
    }
}

#[test]
fn what_no_expansion_serves_is_ewalds_sum() {
    let Some(gpu) = gpu() else { return };
    let side = [1.0, 1.0, 9.0];
    let settings = in_box(PeriodicBox { side, surroundings: FOIL });
    let points = random_in(side, 200, 1);
    let q = alternating(200);
    let sum = |settings: &Settings| evaluate(&gpu, settings, &points, &q, None, &mut StageTimes::default());
    assert_eq!(sum(&settings).unwrap().choice.method, Method::Direct);
    let fmm = Settings { method: Method::Fmm, ..settings };
    assert!(sum(&fmm).unwrap_err().to_string().contains("not 9"));
    let problem = Problem::of(&points, &q, 200, &Cube::around(&[&points]));
    assert!(fmm_cuda::choose(&fmm, problem).is_err());
}

/// Lennard-Jones forces beside Coulomb's, against every pair as the formulas stand; and a bath.
#[test]
fn neighbours_and_a_bath_act_beside_the_sum() {
    let Some(gpu) = gpu() else { return };
    for (side, n, cutoff) in [([3.0; 3], 1500, 1.1), (LONG, 2500, 1.15), ([2.0; 3], 40, 1.0)] {
        let cell = PeriodicBox { side, surroundings: FOIL };
        let mut particles = uniform(n, 0.0, 5);
        // Some outside, and one place twice.
        particles.position =
            random_in(side, n, 5).iter().map(|x| [x[0] - side[0], x[1], x[2] + 2.0 * side[2]]).collect();
        particles.position[7] = particles.position[8];
        particles.strength = alternating(n);
        let (sigma, epsilon, per_charge): ([f64; 2], [f64; 2], f64) = ([0.03, 0.05], [1.0, 0.5], 0.25);
        let mixed = |a: usize, b: usize| (0.5 * (sigma[a] + sigma[b]), (epsilon[a] * epsilon[b]).sqrt());
        let bare = |a: usize, b: usize, r: f64| {
            let (s, e) = mixed(a, b);
            let six = (s / r).powi(6);
            (4.0 * e * six * (six - 1.0), 24.0 * e * six * (2.0 * six - 1.0) / r)
        };
        let kinds = std::array::from_fn(|k| {
            let (s, e) = mixed(k / 2, k % 2);
            let (energy, force) = bare(k / 2, k % 2, cutoff);
            [s * s, e, energy, force]
        });
        let (mut energy, mut virial, mut forces) = (0.0, 0.0, vec![[0.0; 3]; n]);
        for i in 0..n {
            for j in (0..n).filter(|&j| j != i) {
                let d: [f64; 3] = std::array::from_fn(|k| {
                    let d = particles.position[i][k] - particles.position[j][k];
                    d - (d / side[k]).round() * side[k]
                });
                let r = d.iter().map(|d| d * d).sum::<f64>().sqrt();
                if r > 0.0 && r < cutoff {
                    let (a, b) = (i % 2, j % 2);
                    let (u, f) = bare(a, b, r);
                    let (end, last) = bare(a, b, cutoff);
                    let force = f - last;
                    energy += 0.5 * (u - end + (r - cutoff) * last);
                    virial += 0.5 * force * r;
                    (0..3).for_each(|k| forces[i][k] += force * d[k] / r);
                }
            }
        }
        let settings = Settings { method: Method::Auto, tolerance: 1e-6, ..in_box(cell) };
        let short = fmm_cuda::ShortRange { kinds, cutoff, per_charge };
        let field = |short| {
            let executor = CudaExecutor::new(Gpu::open(0).unwrap(), settings.clone()).unwrap();
            let bath: fmm_cuda::Bath = Box::new(|step, h, velocity| velocity[0] = [step as f64, h, 0.0]);
            let mut executor = executor.with_short_range(short).with_bath(Some((3, bath)));
            executor.upload(&particles).unwrap();
            executor.forces(&mut StageTimes::default()).unwrap();
            executor.bathe(3, 0.5);
            executor.bathe(4, 0.7);
            assert_eq!(executor.particles().velocity[0], [3.0, 0.5, 0.0]);
            assert_eq!(executor.particles().velocity[1..], particles.velocity[1..]);
            (executor.field().1, executor.beside())
        };
        let ((with, beside), (without, none)) = (field(Some(short)), field(None));
        assert_eq!((none.energy, none.virial), (0.0, 0.0));
        let found: Vec<f64> = (0..n)
            .flat_map(|i| [0, 1, 2].map(|k| (with[i][k] - without[i][k]) * particles.strength[i] / per_charge))
            .collect();
        let scale = forces.as_flattened().iter().chain(without.as_flattened()).fold(0.0, |m: f64, f| m.max(f.abs()));
        for (a, b) in found.iter().zip(forces.as_flattened()) {
            assert!((a - b).abs() < 1e-11 * scale, "{side:?}: {a} {b}");
        }
        assert!((beside.energy / energy - 1.0).abs() < 1e-10 && (beside.virial / virial - 1.0).abs() < 1e-10);
    }
    drop(gpu);
}
