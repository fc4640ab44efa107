//! Periodic boxes that the tests of the device sum over.
#![allow(dead_code, reason = "the examples take parts of it")]

use fmm_core::{Boundary, Method, PeriodicBox, Settings, Softening, Surroundings};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::common::{plummer, uniform};

pub type Points = Vec<[f64; 3]>;

pub const FOIL: Surroundings = Surroundings::TinFoil;
/// Sides of a box that is no cube.
pub const LONG: [f64; 3] = [4.9163, 4.5981, 2.3];

/// Points at random in a box of these sides.
pub fn random_in(side: [f64; 3], n: usize, seed: u64) -> Points {
    uniform(n, 0.0, seed).position.iter().map(|x| std::array::from_fn(|d| x[d] * side[d])).collect()
}

/// Charges of both signs in turn.
pub fn alternating(n: usize) -> Vec<f64> {
    (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect()
}

/// A crystal of sodium chloride of `cells`³ cells of side 2 whose ions have left their places a little.
pub fn crystal(cells: usize) -> (Points, Vec<f64>) {
    let mut rng = StdRng::seed_from_u64(8);
    let n = 2 * cells;
    let places = (0..n.pow(3)).map(|k| [k % n, k / n % n, k / n / n]);
    places
        .map(|k| {
            let sign = if (k[0] + k[1] + k[2]) % 2 == 0 { 1.0 } else { -1.0 };
            (k.map(|c| c as f64 + 0.1 * (rng.random::<f64>() - 0.5)), sign)
        })
        .unzip()
}

/// Name, sides, points and strengths.
pub fn boxes(n: usize) -> Vec<(&'static str, [f64; 3], Points, Vec<f64>)> {
    let cube = [2.0; 3];
    let drop: Points = plummer(n, 4).position.iter().map(|x| x.map(|c| 1.0 + 0.03 * c)).collect();
    let cells = ((n as f64 / 8.0).cbrt().round() as usize).max(1);
    let (ions, charges) = crystal(cells);
    vec![
        ("random neutral", cube, random_in(cube, n, 1), alternating(n)),
        ("rectangular", LONG, random_in(LONG, n, 2), alternating(n)),
        ("long", [4.0, 1.5, 1.0], random_in([4.0, 1.5, 1.0], n, 3), alternating(n)),
        ("drop", cube, drop, alternating(n)),
        ("crystal", [2.0 * cells as f64; 3], ions, charges),
        ("charged", cube, random_in(cube, n, 5), (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect()),
        ("gravitating", cube, random_in(cube, n, 6), vec![1.0 / n as f64; n]),
    ]
}

/// Ewald's sum to the end.
pub fn direct(softening: Softening, cell: PeriodicBox) -> Settings {
    Settings { method: Method::Direct, softening, boundary: Boundary::Periodic(cell), ..Settings::default() }
}

/// With images.
pub fn in_box(cell: PeriodicBox) -> Settings {
    Settings { boundary: Boundary::Periodic(cell), ..Settings::default() }
}
