//! Second derivatives, in the Frobenius norm.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::{Method, Settings, Softening};

use super::Place;
use crate::hessian::{errors, exact};
use crate::sets::{alternating, two_clusters, uniform};

pub fn second_derivatives_keep_their_tolerance(place: &impl Place) {
    let n = 2000;
    // With a softening length, and a screening length that expansions serve.
    for (name, x, e, screening) in
        [("uniform", uniform(n, 1), 0.02, 0.3), ("two clusters", two_clusters(n, 8.0, 2), 0.05, 5.0)]
    {
        let softened = [Softening::Plummer(e), Softening::Spline(e), Softening::P1(e)];
        for softening in softened.into_iter().chain([Softening::None, Softening::Yukawa(screening)]) {
            for (method, q) in [(Method::Fmm, vec![1.0; n]), (Method::Treecode, alternating(n))] {
                let exact = exact(&x, &q, None, softening);
                for tolerance in [1e-3, 1e-6] {
                    let settings = Settings { method, softening, tolerance, ..Settings::default() };
                    let found = place.evaluate_hessian(&settings, &x, &q, None).unwrap();
                    let [rms, p99, max, l2] = errors(&found.hessian, &exact);
                    let c = &found.sum.choice;
                    println!(
                        "{name} {softening:?} {tolerance:.0e} rms {rms:.1e} 99 % {p99:.1e} max {max:.1e} L2 {l2:.1e} {c:?}"
                    );
                    assert!(
                        rms.max(l2) <= tolerance && p99 <= 6.0 * tolerance && max <= 100.0 * tolerance,
                        "{softening:?}"
                    );
                    assert_eq!(c.method, method, "no fall back to the direct sum: {c:?}");
                }
            }
        }
    }
}

pub fn second_derivatives_at_other_targets_keep_their_tolerance(place: &impl Place) {
    let (x, at, q) = (uniform(3000, 3), uniform(500, 4), alternating(3000));
    // Screened charges have expansions for sets up to 30 screening lengths across.
    for softening in [Softening::None, Softening::P1(0.1), Softening::Yukawa(0.5)] {
        let exact = exact(&x, &q, Some(&at), softening);
        for (method, tolerance) in [(Method::Direct, 1e-9), (Method::Fmm, 1e-6), (Method::Treecode, 1e-6)] {
            let settings = Settings { method, softening, tolerance, ..Settings::default() };
            let [rms, _, _, l2] =
                errors(&place.evaluate_hessian(&settings, &x, &q, Some(&at)).unwrap().hessian, &exact);
            // The reference has nine digits.
            let most = tolerance.max(1e-8);
            assert!(rms <= most && l2 <= most, "{softening:?} {method:?}: {rms:e} {l2:e}");
        }
    }
}
