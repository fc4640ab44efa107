//! Periodic boxes: Ewald's sum against its formula as it stands, expansions against Ewald's sum.

use std::f64::consts::PI;

use fmm_core::cpu::execute;
use fmm_core::ewald::{self, At, EXACT, Ewald};
use fmm_core::expansion::Count;
use fmm_core::math::erfc::erfc;
use fmm_core::plan::OctreePlan;
use fmm_core::{
    Boundary, Choice, Family, Method, PeriodicBox, Precision, Settings, Softening, StageTimes, Surroundings, evaluate,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use testkit::sets::{Points, boxes, random_in};
use testkit::space::softened;

/// Potential and field in tin foil at `x`, term by term; a pair at distance zero sees the other images alone.
fn oracle(side: [f64; 3], softening: Softening, x: &[f64; 3], sources: &[[f64; 3]], q: &[f64]) -> (f64, [f64; 3]) {
    let volume: f64 = side.iter().product();
    let shortest = side.into_iter().fold(f64::INFINITY, f64::min);
    let alpha = 4.0 / shortest;
    let (mut potential, mut field) = (0.0, [0.0; 3]);
    let images = side.map(|s| (6.5 / alpha / s).ceil() as i32 + 1);
    let waves = side.map(|s| (12.5 * alpha * s / (2.0 * PI)).ceil() as i32);
    for (y, q) in sources.iter().zip(q) {
        let d: [f64; 3] = std::array::from_fn(|k| x[k] - y[k]);
        for a in -images[0]..=images[0] {
            for b in -images[1]..=images[1] {
                for c in -images[2]..=images[2] {
                    let n = [a, b, c];
                    let r: [f64; 3] = std::array::from_fn(|k| d[k] + f64::from(n[k]) * side[k]);
                    let r2 = r.iter().map(|r| r * r).sum::<f64>();
                    let (r1, u) = (r2.sqrt(), alpha * r2.sqrt());
                    if r2 == 0.0 {
                        potential -= 2.0 * alpha / PI.sqrt() * q;
                        continue;
                    }
                    let (k, f) = softened(r2, softening);
                    let gaussian = 2.0 * alpha / PI.sqrt() * (-u * u).exp();
                    potential += q * (k - 1.0 / r1 + erfc(u) / r1);
                    let force = f - 1.0 / (r2 * r1) + (erfc(u) / r1 + gaussian) / r2;
                    (0..3).for_each(|k| field[k] += q * force * r[k]);
                }
            }
        }
        for a in -waves[0]..=waves[0] {
            for b in -waves[1]..=waves[1] {
                for c in -waves[2]..=waves[2] {
                    let n = [a, b, c];
                    let k: [f64; 3] = std::array::from_fn(|d| 2.0 * PI * f64::from(n[d]) / side[d]);
                    let k2 = k.iter().map(|k| k * k).sum::<f64>();
                    if k2 > 0.0 {
                        let weight = q * 4.0 * PI / volume * (-k2 / (4.0 * alpha * alpha)).exp() / k2;
                        let phase = k[0] * d[0] + k[1] * d[1] + k[2] * d[2];
                        potential += weight * phase.cos();
                        (0..3).for_each(|d| field[d] += weight * k[d] * phase.sin());
                    }
                }
            }
        }
        potential -= PI * q / (alpha * alpha * volume);
    }
    (potential, field)
}

const FOIL: Surroundings = Surroundings::TinFoil;

#[test]
fn ewald_sums_are_the_formula() {
    let mut rng = StdRng::seed_from_u64(5);
    for (side, softening) in [
        ([1.0; 3], Softening::None),
        ([0.9, 2.0, 1.3], Softening::None),
        ([3.0e-7; 3], Softening::None),
        ([1.0, 0.8, 1.2], Softening::Spline(0.14)),
    ] {
        let n = 20;
        let mut points = random_in(side, n, 3);
        // One close to another, one at the same place, and one just across the edge.
        points[1] = points[0].map(|c| c + 1e-2 * side[0]);
        points[2] = points[0];
        (points[3], points[4]) =
            ([1e-3 * side[0], points[3][1], points[3][2]], [-1e-3 * side[0], points[3][1], points[3][2]]);
        let q: Vec<f64> = (0..n).map(|_| rng.random::<f64>() - 0.3).collect();
        let cell = PeriodicBox { side, surroundings: FOIL };
        let own = ewald::evaluate(&cell, softening, EXACT, &points, &q, At::Sources);
        let chosen = [7, 2, 0];
        let some = ewald::evaluate(&cell, softening, EXACT, &points, &q, At::Some(&chosen));
        let other = random_in(side, 3, 9);
        let at = ewald::evaluate(&cell, softening, EXACT, &points, &q, At::Points(&other));
        let near = |a: f64, b: f64, unit: f64| assert!((a - b).abs() < 3e-13 * unit, "{side:?}: {a} {b}");
        let biggest = own.field.iter().flatten().fold(0.0, |m: f64, e| m.max(e.abs()));
        for i in 0..n {
            let (potential, field) = oracle(side, softening, &points[i], &points, &q);
            let own_zero = match softening {
                // The formula skips whole pairs at distance zero; softened, those of others count.
                Softening::Spline(e) => (0..n).filter(|&j| j != i && points[j] == points[i]).map(|j| q[j] / e).sum(),
                _ => 0.0,
            };
            let unit = biggest * side[0];
            near(own.potential[i], potential + own_zero, unit);
            (0..3).for_each(|d| near(own.field[i][d], field[d], biggest));
        }
        for (k, i) in chosen.into_iter().enumerate() {
            near(some.potential[k], own.potential[i], biggest * side[0]);
            (0..3).for_each(|d| near(some.field[k][d], own.field[i][d], biggest));
        }
        for (k, x) in other.iter().enumerate() {
            let (potential, field) = oracle(side, softening, x, &points, &q);
            near(at.potential[k], potential, biggest * side[0]);
            (0..3).for_each(|d| near(at.field[k][d], field[d], biggest));
        }
    }
}

/// Ions of a crystal of `cells`³ conventional cells of side 2: positions, charges, distance of neighbours, and the constant.
fn crystals(cells: usize) -> Vec<(&'static str, Points, Vec<f64>, f64, f64)> {
    let face = [[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]];
    let basis = |ions: &[[f64; 3]], shift: [f64; 3]| -> Vec<([f64; 3], f64)> {
        let moved = ions.iter().map(|x| (std::array::from_fn(|d| x[d] + shift[d]), -1.0));
        ions.iter().map(|x| (*x, 1.0)).chain(moved).collect()
    };
    let kinds = [
        ("NaCl", basis(&face, [1.0, 0.0, 0.0]), 1.0, 1.747_564_594_633_182_1),
        ("CsCl", basis(&face[..1], [1.0; 3]), 3f64.sqrt(), 1.762_674_773_070_988_4),
        ("ZnS", basis(&face, [0.5; 3]), 0.75f64.sqrt(), 1.638_055_053_388_789_4),
    ];
    kinds
        .into_iter()
        .map(|(name, basis, distance, constant)| {
            let corners = (0..cells.pow(3)).map(|k| [k % cells, k / cells % cells, k / cells / cells]);
            let ions: Vec<_> = corners
                .flat_map(|c| basis.iter().map(move |(x, q)| (std::array::from_fn(|d| x[d] + 2.0 * c[d] as f64), *q)))
                .collect();
            (name, ions.iter().map(|i| i.0).collect(), ions.iter().map(|i| i.1).collect(), distance, constant)
        })
        .collect()
}

#[test]
fn madelung_constants() {
    for (name, points, q, distance, constant) in crystals(1) {
        let sums = ewald::evaluate(&PeriodicBox::cube(2.0), Softening::None, EXACT, &points, &q, At::Sources);
        for (p, q) in sums.potential.iter().zip(&q) {
            assert!((p * q * distance / constant + 1.0).abs() < 1e-12, "{name}: {}", p * q * distance);
        }
        assert!(sums.field.iter().flatten().all(|e| e.abs() < 1e-12), "{name}");
    }
    let one = ewald::evaluate(&PeriodicBox::cube(1.0), Softening::None, EXACT, &[[0.3; 3]], &[1.0], At::Sources);
    assert!((one.potential[0] + 2.837_297_479_480_619_6).abs() < 1e-13, "{}", one.potential[0]);
    assert!(one.field[0].iter().all(|e| e.abs() < 1e-13), "{:?}", one.field[0]);
    let cells = 6;
    for (name, points, q, distance, constant) in crystals(cells) {
        for tolerance in [1e-3, 1e-6] {
            let boundary = Boundary::Periodic(PeriodicBox::cube(2.0 * cells as f64));
            let settings = Settings { method: Method::Fmm, tolerance, boundary, ..Settings::default() };
            let sum = evaluate(&settings, &points, &q, None, &mut StageTimes::default()).unwrap();
            let worst = sum.potential.iter().zip(&q).map(|(p, q)| (p * q * distance / constant + 1.0).abs());
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < tolerance, "{name}, {tolerance:e}: {worst:e} {:?}", sum.choice);
        }
    }
}

