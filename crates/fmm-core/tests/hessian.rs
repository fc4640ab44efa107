//! Second derivatives of the potential against direct sums, in the Frobenius norm.

use fmm_core::boundary::Surroundings;
use fmm_core::ewald::{self, At, EXACT, Ewald};
use fmm_core::{Boundary, Cancel, Error, Method, PeriodicBox, Precision, Settings, Softening, Stage, StageTimes};
use fmm_core::{WithHessian, evaluate, evaluate_hessian};
use testkit::hessian::{AXES, errors, exact, square};
use testkit::sets::{Points, alternating, plummer, uniform};

fn sum(settings: &Settings, x: &Points, q: &[f64], targets: Option<&Points>) -> WithHessian {
    evaluate_hessian(settings, x, q, targets.map(|t| &t[..]), &mut StageTimes::default()).unwrap()
}

#[test]
fn local_expansions_and_multipoles_of_each_family_are_used() {
    let (x, q) = (uniform(2000, 9), vec![1.0; 2000]);
    for softening in [Softening::None, Softening::Plummer(0.01), Softening::Yukawa(0.3)] {
        let exact = exact(&x, &q, None, softening);
        for (method, stage, most) in [(Method::Fmm, Stage::L2P, 2e-2), (Method::Treecode, Stage::M2P, 2e-3)] {
            // Small leaves and a low order: expansions do most of the sum.
            let (order, leaf_size, precision) = (Some(6), Some(16), Precision::F64);
            let settings = Settings { method, softening, order, leaf_size, precision, ..Settings::default() };
            let mut times = StageTimes::default();
            let found = evaluate_hessian(&settings, &x, &q, None, &mut times).unwrap();
            let [rms, .., l2] = errors(&found.hessian, &exact);
            println!("{softening:?} {method:?} rms {rms:.1e} L2 {l2:.1e}");
            assert!(times.calls(stage) == 1 && rms <= most && rms > 1e-7, "{softening:?} {method:?}: {rms:e}");
        }
    }
}

#[test]
fn potential_and_field_are_those_of_the_plain_sum() {
    let (x, q) = (plummer(5000, 5), alternating(5000));
    let settings = Settings { order: Some(6), method: Method::Fmm, precision: Precision::F64, ..Settings::default() };
    let plain = evaluate(&settings, &x, &q, None, &mut StageTimes::default()).unwrap();
    assert_eq!(sum(&settings, &x, &q, None).sum, plain);
}

#[test]
fn the_trace_of_unsoftened_sums_vanishes() {
    let (x, q) = (plummer(5000, 6), vec![1.0; 5000]);
    for (method, precision, most) in [
        (Method::Direct, Precision::F64, 1e-14),
        (Method::Fmm, Precision::F64, 1e-12),
        (Method::Treecode, Precision::F64, 1e-12),
        (Method::Fmm, Precision::F32, 1e-4),
    ] {
        let found = sum(&Settings { method, precision, ..Settings::default() }, &x, &q, None);
        let (mut trace, mut size) = (0.0, 0.0);
        for h in &found.hessian {
            (trace, size) = (trace + (h[0] + h[1] + h[2]).powi(2), size + square(h));
        }
        let relative = f64::sqrt(trace / size);
        assert!(relative <= most, "{method:?} {precision:?}: {relative:e}");
    }
}

#[test]
fn coincident_sources_and_extreme_units() {
    // Softened kernels have a second derivative at distance zero, and a source does not act on
    // itself. Few bodies share a leaf with others; many make leaves of their own.
    for copies in [1, 20] {
        let (mut x, mut q): (Points, Vec<f64>) = (vec![], vec![]);
        for _ in 0..copies {
            x.extend([[0.0; 3], [0.0; 3], [3.0, 0.0, 0.0], [3.0, 0.0, 0.0]]);
            q.extend([1.0, 2.0, 4.0, 8.0]);
        }
        for (method, leaf_size) in [(Method::Direct, None), (Method::Fmm, Some(8))] {
            let softening = Softening::Plummer(4.0);
            let settings = Settings { method, softening, leaf_size, ..Settings::default() };
            let h = sum(&settings, &x, &q, None).hessian;
            // K'' along x is (2 x² − ε²) (x² + ε²)^(−5/2), across it −(x² + ε²)^(−3/2).
            let (along, across, here) = (2.0 / 3125.0, -1.0 / 125.0, -1.0 / 64.0);
            let (left, right) = (3.0 * f64::from(copies), 12.0 * f64::from(copies));
            for i in 0..x.len() {
                let (near, far) = if x[i][0] == 0.0 { (left - q[i], right) } else { (right - q[i], left) };
                for (k, exact) in [along, across, across, 0.0, 0.0, 0.0].into_iter().enumerate() {
                    let exact = far * exact + if k < 3 { near * here } else { 0.0 };
                    assert!(
                        (h[i][k] - exact).abs() < 1e-4 * (near + far),
                        "{copies} {method:?} {i} {k}: {h:?} {exact}"
                    );
                }
            }
        }
    }
    // Units of the caller beyond those of single precision.
    let (x, q) = (uniform(2000, 7), vec![1.0; 2000]);
    let unit = 1e-25;
    let small: Points = x.iter().map(|x| x.map(|c| c * unit)).collect();
    let settings = Settings { method: Method::Fmm, precision: Precision::F32, tolerance: 1e-3, ..Settings::default() };
    let (ours, theirs) = (sum(&settings, &x, &q, None).hessian, sum(&settings, &small, &q, None).hessian);
    let (mut off, mut size) = (0.0, 0.0);
    for (a, b) in ours.iter().zip(theirs) {
        off += square(&std::array::from_fn(|k| a[k] - b[k] * unit * unit * unit));
        size += square(a);
    }
    assert!(off.sqrt() <= 1e-3 * size.sqrt(), "{off:e} {size:e}");
}

