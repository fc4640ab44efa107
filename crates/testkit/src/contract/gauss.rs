//! Sums of Gaussians: the tolerance bounds the largest error, as a part of Σ|q|.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::gauss::{Axes, Dimension, Route, Settings};

use super::Place;
use crate::gauss::errors;
use crate::random::Random;

const ROUTES: [Option<Route>; 6] = [
    None,
    Some(Route::All),
    Some(Route::Direct),
    Some(Route::Hermite),
    Some(Route::Taylor),
    Some(Route::HermiteTaylor),
];

/// Sums and asserts that the tolerance is kept.
fn kept<const D: usize>(
    place: &impl Place,
    settings: &Settings,
    sources: &[[f64; D]],
    q: &[f64],
    targets: Option<&[[f64; D]]>,
) where
    Axes<D>: Dimension<D>,
{
    let sum = place.gauss(settings, sources, &[q], targets).unwrap();
    let worst = errors(settings, sources, q, targets, &sum);
    // Rounding of the reference and of the sum.
    let limit = settings.tolerance + 2e-15;
    assert!(worst[0] <= limit && worst[1] <= limit, "{worst:?} for {settings:?}, {:?} {:?}", sum.choice, sum.routes);
}

fn every_route<const D: usize>(place: &impl Place)
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
                kept(place, &settings, &sources, &q, None);
                kept(place, &settings, &sources, &q, Some(&targets));
            }
        }
    }
}

pub fn gaussians_along_one_axis_keep_their_tolerance_on_every_route(place: &impl Place) {
    every_route::<1>(place);
}

pub fn gaussians_in_the_plane_keep_their_tolerance_on_every_route(place: &impl Place) {
    every_route::<2>(place);
}

pub fn gaussians_in_space_keep_their_tolerance_on_every_route(place: &impl Place) {
    every_route::<3>(place);
}

pub fn gaussians_of_hard_sets_keep_their_tolerance(place: &impl Place) {
    let mut random = Random(9);
    let base = random.points::<3>(300);
    let q = random.signed(300);
    let huge: Vec<f64> = q.iter().map(|q| 1e200 * q).collect();
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
                for (tolerance, q) in [(1e-3, &huge), (1e-4, &q), (1e-10, &q)] {
                    let settings = Settings { tolerance, gradient: true, route, ..Settings::new(sigma) };
                    println!("{name} {sigma:e} {route:?} {tolerance:e}");
                    kept(place, &settings, points, q, None);
                }
            }
        }
    }
}

pub fn columns_of_gaussians_are_summed_each_for_itself(place: &impl Place) {
    let mut random = Random(3);
    let points = random.points::<2>(800);
    let columns: Vec<Vec<f64>> = (0..7).map(|_| random.signed(800)).collect();
    let all: Vec<&[f64]> = columns.iter().map(|q| &q[..]).collect();
    for route in [None, Some(Route::Direct), Some(Route::Hermite), Some(Route::Taylor), Some(Route::HermiteTaylor)] {
        let settings = Settings { gradient: true, route, side: Some(0.05), ..Settings::new(0.05) };
        let together = place.gauss(&settings, &points, &all, None).unwrap();
        for (c, q) in columns.iter().enumerate() {
            let alone = place.gauss(&settings, &points, &[q], None).unwrap();
            let scale: f64 = q.iter().map(|q| q.abs()).sum();
            for i in 0..points.len() {
                let off = (together.potential[c][i] - alone.potential[0][i]).abs();
                let slope = (together.field[c][i][1] - alone.field[0][i][1]).abs() * settings.sigma;
                assert!(off.max(slope) <= 1e-6 * scale, "{route:?} {c} {i}: {off} {slope}");
            }
        }
    }
}
