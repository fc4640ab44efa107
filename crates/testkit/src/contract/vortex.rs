//! Velocities of vortex particles.
#![allow(missing_docs, reason = "each function is named after its promise")]

use std::f64::consts::PI;

use fmm_core::{Error, Method, Precision, Settings, Softening};

use super::Place;
use crate::random::Random;
use crate::sets::{Points, plummer, uniform};
use crate::space::{Reference, softened};

type Columns = [Vec<f64>; 3];

fn columns(strengths: &Columns) -> [&[f64]; 3] {
    [&strengths[0], &strengths[1], &strengths[2]]
}

/// Positions and strengths of all kinds: of both signs, along one axis, and in a smooth ring, whose velocities hardly cancel.
fn sets(n: usize) -> Vec<(&'static str, Points, Columns)> {
    let mut random = Random(60);
    let mut signed = || [0; 3].map(|_| random.signed(n));
    let ring: Points = uniform(n, 62).iter().map(|x| x.map(|c| c - 0.5)).collect();
    let around = |x: &[f64; 3]| {
        let weight = (-40.0 * ((x[0].hypot(x[1]) - 0.3).powi(2) + x[2] * x[2])).exp() / n as f64;
        [-x[1] * weight, x[0] * weight, 0.0]
    };
    let of_ring = [0, 1, 2].map(|k| ring.iter().map(|x| around(x)[k]).collect());
    vec![
        ("both signs", uniform(n, 60), signed()),
        ("ball", plummer(n, 61), signed()),
        ("along z", uniform(n, 63), [vec![0.0; n], vec![0.0; n], vec![1.0; n]]),
        ("ring", ring, of_ring),
    ]
}

/// u = Σ w × d (−K'/r)/(4π), d from the source to the target, and the size of the largest term.
fn velocity(softening: Softening, x: &[f64; 3], skip: Option<usize>, sources: &Points, w: &Columns) -> ([f64; 3], f64) {
    let (mut u, mut largest) = ([0.0; 3], 0.0f64);
    for (j, y) in sources.iter().enumerate().filter(|&(j, y)| Some(j) != skip && y != x) {
        let d: [f64; 3] = std::array::from_fn(|k| x[k] - y[k]);
        let slope = softened(d.iter().map(|c| c * c).sum(), softening).1 / (4.0 * PI);
        let term = [0, 1, 2].map(|k| {
            let (a, b) = ((k + 1) % 3, (k + 2) % 3);
            slope * (w[a][j] * d[b] - w[b][j] * d[a])
        });
        (0..3).for_each(|k| u[k] += term[k]);
        largest = largest.max(term.iter().map(|c| c * c).sum::<f64>().sqrt());
    }
    (u, largest)
}

pub fn velocities_keep_their_tolerance(place: &impl Place) {
    let n = 3000;
    let elsewhere: Points = uniform(n / 4, 64).iter().map(|x| x.map(|c| c + 0.1)).collect();
    for (name, x, w) in sets(n) {
        for (softening, targets) in
            [(Softening::None, None), (Softening::None, Some(&elsewhere)), (Softening::P1(0.05), None)]
        {
            let at = targets.unwrap_or(&x);
            let own = |i: usize| targets.is_none().then_some(i);
            let exact = (0..at.len()).map(|i| velocity(softening, &at[i], own(i), &x, &w));
            let exact = Reference::of(exact.map(|(u, largest)| (0.0, u, largest)));
            for method in [Method::Direct, Method::Treecode, Method::Fmm] {
                for tolerance in [1e-3, 1e-6, 1e-9] {
                    let settings = Settings { method, tolerance, softening, ..Settings::default() };
                    let sum = place.biot_savart(&settings, &x, columns(&w), targets.map(|t| &t[..])).unwrap();
                    let e = exact.errors(&vec![0.0; at.len()], &sum.field);
                    let what = format!("{name} {softening:?} {} at {tolerance:e}", method.name());
                    println!("{what}: {e:?} {:?}", sum.choice);
                    assert!(e.keep(tolerance), "{what}: {e:?}");
                    assert!(sum.choice.method == method && sum.potential.is_empty(), "{what}");
                }
            }
        }
    }
}

pub fn a_velocity_is_the_formulas(place: &impl Place) {
    // A particle of strength 4π along one axis at the origin turns its neighbour on the next axis towards the third.
    for k in 0..3 {
        let (mut w, mut at, mut expected) = ([vec![0.0], vec![0.0], vec![0.0]], [0.0; 3], [0.0; 3]);
        w[k][0] = 4.0 * PI;
        at[(k + 1) % 3] = 1.0;
        expected[(k + 2) % 3] = 1.0;
        let settings = Settings { precision: Precision::F64, ..Settings::default() };
        let u = place.biot_savart(&settings, &[[0.0; 3]], columns(&w), Some(&[at])).unwrap().field[0];
        assert!((0..3).all(|d| (u[d] - expected[d]).abs() < 1e-14), "{k}: {u:?}");
    }
}

pub fn velocities_of_other_softenings_are_refused(place: &impl Place) {
    let w: Columns = [vec![1.0], vec![0.0], vec![0.0]];
    let of = |settings: Settings, w: &Columns| place.biot_savart(&settings, &[[0.0; 3]], columns(w), None);
    let softened = Settings { softening: Softening::Plummer(0.1), ..Settings::default() };
    assert!(matches!(of(softened, &w), Err(Error::Unsupported(why)) if why.contains("p1")));
    let nan = [vec![1.0], vec![f64::NAN], vec![0.0]];
    assert!(matches!(of(Settings::default(), &nan), Err(Error::NotFinite { .. })));
}
