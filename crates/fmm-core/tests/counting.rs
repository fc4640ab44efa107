//! Geometry alone: with the expansion that counts, every target must see every source exactly once.

mod common;

use common::*;
use fmm_core::cpu::execute;
use fmm_core::expansion::Count;
use fmm_core::plan::Plan;
use fmm_core::tree::Cube;
use fmm_core::{Choice, Family, Method, Precision, Settings, Softening, StageTimes};

fn counts(method: Method, leaf_size: usize, theta: f64, sources: &[[f64; 3]], targets: Option<&[[f64; 3]]>) {
    softened_counts(Softening::None, method, leaf_size, theta, sources, targets);
}

fn softened_counts(
    softening: Softening,
    method: Method,
    leaf_size: usize,
    theta: f64,
    sources: &[[f64; 3]],
    targets: Option<&[[f64; 3]]>,
) {
    let settings = Settings { softening, ..Settings::default() };
    let choice = Choice {
        method,
        precision: Precision::F64,
        expansion: Some(Family::Spherical),
        order: Some(4),
        theta: Some(theta),
        leaf_size,
    };
    let times = &mut StageTimes::default();
    let plan = Plan::new(&settings, choice, Cube::around(&[sources, targets.unwrap_or(&[])]), sources, targets, times);
    let strengths = vec![1.0; sources.len()];
    let count = Count { side: plan.targets.side };
    let sums = execute::<f64, _, _, 3>(&count, &count, &plan, sources, &strengths, targets, times);
    let expected = if targets.is_none() { sources.len() as f64 - 1.0 } else { sources.len() as f64 };
    assert_eq!(sums.len(), targets.unwrap_or(sources).len());
    for (i, s) in sums.iter().enumerate() {
        assert_eq!(
            s.potential,
            expected,
            "{method:?} θ = {theta}, leaf {leaf_size}: sorted target {i} of {}",
            sums.len()
        );
    }
}

#[test]
fn every_target_sees_every_source_once() {
    let mut coincident = uniform(300, 4);
    coincident.extend([[0.5; 3]; 300]);
    let sets = [uniform(3000, 1), plummer(3000, 2), two_clusters(3000, 1e6, 3), coincident, sphere_surface(3000, 5)];
    for set in &sets {
        for method in [Method::Direct, Method::Treecode, Method::Fmm] {
            for (leaf, theta) in [(1, 0.87), (8, 0.87), (8, 0.5), (100, 0.7)] {
                counts(method, leaf, theta, set, None);
            }
        }
    }
}

#[test]
fn separate_targets_see_every_source_once() {
    let (sources, targets) = (plummer(2000, 1), uniform(1500, 2));
    for method in [Method::Direct, Method::Treecode, Method::Fmm] {
        for (leaf, theta) in [(5, 0.87), (40, 0.6)] {
            counts(method, leaf, theta, &sources, Some(&targets));
            counts(method, leaf, theta, &sources, Some(&sources));
            counts(method, leaf, theta, &sources[..1], Some(&targets));
            counts(method, leaf, theta, &sources, Some(&targets[..1]));
            counts(method, leaf, theta, &sources, Some(&[[1e9, 0.0, 0.0]]));
        }
    }
}

#[test]
fn few_particles_and_none() {
    for n in 0..4 {
        for method in [Method::Direct, Method::Treecode, Method::Fmm] {
            counts(method, 1, 0.87, &uniform(n, 1), None);
            counts(method, 1, 0.87, &uniform(n, 1), Some(&uniform(3, 2)));
            counts(method, 1, 0.87, &uniform(3, 1), Some(&uniform(n, 2)));
        }
    }
}

#[test]
fn softening_that_keeps_cells_apart_loses_no_source() {
    for set in [uniform(3000, 1), plummer(3000, 2), two_clusters(3000, 1e3, 3)] {
        for e in [1e-4, 1e-2, 0.1, 1.0, 100.0] {
            for method in [Method::Treecode, Method::Fmm] {
                for (leaf, theta) in [(1, 0.87), (30, 0.5)] {
                    softened_counts(Softening::Spline(e), method, leaf, theta, &set, None);
                    softened_counts(Softening::Plummer(e), method, leaf, theta, &set, None);
                }
            }
        }
    }
}
