//! Sums of Gaussians on the device: points in boxes as on the CPU, every route within the tolerance of direct sums, and one hash of a hundred
//! repeats.

use crate::common::gpu;
use fmm_core::gauss::boxes::{Occupied, Sorted};
use fmm_core::gauss::series::Basis;
use fmm_core::gauss::{self, Axes, Dimension, Evaluation, Route, Settings};
use fmm_core::{Error, Precision, StageTimes};
use fmm_cuda::gauss::single::SingleEvaluations;
use fmm_cuda::gauss::workload::Evaluations;
use fmm_cuda::gauss::{Problem, Transform, evaluate};
use fmm_cuda::planar::workload::{Translations, Version};
use fmm_cuda::{DeviceWork, Gpu};
use testkit::random::Random;

fn sum<const D: usize>(
    gpu: &Gpu,
    settings: &Settings,
    precision: Precision,
    sources: &[[f64; D]],
    strengths: &[&[f64]],
    targets: Option<&[[f64; D]]>,
) -> Result<(Evaluation<D>, Precision), Error>
where
    Axes<D>: Dimension<D>,
{
    let problem = Problem { settings, precision, sources, strengths, targets };
    evaluate(gpu, &problem, &mut StageTimes::default())
}

/// G and σ e, each as a part of Σ|q|: the largest difference from the sum of all pairs on the CPU.
fn errors<const D: usize>(
    settings: &Settings,
    sources: &[[f64; D]],
    q: &[f64],
    targets: Option<&[[f64; D]]>,
    found: &Evaluation<D>,
) -> [f64; 2]
where
    Axes<D>: Dimension<D>,
{
    let at = targets.unwrap_or(sources);
    let some: Vec<usize> = (0..at.len()).step_by(at.len().div_ceil(300).max(1)).collect();
    let places: Vec<[f64; D]> = some.iter().map(|&i| at[i]).collect();
    let plain = Settings { gradient: settings.gradient, ..Settings::plain(settings.sigma) };
    let truth = gauss::evaluate(&plain, sources, &[q], Some(&places), &mut StageTimes::default()).unwrap();
    let scale: f64 = q.iter().map(|q| q.abs()).sum::<f64>().max(1e-300);
    let mut worst = [0.0f64; 2];
    for (k, &i) in some.iter().enumerate() {
        worst[0] = worst[0].max((truth.potential[0][k] - found.potential[0][i]).abs() / scale);
        if settings.gradient {
            let off = |d: usize| (truth.field[0][k][d] - found.field[0][i][d]) * (settings.sigma / scale);
            worst[1] = worst[1].max((0..D).map(|d| off(d).powi(2)).sum::<f64>().sqrt());
        }
    }
    worst
}

/// Sums on the device and asserts that the tolerance is kept.
fn kept<const D: usize>(
    gpu: &Gpu,
    settings: &Settings,
    precision: Precision,
    sources: &[[f64; D]],
    q: &[f64],
    targets: Option<&[[f64; D]]>,
) -> ([f64; 2], Precision)
where
    Axes<D>: Dimension<D>,
{
    let (found, used) = sum(gpu, settings, precision, sources, &[q], targets).unwrap();
    let worst = errors(settings, sources, q, targets, &found);
    // Rounding of the reference and of the sum.
    let limit = settings.tolerance + 2e-15;
    let (choice, routes) = (&found.choice, found.routes);
    assert!(worst[0] <= limit && worst[1] <= limit, "{worst:?} for {settings:?} {used:?}, {choice:?} {routes:?}");
    (worst, used)
}

/// Boxes of many sizes: those with more points than a block of P2M takes, those with many points for each thread of L2P, high orders.
#[test]
fn full_boxes_and_high_orders_are_summed() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random(4);
    let (sources, q) = (random.points::<3>(20_000), random.signed(20_000));
    let targets = random.points::<3>(7001);
    for (tolerance, side) in [(1e-3, 3.0), (1e-6, 2.2), (1e-6, 0.7), (1e-10, 1.2)] {
        for route in [Some(Route::HermiteTaylor), Some(Route::Hermite)] {
            let side = Some(side * 0.3);
            let settings = Settings { tolerance, gradient: true, route, side, ..Settings::new(0.3) };
            kept(&gpu, &settings, Precision::Auto, &sources, &q, None);
            kept(&gpu, &settings, Precision::Auto, &sources, &q, Some(&targets));
        }
    }
}

