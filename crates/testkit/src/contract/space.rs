//! Sums in open space: the tolerance is the error, asked against measured on every kind of set.

#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::{Method, Precision, Settings, Softening};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Place;
use crate::sets::*;
use crate::space::Reference;

fn keeps(place: &impl Place, n: usize, method: Method, softening: Softening, asked: &[f64], precision: Precision) {
    for (name, points, q) in contract_sets(n) {
        // Few targets in a sample would make its rms that of one whose forces cancel.
        let reference = Reference::new(&points, &q, None, softening, 10_000);
        for &tolerance in asked {
            let settings = Settings { method, softening, tolerance, precision, ..Settings::default() };
            let sum = place.evaluate(&settings, &points, &q, None).unwrap();
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
            assert!(e.keep(tolerance), "{name} {method:?} asked {tolerance:e}: {e:?} {c:?}");
        }
    }
}

pub fn the_fmm_keeps_every_tolerance_in_double_precision(place: &impl Place) {
    let asked = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
    keeps(place, 10_000, Method::Fmm, Softening::None, &asked, Precision::F64);
}

pub fn the_fmm_keeps_every_tolerance_in_single_precision(place: &impl Place) {
    keeps(place, 10_000, Method::Fmm, Softening::None, &[1e-2, 1e-3, 1e-4, 1e-5], Precision::F32);
}

pub fn the_fmm_keeps_every_tolerance_with_pairs_in_single_precision(place: &impl Place) {
    keeps(place, 10_000, Method::Fmm, Softening::None, &[1e-4, 1e-5, 2e-6, 1e-6], Precision::Mixed);
}

/// Pairs that single precision cannot resolve are summed again in double, with their targets alone: these
/// have the sums of double precision, next to others that have not.
pub fn targets_of_close_pairs_are_summed_in_double_precision(place: &impl Place) {
    let (n, pairs) = (3000, 40);
    let mut points = uniform(n, 3);
    // Anywhere among the others, in one leaf or in two.
    for i in 0..pairs {
        points[n - 1 - 50 * i] = points[17 * i].map(|x| x + 1e-7);
    }
    let q: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { -0.5 } else { 1.0 + (i % 7) as f64 }).collect();
    let kernels = [Softening::None, Softening::Yukawa(0.3)].into_iter();
    for softening in kernels.chain(Softening::SOFTENED.map(|kernel| kernel.with_length(1e-9))) {
        let [mixed, double] = [Precision::Mixed, Precision::F64].map(|precision| {
            let (method, order, leaf_size) = (Method::Fmm, Some(12), Some(700));
            let given = Settings { method, softening, precision, order, leaf_size, ..Settings::default() };
            place.evaluate(&Settings { tolerance: 1e-6, ..given }, &points, &q, None).unwrap()
        });
        let close = |i: usize| (0..pairs).any(|k| i == n - 1 - 50 * k || i == 17 * k);
        let mut largest = [0.0f64; 2];
        for i in 0..n {
            let [a, b] =
                [&mixed, &double].map(|sum| [sum.potential[i], sum.field[i][0], sum.field[i][1], sum.field[i][2]]);
            let size = b[1..].iter().fold(0.0, |m: f64, c| m.max(c.abs()));
            let of_field = (1..4).map(|k| (a[k] - b[k]).abs() / size).fold(0.0, f64::max);
            let error = of_field.max((a[0] - b[0]).abs() / b[0].abs().max(1.0));
            largest[usize::from(close(i))] = largest[usize::from(close(i))].max(error);
        }
        let [others, closest] = largest;
        assert!(closest < 1e-12 && others > 1e-9 && others < 1e-4, "{softening:?}: {largest:?}");
    }
}

/// Where close pairs are many, all targets of their leaves are summed again.
pub fn bodies_on_a_curve_are_summed_in_double_precision(place: &impl Place) {
    let n = 3000;
    let points: Points = uniform(n, 4).into_iter().map(|[t, ..]| [t, 0.7 * t, -0.4 * t]).collect();
    let [mixed, double] = [Precision::Mixed, Precision::F64].map(|precision| {
        let (method, order, leaf_size) = (Method::Fmm, Some(30), Some(60));
        let settings = Settings { method, precision, order, leaf_size, tolerance: 1e-6, ..Settings::default() };
        place.evaluate(&settings, &points, &alternating(n), None).unwrap()
    });
    for (a, b) in mixed.field.iter().zip(&double.field) {
        // Cells that meet by M2L are not quite the same, and a GPU rounds their multipoles.
        assert!((0..3).all(|d| (a[d] - b[d]).abs() <= 5e-8 * b[0].abs()), "{a:?} {b:?}");
    }
}

