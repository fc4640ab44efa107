//! Periodic boxes on the device: Ewald's sum, trees, lists and stages against those of the CPU.

use crate::common::gpu;
use crate::common::{FOIL, LONG, direct, in_box};
use fmm_core::accuracy;
use fmm_core::ewald::{self, At, EXACT};
use fmm_core::lists::{Lists, Space};
use fmm_core::plan::OctreePlan;
use fmm_core::tree::{Cube, Growth, Tree};
use fmm_core::{
    Choice, Family, Method, PeriodicBox, Precision, Settings, Softening, Stage, StageTimes, Surroundings, cpu,
};
use fmm_cuda::geometry::{DeviceLists, DeviceTree, Work};
use fmm_cuda::{Buffer, Gpu, evaluate, watch};
use testkit::sets::{Points, alternating, boxes, random_in};

fn close(what: &str, found: &[f64], expected: &[f64], limit: f64) {
    let unit = expected.iter().fold(0.0, |m: f64, e| m.max(e.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= limit * unit, "{what}: {i}: {a} {b}");
    }
}

fn choice(method: Method, theta: f64, order: usize, precision: Precision, leaf_size: usize) -> Choice {
    let (expansion, order, theta) = (Some(Family::Spherical), Some(order), Some(theta));
    Choice { method, precision, expansion, order, theta, leaf_size }
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
        ([1.0, 0.02, 3.0], Softening::None, FOIL, 300),
    ] {
        let cell = PeriodicBox { side, surroundings };
        let mut points = random_in(side, n, 3);
        if n > 5 {
            // One close to another, one at the same place, one just across the edge, and one far
            // outside.
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
            gpu.settle().unwrap();
            tree.build(&gpu, &mut work, &position, Cube { corner: [0.0; 3], side: longest }, leaf_size).unwrap();
            let expected = Tree::octree_in_box(&points, side, Growth::Leaves(leaf_size));
            if side == [longest; 3] {
                assert!(tree.download().unwrap() == expected, "{name}: tree");
            } else {
                // With centers in the box.
                tree.upload(&expected).unwrap();
            }
            let plan = OctreePlan::in_box(&settings, choice, side, &points, None, &mut StageTimes::default());
            if method == Method::Fmm {
                lists.fmm(&gpu, &mut work, &space, &tree, &tree, rule, plan.geometry.classes).unwrap();
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

fn compare(
    gpu: &Gpu,
    side: [f64; 3],
    (points, q): (&Points, &[f64]),
    targets: Option<&[[f64; 3]]>,
    choice: Choice,
    limits: [f64; 2],
) {
    let cell = PeriodicBox { side, surroundings: FOIL };
    let points = cell.wrap(points);
    let precision = choice.precision;
    let tolerance = if precision == Precision::F32 { 1e-4 } else { 1e-6 };
    let settings = Settings { order: choice.order, tolerance, ..in_box(cell) };
    let what = format!("{side:?} {choice:?}");
    let plan = OctreePlan::in_box(&settings, choice, side, &points, targets, &mut StageTimes::default());
    let mut expected: Stages = vec![];
    cpu::watch(&settings, &plan, (&points, q), targets, &mut |stage, m, l, s, _| {
        let potential = s.iter().map(|s| s.potential).collect();
        expected.push((stage, [m.to_vec(), l.to_vec(), potential, s.iter().flat_map(|s| s.field).collect()]));
    });
    let order = plan.choice.order.unwrap();
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
            assert!(error <= limits[k / 2], "{what} {}: {} {k} differs by {error:e}", precision.name(), stage.name());
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
                compare(&gpu, side, (&points, &q), targets, double, [1e-9, 1e-10]);
                compare(&gpu, side, (&points, &q), targets, single, [1e-2, 1e-3]);
            }
        }
    }
}