#[test]
fn points_are_in_the_boxes_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random(6);
    for n in [1, 2, 31, 2047, 2048, 2049, 30_000] {
        let points: Vec<[f64; 3]> =
            random.points::<3>(n).iter().map(|x| [x[0] - 7.0, 3.0 * x[1], 1e3 + x[2]]).collect();
        let q = random.signed(n);
        for (sigma, tolerance) in [(0.02, 1e-6), (0.5, 1e-3), (1e-5, 1e-6)] {
            let settings = Settings { tolerance, ..Settings::new(sigma) };
            let (precision, targets) = (Precision::F64, None);
            let problem = Problem { settings: &settings, precision, sources: &points, strengths: &[&q], targets };
            let mut transform = Transform::default();
            transform.upload(&gpu, &problem).unwrap();
            let (plan, _) = transform.sum(&gpu, &problem, &mut StageTimes::default()).unwrap();
            let occupied = Occupied::new(&plan.geometry.lattice, &points);
            assert!(
                plan.source_tree().keys == occupied.keys && plan.source_tree().start == occupied.start,
                "{n} {sigma}"
            );
            assert!(plan.source_tree().cells == occupied.cells);
            assert!(
                transform.order().unwrap() == Sorted::new(&plan.geometry.lattice, &occupied, &points).order,
                "{n} {sigma}"
            );
        }
    }
}

/// Single precision is used for a tolerance that it keeps and not for one that it does not keep; an
/// explicit request for it then ends with an error.
#[test]
fn single_precision_is_taken_where_it_keeps_the_tolerance() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random(10);
    let (points, q) = (random.points::<3>(3000), random.signed(3000));
    for (tolerance, expected) in [(1e-3, Precision::F32), (1e-4, Precision::F32), (1e-6, Precision::F64)] {
        let settings = Settings { tolerance, gradient: true, route: Some(Route::Direct), ..Settings::new(0.05) };
        let (_, used) = kept(&gpu, &settings, Precision::Auto, &points, &q, None);
        assert_eq!(used, expected, "{tolerance:e}");
    }
    // What there is of cut-off and rounding, without the cut-off: single precision itself.
    let settings = Settings { tolerance: 1e-4, gradient: true, route: Some(Route::Direct), ..Settings::new(0.5) };
    let (worst, used) = kept(&gpu, &settings, Precision::F32, &points, &q, None);
    assert!(used == Precision::F32 && worst[0] < 2e-6 && worst[1] < 2e-6, "{worst:?}");
    let fine = Settings { tolerance: 1e-6, ..settings };
    let refused = sum(&gpu, &fine, Precision::F32, &points, &[&q], None).expect_err("refused");
    assert!(matches!(&refused, Error::Unsupported(text) if text.contains("precision auto")), "{refused}");
}

#[test]
fn columns_are_summed_each_for_itself_on_the_device() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random(3);
    let (points, targets) = (random.points::<2>(2000), random.points::<2>(77));
    let columns: Vec<Vec<f64>> = (0..3).map(|_| random.signed(2000)).collect();
    let all: Vec<&[f64]> = columns.iter().map(|q| &q[..]).collect();
    for at in [None, Some(&targets[..])] {
        let settings = Settings { gradient: true, ..Settings::new(0.05) };
        let (together, _) = sum(&gpu, &settings, Precision::Auto, &points, &all, at).unwrap();
        assert_eq!((together.potential.len(), together.field.len()), (3, 3));
        for (c, q) in columns.iter().enumerate() {
            let (alone, _) = sum(&gpu, &settings, Precision::Auto, &points, &[q], at).unwrap();
            assert!(together.potential[c] == alone.potential[0] && together.field[c] == alone.field[0], "{c}");
        }
    }
}

#[test]
fn a_hundred_repeats_have_one_hash() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random(12);
    let cluster = |i: usize, x: [f64; 3]| if i.is_multiple_of(4) { x } else { x.map(|c| 0.4 + 0.1 * c) };
    let points: Vec<[f64; 3]> = (0..30_000).map(|i| cluster(i, random.points::<3>(1)[0])).collect();
    let q = random.signed(points.len());
    for tolerance in [1e-3, 1e-7] {
        let settings = Settings { tolerance, gradient: true, ..Settings::new(0.05) };
        let (precision, targets) = (Precision::Auto, None);
        let problem = Problem { settings: &settings, precision, sources: &points, strengths: &[&q], targets };
        let mut transform = Transform::default();
        let mut hashes = vec![];
        for repeat in 0..100 {
            if repeat % 25 == 0 {
                transform = Transform::default();
                transform.upload(&gpu, &problem).unwrap();
            }
            transform.sum(&gpu, &problem, &mut StageTimes::default()).unwrap();
            let (potential, field) = transform.download().unwrap();
            let rows: Vec<[f64; 3]> = field[0].as_chunks::<3>().0.to_vec();
            let values: Vec<[f64; 3]> = potential[0].iter().map(|&g| [g, 0.0, 0.0]).collect();
            assert!(potential[0].iter().any(|&g| g != 0.0));
            hashes.push((crate::common::hash(&rows), crate::common::hash(&values)));
        }
        assert!(hashes.iter().all(|h| *h == hashes[0]), "{tolerance:e}");
    }
}

