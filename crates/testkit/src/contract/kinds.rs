//! Twelve kinds of periodic boxes at every tolerance, against Ewald's sum.
#![allow(missing_docs, reason = "each function is named after its promise")]

use fmm_core::{Boundary, Method, PeriodicBox, Settings, Softening, Surroundings};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::Place;
use crate::sets::{Points, alternating, plummer, random_in, two_clusters, uniform};
use crate::space::Reference;

/// A box and what it holds.
struct Kind {
    name: &'static str,
    cell: PeriodicBox,
    softening: Softening,
    points: Points,
    charges: Vec<f64>,
    /// If they are not the charges.
    targets: Option<Points>,
}

impl Kind {
    fn new(name: &'static str, side: [f64; 3], points: Points, charges: Vec<f64>) -> Self {
        let cell = PeriodicBox { side, surroundings: Surroundings::TinFoil };
        Kind { name, cell, softening: Softening::None, points, charges, targets: None }
    }
}

/// Neutral charges at random in a box.
fn random(name: &'static str, side: [f64; 3], n: usize) -> Kind {
    Kind::new(name, side, random_in(side, n, 1), alternating(n))
}

/// Some `n` charges in boxes of twelve kinds.
fn kinds(n: usize) -> Vec<Kind> {
    let cube = [2.0; 3];
    let clusters =
        two_clusters(n, 30.0, 3).into_iter().map(|x| [0.02 * x[0] + 0.5, 0.02 * x[1] + 1.0, 0.02 * x[2] + 1.0]);
    let drop = plummer(n, 4).iter().map(|x| x.map(|c| 1.0 + 0.03 * c)).collect();
    let vacuum = PeriodicBox { side: [2.0, 1.5, 1.8], surroundings: Surroundings::Dielectric(1.0) };
    vec![
        random("cube", cube, n),
        random("2:1:1", [2.0, 1.0, 1.0], n),
        random("10:1:1", [10.0, 1.0, 1.0], n),
        random("thin", [3.0, 2.0, 0.1], n),
        Kind::new("charged", cube, random_in(cube, n, 5), (0..n).map(|i| [1.0, 0.5, -1.0][i % 3]).collect()),
        Kind { cell: vacuum, ..random("in vacuum", vacuum.side, n) },
        molten(n),
        water(n),
        Kind::new("droplet", cube, drop, alternating(n)),
        Kind::new("two clusters", cube, clusters.collect(), alternating(n)),
        Kind { softening: Softening::Spline(0.1), ..random("softened", cube, n) },
        Kind { targets: Some(random_in(cube, n / 2, 7)), ..random("other targets", cube, n) },
    ]
}

/// Ions up to a quarter of a spacing from the places of rock salt.
fn molten(n: usize) -> Kind {
    let width = 2 * ((n as f64 / 8.0).cbrt().round() as usize).max(1);
    let place = |k: usize| [k % width, k / width % width, k / width / width];
    let shaken = |(k, u): (usize, &[f64; 3])| std::array::from_fn(|d| place(k)[d] as f64 + 0.5 * u[d] + 0.25);
    let points = uniform(width.pow(3), 3).iter().enumerate().map(shaken).collect();
    let sign = |k: usize| if place(k).iter().sum::<usize>() % 2 == 0 { 1.0 } else { -1.0 };
    Kind::new("molten salt", [width as f64; 3], points, (0..width.pow(3)).map(sign).collect())
}

/// Molecules with charges like those of water, their hydrogens in any two directions, at the places of a lattice.
fn water(n: usize) -> Kind {
    let width = ((n as f64 / 3.0).cbrt().round() as usize).max(1);
    let mut rng = StdRng::seed_from_u64(9);
    let (mut points, mut charges): (Points, Vec<f64>) = (vec![], vec![]);
    for k in 0..width.pow(3) {
        let oxygen = [k % width, k / width % width, k / width / width].map(|c| c as f64 + 0.2 * rng.random::<f64>());
        points.push(oxygen);
        for _ in 0..2 {
            let u: [f64; 3] = std::array::from_fn(|_| rng.random::<f64>() - 0.5);
            let length = u.iter().map(|c| c * c).sum::<f64>().sqrt().max(0.1);
            points.push(std::array::from_fn(|d| oxygen[d] + 0.31 * u[d] / length));
        }
        charges.extend([-0.834, 0.417, 0.417]);
    }
    Kind::new("water", [width as f64; 3], points, charges)
}

/// Fields, potentials and the net force; the FMM where it serves the box.
pub fn twelve_kinds_of_boxes_keep_every_tolerance(place: &impl Place) {
    for Kind { name, cell, softening, points, charges, targets } in kinds(500) {
        let exact = Reference::in_box(&cell, softening, &points, &charges, targets.as_deref());
        let longest = cell.longest() / cell.side.into_iter().fold(f64::INFINITY, f64::min);
        for tolerance in [1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10] {
            for method in [Method::Mesh, Method::Fmm, Method::Auto] {
                if method == Method::Fmm && longest > 4.0 {
                    continue;
                }
                let boundary = Boundary::Periodic(cell);
                let settings = Settings { method, softening, tolerance, boundary, ..Settings::default() };
                let sum = place.evaluate(&settings, &points, &charges, targets.as_deref()).unwrap();
                let e = exact.errors(&sum.potential, &sum.field);
                let what = format!("{name} {method:?} {tolerance:e}: {e:?} {:?}", sum.choice);
                assert!(e.keep(tolerance) && e.potential_l2 <= tolerance, "{what}");
                if targets.is_none() {
                    let force = |d: usize| sum.field.iter().zip(&charges).map(move |(e, q)| e[d] * q);
                    let net = (0..3).map(|d| force(d).sum::<f64>().powi(2)).sum::<f64>().sqrt();
                    let whole = (0..3).map(|d| force(d).map(f64::abs).sum::<f64>()).sum::<f64>();
                    assert!(net <= tolerance * whole, "{what}: net force {:e}", net / whole);
                }
            }
        }
    }
}