/// With fewer digits a sum has other parts, of fewer waves. Potentials, fields and second derivatives err by about what
/// was asked: by at most a tenth of the tolerance of a guard, which asks for a hundredth, and second derivatives, for
/// which it asks for a hundredth of that, by as much.
#[test]
fn ewald_sums_keep_the_accuracy_that_is_asked() {
    for (name, side, points, q) in boxes(700) {
        let cell = PeriodicBox { side, surroundings: FOIL };
        for softening in [Softening::None, Softening::Spline(0.1)] {
            let chosen: Vec<usize> = (0..points.len()).step_by(9).collect();
            let sums = |accuracy| {
                let (all, at) = (Ewald::new(&cell, softening, accuracy, &points, &q, chosen.len()), At::Some(&chosen));
                let (ewald::Sums { potential, field, .. }, hessian) = (all.sums(at), all.hessians(at).hessian);
                [potential, field.as_flattened().to_vec(), hessian.as_flattened().to_vec()]
            };
            let exact = sums(EXACT);
            for accuracy in [1e-3, 1e-5, 1e-7, 1e-9, 1e-11] {
                let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
                let errors: Vec<f64> = sums(accuracy)
                    .iter()
                    .zip(&exact)
                    .map(|(a, b)| norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>()) / norm(b))
                    .collect();
                println!("{name:14} {softening:?} {accuracy:.0e}: {errors:?}");
                let most = [10.0, 10.0, 1000.0].map(|times| times * accuracy);
                assert!(
                    errors.iter().zip(most).all(|(e, most)| *e <= most),
                    "{name} {softening:?} {accuracy:e}: {errors:?}"
                );
            }
        }
    }
}

