//! Second derivatives on the device against direct sums on the cores, in the Frobenius norm.

use crate::common::{gpu, hash, plummer, uniform};
use fmm_core::{Error, Method, Precision, Settings, Softening, StageTimes, WithHessian};
use fmm_cuda::{Gpu, evaluate, evaluate_hessian};
use testkit::hessian::square;
use testkit::sets::{Points, alternating};

/// rms over the targets and L2 of the error.
fn errors(found: &[[f64; 6]], exact: &[[f64; 6]]) -> [f64; 2] {
    assert_eq!(found.len(), exact.len());
    let (mut each, mut wrong, mut right) = (0.0, 0.0, 0.0);
    for (found, exact) in found.iter().zip(exact) {
        let off = square(&std::array::from_fn(|k| found[k] - exact[k]));
        assert!(off.is_finite(), "{found:?}");
        each += if off == 0.0 { 0.0 } else { off / square(exact) };
        (wrong, right) = (wrong + off, right + square(exact));
    }
    [(each / found.len() as f64).sqrt(), f64::sqrt(wrong / right)]
}

fn on_cores(softening: Softening, x: &Points, q: &[f64], targets: Option<&Points>) -> WithHessian {
    let exact = Settings { method: Method::Direct, precision: Precision::F64, softening, ..Settings::default() };
    fmm_core::evaluate_hessian(&exact, x, q, targets.map(|t| &t[..]), &mut StageTimes::default()).unwrap()
}

fn on_gpu(gpu: &Gpu, settings: &Settings, x: &Points, q: &[f64], targets: Option<&Points>) -> WithHessian {
    evaluate_hessian(gpu, settings, x, q, targets.map(|t| &t[..]), &mut StageTimes::default()).unwrap()
}

fn kept(gpu: &Gpu, n: usize, tolerances: &[f64]) {
    let (cube, ball) = (uniform(n, 0.0, 70), plummer(n, 71));
    let signs = alternating(n);
    let elsewhere = uniform(n / 4, 0.1, 72).position;
    for (softening, targets) in [
        (Softening::None, None),
        (Softening::None, Some(&elsewhere)),
        (Softening::Plummer(0.02), None),
        (Softening::P1(0.02), Some(&elsewhere)),
        (Softening::Spline(0.02), None),
        (Softening::Yukawa(0.3), None),
    ] {
        let balls = !matches!(softening, Softening::Yukawa(_));
        for (name, x, q) in [("masses", &ball.position, &ball.strength), ("charges", &cube.position, &signs)] {
            // A ball of a hundred screening lengths has no expansions.
            if name == "masses" && !balls {
                continue;
            }
            let truth = on_cores(softening, x, q, targets).hessian;
            for method in [Method::Direct, Method::Treecode, Method::Fmm] {
                for &tolerance in tolerances {
                    let settings = Settings { method, tolerance, softening, ..Settings::default() };
                    let found = on_gpu(gpu, &settings, x, q, targets);
                    let [rms, l2] = errors(&found.hessian, &truth);
                    let what = format!("{name} {softening:?} {} at {tolerance:e}", method.name());
                    println!("{what}: rms {rms:.2e}, L2 {l2:.2e}, {:?}", found.sum.choice);
                    assert!(rms.max(l2) <= tolerance, "{what}: {rms:e} {l2:e}");
                    assert_eq!(found.sum.choice.method, method, "{what}");
                }
            }
        }
    }
}

/// So small that a checker of memory gets through it.
#[test]
fn second_derivatives_of_few_bodies() {
    let Some(gpu) = gpu() else { return };
    kept(&gpu, 600, &[1e-4]);
}

#[test]
fn expansions_are_those_of_the_cores() {
    let Some(gpu) = gpu() else { return };
    let x = uniform(3000, 0.0, 73).position;
    let q: Vec<f64> = (0..3000).map(|i| if i % 3 == 0 { -2.0 } else { 1.0 }).collect();
    for softening in [Softening::None, Softening::Plummer(0.01), Softening::P1(0.01), Softening::Yukawa(0.3)] {
        let truth = on_cores(softening, &x, &q, None).hessian;
        for method in [Method::Treecode, Method::Fmm] {
            for (precision, most) in [(Precision::F32, 1e-3), (Precision::F64, 1e-11)] {
                // Small leaves and a low order: what the expansions leave out is far larger than rounding.
                let (order, leaf_size) = (Some(5), Some(20));
                let settings = Settings { method, softening, order, leaf_size, precision, ..Settings::default() };
                let theirs = fmm_core::evaluate_hessian(&settings, &x, &q, None, &mut StageTimes::default()).unwrap();
                let ours = on_gpu(&gpu, &settings, &x, &q, None);
                let ([left_out, _], [apart, _]) =
                    (errors(&ours.hessian, &truth), errors(&ours.hessian, &theirs.hessian));
                let what = format!("{softening:?} {} {precision:?}: {left_out:.1e}, apart {apart:.1e}", method.name());
                println!("{what}");
                assert!(apart <= most && left_out < 0.1 && (precision == Precision::F32 || left_out > 1e-6), "{what}");
            }
        }
    }
}