/// Asserts that the default choice, with `method`, keeps each tolerance at all targets.
pub(super) fn all_targets_keep(
    place: &impl Place,
    name: &str,
    points: &Points,
    q: &[f64],
    method: Method,
    asked: &[f64],
) {
    let reference = Reference::new(points, q, None, Softening::None, points.len());
    for &tolerance in asked {
        let settings = Settings { method, tolerance, ..Settings::default() };
        let sum = place.evaluate(&settings, points, q, None).unwrap();
        let e = reference.errors(&sum.potential, &sum.field);
        assert!(e.keep(tolerance), "{name} {method:?} asked {tolerance:e}: {e:?} {:?}", sum.choice);
    }
}

/// Sets whose rms is made by the few targets in the corner of their cell towards a dense core: evenly picked samples miss them.
pub fn sets_around_dense_cores_keep_their_tolerance(place: &impl Place) {
    type Radius = fn(usize, f64) -> f64;
    let radius: [(&str, Radius); 3] = [
        ("exponential", |_, u| (-30.0 * u).exp()),
        ("core and shell", |i, u| if i % 2 == 0 { 1.0 } else { 1e-6 * u.cbrt() }),
        ("core and ball", |i, u| if i % 2 == 0 { u.cbrt() } else { 1e-4 * u.cbrt() }),
    ];
    for (name, radius) in radius {
        let n = 10_000;
        let q = vec![1.0 / n as f64; n];
        all_targets_keep(place, name, &around_the_origin(n, radius), &q, Method::Fmm, &[1e-3, 1e-4, 1e-5, 1e-6, 1e-8]);
        let n = 3000;
        let points = around_the_origin(n, radius);
        all_targets_keep(place, name, &points, &vec![1.0; n], Method::Treecode, &[1e-3, 1e-6, 1e-8]);
        all_targets_keep(place, name, &points, &alternating(n), Method::Treecode, &[1e-6, 1e-8]);
    }
}

/// Along a line forces cancel to a thousandth at one target in a thousand. These targets dominate
/// the rms, and a pair that nearly meets dominates the mean force. A sample finds these targets
/// neither by chance nor among those whose force is below the mean.
pub fn points_on_lines_keep_their_tolerance(place: &impl Place) {
    let n = 4000;
    for seed in 0..4 {
        let points = |width: f64| -> Points {
            let mut rng = StdRng::seed_from_u64(77 * seed + 5);
            (0..n).map(|_| [rng.random(), width * rng.random::<f64>(), width * rng.random::<f64>()]).collect()
        };
        let (line, thin) = (points(0.0), points(1e-6));
        for (name, points) in [("line", &line), ("thin", &thin)] {
            for q in [vec![1.0; n], alternating(n)] {
                all_targets_keep(place, name, points, &q, Method::Fmm, &[1e-3, 1e-4, 1e-6, 1e-8]);
            }
        }
    }
}

/// Forces vanish in a crystal, rounding does not: the floor of the norm is a thousandth of one pair's force.
pub fn crystals_keep_their_tolerance(place: &impl Place) {
    for side in [10, 14, 21] {
        let places = (0..side * side * side).map(|i| [i % side, i / side % side, i / side / side]);
        let points: Points = places.clone().map(|x| x.map(|c| f64::from(c as u32))).collect();
        let q: Vec<f64> = places.map(|x| if x.iter().sum::<usize>() % 2 == 0 { 1.0 } else { -1.0 }).collect();
        for method in [Method::Auto, Method::Direct, Method::Fmm] {
            all_targets_keep(place, "crystal", &points, &q, method, &[1e-4, 2e-5]);
        }
    }
    // Cells that are symmetric about their centers lose nothing of degree p, and all of p + 1.
    for (side, seed) in [(11, 0), (11, 1), (12, 2), (12, 3)] {
        let (points, q) = layered_crystal(side, seed);
        for method in [Method::Treecode, Method::Fmm] {
            all_targets_keep(place, "layered crystal", &points, &q, method, &[1e-2, 3e-4, 2e-4]);
        }
    }
}