#[test]
fn boxes_direct_sums_are_differences_of_the_field() {
    let cell = PeriodicBox { side: [1.0, 1.5, 0.8], surroundings: Surroundings::Dielectric(2.0) };
    let (x, q) = (uniform(60, 10), alternating(60));
    let at = uniform(20, 11);
    for softening in [Softening::None, Softening::Spline(0.1)] {
        let found = Ewald::new(&cell, softening, EXACT, &x, &q, at.len()).hessians(At::Points(&at));
        let step = 1e-4;
        for (i, h) in found.hessian.iter().enumerate() {
            for (k, [a, b]) in AXES.into_iter().enumerate() {
                let field = |by: f64| {
                    let mut place = at[i];
                    place[b] += by;
                    ewald::evaluate(&cell, softening, EXACT, &x, &q, At::Points(&[place])).field[0][a]
                };
                let difference =
                    (field(-2.0 * step) - field(2.0 * step) + 8.0 * (field(step) - field(-step))) / (-12.0 * step);
                let size = square(h).sqrt();
                assert!((difference - h[k]).abs() < 1e-6 * size, "{softening:?} {i} {k}: {difference} {h:?}");
            }
        }
    }
    // Sums at sources, which leave out the source itself, do not depend on the split α.
    for softening in [Softening::None, Softening::Spline(0.1)] {
        let (mut many, mut strengths) = (x.clone(), q.clone());
        let own = Ewald::new(&cell, softening, EXACT, &x, &q, x.len()).hessians(At::Sources);
        // So many sources without strength that waves cost more.
        many.extend(uniform(30_000, 12));
        strengths.resize(many.len(), 0.0);
        let chosen: Vec<usize> = (0..60).collect();
        let other = Ewald::new(&cell, softening, EXACT, &many, &strengths, chosen.len()).hessians(At::Some(&chosen));
        for (a, b) in own.hessian.iter().zip(&other.hessian) {
            let off = square(&std::array::from_fn(|k| a[k] - b[k]));
            assert!(off.sqrt() < 1e-11 * square(a).sqrt(), "{softening:?}: {a:?} {b:?}");
        }
    }
}

#[test]
fn the_tolerance_bounds_second_derivatives_in_boxes() {
    let n = 2000;
    let x = uniform(n, 13);
    for (side, softening, charged) in [
        ([1.0; 3], Softening::None, false),
        ([1.0, 1.7, 1.2], Softening::Spline(0.02), false),
        ([1.0, 1.3, 1.0], Softening::None, true),
    ] {
        let cell = PeriodicBox { side, surroundings: Surroundings::TinFoil };
        let q = if charged { vec![1.0; n] } else { alternating(n) };
        let elsewhere = uniform(300, 14);
        for targets in [None, Some(&elsewhere)] {
            let at = targets.map_or(At::Sources, |t| At::Points(t));
            let exact = Ewald::new(&cell, softening, EXACT, &x, &q, targets.map_or(n, Vec::len)).hessians(at);
            let truth: Vec<_> = exact.hessian.iter().zip(&exact.largest).map(|(h, l)| (*h, l * l)).collect();
            for (method, tolerance) in
                [(Method::Direct, 1e-9), (Method::Fmm, 1e-3), (Method::Fmm, 1e-6), (Method::Treecode, 1e-4)]
            {
                let boundary = Boundary::Periodic(cell);
                let settings = Settings { method, softening, tolerance, boundary, ..Settings::default() };
                let found = sum(&settings, &x, &q, targets);
                let [rms, p99, max, l2] = errors(&found.hessian, &truth);
                let c = &found.sum.choice;
                println!(
                    "{side:?} {softening:?} {tolerance:.0e} rms {rms:.1e} 99 % {p99:.1e} max {max:.1e} L2 {l2:.1e} {c:?}"
                );
                assert!(rms.max(l2) <= tolerance && p99 <= 6.0 * tolerance && max <= 100.0 * tolerance, "{side:?}");
                assert_eq!(c.method, method, "no fall back to the direct sum: {c:?}");
                if targets.is_none() || softening != Softening::None {
                    continue;
                }
                // Away from the charges there is the background alone.
                let background = 4.0 * std::f64::consts::PI * q.iter().sum::<f64>() / side.iter().product::<f64>();
                for h in &found.hessian {
                    let trace = h[0] + h[1] + h[2];
                    assert!((trace - background).abs() <= 1e-5 * square(h).sqrt(), "{trace} {background}");
                }
            }
        }
    }
}

#[test]
fn a_flag_ends_the_sum() {
    let (x, q) = (uniform(100, 8), alternating(100));
    let cancel = Cancel::new();
    cancel.set();
    let ended = evaluate_hessian(&Settings::default(), &x, &q, None, &mut StageTimes::with_cancel(cancel));
    assert_eq!(ended, Err(Error::Cancelled));
    let none = evaluate_hessian(&Settings::default(), &[], &[], None, &mut StageTimes::default()).unwrap();
    assert_eq!(none.hessian, Vec::<[f64; 6]>::new());
}
