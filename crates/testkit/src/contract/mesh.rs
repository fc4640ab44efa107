//! Sums in periodic boxes with a mesh, against Ewald's.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::{
    Boundary, Kept, KeptMesh, Method, Particles, PeriodicBox, Precision, Settings, Softening, StageTimes, Surroundings,
    Weights,
};

use super::Place;
use super::boxes::keeps;
use crate::sets::{Points, alternating, boxes, random_in};
use crate::space::Reference;

fn cell(side: [f64; 3]) -> PeriodicBox {
    PeriodicBox { side, surroundings: Surroundings::TinFoil }
}

fn mesh(side: [f64; 3], tolerance: f64) -> Settings {
    Settings { method: Method::Mesh, tolerance, boundary: Boundary::Periodic(cell(side)), ..Settings::default() }
}

pub fn a_mesh_keeps_its_tolerance_in_boxes(place: &impl Place) {
    keeps(place, 3000, Method::Mesh, Softening::None, &[1e-2, 1e-3, 1e-5, 1e-8, 1e-10]);
    keeps(place, 2000, Method::Mesh, Softening::Spline(0.02), &[1e-4, 1e-8]);
}

pub fn every_precision_of_a_mesh_keeps_what_it_takes(place: &impl Place) {
    for (name, side, points, q) in boxes(1500) {
        let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
        for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::Mixed, 1e-5), (Precision::F64, 1e-10)] {
            let settings = Settings { precision, ..mesh(side, tolerance) };
            let found = place.evaluate(&settings, &points, &q, None).unwrap();
            assert_eq!((found.choice.method, found.choice.precision), (Method::Mesh, precision), "{name}");
            let e = exact.errors(&found.potential, &found.field);
            assert!(e.keep(tolerance) && e.potential_l2 <= tolerance, "{name} {precision:?} {tolerance:e}: {e:?}");
        }
    }
}

/// The error of a mesh is measured now and then in a run, and in between where the fields that it is compared with
/// fall: here those of a sublattice that swings through the places of a crystal, where all forces vanish.
pub fn meshes_of_runs_keep_their_tolerance_between_measurements(place: &impl Place) {
    const CELLS: usize = 12;
    let side = [CELLS as f64; 3];
    let strength = |i: usize| if (i + i / CELLS + i / CELLS / CELLS).is_multiple_of(2) { 1.0 } else { -1.0 };
    let q: Vec<f64> = (0..CELLS.pow(3)).map(strength).collect();
    let jitter = random_in([2.0; 3], q.len(), 9);
    let at = |swing: f64, shaken: f64| -> Points {
        let ion = |i: usize| {
            let x = [i, i / CELLS, i / CELLS / CELLS].map(|k| (k % CELLS) as f64 + 0.5);
            let away = if q[i] > 0.0 { swing } else { 0.0 };
            [0, 1, 2].map(|d| x[d] + shaken * (jitter[i][d] - 1.0) + if d == 0 { away } else { 0.0 })
        };
        (0..q.len()).map(ion).collect()
    };
    for (tolerance, shaken, precision) in [
        (1e-3, 0.1, Precision::Auto),
        (1e-4, 1e-3, Precision::Auto),
        (1e-6, 1e-2, Precision::Auto),
        (1e-4, 0.1, Precision::F64),
    ] {
        let settings = Settings { precision, ..mesh(side, tolerance) };
        let mut store = place.store(&settings).unwrap();
        let (mut kept, mut measured) = (None, 0);
        for step in 0..40 {
            let points = at(0.3 * (std::f64::consts::TAU * step as f64 / 50.0).cos(), shaken);
            store.upload(&at_rest(&points, &q)).unwrap();
            store.want_potential(true);
            let next = store.forces_kept(kept, &mut StageTimes::default()).unwrap();
            let mesh = |kept: Option<Kept>| kept.and_then(|kept| kept.mesh);
            measured += usize::from(mesh(next) != mesh(kept));
            kept = next;
            let (potential, field) = store.field().unwrap();
            let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
            let e = exact.errors(&potential, &field);
            let keeps = e.keep(tolerance) && e.potential_l2 <= tolerance;
            assert!(keeps, "{tolerance:e} {shaken} {precision:?}, step {step}: {e:?}");
        }
        assert!((3..30).contains(&measured), "{tolerance:e} {shaken} {precision:?}: {measured} measured");
    }
}

fn at_rest(points: &[[f64; 3]], q: &[f64]) -> Particles {
    let (position, strength, velocity) = (points.to_vec(), q.to_vec(), vec![[0.0; 3]; q.len()]);
    Particles { position, velocity, strength, ..Particles::default() }
}

