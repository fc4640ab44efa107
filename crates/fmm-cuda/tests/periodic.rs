//! Periodic boxes on the device: whole sums against Ewald's.

use crate::common::{FOIL, LONG, direct, gpu, hash, in_box, uniform};
use fmm_core::accuracy::Problem;
use fmm_core::forces::{Forces, LennardJones};
use fmm_core::tree::Cube;
use fmm_core::{Method, ParticleStore, PeriodicBox, Precision, Settings, Softening, StageTimes, Surroundings};
use fmm_cuda::{CudaStore, Gpu, evaluate, measure};
use testkit::sets::{Points, alternating, boxes, crystal, random_in};
use testkit::space::Reference;

/// Trees of thirds of the box, where they are chosen, err as trees of halves do, which a leaf size that is given asks for.
#[test]
fn thirds_err_as_halves() {
    let Some(gpu) = gpu() else { return };
    for (n, order, charge) in [(12_000, 3, -1.0), (12_000, 10, -1.0), (12_000, 10, -0.5), (40_000, 15, -1.0)] {
        let points = random_in([2.0; 3], n, 21);
        let q: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { charge }).collect();
        let cell = PeriodicBox { side: [2.0; 3], surroundings: FOIL };
        let sum =
            |settings: &Settings| evaluate(&gpu, settings, &points, &q, None, &mut StageTimes::default()).unwrap();
        let exact = sum(&direct(Softening::None, cell));
        let exact = Reference::of((0..n).map(|i| (exact.potential[i], exact.field[i], 0.0)));
        let (method, order, precision, tolerance) = (Method::Fmm, Some(order), Precision::F64, 1e-4);
        let settings = Settings { method, order, precision, tolerance, ..in_box(cell) };
        let found = sum(&settings);
        let halves = sum(&Settings { leaf_size: Some(found.choice.leaf_size), ..settings });
        // Other trees, other bits.
        assert!(found.field != halves.field, "{n} {order:?}: no thirds");
        let [a, b] = [&found, &halves].map(|sum| exact.errors(&sum.potential, &sum.field));
        println!(
            "{n} {charge} p {order:?}: L2 {:.1e}, potential {:.1e}; halves {:.1e}, {:.1e}",
            a.l2, a.potential_l2, b.l2, b.potential_l2
        );
        let most = (2.0 * b.l2, 2.0 * b.potential_l2);
        assert!(a.l2 <= most.0 && a.potential_l2 <= most.1, "{n} {order:?}: {a:?} {b:?}");
    }
}

/// What the guard measures on its sample is the error over all targets.
#[test]
fn the_guard_measures_the_error_in_boxes() {
    let Some(gpu) = gpu() else { return };
    for (name, side, points, q) in boxes(8000) {
        let cell = PeriodicBox { side, surroundings: FOIL };
        let exact = Reference::in_box(&cell, Softening::None, &points, &q, None);
        for (order, precision, tolerance) in [(4, Precision::F32, 1e-3), (10, Precision::F64, 1e-6)] {
            let settings = Settings { method: Method::Fmm, order: Some(order), precision, tolerance, ..in_box(cell) };
            let (_, error) = measure(&gpu, &settings, &points, &q, None).unwrap();
            let sum = evaluate(&gpu, &settings, &points, &q, None, &mut StageTimes::default()).unwrap();
            let e = exact.errors(&sum.potential, &sum.field);
            let whole = e.rms.max(e.l2).max(e.potential_l2);
            println!("{name} p {order}: guard {error:.2e}, all {whole:.2e}");
            assert!(error > 0.4 * whole && error < 2.5 * whole, "{name} p {order}: {error:e} {whole:e}");
        }
    }
}

#[test]
fn no_sum_is_refused_by_single_precision_of_the_guard() {
    // Ions of a crystal feel next to nothing: what single precision adds up there errs by more than what it measures.
    let Some(gpu) = gpu() else { return };
    for away in [0.0, 1e-3, 1.0] {
        let n = 28;
        let place = |k: usize| [k % n, k / n % n, k / n / n];
        let (_, charges) = crystal(n / 2);
        let (shaken, _) = crystal(n / 2);
        let points: Points = shaken
            .iter()
            .enumerate()
            .map(|(k, x)| std::array::from_fn(|d| (1.0 - away) * place(k)[d] as f64 + away * x[d]))
            .collect();
        let settings = Settings { tolerance: 1e-4, ..in_box(PeriodicBox { side: [n as f64; 3], surroundings: FOIL }) };
        let settings = Settings { method: Method::Fmm, ..settings };
        let found = evaluate(&gpu, &settings, &points, &charges, None, &mut StageTimes::default()).unwrap();
        assert_eq!(found.choice.method, Method::Fmm, "{away}: {:?}", found.choice);
    }
}