/// Lengths whose squares and powers are beyond single precision.
pub fn lengths_of_any_range_keep_their_tolerance(place: &impl Place) {
    let n = 3000;
    let points = around_the_origin(n, |_, u| 10f64.powf(24.0 * u - 12.0));
    for method in [Method::Auto, Method::Direct, Method::Fmm, Method::Treecode] {
        all_targets_keep(place, "24 decades", &points, &vec![1.0; n], method, &[1e-2, 1e-4]);
    }
}

pub fn the_treecode_keeps_its_tolerance(place: &impl Place) {
    keeps(place, 10_000, Method::Treecode, Softening::None, &[1e-2, 1e-4, 1e-6, 1e-8], Precision::Auto);
}

pub fn softened_sums_keep_their_tolerance(place: &impl Place) {
    for softening in [Softening::Plummer(0.02), Softening::P1(0.02), Softening::Spline(0.02)] {
        keeps(place, 5_000, Method::Fmm, softening, &[1e-2, 1e-4, 1e-6, 1e-8], Precision::Auto);
    }
    // A length far above the spacing: 1/r would be wrong by far more than the bound in most pairs of cells.
    for softening in [Softening::Plummer(0.3), Softening::P1(0.3)] {
        keeps(place, 5_000, Method::Fmm, softening, &[1e-3, 1e-6], Precision::Auto);
        keeps(place, 5_000, Method::Treecode, softening, &[1e-3, 1e-6], Precision::Auto);
    }
}

/// Most bodies lie within the softening length, where cells and pairs lose next to nothing, however small the cells
/// are. If they were estimated as 1/r loses, nearly all of the sample would be drawn there, and the few others missed.
pub fn cusps_of_softened_bodies_keep_their_tolerance(place: &impl Place) {
    for softening in [Softening::Plummer(0.03), Softening::P1(0.03), Softening::Spline(0.03)] {
        let steep = around_the_origin(6_000, |_, u| u.powi(15));
        let wide = around_the_origin(20_000, |_, u| u.powi(8));
        for points in [steep, wide] {
            let q = vec![1.0; points.len()];
            let reference = Reference::new(&points, &q, None, softening, points.len());
            for tolerance in [1e-4, 1e-6] {
                let settings = Settings { method: Method::Fmm, softening, tolerance, ..Settings::default() };
                let sum = place.evaluate(&settings, &points, &q, None).unwrap();
                let e = reference.errors(&sum.potential, &sum.field);
                assert!(e.keep(tolerance), "{softening:?} asked {tolerance:e}: {e:?} {:?}", sum.choice);
            }
        }
    }
}

pub fn screened_sums_keep_their_tolerance(place: &impl Place) {
    let n = 3_000;
    // From much longer than the set to a hundredth of it.
    for (points, lengths) in [(uniform(n, 52), [10.0, 0.1, 0.01]), (plummer(n, 53), [30.0, 10.0, 4.0])] {
        for q in [vec![1.0; n], alternating(n)] {
            for softening in lengths.map(Softening::Yukawa) {
                let reference = Reference::new(&points, &q, None, softening, n);
                for (method, tolerance) in
                    [Method::Fmm, Method::Treecode].into_iter().flat_map(|m| [1e-3, 1e-6, 1e-9].map(|t| (m, t)))
                {
                    let settings = Settings { method, softening, tolerance, ..Settings::default() };
                    let sum = place.evaluate(&settings, &points, &q, None).unwrap();
                    let e = reference.errors(&sum.potential, &sum.field);
                    assert!(e.keep(tolerance), "{softening:?} {method:?} {tolerance:e}: {e:?} {:?}", sum.choice);
                }
            }
        }
    }
}