/// The dipole of a neutral drop in vacuum adds (2π/3V) D² to the energy with tin foil; media in
/// between add their share. Sums over growing cubes of boxes converge to the energy with vacuum
/// around.
#[test]
fn surroundings_act_through_the_dipole() {
    let side = [1.0; 3];
    let points: Points = vec![[0.1, 0.2, 0.3], [0.9, 0.4, 0.55], [-0.3, 1.8, 0.7], [0.6, 0.6, 0.1]];
    let q = [1.0, -2.0, 0.5, 0.5];
    let dipole: [f64; 3] = std::array::from_fn(|d| points.iter().zip(&q).map(|(x, q)| x[d] * q).sum());
    let square = dipole.iter().map(|d| d * d).sum::<f64>();
    let sums = |surroundings| {
        ewald::evaluate(&PeriodicBox { side, surroundings }, Softening::None, EXACT, &points, &q, At::Sources)
    };
    let energy = |s: &ewald::Sums| 0.5 * s.potential.iter().zip(&q).map(|(p, q)| p * q).sum::<f64>();
    let foil = sums(FOIL);
    for (medium, share) in [(1.0, 1.0 / 3.0), (78.0, 1.0 / 157.0)] {
        let there = sums(Surroundings::Dielectric(medium));
        let expected = 2.0 * PI * share * square;
        assert!((energy(&there) - energy(&foil) - expected).abs() < 1e-12, "{medium}");
        for (a, b) in there.field.iter().zip(&foil.field) {
            (0..3).for_each(|d| assert!((a[d] - b[d] + 4.0 * PI * share * dipole[d]).abs() < 1e-12));
        }
    }
    let vacuum = sums(Surroundings::Dielectric(1.0));
    let cubes = |most: i32| -> f64 {
        let mut total = 0.0;
        for (i, x) in points.iter().enumerate() {
            for (j, y) in points.iter().enumerate() {
                let n = 2 * most + 1;
                for k in 0..n.pow(3) {
                    let image = [k % n - most, k / n % n - most, k / n / n - most];
                    if i != j || image != [0; 3] {
                        let r2: f64 = (0..3).map(|d| (x[d] - y[d] + f64::from(image[d])).powi(2)).sum();
                        total += 0.5 * q[i] * q[j] / r2.sqrt();
                    }
                }
            }
        }
        total
    };
    // Errors go like the square of 1 over the edge.
    let (a, b) = (cubes(6), cubes(13));
    let limit = b + (b - a) * 169.0 / (729.0 - 169.0);
    assert!((limit - energy(&vacuum)).abs() < 2e-3, "{limit} {}", energy(&vacuum));
    // Expansions and direct sums see the same dipole.
    let boundary = Boundary::Periodic(PeriodicBox { side, surroundings: Surroundings::Dielectric(1.0) });
    for method in [Method::Fmm, Method::Treecode, Method::Direct] {
        let settings = Settings { method, boundary, tolerance: 1e-9, ..Settings::default() };
        let sum = evaluate(&settings, &points, &q, None, &mut StageTimes::default()).unwrap();
        for i in 0..4 {
            assert!((sum.potential[i] - vacuum.potential[i]).abs() < 1e-8, "{method:?}");
            (0..3).for_each(|d| assert!((sum.field[i][d] - vacuum.field[i][d]).abs() < 1e-8, "{method:?}"));
        }
    }
    let charged =
        evaluate(&Settings { boundary, ..Settings::default() }, &points, &[1.0; 4], None, &mut StageTimes::default());
    assert!(charged.unwrap_err().to_string().contains("tin foil"));
}