#[test]
fn potential_and_field_are_those_of_the_plain_sum_and_repeats_have_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let bodies = plummer(5000, 74);
    let (x, q) = (&bodies.position, &bodies.strength);
    for precision in [Precision::F32, Precision::F64] {
        let settings = Settings { order: Some(6), method: Method::Fmm, precision, ..Settings::default() };
        let plain = evaluate(&gpu, &settings, x, q, None, &mut StageTimes::default()).unwrap();
        let found = on_gpu(&gpu, &settings, x, q, None);
        assert_eq!(found.sum, plain);
        let bits = |sum: &WithHessian| hash(sum.hessian.as_flattened().as_chunks().0);
        assert_eq!(bits(&found), bits(&on_gpu(&gpu, &settings, x, q, None)));
        let (mut trace, mut size) = (0.0, 0.0);
        for h in &found.hessian {
            (trace, size) = (trace + (h[0] + h[1] + h[2]).powi(2), size + square(h));
        }
        let most = if precision == Precision::F32 { 1e-4 } else { 1e-12 };
        assert!(trace.sqrt() <= most * size.sqrt(), "{precision:?}: {:e}", (trace / size).sqrt());
    }
}

#[test]
fn coincident_sources_and_extreme_units() {
    let Some(gpu) = gpu() else { return };
    let (mut x, mut q): (Points, Vec<f64>) = (vec![], vec![]);
    for _ in 0..50 {
        x.extend([[0.0; 3], [0.0; 3], [3.0, 0.0, 0.0], [3.0, 0.0, 0.0]]);
        q.extend([1.0, 2.0, 4.0, 8.0]);
    }
    for softening in [Softening::None, Softening::Plummer(4.0), Softening::Spline(2.0), Softening::P1(1.0)] {
        let truth = on_cores(softening, &x, &q, None).hessian;
        for (method, leaf_size) in [(Method::Direct, None), (Method::Fmm, Some(8)), (Method::Treecode, None)] {
            let settings = Settings { method, softening, leaf_size, ..Settings::default() };
            let [rms, l2] = errors(&on_gpu(&gpu, &settings, &x, &q, None).hessian, &truth);
            assert!(rms.max(l2) <= 1e-4, "{softening:?} {method:?}: {rms:e} {l2:e}");
        }
    }
    // Pairs so close that their terms overflow in single precision.
    let mut x = uniform(1000, 0.0, 75).position;
    x.extend(x.clone().iter().map(|x| [x[0] + 1e-12, x[1], x[2]]));
    let (q, truth) = (vec![1.0; 2000], on_cores(Softening::None, &x, &vec![1.0; 2000], None).hessian);
    let settings = Settings { method: Method::Fmm, precision: Precision::F32, ..Settings::default() };
    let [rms, l2] = errors(&on_gpu(&gpu, &settings, &x, &q, None).hessian, &truth);
    assert!(rms.max(l2) <= 1e-4, "{rms:e} {l2:e}");
    // Units of the caller beyond those of single precision.
    let (x, q, unit) = (uniform(2000, 0.0, 76).position, vec![1.0; 2000], 1e-25);
    let small: Points = x.iter().map(|x| x.map(|c| c * unit)).collect();
    let settings = Settings { tolerance: 1e-3, ..settings };
    let (ours, theirs) = (on_gpu(&gpu, &settings, &x, &q, None), on_gpu(&gpu, &settings, &small, &q, None));
    let scaled: Vec<[f64; 6]> = theirs.hessian.iter().map(|h| h.map(|h| h * unit * unit * unit)).collect();
    let [_, l2] = errors(&scaled, &ours.hessian);
    assert!(l2 <= 1e-3, "{l2:e}");
}

#[test]
fn what_has_none_is_refused() {
    let Some(gpu) = gpu() else { return };
    let (x, q) = (uniform(100, 0.0, 77).position, vec![1.0; 100]);
    let single = Settings { method: Method::Direct, precision: Precision::F32, ..Settings::default() };
    let refused = evaluate_hessian(&gpu, &single, &x, &q, None, &mut StageTimes::default());
    let why = "direct sums of second derivatives on a GPU are in double precision; precision: auto, f64";
    assert_eq!(refused, Err(Error::Unsupported(why.into())));
    for (x, targets) in [(&x[..0], Some(&x[..])), (&x[..], Some(&x[..0])), (&x[..0], None)] {
        for method in [Method::Direct, Method::Fmm] {
            let settings = Settings { method, ..Settings::default() };
            let found = evaluate_hessian(&gpu, &settings, x, &q[..x.len()], targets, &mut StageTimes::default());
            let expected = vec![[0.0; 6]; targets.unwrap_or(x).len()];
            assert_eq!(found.unwrap().hessian, expected, "{method:?}");
        }
    }
}
