//! Geometry alone: with the expansion that counts, every target must see every source exactly once.

use fmm_core::cpu::execute;
use fmm_core::expansion::Count;
use fmm_core::plan::OctreePlan;
use fmm_core::tree::Cube;
use fmm_core::{Choice, Family, Method, Precision, Settings, Softening, StageTimes, Uniform, evaluate};
use testkit::sets::*;
use testkit::space::Reference;

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
    let plan =
        OctreePlan::new(&settings, choice, Cube::around(&[sources, targets.unwrap_or(&[])]), sources, targets, times);
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
    for set in [uniform(1500, 1), plummer(1500, 2), two_clusters(1500, 1e3, 3)] {
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

#[test]
fn trees_of_one_depth_lose_no_source() {
    let (sources, targets) = (plummer(600, 3), uniform(200, 4));
    for (depth, separation) in [(0, 1), (1, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2)] {
        let settings = Settings { uniform: Some(Uniform { depth, separation }), ..Settings::default() };
        for (at, own) in [(None, 1.0), (Some(&targets[..]), 0.0)] {
            let choice = Choice {
                method: Method::Fmm,
                precision: Precision::F64,
                expansion: Some(Family::Spherical),
                order: Some(2),
                theta: Some(0.866),
                leaf_size: 1,
            };
            let times = &mut StageTimes::default();
            let boxed: Points = sources.iter().map(|x| x.map(|c| (c * 0.05).rem_euclid(1.0))).collect();
            let cube = Cube::around(&[&sources, at.unwrap_or(&[])]);
            let open = OctreePlan::new(&settings, choice.clone(), cube, &sources, at, times);
            let periodic = OctreePlan::in_box(&settings, choice, [1.0; 3], &boxed, at, times);
            for (plan, points) in [(open, &sources), (periodic, &boxed)] {
                assert_eq!(plan.targets.levels(), depth + 1);
                assert!(plan.lists.m2p.is_empty() && plan.lists.p2l.is_empty());
                let near = plan.geometry.space.near.len() as f64;
                let count = Count { side: plan.targets.side };
                let sums = execute::<f64, _, _, 3>(&count, &count, &plan, points, &[1.0; 600], at, times);
                assert!(sums.iter().all(|s| s.potential == 600.0 * near - own), "{depth} {separation} {near}");
            }
        }
    }
}

#[test]
fn wider_neighbourhoods_err_less() {
    let points = uniform(3000, 5);
    let q = alternating(3000);
    let reference = Reference::new(&points, &q, None, Softening::None, 3000);
    let error = |separation| {
        let uniform = Some(Uniform { depth: 3, separation });
        let settings = Settings { uniform, order: Some(6), precision: Precision::F64, ..Settings::default() };
        let sum = evaluate(&settings, &points, &q, None, &mut StageTimes::default()).unwrap();
        assert_eq!((sum.choice.method, sum.choice.order), (Method::Fmm, Some(6)));
        reference.errors(&sum.potential, &sum.field).l2
    };
    let (one, two) = (error(1), error(2));
    assert!(one < 1e-3 && two < 0.1 * one, "{one:e} {two:e}");
}