#[test]
fn repeats_have_the_same_bits_and_particles_move() {
    let Some(gpu) = gpu() else { return };
    let (n, side) = (20_000, LONG);
    let cell = PeriodicBox { side, surroundings: Surroundings::Dielectric(1.0) };
    let mut particles = uniform(n, 0.0, 5);
    particles.position = random_in(side, n, 5);
    particles.strength = alternating(n);
    let settings = Settings { method: Method::Fmm, tolerance: 1e-4, ..in_box(cell) };
    let sum = |_| {
        let found =
            evaluate(&gpu, &settings, &particles.position, &particles.strength, None, &mut StageTimes::default())
                .unwrap();
        (hash(&found.field), found.potential)
    };
    let first = sum(0);
    assert!((1..20).map(sum).all(|other| other == first));
    let mut store = CudaStore::new(Gpu::open(0).unwrap(), settings.clone()).unwrap();
    store.upload(&particles).unwrap();
    let times = &mut StageTimes::default();
    store.forces(times).unwrap();
    let (potential, field) = store.field().unwrap();
    assert_eq!((hash(&field), potential), first);
    // Across the edges: places in the box are found anew.
    store.drift(40.0, times).unwrap();
    store.forces(times).unwrap();
    let (potential, field) = store.field().unwrap();
    let at = store.particles().unwrap().position;
    let again = evaluate(&gpu, &settings, &at, &particles.strength, None, times).unwrap();
    assert!(again.field == field && again.potential == potential);
    assert!(at.iter().any(|x| cell.wrapped(*x) != *x));
}

#[test]
fn what_no_expansion_serves_is_ewalds_sum_with_a_mesh_or_without() {
    let Some(gpu) = gpu() else { return };
    let side = [1.0, 1.0, 9.0];
    let settings = in_box(PeriodicBox { side, surroundings: FOIL });
    let points = random_in(side, 200, 1);
    let q = alternating(200);
    let sum = |settings: &Settings| evaluate(&gpu, settings, &points, &q, None, &mut StageTimes::default());
    assert!(matches!(sum(&settings).unwrap().choice.method, Method::Direct | Method::Mesh));
    let fmm = Settings { method: Method::Fmm, ..settings };
    assert!(sum(&fmm).unwrap_err().to_string().contains("not 9"));
    let problem = Problem::of(&points, &[&q], 200, &Cube::around(&[&points]));
    assert!(fmm_cuda::choose(&fmm, problem).is_err());
}

/// Lennard-Jones forces in addition to Coulomb's, compared with direct sums of the formulas over
/// all pairs; and a change of velocities.
#[test]
fn neighbors_act_and_velocities_change_on_the_device() {
    let Some(gpu) = gpu() else { return };
    for (side, n, cutoff) in [([3.0; 3], 1500, 1.1), (LONG, 2500, 1.15), ([2.0; 3], 40, 1.0)] {
        let cell = PeriodicBox { side, surroundings: FOIL };
        let mut particles = uniform(n, 0.0, 5);
        // Some outside, and one place twice.
        particles.position =
            random_in(side, n, 5).iter().map(|x| [x[0] - side[0], x[1], x[2] + 2.0 * side[2]]).collect();
        particles.position[7] = particles.position[8];
        particles.strength = alternating(n);
        let (sigma, epsilon, per_charge): ([f64; 2], [f64; 2], f64) = ([0.03, 0.05], [1.0, 0.5], 0.25);
        let mixed = |a: usize, b: usize| (0.5 * (sigma[a] + sigma[b]), (epsilon[a] * epsilon[b]).sqrt());
        let bare = |a: usize, b: usize, r: f64| {
            let (s, e) = mixed(a, b);
            let six = (s / r).powi(6);
            (4.0 * e * six * (six - 1.0), 24.0 * e * six * (2.0 * six - 1.0) / r)
        };
        let (mut energy, mut virial, mut forces) = (0.0, 0.0, vec![[0.0; 3]; n]);
        for i in 0..n {
            for j in (0..n).filter(|&j| j != i) {
                let d: [f64; 3] = std::array::from_fn(|k| {
                    let d = particles.position[i][k] - particles.position[j][k];
                    d - (d / side[k]).round() * side[k]
                });
                let r = d.iter().map(|d| d * d).sum::<f64>().sqrt();
                if r > 0.0 && r < cutoff {
                    let (a, b) = (i % 2, j % 2);
                    let (u, f) = bare(a, b, r);
                    let (end, last) = bare(a, b, cutoff);
                    let force = f - last;
                    energy += 0.5 * (u - end + (r - cutoff) * last);
                    virial += 0.5 * force * r;
                    (0..3).for_each(|k| forces[i][k] += force * d[k] / r);
                }
            }
        }
        let settings = Settings { method: Method::Auto, tolerance: 1e-6, ..in_box(cell) };
        let short = LennardJones { sigma, epsilon, cutoff };
        let field = |short_range| {
            let store = CudaStore::new(Gpu::open(0).unwrap(), settings.clone()).unwrap();
            let forces = Forces { short_range, constant: 1.0 / per_charge, cell: Some(cell), ..Forces::default() };
            let mut store = store.with_forces(forces);
            store.upload(&particles).unwrap();
            store.forces(&mut StageTimes::default()).unwrap();
            (store.field().unwrap().1, store.force_report())
        };
        let ((with, report), (without, none)) = (field(Some(short)), field(None));
        assert_eq!((none.energy, none.virial), (0.0, 0.0));
        let found: Vec<f64> = (0..n)
            .flat_map(|i| [0, 1, 2].map(|k| (with[i][k] - without[i][k]) * particles.strength[i] / per_charge))
            .collect();
        let scale = forces.as_flattened().iter().chain(without.as_flattened()).fold(0.0, |m: f64, f| m.max(f.abs()));
        for (a, b) in found.iter().zip(forces.as_flattened()) {
            assert!((a - b).abs() < 1e-11 * scale, "{side:?}: {a} {b}");
        }
        assert!((report.energy / energy - 1.0).abs() < 1e-10 && (report.virial / virial - 1.0).abs() < 1e-10);
    }
    drop(gpu);
}
