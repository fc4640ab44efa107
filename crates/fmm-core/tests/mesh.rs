//! Ewald's sum with a mesh, against Ewald's sum.

use fmm_core::accuracy::Problem;
use fmm_core::mesh::recipe::Rates;
use fmm_core::{
    Boundary, Error, Evaluation, Method, PeriodicBox, Precision, Settings, Softening, StageTimes, Surroundings,
    evaluate,
};
use testkit::contract::{Cores, a_mesh_keeps_its_tolerance_in_boxes};
use testkit::sets::{Points, alternating, boxes, random_in};
use testkit::space::Reference;

fn cell(side: [f64; 3]) -> PeriodicBox {
    PeriodicBox { side, surroundings: Surroundings::TinFoil }
}

fn mesh(side: [f64; 3], tolerance: f64) -> Settings {
    Settings { method: Method::Mesh, tolerance, boundary: Boundary::Periodic(cell(side)), ..Settings::default() }
}

fn sum(settings: &Settings, points: &[[f64; 3]], q: &[f64], at: Option<&[[f64; 3]]>) -> Result<Evaluation, Error> {
    evaluate(settings, points, q, at, &mut StageTimes::default())
}

#[test]
fn the_tolerance_is_kept() {
    a_mesh_keeps_its_tolerance_in_boxes(&Cores);
}

#[test]
fn every_precision_keeps_what_it_takes() {
    for (name, side, points, q) in boxes(1500) {
        let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
        for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::Mixed, 1e-5), (Precision::F64, 1e-10)] {
            let settings = Settings { precision, ..mesh(side, tolerance) };
            let found = sum(&settings, &points, &q, None).unwrap();
            assert_eq!((found.choice.method, found.choice.precision), (Method::Mesh, precision), "{name}");
            let e = exact.errors(&found.potential, &found.field);
            assert!(e.keep(tolerance) && e.potential_l2 <= tolerance, "{name} {precision:?} {tolerance:e}: {e:?}");
        }
    }
}

/// Every order errs as its table says, with any cut-off.
#[test]
fn orders_and_cut_offs_that_are_given_are_taken() {
    let side = [2.0, 3.0, 2.5];
    let (points, q) = (random_in(side, 1000, 1), alternating(1000));
    let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
    let mut before = 1.0;
    for order in 3..=16 {
        for neighbours in [10, 100, 1500] {
            let settings = Settings { order: Some(order), leaf_size: Some(neighbours), ..mesh(side, 1e-3) };
            let settings = Settings { precision: Precision::F64, ..settings };
            let found = sum(&settings, &points, &q, None).unwrap();
            assert_eq!((found.choice.order, found.choice.leaf_size), (Some(order), neighbours));
            let e = exact.errors(&found.potential, &found.field);
            assert!(e.l2 < before && e.l2 < 0.1 * 0.2f64.powi(order as i32 - 3), "{order} {neighbours}: {e:?}");
            if neighbours == 1500 {
                before = e.l2;
            }
        }
    }
}

#[test]
fn boxes_of_any_shape_and_few_bodies_are_summed() {
    for (side, n) in
        [([10.0, 1.0, 1.0], 600), ([1.0, 0.02, 3.0], 300), ([1.0; 3], 1), ([1.0; 3], 2), ([5.0, 1.0, 2.0], 3)]
    {
        let (points, q) = (random_in(side, n, 4), (0..n).map(|i| 1.0 + i as f64).collect::<Vec<_>>());
        let targets: Points = random_in(side, 50, 5);
        for at in [None, Some(&targets[..])] {
            let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, at);
            let found = sum(&mesh(side, 1e-6), &points, &q, at).unwrap();
            let e = exact.errors(&found.potential, &found.field);
            // One body alone feels nothing.
            let field = if n == 1 && at.is_none() { 0.0 } else { e.l2 };
            assert!(field <= 1e-6 && e.potential_l2 <= 1e-6, "{side:?} {n}: {e:?}");
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let (points, q) = (random_in([1.0; 3], 3000, 6), alternating(3000));
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| sum(&mesh([1.0; 3], 1e-4), &points, &q, None).unwrap())
    };
    let one = on(1);
    assert!([2, 3, 8].into_iter().all(|threads| on(threads) == one));
}

/// Pairs too close for single precision are summed in double, bodies at one place see their images alone.
#[test]
fn close_and_coincident_bodies_are_right() {
    let side = [1.0; 3];
    let mut points = random_in(side, 1000, 7);
    for i in 0..100 {
        let x = points[i];
        points.push([x[0] + 1e-9 * (1 + i % 7) as f64, x[1], x[2]]);
        points.push(x);
    }
    let q: Vec<f64> = (0..points.len()).map(|i| if i % 3 == 0 { -1.5 } else { 1.0 }).collect();
    let exact = Reference::in_box(&cell(side), Softening::None, &points, &q, None);
    let found = sum(&Settings { precision: Precision::F32, ..mesh(side, 1e-4) }, &points, &q, None).unwrap();
    assert_eq!(found.coincident_pairs, 100);
    let e = exact.errors(&found.potential, &found.field);
    assert!(e.keep(1e-4), "{e:?}");
}

#[test]
fn what_has_no_mesh_is_refused() {
    let (points, q) = (random_in([1.0; 3], 10, 8), alternating(10));
    let refused = |settings: Settings, text: &str| {
        let why = sum(&settings, &points, &q, None).unwrap_err().to_string();
        assert!(why.contains(text), "{why}");
    };
    refused(
        Settings { boundary: Boundary::Open, ..mesh([1.0; 3], 1e-3) },
        "method mesh sums potentials and fields of periodic boxes",
    );
    refused(Settings { theta: Some(0.5), ..mesh([1.0; 3], 1e-3) }, "no opening angle");
    refused(Settings { order: Some(17), ..mesh([1.0; 3], 1e-3) }, "3 to 16");
    refused(Settings { precision: Precision::F32, ..mesh([1.0; 3], 1e-7) }, "precision");
    let hessian = fmm_core::evaluate_hessian(&mesh([1.0; 3], 1e-3), &points, &q, None, &mut StageTimes::default());
    assert!(hessian.unwrap_err().to_string().contains("method mesh"));
}

/// A mesh has the points of a window across a box, however thin that is.
#[test]
fn thin_boxes_have_no_huge_meshes() {
    let side = [1e-3, 1e-3, 1e6];
    let points = random_in(side, 200, 9);
    let why = sum(&mesh(side, 1e-6), &points, &alternating(200), None).unwrap_err().to_string();
    assert!(why.contains("would have") && why.contains("points"), "{why}");
    let cube = fmm_core::tree::Cube { corner: [0.0; 3], side: 1e6 };
    let problem = Problem::of(&points, &[&alternating(200)], 200, &cube).in_box().with_mesh(Some(Rates::CORES));
    let settings = Settings { method: Method::Auto, ..mesh(side, 1e-6) };
    assert_eq!(fmm_core::accuracy::choose(&settings, problem).unwrap().method, Method::Direct);
}
