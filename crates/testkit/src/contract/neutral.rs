//! Crystals that are neutral, seen by bodies outside of them.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::cpu::direct_field;
use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings, Softening, Surroundings};

use super::Place;
use crate::sets::{layered_crystal, sphere_surface, uniform};
use crate::space::Reference;

/// Far from a crystal there is next to no field, and the error of single precision is the rounding of multipoles and of
/// pairs.
pub fn the_rounding_of_neutral_sets_is_estimated(place: &impl Place) {
    let (points, q) = layered_crystal(15, 5);
    let near: Vec<[f64; 3]> = points[..800].iter().map(|x| x.map(|c| c + 0.1)).collect();
    let far = sphere_surface(1500, 6).into_iter().enumerate();
    let far = far.map(|(i, x)| x.map(|c| 2.25 + (8.0 + 0.04 * i as f64) * c));
    let targets: Vec<[f64; 3]> = near.iter().copied().chain(far).collect();
    let exact = direct_field(Softening::None, &points, &q, &targets);
    for (method, order) in [(Method::Fmm, 18), (Method::Fmm, 15), (Method::Treecode, 15)] {
        let (order, precision) = (Some(order), Precision::F32);
        let settings = Settings { method, order, precision, tolerance: 2e-3, errors: true, ..Settings::default() };
        let sum = place.evaluate(&settings, &points, &q, Some(&targets)).unwrap();
        let off = |i: usize| (0..3).map(|d| (sum.field[i][d] - exact[i].0[d]).powi(2)).sum::<f64>().sqrt();
        let worst = (near.len()..targets.len()).map(|i| off(i) / sum.error[i]).fold(0.0, f64::max);
        assert!(worst < 5.0, "{method:?} {order:?}: an error is {worst} times its estimate");
    }
}

/// In small molecules all pairs are too close for single precision and are summed in double. If their rounding counted,
/// it would be nearly all of what is estimated, and next to nothing would be left for the charges elsewhere.
pub fn pairs_in_double_precision_are_not_counted_as_rounded(place: &impl Place) {
    let molecules = uniform(150, 7).into_iter().flat_map(|center| {
        let corner = move |k: usize| {
            let x = std::array::from_fn(|d| 0.3 * center[d] + if k >> d & 1 == 1 { 1e-3 } else { 0.0 });
            (x, if k.count_ones().is_multiple_of(2) { 1.0 } else { -1.0 })
        };
        (0..8).map(corner)
    });
    let elsewhere = uniform(2000, 8).into_iter().enumerate();
    let elsewhere = elsewhere.map(|(i, x)| (x.map(|c| 0.5 + 0.5 * c), if i % 2 == 0 { 1e-3 } else { -1e-3 }));
    let (points, q): (Vec<[f64; 3]>, Vec<f64>) = molecules.chain(elsewhere).unzip();
    let exact = direct_field(Softening::None, &points, &q, &points);
    let (tolerance, precision) = (2e-6, Precision::Mixed);
    let settings = Settings { method: Method::Fmm, precision, tolerance, errors: true, ..Settings::default() };
    let sum = place.evaluate(&settings, &points, &q, None).unwrap();
    assert_eq!(sum.choice.precision, precision, "{:?}", sum.choice);
    for part in [0..1200, 1200..points.len()] {
        let norm = |square: &dyn Fn(usize) -> f64| part.clone().map(square).sum::<f64>().sqrt();
        let off = |i: usize| (0..3).map(|d| (sum.field[i][d] - exact[i].0[d]).powi(2)).sum::<f64>();
        let ratio = norm(&|i| sum.error[i].powi(2)) / norm(&off);
        assert!((0.1..10.0).contains(&ratio), "errors of {part:?} are estimated {ratio} times theirs");
    }
}

/// A body next to a slab feels less than a thousandth of what ions feel, and the guard's own sums are to be exact enough
/// there.
pub fn light_bodies_next_to_a_slab_keep_their_tolerance(place: &impl Place) {
    const ACROSS: usize = 12;
    let cell = PeriodicBox { side: [1.0; 3], surroundings: Surroundings::TinFoil };
    for seed in 0..20 {
        let moved = uniform(2 * ACROSS * ACROSS, seed);
        let ion = |i: usize| {
            let k = [i % ACROSS, i / ACROSS % ACROSS, i / ACROSS / ACROSS];
            let sign = if k.iter().sum::<usize>() % 2 == 0 { 1.0 } else { -1.0 };
            ([0, 1, 2].map(|d| (k[d] as f64 + 2e-4 * moved[i][d]) / ACROSS as f64), sign)
        };
        let (mut points, mut q): (Vec<_>, Vec<_>) = (0..moved.len()).map(ion).unzip();
        let [x, y, z] = uniform(1, 100 + seed)[0];
        points.push([x, y, 0.65 + 0.1 * z]);
        q.push(1e-9);
        let exact = Reference::in_box(&cell, Softening::None, &points, &q, None);
        for tolerance in [1.5e-5, 2.5e-5, 4e-5] {
            let boundary = Boundary::Periodic(cell);
            let settings = Settings { method: Method::Mesh, tolerance, boundary, ..Settings::default() };
            let found = place.evaluate(&settings, &points, &q, None).unwrap();
            let e = exact.errors(&found.potential, &found.field);
            assert!(e.keep(tolerance), "seed {seed}, {tolerance:e}: {e:?} {:?}", found.choice);
        }
    }
}
