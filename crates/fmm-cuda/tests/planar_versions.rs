//! The versions of M2L in the plane against the formula, in both precisions.

use crate::common::gpu;
use fmm_core::Complex64;
use fmm_core::planar::workload::{Geometry, coefficient};
use fmm_cuda::planar::versions::{PaperTranslations, PaperVersion};
use fmm_cuda::{DeviceWork, Gpu};

fn binomial(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64)
}

/// Local expansions of all targets in units of their boxes: u/t·(−u/t)^l·Σ_k C(l + k, k)(u_source/t)^k a_k, summed
/// over the sources.
fn expected(order: usize, translations: usize) -> Vec<f64> {
    let Geometry { tree, rows, first } = Geometry::new(translations);
    let mut all = vec![];
    for target in first..tree.len() {
        let mut local = vec![Complex64::new(0.0, 0.0); order];
        for &source in rows.row(target) {
            let source = source as usize;
            let center = |b: usize| Complex64::new(tree.center[0][b], tree.center[1][b]);
            let unit = |b: usize| 2f64.powi(tree.exponent[b]);
            let inverse = Complex64::new(1.0, 0.0) / (center(target) - center(source));
            let (sigma, tau) = (inverse * unit(source), inverse * unit(target));
            for (l, local) in local.iter_mut().enumerate() {
                let mut sum = Complex64::new(0.0, 0.0);
                for k in (0..order).rev() {
                    let i = 2 * (source * order + k);
                    sum = sum * sigma + Complex64::new(coefficient(i), coefficient(i + 1)) * binomial(l + k, k);
                }
                let power = (0..l).fold(tau, |power, _| -power * tau);
                *local += power * sum;
            }
        }
        all.extend(local.iter().flat_map(|b| [b.re, b.im]));
    }
    all
}

/// The largest error of a number over the largest number of its expansion.
fn worst(found: &[f64], expected: &[f64], order: usize) -> f64 {
    assert_eq!(found.len(), expected.len());
    let pairs = found.chunks_exact(2 * order).zip(expected.chunks_exact(2 * order));
    let of = |(found, expected): (&[f64], &[f64])| {
        let scale = expected.iter().fold(0.0f64, |m, e| m.max(e.abs()));
        let wrong =
            found.iter().zip(expected).fold(0.0f64, |m, (f, e)| if (f - e).abs() > m { (f - e).abs() } else { m });
        if wrong == 0.0 { 0.0 } else { wrong / scale }
    };
    assert!(found.iter().all(|f| f.is_finite()));
    pairs.map(of).fold(0.0, f64::max)
}

fn sums(gpu: &Gpu, version: PaperVersion, order: usize, n: usize, single: bool) -> Vec<f64> {
    fn of(gpu: &Gpu, work: &impl DeviceWork, n: usize) {
        assert!(work.units() >= n);
        // The second run replaces the first.
        work.run(gpu).unwrap();
        work.run(gpu).unwrap();
        let occupancy = work.occupancy(gpu).unwrap().unwrap();
        assert!(occupancy.blocks > 0 && occupancy.registers > 0, "{occupancy:?}");
        assert!(occupancy.share > 0.0 && occupancy.share <= 1.0, "{occupancy:?}");
    }
    if single {
        let work = PaperTranslations::<f32>::new(gpu, version, order, n).unwrap();
        of(gpu, &work, n);
        work.locals(gpu).unwrap()
    } else {
        let work = PaperTranslations::<f64>::new(gpu, version, order, n).unwrap();
        of(gpu, &work, n);
        work.locals(gpu).unwrap()
    }
}

#[test]
fn every_version_of_the_paper_is_the_formula() {
    let Some(gpu) = gpu() else { return };
    for (order, n) in [(8, 2160), (12, 2160), (16, 2160), (5, 1), (1, 100), (11, 9072), (16, 9072)] {
        let right = expected(order, n);
        for version in PaperVersion::ALL {
            for (single, bound) in [(false, 1e-12), (true, 3e-5)] {
                let error = worst(&sums(&gpu, version, order, n, single), &right, order);
                assert!(error <= bound, "{version:?} p {order}, {n}, single {single}: {error:e}");
            }
        }
    }
}

#[test]
fn too_many_terms_are_refused() {
    let Some(gpu) = gpu() else { return };
    for order in [0, 17] {
        assert!(PaperTranslations::<f32>::new(&gpu, PaperVersion::Rows, order, 100).is_err(), "{order}");
    }
}
