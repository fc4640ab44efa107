//! What the tests of the device share.
#![allow(dead_code, reason = "the examples take parts of it")]

pub mod boxes;
#[path = "../../../fmm-core/tests/common/planar.rs"]
pub mod planar;
#[path = "../../../fmm-core/tests/common/random.rs"]
pub mod random;

use fmm_core::Particles;
use fmm_cuda::Gpu;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

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

/// Bodies in the unit cube, moved by `offset`, with masses around 1.
pub fn uniform(n: usize, offset: f64, seed: u64) -> Particles {
    let mut rng = StdRng::seed_from_u64(seed);
    let position = (0..n).map(|_| [0; 3].map(|_| rng.random::<f64>() + offset)).collect();
    with_rest(position, &mut rng)
}

/// A Plummer sphere of scale length 1 within 99.9 % of the mass.
pub fn plummer(n: usize, seed: u64) -> Particles {
    let mut rng = StdRng::seed_from_u64(seed);
    let place = |rng: &mut StdRng| {
        let r = 1.0 / ((0.999 * rng.random::<f64>()).powf(-2.0 / 3.0) - 1.0).sqrt();
        loop {
            let v = [0; 3].map(|_| 2.0 * rng.random::<f64>() - 1.0);
            let s = v.iter().map(|c| c * c).sum::<f64>().sqrt();
            if s > 0.1 && s < 1.0 {
                return v.map(|c| c * r / s);
            }
        }
    };
    let position = (0..n).map(|_| place(&mut rng)).collect();
    with_rest(position, &mut rng)
}

fn with_rest(position: Vec<[f64; 3]>, rng: &mut StdRng) -> Particles {
    let n = position.len();
    Particles {
        position,
        velocity: (0..n).map(|_| [0; 3].map(|_| rng.random::<f64>() - 0.5)).collect(),
        strength: (0..n).map(|_| (0.5 + rng.random::<f64>()) / n as f64).collect(),
        coupling: vec![-1.0; n],
    }
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
