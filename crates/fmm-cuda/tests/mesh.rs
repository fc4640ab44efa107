//! Sums with a mesh on the device: stages against formulas, sums against those of the cores.

use crate::common::{FOIL, LONG, errors, gpu, hash, in_box, scalar_errors, uniform};
use fmm_core::mesh::Influence;
use fmm_core::{Method, ParticleStore, PeriodicBox, Precision, Settings, Softening, StageTimes, Surroundings};
use fmm_cuda::{CudaStore, Gpu, evaluate, mesh::transforms};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testkit::sets::{Points, alternating, boxes, random_in};

/// m of a place among `count` points, of both signs.
fn number(place: usize, count: usize) -> f64 {
    if 2 * place > count { place as f64 - count as f64 } else { place as f64 }
}

/// Potential and field of strengths on a mesh, term by term.
fn naive(counts: [usize; 3], sides: [f64; 3], influence: &Influence, strengths: &[f64]) -> Vec<f64> {
    let wave = sides.map(|s| 2.0 * std::f64::consts::PI / s);
    let places = |i: usize| [i / counts[2] / counts[1], i / counts[2] % counts[1], i % counts[2]];
    let angle = |a: [usize; 3], b: [usize; 3]| {
        (0..3).map(|d| 2.0 * std::f64::consts::PI * ((a[d] * b[d]) % counts[d]) as f64 / counts[d] as f64).sum::<f64>()
    };
    let mut out = vec![0.0; 4 * strengths.len()];
    for m in (1..strengths.len()).map(places) {
        let k: [f64; 3] = std::array::from_fn(|d| number(m[d], counts[d]) * wave[d]);
        let square = k.iter().map(|c| c * c).sum::<f64>();
        if square > influence.highest.powi(2) {
            continue;
        }
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (i, q) in strengths.iter().enumerate() {
            let (sin, cos) = angle(m, places(i)).sin_cos();
            (real, imaginary) = (real + q * cos, imaginary - q * sin);
        }
        let factor = influence.at(m, square);
        for (i, f) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let (sin, cos) = angle(m, places(i)).sin_cos();
            f[0] += factor * (real * cos - imaginary * sin);
            // −∂/∂x of exp(i k x).
            (0..3).for_each(|d| f[d + 1] += factor * k[d] * (real * sin + imaginary * cos));
        }
    }
    out
}

#[test]
fn transforms_of_every_factor_are_the_formula() {
    let Some(gpu) = gpu() else { return };
    let mut rng = StdRng::seed_from_u64(3);
    for counts in [
        [4, 4, 4],
        [6, 8, 10],
        [14, 12, 16],
        [10, 20, 24],
        [28, 18, 6],
        [32, 4, 42],
        [4, 64, 8],
        [8, 10, 128],
        [6, 6, 90],
    ] {
        let sides = [1.0, 0.8, 1.3];
        let least = (0..3).map(|d| counts[d] as f64 / sides[d]).fold(f64::INFINITY, f64::min);
        let highest = 0.4 * 2.0 * std::f64::consts::PI * least;
        let mut some = |n: usize| (0..n).map(|_| rng.random::<f64>() + 0.5).collect::<Vec<_>>();
        let inverse = counts.map(|n| {
            let half = some(n);
            (0..n).map(|m| half[m.min(n - m)]).collect()
        });
        let influence = Influence { highest, powers: vec![0.3, -0.2, 1.1], inverse, volume: 1.04 };
        let strengths: Vec<f64> = some(counts.iter().product()).iter().map(|x| x - 1.0).collect();
        let expected = naive(counts, sides, &influence, &strengths);
        for (single, limit) in [(true, 3e-6), (false, 1e-13)] {
            let found = transforms(&gpu, counts, sides, &influence, &strengths, single).unwrap();
            for f in 0..4 {
                let of = |all: &[f64]| all.iter().skip(f).step_by(4).copied().collect::<Vec<_>>();
                let (a, b) = (of(&found), of(&expected));
                let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
                let (error, whole) = (norm(&mut a.iter().zip(&b).map(|(a, b)| a - b)), norm(&mut b.iter().copied()));
                // Of so few points one axis has no waves.
                let is_right = error <= limit * whole;
                assert!(is_right, "{counts:?} function {f} single {single}: {error:e} of {whole:e}");
            }
        }
    }
}