pub fn sets_of_many_screening_lengths_are_summed_directly(place: &impl Place) {
    let points = plummer(3000, 54);
    let sum = |method| {
        let settings = Settings { method, softening: Softening::Yukawa(0.01), ..Settings::default() };
        place.evaluate(&settings, &points, &vec![1.0; 3000], None)
    };
    assert_eq!(sum(Method::Auto).unwrap().choice.method, Method::Direct);
    for method in [Method::Fmm, Method::Treecode] {
        assert!(sum(method).unwrap_err().to_string().contains("30 screening lengths"));
    }
}

pub fn screening_without_end_is_none(place: &impl Place) {
    let (points, q) = (plummer(2000, 51), alternating(2000));
    let sum = |softening| {
        let settings = Settings { softening, tolerance: 1e-6, method: Method::Fmm, ..Settings::default() };
        place.evaluate(&settings, &points, &q, None).unwrap()
    };
    assert_eq!(sum(Softening::Yukawa(f64::INFINITY)), sum(Softening::None));
    // A very long one is nearly none, and takes the other expansions.
    let (long, none) = (sum(Softening::Yukawa(1e9)), sum(Softening::None));
    assert_ne!(long.choice.expansion, none.choice.expansion);
    let pairs = || long.field.iter().flatten().zip(none.field.iter().flatten());
    let wrong: f64 = pairs().map(|(a, b)| (a - b).powi(2)).sum();
    let right: f64 = pairs().map(|(_, b)| b * b).sum();
    assert!((wrong / right).sqrt() < 2e-6, "{}", (wrong / right).sqrt());
}

pub fn single_precision_refuses_what_it_cannot_keep(place: &impl Place) {
    let settings = Settings { precision: Precision::F32, tolerance: 1e-6, ..Settings::default() };
    let message = place.evaluate(&settings, &[[0.0; 3]], &[1.0], None).unwrap_err().to_string();
    assert!(message.contains("f64") && message.contains("1e-5"), "{message}");
}

/// Largest of rms and L2 with everything chosen.
fn error(place: &impl Place, points: &[[f64; 3]], q: &[f64], targets: Option<&[[f64; 3]]>, settings: &Settings) -> f64 {
    let sum = place.evaluate(settings, points, q, targets).unwrap();
    let e = Reference::new(points, q, targets, settings.softening, 1000).errors(&sum.potential, &sum.field);
    e.rms.max(e.l2)
}

pub fn pairs_too_close_for_single_precision_are_summed_in_double(place: &impl Place) {
    for method in [Method::Direct, Method::Fmm] {
        let settings = Settings { method, precision: Precision::F32, tolerance: 1e-3, ..Settings::default() };
        for distance in [1e-5, 1e-8, 1e-13] {
            // On both sides of a face of the cells, where keys differ much between neighbors.
            let mut points = uniform(2000, 31);
            points.iter_mut().for_each(|x| x[0] = 0.0625 - distance);
            let mirrored: Points = points.iter().map(|x| [0.0625 + distance, x[1], x[2]]).collect();
            points.extend(mirrored);
            points.extend([[-1.0; 3], [1.0; 3]]);
            let q = vec![1.0; points.len()];
            let e = error(place, &points, &q, None, &settings);
            assert!(e < 1e-3, "{method:?} {distance:e}: {e:e}");
            // Targets next to sources.
            let targets: Points = uniform(2000, 32).iter().map(|x| [x[0] + distance, x[1], x[2]]).collect();
            let e = error(place, &uniform(2000, 32), &q[..2000], Some(&targets), &settings);
            assert!(e < 1e-3, "{method:?} targets {distance:e}: {e:e}");
        }
    }
}

pub fn a_flat_sheet_keeps_its_tolerance(place: &impl Place) {
    for seed in [1, 2] {
        let points: Points = plummer(20_000, seed).iter().map(|x| [3.0, x[1], x[2]]).collect();
        let q = vec![1.0; points.len()];
        for tolerance in [1e-3, 1e-5, 1e-8] {
            let e = error(place, &points, &q, None, &Settings { tolerance, ..Settings::default() });
            assert!(e <= tolerance, "seed {seed}, {tolerance:e}: {e:e}");
        }
    }
}

