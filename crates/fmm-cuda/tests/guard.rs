//! What the guard measures on the device.

use crate::common::{errors, gpu, plummer, uniform};
use crate::far::{two_clusters, with_copies};
use fmm_core::error_model::epsilon_of_terms;
use fmm_core::guard::TRUSTED;
use fmm_core::{Evaluation, Method, Particles, Precision, Settings, Softening, StageTimes};
use fmm_cuda::{Gpu, evaluate, measure};
use testkit::sets::alternating;

/// What the guard measures on its sample is the error over all targets, also where few targets make it.
#[test]
fn the_guard_measures_the_error() {
    let Some(gpu) = gpu() else { return };
    let sets = [
        ("uniform", uniform(30_000, 0.0, 40)),
        ("plummer", plummer(30_000, 41)),
        ("two", two_clusters(30_000, 42)),
        ("copies", with_copies(uniform(20_000, 0.0, 43), 4000)),
    ];
    let elsewhere = uniform(20_000, 0.1, 44).position;
    for (name, p) in sets {
        for (method, precision, order, targets) in [
            (Method::Fmm, Precision::F32, Some(3), None),
            (Method::Fmm, Precision::F64, Some(6), Some(&elsewhere[..])),
            (Method::Treecode, Precision::F32, Some(3), None),
            (Method::Direct, Precision::F32, None, None),
        ] {
            let settings =
                Settings { method, precision, order, leaf_size: Some(40), tolerance: 1e-4, ..Settings::default() };
            let exact = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
            let times = &mut StageTimes::default();
            let truth = fmm_core::evaluate(&exact, &p.position, &p.strength, targets, times).unwrap();
            let (found, error) = measure(&gpu, &settings, &p.position, &p.strength, targets).unwrap();
            let (rms, _) = errors(&found, &truth.field);
            let norm = |v: &[[f64; 3]]| v.as_flattened().iter().map(|c| c * c).sum::<f64>();
            let delta: Vec<[f64; 3]> =
                found.iter().zip(&truth.field).map(|(a, b)| std::array::from_fn(|d| a[d] - b[d])).collect();
            let l2 = (norm(&delta) / norm(&truth.field)).sqrt();
            println!("{name} {} {}: {error:.2e}, rms {rms:.2e}, L2 {l2:.2e}", method.name(), precision.name());
            let worst = rms.max(l2);
            // A target of the copies stands for thousands.
            let most = if name == "copies" { 2.5 } else { 2.0 };
            assert!(error < most * worst && error > 0.4 * worst, "{name} {} {error:e}, {rms:e} {l2:e}", method.name());
        }
    }
}

/// The guard has far pairs of sums in single precision in that precision, too, and measures again in double, at the same
/// targets, what it would refuse for good. So a tolerance of which the error is less than what is trusted shows the one
/// measure, and one that is missed by more than twice the other.
#[test]
fn single_precision_of_the_guard_measures_what_double_does() {
    let Some(gpu) = gpu() else { return };
    let mut clump = uniform(40_000, 0.0, 48);
    clump.position.iter_mut().for_each(|x| *x = x.map(|c| 0.3 + 1e-6 * c));
    for (name, p) in [
        ("uniform", uniform(100_000, 0.0, 49)),
        ("plummer", plummer(100_000, 50)),
        ("two", two_clusters(60_000, 51)),
        ("far from the origin", clump),
    ] {
        let at = |order: usize, tolerance: f64| {
            let (method, order, leaf_size) = (Method::Fmm, Some(order), Some(100));
            let settings =
                Settings { method, precision: Precision::F32, order, leaf_size, tolerance, ..Settings::default() };
            measure(&gpu, &settings, &p.position, &p.strength, None).unwrap().1
        };
        // Single precision is for 1e-5 and more. From 1e-4 on estimates do not count the rounding of pairs, and from
        // 4e-4 on M2L multiplies in TF32.
        let measured = (4..=12).map(|order| (order, at(order, 9e-5)));
        let (order, about) = measured.into_iter().find(|&(_, about)| about < 7e-5).unwrap();
        assert!(about > 2.3e-5, "{name}: {about:e}");
        let [single, double] = [1.1 / TRUSTED, 1.0 / 2.2].map(|part| at(order, part * about));
        let off = (single / double - 1.0).abs();
        println!("{name}: {single:.9e} in single precision, {double:.9e} in double");
        // Two measures in double differ by less, if at all.
        assert!(off > 1e-8 && off < 1e-3, "{name}: {single:e} {double:e}");
    }
}