/// The field of a pair that all but meets is far stronger than all others. Errors that are too large at the weakest of
/// these are found nevertheless.
pub fn a_pair_that_all_but_meets_hides_no_errors(place: &impl Place) {
    const ORDER: usize = 6;
    let side = [1.0; 3];
    for seed in 0..6 {
        // All is symmetric about a point where no force is left, and three light ions are next to it.
        let (center, mut points) = ([0.37, 0.21, 0.44], random_in(side, 1000, 40 + seed));
        points[1] = points[0].map(|x| x + 1e-6);
        points.extend_from_within(..);
        points[1000..].iter_mut().for_each(|x| *x = [0, 1, 2].map(|d| 2.0 * center[d] - x[d]));
        let mut q = alternating(points.len());
        for i in 0..3 {
            let place = 700 * i + 41 * seed as usize;
            points.insert(place, center.map(|x| x + 1e-4 * (1.0 + i as f64)));
            q.insert(place, 1e-9);
        }
        let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
        let given = Settings { order: Some(ORDER), precision: Precision::F64, ..mesh(side, 1e-3) };
        let found = place.evaluate(&given, &points, &q, None).unwrap();
        let tolerance = exact.errors(&found.potential, &found.field).rms / 3.0;
        let settings = mesh(side, tolerance);
        let mut store = place.store(&settings).unwrap();
        store.upload(&at_rest(&points, &q)).unwrap();
        store.want_potential(true);
        // A mesh whose error is not known any more.
        let mesh = Some(KeptMesh { order: ORDER, error: 1.0, weights: Weights([1.0; 3]) });
        let (precision, leaf_size) = (Precision::F64, Some(found.choice.leaf_size));
        let kept = Kept { direct: false, target_error: tolerance, precision, leaf_size, sums: 0, patience: 16, mesh };
        store.forces_kept(Some(kept), &mut StageTimes::default()).unwrap();
        let (potential, field) = store.field().unwrap();
        let e = exact.errors(&potential, &field);
        assert!(e.keep(tolerance), "seed {seed}, {tolerance:e}: {e:?}");
    }
}

/// Every order errs as its table says, with any cut-off.
pub fn orders_and_cut_offs_of_a_mesh_that_are_given_are_taken(place: &impl Place) {
    let side = [2.0, 3.0, 2.5];
    let (points, q) = (random_in(side, 1000, 1), alternating(1000));
    let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
    let mut before = 1.0;
    for order in 3..=16 {
        for neighbours in [10, 100, 1500] {
            let settings = Settings { order: Some(order), leaf_size: Some(neighbours), ..mesh(side, 1e-3) };
            let settings = Settings { precision: Precision::F64, ..settings };
            let found = place.evaluate(&settings, &points, &q, None).unwrap();
            assert_eq!((found.choice.order, found.choice.leaf_size), (Some(order), neighbours));
            let e = exact.errors(&found.potential, &found.field);
            assert!(e.l2 < before && e.l2 < 0.1 * 0.2f64.powi(order as i32 - 3), "{order} {neighbours}: {e:?}");
            if neighbours == 1500 {
                before = e.l2;
            }
        }
    }
}

pub fn boxes_of_any_shape_and_few_bodies_have_a_mesh(place: &impl Place) {
    for (side, n) in
        [([10.0, 1.0, 1.0], 600), ([1.0, 0.02, 3.0], 300), ([1.0; 3], 1), ([1.0; 3], 2), ([5.0, 1.0, 2.0], 3)]
    {
        let (points, q) = (random_in(side, n, 4), (0..n).map(|i| 1.0 + i as f64).collect::<Vec<_>>());
        let targets: Points = random_in(side, 50, 5);
        for at in [None, Some(&targets[..])] {
            let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, at);
            let found = place.evaluate(&mesh(side, 1e-6), &points, &q, at).unwrap();
            let e = exact.errors(&found.potential, &found.field);
            // One body alone feels nothing.
            let field = if n == 1 && at.is_none() { 0.0 } else { e.l2 };
            assert!(field <= 1e-6 && e.potential_l2 <= 1e-6, "{side:?} {n}: {e:?}");
        }
    }
}

/// Pairs too close for single precision are summed in double, bodies at one place see their images alone.
pub fn close_and_coincident_bodies_of_a_mesh_are_right(place: &impl Place) {
    let side = [1.0; 3];
    let mut points = random_in(side, 1000, 7);
    for i in 0..100 {
        let x = points[i];
        points.push([x[0] + 1e-9 * (1 + i % 7) as f64, x[1], x[2]]);
        points.push(x);
    }
    let q: Vec<f64> = (0..points.len()).map(|i| if i % 3 == 0 { -1.5 } else { 1.0 }).collect();
    let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
    let found = place.evaluate(&Settings { precision: Precision::F32, ..mesh(side, 1e-4) }, &points, &q, None).unwrap();
    assert_eq!(found.coincident_pairs, 100);
    let e = exact.errors(&found.potential, &found.field);
    assert!(e.keep(1e-4), "{e:?}");
}