#[test]
fn every_target_sees_every_near_image_once() {
    for side in [[1.0; 3], [1.0, 2.0, 1.4]] {
        let mut points = random_in(side, 1000, 1);
        points.extend([[0.3; 3]; 200]);
        let targets = random_in(side, 300, 2);
        for (method, theta) in
            [(Method::Fmm, 0.866), (Method::Fmm, 0.6), (Method::Treecode, 0.6), (Method::Treecode, 0.9)]
        {
            for leaf_size in [1, 30, 5000] {
                for at in [None, Some(&targets[..])] {
                    let choice = Choice {
                        method,
                        precision: Precision::F64,
                        expansion: Some(Family::Spherical),
                        order: Some(4),
                        theta: Some(theta),
                        leaf_size,
                    };
                    let times = &mut StageTimes::default();
                    let plan = OctreePlan::in_box(&Settings::default(), choice, side, &points, at, times);
                    let count = Count { side: plan.targets.side };
                    let sums =
                        execute::<f64, _, _, 3>(&count, &count, &plan, &points, &vec![1.0; points.len()], at, times);
                    let own = if at.is_none() { 1.0 } else { 0.0 };
                    let expected = (points.len() * plan.geometry.space.near.len()) as f64 - own;
                    for s in &sums {
                        assert_eq!(s.potential, expected, "{side:?} {method:?} {theta} {leaf_size}");
                    }
                }
            }
        }
    }
}
