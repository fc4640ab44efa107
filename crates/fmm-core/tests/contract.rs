//! The tolerance is the error: asked against measured on every kind of set.

mod common;

use common::*;
use fmm_core::{Method, Precision, Settings, Softening, StageTimes, evaluate};

fn keeps(n: usize, method: Method, softening: Softening, asked: &[f64], precision: Precision) {
    for (name, points, q) in contract_sets(n) {
        let reference = Reference::new(&points, &q, None, softening, 1000);
        for &tolerance in asked {
            let settings = Settings { method, softening, tolerance, precision, ..Settings::default() };
            let sum = evaluate(&settings, &points, &q, None, &mut StageTimes::default()).unwrap();
            let e = reference.errors(&sum.potential, &sum.field);
            let c = &sum.choice;
            println!(
                "{name:14} {softening:?} asked {tolerance:.0e} rms {:.1e} L2 {:.1e} {} {} p {:?} theta {:?} leaf {}",
                e.rms,
                e.l2,
                c.method.name(),
                c.precision.name(),
                c.order,
                c.theta,
                c.leaf_size
            );
            assert!(e.rms <= tolerance && e.l2 <= tolerance, "{name} {method:?} asked {tolerance:e}: {e:?} {c:?}");
        }
    }
}

#[test]
fn the_fmm_keeps_every_tolerance_in_double_precision() {
    let asked = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
    keeps(20_000, Method::Fmm, Softening::None, &asked, Precision::F64);
}

#[test]
fn the_fmm_keeps_every_tolerance_in_single_precision() {
    keeps(20_000, Method::Fmm, Softening::None, &[1e-2, 1e-3, 1e-4, 1e-5], Precision::F32);
}

#[test]
fn the_treecode_keeps_its_tolerance() {
    keeps(10_000, Method::Treecode, Softening::None, &[1e-2, 1e-4, 1e-6, 1e-8], Precision::Auto);
}

#[test]
fn softened_sums_keep_their_tolerance() {
    for softening in [Softening::Plummer(0.02), Softening::P1(0.02), Softening::Spline(0.02)] {
        keeps(10_000, Method::Fmm, softening, &[1e-2, 1e-4, 1e-6, 1e-8], Precision::Auto);
    }
    // A length far above the spacing: 1/r would be wrong by far more than the bound in most pairs of cells.
    for softening in [Softening::Plummer(0.3), Softening::P1(0.3)] {
        keeps(10_000, Method::Fmm, softening, &[1e-3, 1e-6], Precision::Auto);
        keeps(10_000, Method::Treecode, softening, &[1e-3, 1e-6], Precision::Auto);
    }
}

#[test]
fn single_precision_refuses_what_it_cannot_keep() {
    let settings = Settings { precision: Precision::F32, tolerance: 1e-6, ..Settings::default() };
    let message = evaluate(&settings, &[[0.0; 3]], &[1.0], None, &mut StageTimes::default()).unwrap_err().to_string();
    assert!(message.contains("f64") && message.contains("1e-5"), "{message}");
}
