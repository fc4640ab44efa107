//! The work of the microbenchmarks is done and counted.

use fmm_core::Precision;
use fmm_core::cpu::workload::{MAX_MATRIX_ORDER, Operator, work};
use fmm_core::gauss::series::Basis;
use fmm_core::gauss::single::hermite_evaluations;
use fmm_core::gauss::workload::evaluations;
use fmm_core::grid::Green;
use fmm_core::grid::workload::Instructions;
use fmm_core::planar::workload::translations;
use fmm_core::workload::Work;

/// Targets of a leaf, and the sources that it meets at once.
const PAIRS: [usize; 2] = [64, 512];

fn of(operator: Operator, order: usize, precision: Precision) -> Box<dyn Work> {
    work(operator, order, precision).unwrap()
}

#[test]
fn operations_are_those_of_the_text() {
    let [leaf, sources] = PAIRS;
    // 64 targets, 512 sources: 3 differences, a distance with 3 multiply-adds, a root by polynomial and the sums.
    let pairs = of(Operator::P2P, 1, Precision::F32).operations() as f64 / (leaf * sources) as f64;
    assert!((32.0..36.0).contains(&pairs), "{pairs}");
    // 121 coefficients: a multiply-add each into the sum, and one step of the recurrence.
    let p2m = of(Operator::P2M, 10, Precision::F64).operations() as f64 / sources as f64 / 121.0;
    assert!((5.0..7.0).contains(&p2m), "{p2m}");
    let mut dense = of(Operator::M2lMatrix, 4, Precision::F32);
    assert_eq!(dense.operations(), (2 * 25 * 25 * dense.units()) as u64);
    assert!(work(Operator::M2lMatrix, MAX_MATRIX_ORDER + 1, Precision::F64).is_none());
}

#[test]
fn every_operator_does_work() {
    for operator in Operator::ALL {
        let mut workload = of(operator, 3, Precision::F64);
        let (once, twice) = (workload.run(), workload.run());
        // Sums that begin at zero double with a second run, or are written anew.
        let ratio = twice / once;
        let begun_at_zero = [1.0, 2.0].into_iter().any(|r| f64::abs(ratio - r) < 1e-9);
        assert!(
            once != 0.0 && begun_at_zero && workload.operations() > 0 && workload.units() > 0,
            "{}: {once}, {twice}",
            operator.name()
        );
    }
}

#[test]
fn every_point_is_evaluated_and_counted() {
    for basis in [Basis::Powers, Basis::Hermite] {
        let mut work = evaluations(basis, 9, 1000);
        assert_eq!(work.units(), 1024);
        // 81 multiply-adds, and some for the functions of the point; rows are padded to 16.
        let each = work.operations() as f64 / 1024.0;
        assert!((2.0 * 81.0..2.0 * 81.0 * 4.0).contains(&each), "{each}");
        assert!(work.run() != 0.0);
    }
}

#[test]
fn there_are_as_many_translations_as_asked_for() {
    for wanted in [1, 2160, 30_000] {
        let units = translations(8, Precision::F32, wanted).units();
        let mut work = translations(8, Precision::F64, wanted);
        assert_eq!(work.units(), units);
        assert!(work.units() >= wanted && work.units() <= wanted + 200, "{wanted}: {}", work.units());
        // A product with a real matrix, 4 · 8² operations, and the powers; rows that are not full
        // fill their vectors with zeros.
        let each = work.operations() as f64 / work.units() as f64;
        assert!((256.0..2000.0).contains(&each), "{each}");
        work.run();
    }
}

#[test]
fn points_in_single_precision_are_counted() {
    let mut work = hermite_evaluations(9, 1000);
    assert_eq!(work.units(), 1024);
    // 90 multiply-adds, the place of the point, and the exponential.
    let each = work.operations() as f64 / 1024.0;
    assert!((182.0..182.0 + 60.0).contains(&each), "{each}");
    assert!(work.run() != 0.0);
}

#[test]
fn instructions_are_those_of_the_text() {
    let single = Instructions::of(Green::Regularised, 6, Precision::F32);
    let double = Instructions::of(Green::Regularised, 6, Precision::F64);
    // A difference and a square, nine or twelve for the root, six for the kernel, eight for the
    // sums, and a share of what a plane needs.
    assert!((24.0..30.0).contains(&(16.0 * single.direct)), "{single:?}");
    assert!((27.0..34.0).contains(&(8.0 * double.direct)), "{double:?}");
    // 49 harmonics with six weights and 15 with three.
    assert!((339.0..600.0).contains(&(16.0 * single.indirect)), "{single:?}");
    let singular = Instructions::of(Green::Singular, 2, Precision::F32);
    assert!(singular.direct < single.direct && singular.indirect < 0.4 * single.indirect);
}
