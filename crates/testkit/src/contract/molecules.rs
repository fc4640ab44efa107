//! Light bodies around and among small neutral molecules.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::math::mix;
use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings, Softening, Surroundings};

use super::Place;
use super::space::all_targets_keep;
use crate::sets::{Points, sphere_surface, uniform};
use crate::space::Reference;

/// Small neutral molecules, whose centers feel nothing, and a few light bodies that feel all of them from outside. At
/// the centers errors count relative to the terms of the same molecule: they are not to be drawn for the others, nor at
/// targets in their places.
pub fn bodies_around_molecules_keep_their_tolerance(place: &impl Place) {
    for (count, arm, light, radius, method, asked) in [
        (1334, 0.01, 10, 8.0, Method::Fmm, 1e-2),
        (2000, 0.002, 3, 1.0, Method::Fmm, 1e-5),
        (1000, 0.002, 3, 3.0, Method::Fmm, 2e-5),
        (1000, 0.002, 10, 8.0, Method::Treecode, 2e-5),
    ] {
        for seed in 1..5 {
            let (mut points, mut q) = small_molecules(count, arm, seed);
            let outside: Points =
                sphere_surface(light, 200 + seed).iter().map(|x| x.map(|c| 0.5 + radius * c)).collect();
            // Targets where the bodies are, but others.
            let targets = [&points[..], &outside].concat();
            let exact = Reference::new(&points, &q, Some(&targets), Softening::None, targets.len());
            let settings = Settings { method, tolerance: asked, ..Settings::default() };
            let found = place.evaluate(&settings, &points, &q, Some(&targets)).unwrap();
            let e = exact.errors(&found.potential, &found.field);
            assert!(e.keep(asked), "targets at {count} molecules, seed {seed}, {method:?} {asked:e}: {e:?}");
            points.extend(outside);
            q.resize(points.len(), 1e-9);
            all_targets_keep(place, "molecules", &points, &q, method, &[asked]);
        }
    }
}

/// The same in boxes, where light bodies are among the molecules.
pub fn bodies_among_molecules_in_a_box_keep_their_tolerance(place: &impl Place) {
    let cell = PeriodicBox { side: [1.0; 3], surroundings: Surroundings::TinFoil };
    for (crowded, count, arm, method, precision, asked) in [
        // Many in a cell of the mesh, where those of a molecule do not follow each other.
        (true, 1300, 0.008, Method::Mesh, Precision::F64, 2.4e-6),
        (false, 400, 0.015, Method::Mesh, Precision::Auto, 5e-5),
        (false, 400, 0.015, Method::Mesh, Precision::Auto, 4e-6),
        (false, 700, 0.005, Method::Mesh, Precision::Auto, 2e-6),
        // Pairs in single precision err more than the mesh.
        (false, 480, 0.019, Method::Mesh, Precision::Mixed, 1.8e-6),
        (false, 700, 0.005, Method::Fmm, Precision::Auto, 2e-4),
        (false, 620, 0.008, Method::Fmm, Precision::F64, 6e-6),
        (false, 700, 0.005, Method::Treecode, Precision::Auto, 1e-3),
    ] {
        for seed in [1, 2, 3, 29, 31, 35] {
            let (mut points, mut q) = small_molecules(count, arm, seed);
            if crowded {
                points.iter_mut().for_each(|x| *x = x.map(|c| 0.3 + 0.15 * c));
                let mut order: Vec<usize> = (0..q.len()).collect();
                order.sort_by_key(|&i| mix(i as u64));
                (points, q) = order.iter().map(|&i| (points[i], q[i])).unzip();
            }
            // One across a face, which gives the bodies as they are wrapped a dipole.
            points.extend([[0.0, 0.3, 0.6], [1e-3, 0.3, 0.6], [-1e-3, 0.3, 0.6]]);
            q.extend([2.0, -1.0, -1.0]);
            points.extend(uniform(3, 300 + seed));
            q.resize(points.len(), 1e-6);
            let exact = Reference::in_box(&cell, Softening::None, &points, &q, None);
            let boundary = Boundary::Periodic(cell);
            let settings = Settings { method, precision, tolerance: asked, boundary, ..Settings::default() };
            let found = place.evaluate(&settings, &points, &q, None).unwrap();
            let e = exact.errors(&found.potential, &found.field);
            assert!(e.keep(asked), "{count} molecules, seed {seed}, {method:?} {precision:?} {asked:e}: {e:?}");
        }
    }
}

/// So many neutral molecules of three bodies in a line in the unit cube, whose arms are this part of their spacing.
fn small_molecules(count: usize, arm: f64, seed: u64) -> (Points, Vec<f64>) {
    let arm = arm / (count as f64).cbrt();
    let axes = sphere_surface(count, 100 + seed);
    let of_molecule = |(center, axis): ([f64; 3], [f64; 3])| {
        [(0.0, 2.0), (arm, -1.0), (-arm, -1.0)].map(|(at, q)| ([0, 1, 2].map(|d| center[d] + at * axis[d]), q))
    };
    uniform(count, seed).into_iter().zip(axes).flat_map(of_molecule).unzip()
}
