//! Velocities of vortex particles on the device against direct sums on the cores.

use crate::common::{errors, gpu, hash, plummer, uniform};
use fmm_core::vortices::{Exchange, OnCores, Rates, Sums, exchange, rates};
use fmm_core::{Method, Precision, Settings, Softening, StageTimes};
use fmm_cuda::{CudaVortices, Gpu, biot_savart};

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

/// What moves vortex particles of a run, on the device and to a hundredth of the tolerance on the cores.
#[test]
fn rates_of_moving_vortices_are_those_of_the_cores() {
    let Some(gpu) = gpu() else { return };
    let mut device = CudaVortices::new(gpu);
    for n in [500, 20_000] {
        let (_, position, w) = sets(n).swap_remove(3);
        let vorticity: Vec<[f64; 3]> = (0..n).map(|i| [w[0][i], w[1][i], w[2][i] + 0.01 * w[0][i]]).collect();
        let volume = vec![1.0 / n as f64; n];
        let how = Exchange { viscosity: 0.01, width: 0.06 };
        for tolerance in [1e-3, 1e-6] {
            let on = |sums: &mut dyn Sums, tolerance: f64| {
                let settings = Settings { tolerance, softening: Softening::P1(0.06), ..Settings::default() };
                let times = &mut StageTimes::default();
                let all = rates(sums, &settings, &position, &vorticity, times).unwrap();
                let mut spread = vec![[0.0; 3]; n];
                let bodies = (&position[..], &vorticity[..], &volume[..]);
                exchange(sums, how, tolerance, bodies, &mut spread, times).unwrap();
                (all, spread)
            };
            let (exact, exact_spread) = on(&mut OnCores, 0.01 * tolerance);
            let (found, spread) = on(&mut device, tolerance);
            let l2 = |a: &[[f64; 3]], b: &[[f64; 3]]| {
                let square = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>();
                let apart: f64 = a.iter().zip(b).map(|(a, b)| square([0, 1, 2].map(|k| a[k] - b[k]))).sum();
                (apart / b.iter().map(|b| square(*b)).sum::<f64>()).sqrt()
            };
            let wrong = [
                ("velocity", l2(&found.velocity, &exact.velocity), 2.0),
                ("turning", l2(&found.turning, &exact.turning), 4.0),
                ("exchange", l2(&spread, &exact_spread), 4.0),
            ];
            println!("{n} at {tolerance:e}: {wrong:?}");
            for (what, error, most) in wrong {
                assert!(error <= most * tolerance, "{n} at {tolerance:e}: {what} {error:e}");
            }
            let energy = |rates: &Rates| rates.energy.iter().sum::<f64>();
            assert!((energy(&found) / energy(&exact) - 1.0).abs() <= tolerance);
            let (again, spread_again) = on(&mut device, tolerance);
            assert!(hash(&again.turning) == hash(&found.turning) && hash(&spread_again) == hash(&spread));
        }
    }
}