/// Whether the estimated errors of all targets are those of the cores, but for the common factor that a sample gives.
fn compare(gpu: &Gpu, name: &str, settings: &Settings, p: &Particles, targets: Option<&[[f64; 3]]>) {
    let times = &mut StageTimes::default();
    let here = evaluate(gpu, settings, &p.position, &p.strength, targets, times).unwrap();
    let there = fmm_core::evaluate(settings, &p.position, &p.strength, targets, times).unwrap();
    // What expansions round has no part in the factor. Next to it single precision holds the rest.
    let epsilon = epsilon_of_terms(settings.precision);
    let rest = |sum: &Evaluation, i: usize| {
        let rounding: f64 = sum.field[i].iter().map(|e| (e * epsilon).powi(2)).sum();
        let rest = sum.error[i].powi(2) - rounding;
        (rest > 0.1 * rounding).then(|| rest.sqrt())
    };
    let n = here.error.len();
    let mut ratios: Vec<f64> = (0..n).filter_map(|i| rest(&here, i).zip(rest(&there, i))).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |part: f64| ratios[(part * (ratios.len() - 1) as f64) as usize];
    let [low, middle, high] = [0.01, 0.5, 0.99].map(at);
    let name = format!("{name} {} {:?} {:?}", settings.method.name(), settings.order, settings.precision);
    println!("{name}: {low:.4} {middle:.4} {high:.4} of {} of {n}", ratios.len());
    let within = low > 0.99 * middle && 0.99 * high < middle && ratios.len() > n / 4;
    assert!(within, "{name}: {low} {middle} {high}");
}

#[test]
fn estimates_are_those_of_the_cores() {
    let Some(gpu) = gpu() else { return };
    let elsewhere = uniform(20_000, 0.1, 52).position;
    let settings = Settings { leaf_size: Some(20), tolerance: 1e-5, errors: true, ..Settings::default() };
    let charges = Particles { strength: alternating(30_000), ..uniform(30_000, 0.0, 56) };
    for (name, p, targets) in [
        ("uniform", &uniform(30_000, 0.0, 53), Some(&elsewhere[..])),
        ("plummer", &plummer(30_000, 54), None),
        ("two", &two_clusters(30_000, 55), None),
        ("charges", &charges, Some(&elsewhere[..])),
    ] {
        for (method, order, precision) in [
            (Method::Fmm, 4, Precision::F64),
            (Method::Fmm, 20, Precision::F64),
            (Method::Treecode, 5, Precision::F64),
            // With M2L a GPU would round more than cores do.
            (Method::Treecode, 18, Precision::Mixed),
        ] {
            compare(&gpu, name, &Settings { method, precision, order: Some(order), ..settings.clone() }, p, targets);
        }
    }
    // Longer than a half side of leaves, so that the rounding of pairs falls.
    let softening = Softening::Plummer(0.05);
    let (method, precision, order) = (Method::Treecode, Precision::Mixed, Some(10));
    compare(&gpu, "softened", &Settings { method, precision, order, softening, ..settings.clone() }, &charges, None);
    // 1/r from so near on that little else errs.
    for (method, softening) in [(Method::Fmm, Softening::Plummer(5e-5)), (Method::Treecode, Softening::P1(3e-3))] {
        let settings = Settings { method, order: Some(18), precision: Precision::F64, softening, ..settings.clone() };
        compare(&gpu, "1/r for a softened kernel", &settings, &charges, Some(&elsewhere));
    }
}
