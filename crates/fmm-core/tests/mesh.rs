//! Ewald's sum with a mesh: what the cores promise in addition to the contract of every place.

use fmm_core::accuracy::Problem;
use fmm_core::mesh::recipe::Rates;
use fmm_core::{
    Boundary, Error, Evaluation, Method, PeriodicBox, Precision, Settings, Stage, StageTimes, Surroundings, evaluate,
};
use testkit::sets::{alternating, random_in};

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
fn threads_change_no_bit() {
    let (points, q) = (random_in([1.0; 3], 3000, 6), alternating(3000));
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| sum(&mesh([1.0; 3], 1e-4), &points, &q, None).unwrap())
    };
    let one = on(1);
    assert!([2, 3, 8].into_iter().all(|threads| on(threads) == one));
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

#[test]
fn every_stage_of_a_mesh_is_timed_and_counted() {
    let mut times = StageTimes::default();
    let points = random_in([1.0; 3], 3000, 6);
    let settings = Settings { order: Some(6), ..mesh([1.0; 3], 1e-4) };
    evaluate(&settings, &points, &alternating(3000), None, &mut times).unwrap();
    for stage in [Stage::Tree, Stage::P2P, Stage::Spread, Stage::Fft, Stage::Gather] {
        assert!(times.seconds(stage) > 0.0 && times.calls(stage) == 1, "{}: {}", stage.name(), times.calls(stage));
    }
}

/// A mesh has the points of a window across a box, however thin that is.
#[test]
fn long_boxes_are_summed_once() {
    // Ions up to a quarter of a spacing from their places in a box of 10 : 1 : 1: its longest waves make
    // the error of potentials.
    let (lattice, q) = ions([80, 8, 8]);
    for tolerance in [1e-3, 1e-4, 1e-6] {
        let mut times = StageTimes::default();
        let settings = mesh([80.0, 8.0, 8.0], tolerance);
        let found = evaluate(&settings, &lattice, &q, None, &mut times).unwrap();
        assert_eq!(times.calls(Stage::Spread), 1, "{tolerance:e}: order {:?}", found.choice.order);
        let exact = sum(&mesh([80.0, 8.0, 8.0], 1e-11), &lattice, &q, None).unwrap();
        let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
        let wrong: Vec<f64> = found.potential.iter().zip(&exact.potential).map(|(a, b)| a - b).collect();
        let error = (square(&wrong) / square(&exact.potential)).sqrt();
        assert!(error < tolerance, "{tolerance:e}: {error:e}");
    }
}

/// Ions of rock salt at whole numbers below `counts`, each moved by up to a quarter.
fn ions(counts: [usize; 3]) -> (Vec<[f64; 3]>, Vec<f64>) {
    let moved = random_in([0.5; 3], counts.iter().product(), 3);
    let place = |n: usize| [n % counts[0], n / counts[0] % counts[1], n / (counts[0] * counts[1])];
    let at = |(n, u): (usize, &[f64; 3])| {
        let place = place(n);
        std::array::from_fn(|d| place[d] as f64 + u[d] - 0.25)
    };
    let sign = |n: usize| if place(n).iter().sum::<usize>().is_multiple_of(2) { 1.0 } else { -1.0 };
    (moved.iter().enumerate().map(at).collect(), (0..moved.len()).map(sign).collect())
}

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
