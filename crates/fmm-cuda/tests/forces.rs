//! Forces in addition to the sum on the device against those of the cores, which are the formulas.

use crate::common::in_box;
use crate::common::{gpu, uniform};
use fmm_core::boundary::{PeriodicBox, Surroundings};
use fmm_core::forces::{External, Forces, LennardJones, Shape};
use fmm_core::{
    CpuStore, ForceReport, Method, ParticleStore, Particles, Precision, Settings, Softening, Stage, StageTimes, Totals,
};
use fmm_cuda::{CudaStore, Gpu};
use testkit::sets::{alternating, random_in};

const CELL: PeriodicBox = PeriodicBox { side: [3.0, 2.5, 2.8], surroundings: Surroundings::TinFoil };

/// Field, potential, the report of the forces and totals, with the potential asked for before (`at_once`) or after the sum.
fn sums(
    store: &mut dyn ParticleStore,
    particles: &Particles,
    at_once: bool,
) -> (Vec<f64>, Vec<[f64; 3]>, ForceReport, Option<Totals>) {
    store.upload(particles).unwrap();
    store.want_potential(at_once);
    let times = &mut StageTimes::default();
    store.forces(times).unwrap();
    // What is summed later is of the places that the forces were summed at.
    store.drift(0.3, times).unwrap();
    let (potential, field) = store.field().unwrap();
    assert!(times.seconds(Stage::P2P) > 0.0);
    (potential, field, store.force_report(), store.totals(&vec![1.0; particles.len()]).unwrap())
}

fn close(found: &[f64], expected: &[f64], what: &str) {
    let largest = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(found.len() == expected.len() && worst <= 1e-11 * largest, "{what}: {worst:e} of {largest:e}");
}

fn compare(settings: &Settings, forces: &Forces, particles: &Particles, what: &str) {
    let on_cores = CpuStore::new(settings.clone()).unwrap();
    let cores = sums(&mut on_cores.with_forces(forces.clone()), particles, true);
    let alone = sums(&mut CpuStore::new(settings.clone()).unwrap(), particles, true);
    // The forces are not lost in what is summed.
    let acts: f64 = alone.1.iter().zip(&cores.1).map(|(a, b)| (a[0] - b[0]).abs()).fold(0.0, f64::max);
    assert!(acts > 0.0, "{what}: nothing acts");
    for at_once in [true, false] {
        let device = CudaStore::new(Gpu::open(0).unwrap(), settings.clone()).unwrap();
        let device = sums(&mut device.with_forces(forces.clone()), particles, at_once);
        close(device.1.as_flattened(), cores.1.as_flattened(), &format!("{what}, field"));
        close(&device.0, &cores.0, &format!("{what}, potential"));
        let report = [cores.2.energy, cores.2.virial];
        close(&[device.2.energy, device.2.virial], &report, &format!("{what}, report"));
        assert_eq!(device.3.is_none(), forces.external.is_some(), "{what}");
        if let Some(totals) = device.3 {
            let each = particles.strength.iter().zip(&device.0);
            close(&[totals.interaction], &[each.map(|(q, p)| 0.5 * q * p).sum()], &format!("{what}, energy"));
        }
    }
}

fn exact(softening: Softening) -> Settings {
    Settings { method: Method::Direct, precision: Precision::F64, softening, ..Settings::default() }
}

#[test]
fn external_fields_are_those_of_the_cores() {
    if gpu().is_none() {
        return;
    }
    let mut particles = uniform(700, -0.5, 70);
    // At the place of the point nothing acts.
    particles.position[3] = [0.1, 0.2, -0.3];
    for (constant, shape) in [
        (-4.3, Shape::Point { source: 2.0, core_radius: 0.0 }),
        (1.7, Shape::Point { source: -2.0, core_radius: 0.2 }),
        (-1.0, Shape::Logarithmic { velocity: 1.3, core_radius: 0.1, flattening: 0.7 }),
        (2.0, Shape::Uniform { field: [0.5, -2.0, 3.0] }),
    ] {
        let external = Some(External { shape, position: [0.1, 0.2, -0.3] });
        let forces = Forces { external, constant, ..Forces::default() };
        compare(&exact(Softening::None), &forces, &particles, &format!("{shape:?}"));
    }
}

