//! Sums in the plane: the tolerance bounds L2.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::planar::{Blob, Kernel};
use fmm_core::{Complex64, Method, Precision, Settings};

use super::Place;
use crate::planar::{complex, errors, gamma, set, strengths};

fn fmm() -> Settings {
    Settings { method: Method::Fmm, precision: Precision::F64, ..Settings::default() }
}

pub fn sums_in_the_plane_keep_their_tolerance(place: &impl Place) {
    for name in ["uniform", "normal", "layer"] {
        let points = set(name, 10_000, 5);
        let places = complex(&points);
        let signs = strengths(points.len(), 6);
        for (kind, q) in [("both signs", signs.clone()), ("one sign", signs.iter().map(|q| q.abs()).collect())] {
            for (tolerance, precision) in [(1e-3, Precision::F32), (1e-6, Precision::F64), (1e-12, Precision::F64)] {
                for kernel in [Kernel::Log, Kernel::Harmonic] {
                    let settings = Settings { tolerance, precision, ..fmm() };
                    let sum = place.in_plane(&settings, kernel, Blob::Point, &places, &gamma(&q, None), None).unwrap();
                    let e = errors(kernel, &sum, &points, &q, None, None, 1500);
                    assert!(
                        e.l2 <= tolerance && e.p99 <= 30.0 * tolerance,
                        "{name}, {kind}, {kernel:?}, {tolerance:e}: {e:?}"
                    );
                    assert_eq!(sum.choice.method, Method::Fmm);
                }
            }
        }
    }
}

pub fn separate_targets_and_complex_strengths(place: &impl Place) {
    let (points, q, qi) = (set("normal", 6000, 7), strengths(6000, 8), strengths(6000, 9));
    for (targets, n) in [(set("uniform", 9000, 10), 9000), (set("layer", 40, 11), 40), (vec![[1e3, -2e3]], 1)] {
        let settings = Settings { tolerance: 1e-9, ..fmm() };
        let (places, at) = (complex(&points), complex(&targets));
        let run =
            |kernel, s: &[Complex64]| place.in_plane(&settings, kernel, Blob::Point, &places, s, Some(&at)).unwrap();
        let sum = run(Kernel::Harmonic, &gamma(&q, Some(&qi)));
        let e = errors(Kernel::Harmonic, &sum, &points, &q, Some(&qi), Some(&targets), n.min(2000));
        assert!(e.l2 <= 1e-9, "{n}: {e:?}");
        let e =
            errors(Kernel::Log, &run(Kernel::Log, &gamma(&q, None)), &points, &q, None, Some(&targets), n.min(2000));
        assert!(e.l2 <= 1e-9 && e.potential <= 1e-9, "{n}: {e:?}");
    }
}