#[test]
fn sums_are_those_of_the_cores() {
    let Some(gpu) = gpu() else { return };
    for (name, side, points, q) in boxes(3000) {
        let cell = PeriodicBox { side, surroundings: FOIL };
        let others: Points = random_in(side, 700, 9);
        for (order, neighbours, precision, softening, limit) in [
            (3, 12, Precision::F64, Softening::None, 1e-12),
            (6, 60, Precision::F32, Softening::None, 3e-5),
            (7, 60, Precision::Mixed, Softening::None, 1e-5),
            (9, 100, Precision::F64, Softening::Spline(0.01 * side[0]), 1e-12),
            (13, 300, Precision::F64, Softening::None, 1e-11),
        ] {
            let settings = Settings {
                method: Method::Mesh,
                order: Some(order),
                leaf_size: Some(neighbours),
                precision,
                softening,
                ..in_box(cell)
            };
            for at in [None, Some(&others[..])] {
                let times = &mut StageTimes::default();
                let expected = fmm_core::evaluate(&settings, &points, &q, at, times).unwrap();
                let found = evaluate(&gpu, &settings, &points, &q, at, times).unwrap();
                assert_eq!(found.choice, expected.choice);
                assert_eq!(found.coincident_pairs, expected.coincident_pairs);
                let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
                let error =
                    |a: &[f64], b: &[f64]| norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>()) / norm(b);
                let field = error(found.field.as_flattened(), expected.field.as_flattened());
                let potential = error(&found.potential, &expected.potential);
                let what = format!("{name} p {order} {precision:?} {}", at.is_some());
                println!("{what}: field {field:.1e}, potential {potential:.1e}");
                assert!(field < limit && potential < limit, "{what}: {field:e} {potential:e}");
            }
        }
    }
}

#[test]
fn repeats_have_the_same_bits_and_runs_have_them_too() {
    let Some(gpu) = gpu() else { return };
    let (n, side) = (20_000, LONG);
    let cell = PeriodicBox { side, surroundings: Surroundings::Dielectric(1.0) };
    let mut particles = uniform(n, 0.0, 5);
    particles.position = random_in(side, n, 5);
    // Pairs that are summed again in double precision.
    for i in 0..200 {
        particles.position[i + 200] = particles.position[i].map(|c| c + 1e-7);
    }
    particles.strength = alternating(n);
    for tolerance in [1e-4, 1e-6] {
        let settings = Settings { method: Method::Mesh, tolerance, ..in_box(cell) };
        let sum = |_| {
            let times = &mut StageTimes::default();
            let found = evaluate(&gpu, &settings, &particles.position, &particles.strength, None, times).unwrap();
            assert_eq!(found.choice.method, Method::Mesh);
            (hash(&found.field), found.potential)
        };
        let first = sum(0);
        assert!((1..20).map(sum).all(|other| other == first), "{tolerance:e}");
        let mut store = CudaStore::new(Gpu::open(0).unwrap(), settings.clone()).unwrap();
        store.upload(&particles).unwrap();
        let times = &mut StageTimes::default();
        store.forces(times).unwrap();
        let (potential, field) = store.field().unwrap();
        assert!((hash(&field), potential) == first, "{tolerance:e}");
        store.drift(40.0, times).unwrap();
        store.forces(times).unwrap();
        let (potential, field) = store.field().unwrap();
        let at = store.particles().unwrap().position;
        let again = evaluate(&gpu, &settings, &at, &particles.strength, None, times).unwrap();
        assert!(again.field == field && again.potential == potential, "{tolerance:e}");
    }
}

/// Single precision of pairs that are far closer than others is that of double.
#[test]
fn close_pairs_are_summed_again() {
    let Some(gpu) = gpu() else { return };
    let side = [1.0; 3];
    let cell = PeriodicBox { side, surroundings: FOIL };
    let mut points = random_in(side, 4000, 7);
    for i in 0..500 {
        let x = points[i];
        points.push([x[0] + 1e-6 * (1 + i % 7) as f64, x[1], x[2] - 1e-6]);
    }
    let q: Vec<f64> = (0..points.len()).map(|i| if i % 3 == 0 { -1.5 } else { 1.0 }).collect();
    let sum = |precision| {
        let settings = Settings { method: Method::Mesh, order: Some(7), precision, ..in_box(cell) };
        evaluate(&gpu, &settings, &points, &q, None, &mut StageTimes::default()).unwrap()
    };
    let (single, double) = (sum(Precision::F32), sum(Precision::F64));
    let (_, worst) = errors(&single.field[4000..], &double.field[4000..]);
    assert!(worst < 1e-6, "{worst:e}");
    assert!(scalar_errors(&single.potential[4000..], &double.potential[4000..]).1 < 1e-6);
}

#[test]
fn auto_takes_a_mesh_for_ions_that_fill_their_box() {
    let Some(gpu) = gpu() else { return };
    let side = [1.0; 3];
    let (n, cell) = (200_000, PeriodicBox { side, surroundings: FOIL });
    let (points, q) = (random_in(side, n, 4), alternating(n));
    let sum = |settings: &Settings| {
        evaluate(&gpu, settings, &points, &q, None, &mut StageTimes::default()).unwrap().choice.method
    };
    assert_eq!(sum(&Settings { tolerance: 1e-3, ..in_box(cell) }), Method::Mesh);
    // An opening angle is one of expansions.
    assert_eq!(sum(&Settings { tolerance: 1e-3, theta: Some(0.6), ..in_box(cell) }), Method::Fmm);
    let why = evaluate(
        &gpu,
        &Settings { method: Method::Mesh, ..Settings::default() },
        &points,
        &q,
        None,
        &mut StageTimes::default(),
    );
    assert!(why.unwrap_err().to_string().contains("periodic boxes"));
}