#[test]
fn nothing_to_sum_and_nowhere_on_the_device() {
    let Some(gpu) = gpu() else { return };
    let settings = Settings { gradient: true, ..Settings::new(1.0) };
    let of = |sources: &[[f64; 2]], q: &[f64], at: Option<&[[f64; 2]]>| {
        sum(&gpu, &settings, Precision::Auto, sources, &[q], at).map(|s| s.0)
    };
    let none = of(&[], &[], Some(&[[0.0, 1.0]])).unwrap();
    assert_eq!((none.potential[0][0], none.field[0][0]), (0.0, [0.0; 2]));
    assert!(of(&[[0.0; 2]], &[1.0], Some(&[])).unwrap().potential[0].is_empty());
    assert!(of(&[], &[], None).unwrap().potential[0].is_empty());
    // A source sees itself.
    let own = of(&[[5.0, 5.0]], &[3.0], None).unwrap();
    assert!((own.potential[0][0] - 3.0).abs() < 1e-14 && own.field[0][0] == [0.0; 2], "{own:?}");
    let bad = of(&[[0.0, f64::NAN]], &[1.0], None).unwrap_err();
    assert!(matches!(bad, Error::NotFinite { what: "position", .. }), "{bad}");
    let (one, _) = sum(&gpu, &settings, Precision::Auto, &[[0.0]], &[&[2.0]], Some(&[[1.0]])).unwrap();
    let exact = 1.213_061_319_425_266_8;
    assert!((one.potential[0][0] - exact).abs() < 2e-6 && (one.field[0][0][0] - exact).abs() < 2e-6, "{one:?}");
}

#[test]
fn what_is_timed_is_right() {
    let Some(gpu) = gpu() else { return };
    for basis in [Basis::Powers, Basis::Hermite] {
        for order in [1, 5, 9, 12, 16] {
            let work = Evaluations::new(&gpu, basis, order, 5000).unwrap();
            work.run(&gpu).unwrap();
            let (found, expected) = work.check().unwrap();
            assert_eq!(found.len(), work.units());
            let scale = expected.iter().fold(0.0f64, |m, e| m.max(e.abs()));
            let worst = found.iter().zip(&expected).fold(0.0f64, |m, (f, e)| m.max((f - e).abs()));
            assert!(scale > 0.0 && worst <= 1e-13 * scale, "{basis:?} {order}: {worst:e} of {scale:e}");
        }
    }
    for (order, n) in [(8, 2160), (12, 2160), (16, 2160), (5, 1), (11, 40_000), (16, 40_000)] {
        let of = |version| {
            let work = Translations::new(&gpu, version, order, n).unwrap();
            work.run(&gpu).unwrap();
            work.run(&gpu).unwrap();
            (work.units(), work.locals().unwrap())
        };
        let (units, row) = of(Version::Row);
        assert!(units >= n);
        for version in [Version::Tensor, Version::Thread] {
            for (other, row) in of(version).1.chunks_exact(2 * order).zip(row.chunks_exact(2 * order)) {
                let scale = row.iter().fold(0.0f64, |m, r| m.max(r.abs()));
                let worst = other.iter().zip(row).fold(0.0f64, |m, (o, r)| m.max((o - r).abs()));
                assert!(worst <= 1e-11 * scale, "{version:?} {order} {n}: {worst:e} of {scale:e}");
            }
        }
    }
}

#[test]
fn single_precision_is_the_series() {
    let Some(gpu) = gpu() else { return };
    for order in [1, 4, 5, 9, 12, 16] {
        let work = SingleEvaluations::new(&gpu, order, 5000).unwrap();
        assert!(work.units() >= 5000 && work.units() < 5512);
        work.run(&gpu).unwrap();
        for (i, [found, expected, size]) in work.check().unwrap().into_iter().enumerate() {
            assert!((found - expected).abs() <= 1e-5 * size, "{order} {i}: {found} {expected} of {size}");
        }
        assert!(work.occupancy(&gpu).unwrap().is_some_and(|o| o.share > 0.0));
    }
    assert!(SingleEvaluations::new(&gpu, 17, 10).is_err());
}