pub fn softening_of_any_length_is_finite_and_right(place: &impl Place) {
    let points = uniform(3000, 33);
    let q = vec![1.0; 3000];
    for length in [1e-300, 1e-100, 1e-12, 1e-6, 1.0, 1e6, 1e12, 1e20] {
        for softening in [Softening::Plummer(length), Softening::P1(length), Softening::Spline(length)] {
            let settings = Settings { softening, tolerance: 1e-3, ..Settings::default() };
            let sum = place.evaluate(&settings, &points, &q, None).unwrap();
            assert!(sum.field.as_flattened().iter().all(|f| f.is_finite()), "{softening:?}");
            if length > 1e-50 {
                let e = error(place, &points, &q, None, &settings);
                assert!(e < 1e-3, "{softening:?}: {e:e}");
            }
        }
    }
    // Two bodies at the origin feel K(0) of each other.
    for (softening, at_zero) in
        [(Softening::Plummer(0.02), 50.0), (Softening::Spline(0.02), 50.0), (Softening::P1(0.02), 75.0)]
    {
        let settings = Settings { softening, ..Settings::default() };
        let sum = place.evaluate(&settings, &[[0.0; 3]; 2], &[1.0, 2.0], None).unwrap();
        for (got, expected) in sum.potential.iter().zip([2.0 * at_zero, at_zero]) {
            assert!((got / expected - 1.0).abs() < 1e-6, "{softening:?}: {got}");
        }
        assert_eq!(sum.field, [[0.0; 3]; 2]);
    }
}

/// Sets of a few light bodies where the forces of all others cancel: these make the whole rms, and
/// no even sample holds them.
pub fn bodies_where_forces_cancel_keep_their_tolerance(place: &impl Place) {
    let n = 20_000;
    let cluster = plummer(n / 2, 5).into_iter().map(|x| [0.6 + 0.05 * x[0], 0.1 + 0.05 * x[1], 0.05 + 0.05 * x[2]]);
    let mut mirrored: Points = cluster.collect();
    mirrored.extend(mirrored.clone().iter().map(|x| x.map(|c| -c)));
    let ring = uniform(n, 7).into_iter().map(|u| {
        let (sin, cos) = (std::f64::consts::TAU * u[0]).sin_cos();
        [cos, sin, 1e-3 * u[1]]
    });
    for (name, mut points, count, size) in [
        ("mirrored clusters", mirrored, 5, 1e-3),
        ("shell", sphere_surface(n, 9), 20, 0.6),
        ("ring", ring.collect(), 20, 1e-2),
    ] {
        let mut q = vec![1.0; points.len()];
        points.extend(uniform(count, 11).iter().map(|u| u.map(|c| size * (c - 0.5))));
        q.resize(points.len(), 1e-12);
        for (method, asked) in
            [(Method::Fmm, &[1e-3, 1e-6][..]), (Method::Treecode, &[1e-3, 1e-6]), (Method::Auto, &[1e-4])]
        {
            all_targets_keep(place, name, &points, &q, method, asked);
        }
    }
}

/// The estimated errors of all targets have the size of the true ones, and most are near their own.
pub fn errors_are_estimated(place: &impl Place) {
    let size = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>().sqrt();
    for (name, points, q) in contract_sets(5000) {
        let direct = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
        let truth = place.evaluate(&direct, &points, &q, None).unwrap().field;
        for (method, tolerance) in
            [(Method::Fmm, 1e-3), (Method::Fmm, 1e-6), (Method::Treecode, 1e-4), (Method::Direct, 1e-4)]
        {
            let settings = Settings { method, tolerance, leaf_size: Some(30), errors: true, ..Settings::default() };
            let sum = place.evaluate(&settings, &points, &q, None).unwrap();
            assert!(sum.error.len() == truth.len() && sum.error.iter().all(|e| e.is_finite()), "{name}");
            if method == Method::Direct {
                continue;
            }
            let off = |i: usize| size([0, 1, 2].map(|d| sum.field[i][d] - truth[i][d]));
            let squares: [f64; 2] = (0..truth.len())
                .map(|i| [sum.error[i].powi(2), off(i).powi(2)])
                .fold([0.0; 2], |all, s| [all[0] + s[0], all[1] + s[1]]);
            let ratio = (squares[0] / squares[1]).sqrt();
            assert!((0.4..2.5).contains(&ratio), "{name} {} {tolerance:e}: {ratio}", method.name());
            let near = |&i: &usize| (0.25..4.0).contains(&(off(i) / sum.error[i]));
            let part = (0..truth.len()).filter(near).count() as f64 / truth.len() as f64;
            assert!(part > 0.45, "{name} {} {tolerance:e}: {part}", method.name());
        }
    }
}

