//! What the tests of the device share.
#![allow(dead_code, reason = "the examples take parts of it")]

use fmm_core::{Boundary, Method, Particles, PeriodicBox, Settings, Softening, Surroundings};
use fmm_cuda::Gpu;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testkit::sets::{self, Points};

/// The first GPU. Without one the test says so aloud and passes, or fails where `NBODY_REQUIRE_GPU` is 1.
pub fn gpu() -> Option<Gpu> {
    match Gpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(why) => {
            assert!(std::env::var("NBODY_REQUIRE_GPU").as_deref() != Ok("1"), "NBODY_REQUIRE_GPU = 1, and {why}");
            // Past the capture of the test's output.
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr().lock(), "skipped: no device ({why})");
            None
        }
    }
}

/// Bodies in the unit cube, moved by `offset`, with masses around 1/n.
pub fn uniform(n: usize, offset: f64, seed: u64) -> Particles {
    bodies(sets::uniform(n, seed).iter().map(|x| x.map(|c| c + offset)).collect(), seed)
}

/// A Plummer sphere of scale length 1 within 99.9 % of the mass.
pub fn plummer(n: usize, seed: u64) -> Particles {
    bodies(sets::plummer(n, seed), seed)
}

fn bodies(position: Points, seed: u64) -> Particles {
    // Other numbers than those of the positions.
    let (n, mut rng) = (position.len(), StdRng::seed_from_u64(!seed));
    Particles {
        position,
        velocity: (0..n).map(|_| [0; 3].map(|_| rng.random::<f64>() - 0.5)).collect(),
        strength: (0..n).map(|_| (0.5 + rng.random::<f64>()) / n as f64).collect(),
        coupling: vec![-1.0; n],
        ..Particles::default()
    }
}

/// Tin foil around all images.
pub const FOIL: Surroundings = Surroundings::TinFoil;

/// Sides of a box that is no cube.
pub const LONG: [f64; 3] = [4.9163, 4.5981, 2.3];

/// Ewald's sum to the end.
pub fn direct(softening: Softening, cell: PeriodicBox) -> Settings {
    Settings { method: Method::Direct, softening, boundary: Boundary::Periodic(cell), ..Settings::default() }
}

/// With images.
pub fn in_box(cell: PeriodicBox) -> Settings {
    Settings { boundary: Boundary::Periodic(cell), ..Settings::default() }
}

/// |a − b| over |b|, rms over all, and the largest.
pub fn errors(found: &[[f64; 3]], expected: &[[f64; 3]]) -> (f64, f64) {
    assert_eq!(found.len(), expected.len());
    let square = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>();
    let each = found.iter().zip(expected).map(|(a, b)| {
        let delta = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
        if square(delta) == 0.0 { 0.0 } else { (square(delta) / square(*b)).sqrt() }
    });
    let (mut sum, mut worst) = (0.0, 0.0);
    for e in each {
        assert!(e.is_finite());
        sum += e * e;
        worst = f64::max(worst, e);
    }
    ((sum / found.len().max(1) as f64).sqrt(), worst)
}

/// The same of scalars.
pub fn scalar_errors(found: &[f64], expected: &[f64]) -> (f64, f64) {
    let threes = |v: &[f64]| v.iter().map(|&x| [x, 0.0, 0.0]).collect::<Vec<_>>();
    errors(&threes(found), &threes(expected))
}

/// A hash of bits.
pub fn hash(values: &[[f64; 3]]) -> u64 {
    values.as_flattened().iter().fold(0xcbf2_9ce4_8422_2325, |h, v| (h ^ v.to_bits()).wrapping_mul(0x100_0000_01b3))
}
