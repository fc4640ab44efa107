//! The fast Gauss transform keeps its tolerance, whatever the points are, on every route.

use crate::common::random::Random;
use fmm_core::gauss::{Axes, Dimension, Evaluation, Route, Settings, evaluate};
use fmm_core::{Error, StageTimes};

/// G and e at a point, term by term.
fn direct<const D: usize>(sigma: f64, sources: &[[f64; D]], q: &[f64], y: &[f64; D]) -> (f64, [f64; D]) {
    let (mut g, mut e) = (0.0, [0.0; D]);
    for (x, q) in sources.iter().zip(q) {
        let u: [f64; D] = std::array::from_fn(|d| (y[d] - x[d]) / sigma);
        let term = q * (-0.5 * u.iter().map(|u| u * u).sum::<f64>()).exp();
        g += term;
        for d in 0..D {
            e[d] += term * u[d] / sigma;
        }
    }
    (g, e)
}

/// The largest errors of G and of σ e at up to 300 targets, as parts of Σ|q|.
fn errors<const D: usize>(
    settings: &Settings,
    sources: &[[f64; D]],
    q: &[f64],
    targets: Option<&[[f64; D]]>,
    sum: &Evaluation<D>,
) -> [f64; 2] {
    let at = targets.unwrap_or(sources);
    let scale: f64 = q.iter().map(|q| q.abs()).sum();
    let mut worst = [0.0f64; 2];
    for i in (0..at.len()).step_by(at.len().div_ceil(300)) {
        let (g, e) = direct(settings.sigma, sources, q, &at[i]);
        worst[0] = worst[0].max((g - sum.potential[0][i]).abs() / scale);
        if settings.gradient {
            let off: f64 = (0..D).map(|d| (e[d] - sum.field[0][i][d]).powi(2)).sum();
            worst[1] = worst[1].max(off.sqrt() * settings.sigma / scale);
        }
    }
    worst
}

const ROUTES: [Option<Route>; 6] = [
    None,
    Some(Route::All),
    Some(Route::Direct),
    Some(Route::Hermite),
    Some(Route::Taylor),
    Some(Route::HermiteTaylor),
];

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

fn every_route<const D: usize>()
where
    Axes<D>: Dimension<D>,
{
    let mut random = Random(D as u64);
    let (sources, targets) = (random.points::<D>(200), random.points::<D>(100));
    let q = random.signed(200);
    for tolerance in [1e-3, 1e-6, 1e-9, 1e-12] {
        for route in ROUTES {
            for (gradient, sigma) in [(false, 0.08), (true, 0.15)] {
                let settings = Settings { tolerance, gradient, route, ..Settings::new(sigma) };
                kept(&settings, &sources, &q, None);
                kept(&settings, &sources, &q, Some(&targets));
            }
        }
    }
}

#[test]
fn every_route_along_one_axis() {
    every_route::<1>();
}

#[test]
fn every_route_in_the_plane() {
    every_route::<2>();
}

#[test]
fn every_route_in_space() {
    every_route::<3>();
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

#[test]
fn hard_sets() {
    let mut random = Random(9);
    let base = random.points::<3>(300);
    let q = random.signed(300);
    let sets: Vec<(&str, Vec<[f64; 3]>)> = vec![
        ("one point", vec![[0.3, -4.0, 1e9]; 300]),
        ("a line", base.iter().map(|x| [x[0], 2.0 * x[0], -x[0]]).collect()),
        ("a plane", base.iter().map(|x| [x[0], 0.25, x[2]]).collect()),
        ("far from the origin", base.iter().map(|x| x.map(|c| c + 1e6)).collect()),
        ("two clusters", (0..300).map(|i| base[i].map(|c| if i % 2 == 0 { c } else { c * 0.1 + 1e7 })).collect()),
        ("a point apart", (0..300).map(|i| if i == 0 { [1e30; 3] } else { base[i] }).collect()),
        ("a power law", base.iter().map(|x| x.map(|c| (-30.0 * c).exp())).collect()),
        ("one axis long", base.iter().map(|x| [1e5 * x[0], x[1], x[2]]).collect()),
    ];
    for (name, points) in &sets {
        for sigma in [1e-12, 1e-3, 0.1, 1.0, 50.0, 1e8] {
            for route in [None, Some(Route::Direct)] {
                for tolerance in [1e-4, 1e-10] {
                    let settings = Settings { tolerance, gradient: true, route, ..Settings::new(sigma) };
                    let sum = evaluate(&settings, points, &[&q], None, &mut StageTimes::default()).unwrap();
                    let worst = errors(&settings, points, &q, None, &sum);
                    let limit = tolerance + 2e-15;
                    assert!(worst[0] <= limit && worst[1] <= limit, "{name}: {worst:?} {settings:?} {:?}", sum.choice);
                }
            }
        }
    }
}

#[test]
fn columns_are_summed_each_for_itself() {
    let mut random = Random(3);
    let points = random.points::<2>(800);
    let columns: Vec<Vec<f64>> = (0..7).map(|_| random.signed(800)).collect();
    let all: Vec<&[f64]> = columns.iter().map(|q| &q[..]).collect();
    for route in [None, Some(Route::Direct), Some(Route::Hermite), Some(Route::Taylor), Some(Route::HermiteTaylor)] {
        let settings = Settings { gradient: true, route, side: Some(0.05), ..Settings::new(0.05) };
        let together = evaluate(&settings, &points, &all, None, &mut StageTimes::default()).unwrap();
        for (c, q) in columns.iter().enumerate() {
            let alone = evaluate(&settings, &points, &[q], None, &mut StageTimes::default()).unwrap();
            let scale: f64 = q.iter().map(|q| q.abs()).sum();
            for i in 0..points.len() {
                let off = (together.potential[c][i] - alone.potential[0][i]).abs();
                let slope = (together.field[c][i][1] - alone.field[0][i][1]).abs() * settings.sigma;
                assert!(off.max(slope) <= 1e-6 * scale, "{route:?} {c} {i}: {off} {slope}");
            }
        }
    }
}

/// Full boxes beside single points: more than one of the routes has a part, and the sum is right.
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