/// Octahedra that are neutral together, far away: where single precision rounds their two strengths, all of them miss
/// it alike. Direct sums that round strengths in the same way do not see it.
pub fn rounded_strengths_are_seen(place: &impl Place) {
    let (n, arm) = (4000, 0.01);
    let (mut points, mut q): (Points, Vec<f64>) = (vec![[0.123, 0.2, 0.1]], vec![5.0]);
    for center in uniform(n, 12) {
        points.push(center);
        q.push(4.2);
        for k in 0..6 {
            let side = if k % 2 == 0 { arm } else { -arm };
            points.push(std::array::from_fn(|d| center[d] + if d == k / 2 { side } else { 0.0 }));
            q.push(-0.7);
        }
    }
    let targets: Points = sphere_surface(1000, 13).iter().map(|x| x.map(|c| 0.5 + 3.0 * c)).collect();
    let reference = Reference::new(&points, &q, Some(&targets), Softening::None, targets.len());
    for (method, precision, tolerance) in [
        (Method::Auto, Precision::Auto, 1e-4),
        (Method::Auto, Precision::Auto, 2e-5),
        (Method::Treecode, Precision::F32, 2e-5),
        (Method::Fmm, Precision::Mixed, 2e-5),
    ] {
        let settings = Settings { method, precision, tolerance, ..Settings::default() };
        match place.evaluate(&settings, &points, &q, Some(&targets)) {
            Ok(sum) => {
                let e = reference.errors(&sum.potential, &sum.field);
                assert!(e.keep(tolerance), "{method:?} {precision:?} {tolerance:e}: {e:?} {:?}", sum.choice);
            }
            Err(why) => assert!(precision == Precision::F32, "{method:?} {precision:?} {tolerance:e}: {why}"),
        }
    }
}

/// Where the forces of two clusters cancel, rounding in single precision errs more than truncation.
pub fn rounding_where_forces_cancel_is_seen(place: &impl Place) {
    for (n, light, seed) in [(2000, 12, 5), (2000, 12, 6), (5000, 25, 7)] {
        let cluster =
            plummer(n / 2, seed).into_iter().map(|x| [0.49 + 0.01 * x[0], 0.48 + 0.01 * x[1], 0.01 * x[2] - 0.31]);
        let mut points: Points = cluster.collect();
        points.extend(points.clone().iter().map(|x| x.map(|c| -c)));
        points.extend(uniform(light, 11).iter().map(|u| u.map(|c| 5e-4 * (c - 0.5))));
        let q: Vec<f64> = (0..points.len()).map(|i| if i < n { 1.0 } else { 1e-12 }).collect();
        all_targets_keep(place, "mirrored clusters", &points, &q, Method::Fmm, &[1.1e-5, 1.3e-5, 2e-5, 3e-5]);
    }
    // A charge far from others that are neutral together feels 4e-4 of each, and their rounding.
    let mut points = uniform(263, 3);
    points[106] = [0.9, 0.2, -1.2e5];
    for method in [Method::Treecode, Method::Fmm, Method::Auto] {
        all_targets_keep(place, "outlier", &points, &alternating(263), method, &[1e-5, 2e-6, 1e-6]);
    }
    // The body in the middle of a lattice feels a thousandth of its nearest neighbours, and their rounding.
    let side = 21;
    let places = (0..side * side * side).map(|i| [i % side, i / side % side, i / side / side].map(|c| c as f64));
    let moved = uniform(side * side * side, 9);
    let points: Points = places.zip(moved).map(|(x, by)| [0, 1, 2].map(|d| x[d] + 1e-4 * by[d])).collect();
    for method in [Method::Treecode, Method::Fmm] {
        all_targets_keep(place, "lattice", &points, &vec![1.0; points.len()], method, &[1e-6, 2e-6]);
    }
}