/// Pairs of all kinds: neighbours in the order, the same particle in many pairs, and two at one place.
fn pairs(n: usize) -> Vec<[usize; 2]> {
    let mut pairs: Vec<[usize; 2]> = (0..n - 1).step_by(3).map(|i| [i, i + 1]).collect();
    pairs.extend((20..60).map(|i| [5, i]));
    pairs.sort_unstable();
    pairs
}

#[test]
fn exclusions_are_those_of_the_cores() {
    if gpu().is_none() {
        return;
    }
    let mut particles = uniform(800, 0.0, 71);
    particles.strength = alternating(800);
    particles.position[7] = particles.position[6];
    for softening in [
        Softening::None,
        Softening::Plummer(0.05),
        Softening::P1(0.05),
        Softening::Spline(0.05),
        Softening::Yukawa(0.5),
    ] {
        let forces = Forces { exclusions: pairs(800), constant: 3.0, softening, ..Forces::default() };
        compare(&exact(softening), &forces, &particles, &format!("{softening:?}"));
    }
}

#[test]
fn exclusions_in_a_box_leave_out_short_range_forces_too() {
    if gpu().is_none() {
        return;
    }
    let mut particles = uniform(800, 0.0, 72);
    particles.position = random_in(CELL.side, 800, 72);
    particles.strength = alternating(800);
    // Across the edge of the box.
    particles.position[0] = [0.01, 0.1, 0.1];
    particles.position[1] = [CELL.side[0] - 0.05, 0.15, 0.1];
    let settings = Settings { method: Method::Direct, precision: Precision::F64, ..in_box(CELL) };
    let short_range = Some(LennardJones { sigma: [0.05, 0.08], epsilon: [1.0, 0.5], cutoff: 1.1 });
    for short_range in [None, short_range] {
        let forces =
            Forces { exclusions: pairs(800), constant: 3.0, short_range, cell: Some(CELL), ..Forces::default() };
        compare(&settings, &forces, &particles, if short_range.is_some() { "with ions' forces" } else { "charges" });
    }
}

/// Of a cut-off far below the side there would be many more cells than ions: they are fewer and hold more of them. Lengths
/// may be such that their squares are none of single precision.
#[test]
fn short_range_forces_of_a_droplet_around_the_corner_of_a_wide_box() {
    if gpu().is_none() {
        return;
    }
    let droplet = random_in([0.03, 0.04, 0.05], 900, 73);
    for (unit, cutoff) in [(1.0, 0.002), (1.0, 0.01), (1.0, 0.2), (1e-25, 0.01), (1e25, 0.01)] {
        let cell = PeriodicBox { side: CELL.side.map(|s| s * unit), ..CELL };
        let mut particles = uniform(900, 0.0, 73);
        let wrapped = |x: &[f64; 3]| std::array::from_fn(|d| unit * ((x[d] - 0.02 + CELL.side[d]) % CELL.side[d]));
        particles.position = droplet.iter().map(wrapped).collect();
        particles.strength = alternating(900);
        let settings = Settings { method: Method::Direct, precision: Precision::F64, ..in_box(cell) };
        let pairs = LennardJones { sigma: [0.001, 0.002], epsilon: [1.0 / unit, 0.5 / unit], cutoff };
        let forces =
            Forces { constant: 3.0, short_range: Some(pairs.scaled(unit)), cell: Some(cell), ..Forces::default() };
        compare(&settings, &forces, &particles, &format!("a cut-off of {cutoff}, in units of {unit:e}"));
    }
}
