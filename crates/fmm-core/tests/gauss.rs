//! The fast Gauss transform keeps its tolerance on every route, for any distribution of points.

use fmm_core::gauss::{Axes, Dimension, Route, Settings, evaluate};
use fmm_core::{Error, StageTimes};
use testkit::gauss::errors;
use testkit::random::Random;

/// Sums and asserts that the tolerance is kept.
fn kept<const D: usize>(settings: &Settings, sources: &[[f64; D]], q: &[f64], targets: Option<&[[f64; D]]>) -> [f64; 2]
where
    Axes<D>: Dimension<D>,
{
    let sum = evaluate(settings, sources, &[q], targets, &mut StageTimes::default()).unwrap();
    let worst = errors(settings, sources, q, targets, &sum);
    // Rounding of the reference and of the sum.
    let limit = settings.tolerance + 2e-15;
    assert!(worst[0] <= limit && worst[1] <= limit, "{worst:?} for {settings:?}, {:?} {:?}", sum.choice, sum.routes);
    worst
}

/// All sources in one corner of a box, targets in the others: where the series are at their worst. The bound is then no more than a few
/// times too large.
#[test]
fn corners_of_boxes() {
    for tolerance in [1e-3, 1e-6, 1e-9, 1e-12] {
        for gradient in [false, true] {
            let (sigma, side) = (1.0, 1.0);
            let corner = |i: usize| [0, 1, 2].map(|d| if i >> d & 1 == 1 { 0.999 } else { 0.001 });
            // Boxes of side 1 about the origin.
            let sources: Vec<[f64; 3]> = (0..8).map(corner).collect();
            let mut targets: Vec<[f64; 3]> = vec![];
            for shift in 0..60 {
                let away = [shift % 5, shift / 5 % 4, shift / 20].map(f64::from);
                targets.extend(sources.iter().map(|s| [0, 1, 2].map(|d| s[d] + away[d])));
            }
            for route in [Some(Route::Hermite), Some(Route::Taylor), Some(Route::HermiteTaylor)] {
                let settings = Settings { tolerance, gradient, route, side: Some(side), ..Settings::new(sigma) };
                let mut worst = [0.0f64; 2];
                for i in 0..8 {
                    let one = kept(&settings, &sources[i..=i], &[1.0], Some(&targets));
                    worst = [worst[0].max(one[0]), worst[1].max(one[1])];
                }
                assert!(worst[0].max(worst[1]) >= 1e-3 * tolerance, "{worst:?}: {settings:?}");
            }
        }
    }
}

/// Every term after the first loses up to half a spacing of the sum so far, all on the same side: term by term this was
/// 68 tolerances.
#[test]
fn light_sources_after_a_heavy_one() {
    let mut random = Random(7);
    let sources: Vec<[f64; 1]> = random.points(40_000);
    let mut q = vec![1e-3; sources.len()];
    q[0] = 3e3;
    let targets: Vec<[f64; 1]> = random.points(500);
    for route in [None, Some(Route::Hermite), Some(Route::Taylor), Some(Route::HermiteTaylor)] {
        for tolerance in [1e-13, 1e-14] {
            kept(&Settings { tolerance, route, ..Settings::new(1.0) }, &sources, &q, Some(&targets));
        }
    }
}

/// A set of full boxes and single points uses more than one route, and its sum is right.
#[test]
fn the_choice_mixes_routes() {
    let mut random = Random(5);
    let cluster = |i: usize, x: [f64; 3]| if i.is_multiple_of(4) { x } else { x.map(|c| 0.4 + 0.1 * c) };
    let points: Vec<[f64; 3]> = (0..20_000).map(|i| cluster(i, random.points::<3>(1)[0])).collect();
    let q = random.signed(points.len());
    let settings = Settings { gradient: true, ..Settings::new(0.05) };
    let sum = evaluate(&settings, &points, &[&q], None, &mut StageTimes::default()).unwrap();
    let worst = errors(&settings, &points, &q, None, &sum);
    assert!(worst[0] <= 1e-6 && worst[1] <= 1e-6, "{worst:?}");
    let r = sum.routes;
    let used = [r.direct, r.hermite, r.taylor, r.translated[0]].into_iter().filter(|&n| n > 0).count();
    assert!(used >= 2, "{:?} {r:?}", sum.choice);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let mut random = Random(11);
    let (points, targets) = (random.points::<3>(3000), random.points::<3>(1000));
    let q = random.signed(3000);
    for route in [None, Some(Route::Direct), Some(Route::Hermite), Some(Route::Taylor)] {
        let settings = Settings { tolerance: 1e-3, gradient: true, route, ..Settings::new(0.1) };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| evaluate(&settings, &points, &[&q], Some(&targets), &mut StageTimes::default()).unwrap())
        };
        let one = run(1);
        for threads in [2, 3, 7] {
            assert!(run(threads) == one, "{route:?} on {threads} threads");
        }
    }
}

#[test]
fn nothing_to_sum_and_nowhere() {
    let settings = Settings { gradient: true, ..Settings::new(1.0) };
    let times = &mut StageTimes::default();
    let none = evaluate::<2>(&settings, &[], &[&[]], Some(&[[0.0, 1.0]]), times).unwrap();
    assert_eq!((none.potential[0][0], none.field[0][0]), (0.0, [0.0; 2]));
    assert!(evaluate::<2>(&settings, &[[0.0; 2]], &[&[1.0]], Some(&[]), times).unwrap().potential[0].is_empty());
    assert!(evaluate::<2>(&settings, &[], &[&[]], None, times).unwrap().potential[0].is_empty());
    // A source sees itself.
    assert_eq!(evaluate(&settings, &[[5.0]], &[&[3.0]], None, times).unwrap().potential[0], [3.0]);
}

#[test]
fn what_cannot_be_summed_is_refused() {
    let times = &mut StageTimes::default();
    let mut refused = |settings: &Settings, points: &[[f64; 1]], q: &[&[f64]]| {
        evaluate(settings, points, q, None, times).expect_err("refused")
    };
    let fine = Settings::new(1.0);
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-200] {
        assert!(matches!(refused(&Settings::new(sigma), &[], &[&[]]), Error::Range { what: "sigma", .. }));
    }
    for tolerance in [0.0, 1.0, f64::NAN, 1e-15] {
        let error = refused(&Settings { tolerance, ..fine.clone() }, &[], &[&[]]);
        assert!(matches!(error, Error::Range { what: "tolerance", .. }));
    }
    for side in [0.0, f64::NAN, 1e4] {
        assert!(matches!(refused(&Settings { side: Some(side), ..fine.clone() }, &[], &[&[]]), Error::Range { .. }));
    }
    assert!(matches!(refused(&fine, &[[f64::NAN]], &[&[1.0]]), Error::NotFinite { what: "position", .. }));
    assert!(matches!(refused(&fine, &[[0.0]], &[&[f64::INFINITY]]), Error::NotFinite { what: "strength", .. }));
    assert!(matches!(refused(&fine, &[[0.0]], &[&[]]), Error::Shape { .. }));
    assert!(matches!(refused(&fine, &[[0.0]], &[]), Error::Unsupported(_)));
    assert!(matches!(refused(&fine, &[[0.0], [1e200]], &[&[1.0, 1.0]]), Error::Unsupported(_)));
    let far = Settings { route: Some(Route::Hermite), side: Some(900.0), ..fine };
    assert!(matches!(refused(&far, &[[0.0], [1e4]], &[&[1.0, 1.0]]), Error::Unsupported(_)));
}
