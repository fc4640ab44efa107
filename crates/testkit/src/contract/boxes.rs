//! Sums in periodic boxes, against Ewald's.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::{Boundary, Method, PeriodicBox, Settings, Softening, Surroundings};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::Place;
use crate::sets::{Points, alternating, boxes, random_in};
use crate::space::Reference;

/// The methods besides the direct sum.
const METHODS: [Method; 3] = [Method::Fmm, Method::Treecode, Method::Mesh];

fn foil(side: [f64; 3]) -> PeriodicBox {
    PeriodicBox { side, surroundings: Surroundings::TinFoil }
}

/// Sums at all bodies: the rms is made by a few whose forces cancel.
pub(super) fn keeps(place: &impl Place, n: usize, method: Method, softening: Softening, asked: &[f64]) {
    for (name, side, points, q) in boxes(n) {
        let cell = foil(side);
        let exact = Reference::in_box(&cell, softening, &points, &q, None);
        for &tolerance in asked {
            let boundary = Boundary::Periodic(cell);
            let settings = Settings { method, softening, tolerance, boundary, ..Settings::default() };
            let sum = place.evaluate(&settings, &points, &q, None).unwrap();
            let (e, c) = (exact.errors(&sum.potential, &sum.field), &sum.choice);
            // The sum of all forces, over the sum of their magnitudes along the axes.
            let force = |d: usize| sum.field.iter().zip(&q).map(move |(e, q)| e[d] * q);
            let total = (0..3).map(|d| force(d).sum::<f64>().powi(2)).sum::<f64>().sqrt();
            let whole = (0..3).map(|d| force(d).map(f64::abs).sum::<f64>()).sum::<f64>();
            println!("{name:14} asked {tolerance:.0e} {e:?} |sum F| {:.1e} {c:?}", total / whole);
            assert_eq!(c.method, method, "{name}");
            assert!(e.keep(tolerance) && e.potential_l2 <= tolerance, "{name} {method:?} {tolerance:e}: {e:?} {c:?}");
            assert!(total <= tolerance * whole, "{name}: |sum F| {:e}", total / whole);
        }
    }
}

pub fn the_fmm_keeps_its_tolerance_in_boxes(place: &impl Place) {
    keeps(place, 5000, Method::Fmm, Softening::None, &[1e-3, 1e-5, 1e-8]);
}

pub fn the_treecode_keeps_its_tolerance_in_boxes(place: &impl Place) {
    keeps(place, 2000, Method::Treecode, Softening::None, &[1e-3, 1e-5, 1e-8]);
}

pub fn softened_boxes_keep_their_tolerance(place: &impl Place) {
    keeps(place, 3000, Method::Fmm, Softening::Spline(0.02), &[1e-4, 1e-8]);
}

pub fn separate_targets_positions_anywhere_and_surroundings(place: &impl Place) {
    let mut rng = StdRng::seed_from_u64(12);
    for surroundings in [Surroundings::TinFoil, Surroundings::Dielectric(1.0), Surroundings::Dielectric(78.0)] {
        let cell = PeriodicBox { side: [1.0, 1.5, 1.2], surroundings };
        let (n, tolerance, boundary) = (4000, 1e-6, Boundary::Periodic(cell));
        let anywhere = |x: &[f64; 3]| [0, 1, 2].map(|d| x[d] + cell.side[d] * f64::from(rng.random_range(-3..4)));
        let points: Points = random_in(cell.side, n, 11).iter().map(anywhere).collect();
        let targets: Points = random_in(cell.side, 500, 13).iter().map(|x| x.map(|c| c - 2.0)).collect();
        let q = alternating(n);
        for at in [None, Some(&targets[..])] {
            let exact = Reference::in_box(&cell, Softening::None, &points, &q, at);
            for method in METHODS {
                let settings = Settings { method, tolerance, boundary, ..Settings::default() };
                let sum = place.evaluate(&settings, &points, &q, at).unwrap();
                let e = exact.errors(&sum.potential, &sum.field);
                assert!(e.l2.max(e.potential_l2) < tolerance, "{surroundings:?} {method:?}: {e:?}");
            }
        }
        let charged = place.evaluate(&Settings { boundary, ..Settings::default() }, &points, &vec![1.0; n], None);
        assert_eq!(charged.is_err(), surroundings != Surroundings::TinFoil);
    }
}

pub fn bodies_at_one_place_see_their_images(place: &impl Place) {
    // More than a leaf holds: one stands for all, and sees the images of all.
    let cell = PeriodicBox::cube(1.0);
    let mut points = random_in(cell.side, 300, 1);
    points.extend([[0.99, 0.5, 0.01]; 600]);
    let q: Vec<f64> = (0..points.len()).map(|i| 0.5 + (i % 7) as f64).collect();
    let exact = Reference::in_box(&cell, Softening::None, &points, &q, None);
    for method in METHODS {
        let settings = Settings { method, tolerance: 1e-8, boundary: Boundary::Periodic(cell), ..Settings::default() };
        let sum = place.evaluate(&settings, &points, &q, None).unwrap();
        assert_eq!(sum.coincident_pairs, 600 * 599 / 2);
        let e = exact.errors(&sum.potential, &sum.field);
        assert!(e.rms.max(e.l2).max(e.potential_l2) < 1e-8, "{method:?}: {e:?}");
        assert!((sum.potential[850] / exact.potential(850) - 1.0).abs() < 1e-6);
    }
}

pub fn very_long_boxes_have_no_expansions(place: &impl Place) {
    let boundary = Boundary::Periodic(foil([1.0, 1.0, 9.0]));
    let points = random_in([1.0, 1.0, 9.0], 200, 1);
    let sum = |method| {
        let settings = Settings { method, boundary, ..Settings::default() };
        place.evaluate(&settings, &points, &alternating(200), None)
    };
    assert!(matches!(sum(Method::Auto).unwrap().choice.method, Method::Direct | Method::Mesh));
    assert!(sum(Method::Fmm).unwrap_err().to_string().contains("not 9"));
}
