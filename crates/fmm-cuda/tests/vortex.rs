//! Velocities of vortex particles on the device against direct sums on the cores.

use crate::common::{errors, gpu, hash, plummer, uniform};
use fmm_core::{Method, Precision, Settings, Softening, StageTimes};
use fmm_cuda::{Gpu, biot_savart};

type Columns = [Vec<f64>; 3];

/// Positions and strengths of all kinds: of both signs, along one axis, and in a smooth ring, whose velocities hardly cancel.
fn sets(n: usize) -> Vec<(&'static str, Vec<[f64; 3]>, Columns)> {
    let random = |p: &fmm_core::Particles| [0, 1, 2].map(|k| p.velocity.iter().map(|v| v[k]).collect());
    let (cube, ball) = (uniform(n, 0.0, 60), plummer(n, 61));
    let ring = uniform(n, -0.5, 62).position;
    let around = |x: &[f64; 3]| {
        let weight = (-40.0 * ((x[0].hypot(x[1]) - 0.3).powi(2) + x[2] * x[2])).exp() / n as f64;
        [-x[1] * weight, x[0] * weight, 0.0]
    };
    let of_ring = [0, 1, 2].map(|k| ring.iter().map(|x| around(x)[k]).collect());
    vec![
        ("both signs", cube.position.clone(), random(&cube)),
        ("ball", ball.position.clone(), random(&ball)),
        ("along z", cube.position, [vec![0.0; n], vec![0.0; n], cube.strength]),
        ("ring", ring, of_ring),
    ]
}

fn columns(strengths: &Columns) -> [&[f64]; 3] {
    [&strengths[0], &strengths[1], &strengths[2]]
}

fn direct(softening: Softening, x: &[[f64; 3]], w: &Columns, targets: Option<&[[f64; 3]]>) -> Vec<[f64; 3]> {
    let exact = Settings { method: Method::Direct, precision: Precision::F64, softening, ..Settings::default() };
    fmm_core::biot_savart(&exact, x, columns(w), targets, &mut StageTimes::default()).unwrap().field
}

fn kept(gpu: &Gpu, n: usize, tolerances: &[f64]) {
    let elsewhere = uniform(n / 4, 0.1, 63).position;
    for (name, x, w) in sets(n) {
        for (softening, targets) in
            [(Softening::None, None), (Softening::None, Some(&elsewhere[..])), (Softening::P1(0.05), None)]
        {
            let truth = direct(softening, &x, &w, targets);
            for method in [Method::Direct, Method::Treecode, Method::Fmm] {
                for &tolerance in tolerances {
                    let settings = Settings { method, tolerance, softening, ..Settings::default() };
                    let times = &mut StageTimes::default();
                    let sum = biot_savart(gpu, &settings, &x, columns(&w), targets, times).unwrap();
                    let (rms, worst) = errors(&sum.field, &truth);
                    let what = format!("{name} {softening:?} {} at {tolerance:e}", method.name());
                    println!("{what}: rms {rms:.2e}, largest {worst:.2e}, {:?}", sum.choice);
                    assert!(rms <= tolerance, "{what}: {rms:e}");
                    assert!(sum.choice.method == method && sum.potential.is_empty(), "{what}");
                }
            }
        }
    }
}

/// So small that a checker of memory gets through it.
#[test]
fn velocities_of_few_vortices() {
    let Some(gpu) = gpu() else { return };
    kept(&gpu, 600, &[1e-4]);
}

#[test]
fn velocities_have_the_same_bits_again() {
    let Some(gpu) = gpu() else { return };
    let (_, x, w) = sets(20_000).swap_remove(1);
    let settings = Settings { tolerance: 1e-4, method: Method::Fmm, ..Settings::default() };
    let again = || {
        let times = &mut StageTimes::default();
        hash(&biot_savart(&gpu, &settings, &x, columns(&w), None, times).unwrap().field)
    };
    let first = again();
    assert!((0..5).all(|_| again() == first));
}
