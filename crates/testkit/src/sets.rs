//! Sets of particles in space, the same for the same seed.

use rand::{Rng, SeedableRng, rngs::StdRng};

/// Positions. `[n]`
pub type Points = Vec<[f64; 3]>;

/// In the unit cube.
pub fn uniform(n: usize, seed: u64) -> Points {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..n).map(|_| rng.random()).collect()
}

fn direction(rng: &mut StdRng) -> [f64; 3] {
    let c: f64 = 2.0 * rng.random::<f64>() - 1.0;
    let f = rng.random::<f64>() * std::f64::consts::TAU;
    let s = (1.0 - c * c).sqrt();
    [s * f.cos(), s * f.sin(), c]
}

/// A Plummer sphere of scale 1, the inner 99.9 % of its mass.
pub fn plummer(n: usize, seed: u64) -> Points {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..n)
        .map(|_| {
            let r = ((0.999 * rng.random::<f64>()).powf(-2.0 / 3.0) - 1.0).sqrt().recip();
            direction(&mut rng).map(|c| r * c)
        })
        .collect()
}

/// On the unit sphere.
pub fn sphere_surface(n: usize, seed: u64) -> Points {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..n).map(|_| direction(&mut rng)).collect()
}

/// Two Plummer spheres, one ten times smaller, at the given `distance`.
pub fn two_clusters(n: usize, distance: f64, seed: u64) -> Points {
    let mut points = plummer(n / 2, seed);
    points.extend(plummer(n - n / 2, seed + 1).into_iter().map(|x| [0.1 * x[0] + distance, 0.1 * x[1], 0.1 * x[2]]));
    points
}

/// 1 and −1 in turn.
pub fn alternating(n: usize) -> Vec<f64> {
    (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect()
}

/// The sets of the contract in open space: name, points, strengths.
pub fn contract_sets(n: usize) -> Vec<(&'static str, Points, Vec<f64>)> {
    let masses = vec![1.0 / n as f64; n];
    vec![
        ("uniform", uniform(n, 21), masses.clone()),
        ("Plummer", plummer(n, 22), masses.clone()),
        ("two clusters", two_clusters(n, 30.0, 23), masses.clone()),
        ("sphere surface", sphere_surface(n, 24), masses),
        ("±1 charges", uniform(n, 25), alternating(n)),
    ]
}

/// In a box of these sides.
pub fn random_in(side: [f64; 3], n: usize, seed: u64) -> Points {
    uniform(n, seed).iter().map(|x| std::array::from_fn(|d| x[d] * side[d])).collect()
}

/// A crystal of sodium chloride of `cells`³ cells of side 2, whose ions are up to 0.05 away from their places along each axis.
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

/// A crystal of `side`³ ions of charge 0.2 where i + j + k is a multiple of 3 and −0.1 elsewhere, 0.3 apart and moved by
/// up to 5e-5 of that: some cells are symmetric about their centers, so that every other degree of their multipoles is
/// near 0.
pub fn layered_crystal(side: usize, seed: u64) -> (Points, Vec<f64>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let places = (0..side.pow(3)).map(|k| [k % side, k / side % side, k / side / side]);
    places
        .map(|k| {
            let charge = if k.iter().sum::<usize>() % 3 == 0 { 0.2 } else { -0.1 };
            (k.map(|c| 0.3 * (c as f64 + 1e-4 * (rng.random::<f64>() - 0.5))), charge)
        })
        .unzip()
}

/// The sets of the contract in periodic boxes: name, sides, points, strengths.
pub fn boxes(n: usize) -> Vec<(&'static str, [f64; 3], Points, Vec<f64>)> {
    let (cube, rectangular) = ([2.0; 3], [4.9163, 4.5981, 3.8869]);
    let drop: Points = plummer(n, 4).iter().map(|x| x.map(|c| 1.0 + 0.03 * c)).collect();
    let cells = ((n as f64 / 8.0).cbrt().round() as usize).max(1);
    let (ions, charges) = crystal(cells);
    vec![
        ("random neutral", cube, random_in(cube, n, 1), alternating(n)),
        ("rectangular", rectangular, random_in(rectangular, n, 2), alternating(n)),
        ("long", [4.0, 1.5, 1.0], random_in([4.0, 1.5, 1.0], n, 3), alternating(n)),
        ("drop", cube, drop, alternating(n)),
        ("crystal", [2.0 * cells as f64; 3], ions, charges),
        ("charged", cube, random_in(cube, n, 5), (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect()),
        ("gravitating", cube, random_in(cube, n, 6), vec![1.0 / n as f64; n]),
    ]
}

/// Points at these distances from the origin, the directions scattered; `radius` gets the place and a number that fills 0..1 evenly.
pub fn around_the_origin(n: usize, radius: fn(usize, f64) -> f64) -> Points {
    let even = |i: usize| (i as f64 * 0.6180339887498949).fract();
    let directions = sphere_surface(n, 7);
    directions.iter().enumerate().map(|(i, x)| x.map(|c| c * radius(i, even(i)))).collect()
}
