//! The particle sets of the benchmarks: the same numbers on every machine, masses 1/N.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How particles lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Evenly in the unit cube.
    Uniform,
    /// A Plummer sphere of scale 1, the inner 99.9 % of its mass.
    Plummer,
    /// Normally distributed about the center of the unit cube and within it, σ = 0.1 if not another.
    Normal,
    /// Evenly in two directions, normally in the third, within the unit cube, σ = 0.01 if not another.
    Layer,
    /// Two Plummer spheres, one ten times smaller, at a distance of 30 scale radii.
    TwoClusters,
}

impl Set {
    /// All with their names.
    pub const ALL: [(&'static str, Set); 5] = [
        ("uniform", Set::Uniform),
        ("plummer", Set::Plummer),
        ("normal", Set::Normal),
        ("layer", Set::Layer),
        ("two-clusters", Set::TwoClusters),
    ];

    /// The set of this name.
    pub fn named(name: &str) -> Option<Set> {
        Set::ALL.iter().find(|(n, _)| *n == name).map(|(_, s)| *s)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Set::ALL[self as usize].0
    }

    /// The names, for messages.
    pub fn allowed() -> String {
        Set::ALL.map(|(n, _)| n).join(", ")
    }

    /// Whether its width σ can be chosen.
    pub fn has_width(self) -> bool {
        matches!(self, Set::Normal | Set::Layer)
    }

    /// `n` positions, with a width σ if not the usual one.
    pub fn points(self, n: usize, sigma: Option<f64>) -> Vec<[f64; 3]> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let random = &mut random;
        let small = |[x, y, z]: [f64; 3]| [0.1 * x + 30.0, 0.1 * y, 0.1 * z];
        (0..n)
            .map(|i| match self {
                Set::Uniform => random.random(),
                Set::Plummer => plummer(random),
                Set::Normal => [0; 3].map(|_| within(random, sigma.unwrap_or(0.1))),
                Set::Layer => [random.random(), random.random(), within(random, sigma.unwrap_or(0.01))],
                Set::TwoClusters if i % 2 == 0 => plummer(random),
                Set::TwoClusters => small(plummer(random)),
            })
            .collect()
    }

    /// `n` positions in the plane z = 0: those of space seen along an axis, so that a layer stays one.
    pub fn flat_points(self, n: usize, sigma: Option<f64>) -> Vec<[f64; 3]> {
        let across = if self == Set::Layer { 2 } else { 1 };
        self.points(n, sigma).into_iter().map(|x| [x[0], x[across], 0.0]).collect()
    }
}

/// Strengths, evenly in [−1, 1]: those of a set in the plane.
pub fn signed(n: usize) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    (0..n).map(|_| 2.0 * random.random::<f64>() - 1.0).collect()
}

fn plummer(random: &mut ChaCha8Rng) -> [f64; 3] {
    let r = ((0.999 * random.random::<f64>()).powf(-2.0 / 3.0) - 1.0).sqrt().recip();
    let cosine = 2.0 * random.random::<f64>() - 1.0;
    let (sin, cos) = (random.random::<f64>() * std::f64::consts::TAU).sin_cos();
    let sine = (1.0 - cosine * cosine).sqrt();
    [r * sine * cos, r * sine * sin, r * cosine]
}

/// Normally distributed about the center of the unit interval; what falls outside is drawn again.
fn within(random: &mut ChaCha8Rng, sigma: f64) -> f64 {
    loop {
        let x = 0.5 + sigma * normal(random);
        if (0.0..=1.0).contains(&x) {
            return x;
        }
    }
}

/// Box and Muller's transform; 1 − u is never 0.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let u: f64 = random.random();
    (-2.0 * (1.0 - u).ln()).sqrt() * (random.random::<f64>() * std::f64::consts::TAU).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_their_shapes_and_are_the_same_each_time() {
        for (name, set) in Set::ALL {
            let points = set.points(4000, None);
            assert_eq!(points, set.points(4000, None), "{name}");
            let flat = set.flat_points(4000, None);
            let thick = flat.iter().map(|x| (x[1] - 0.5).abs()).sum::<f64>() / 4000.0;
            assert!(flat.iter().all(|x| x[2] == 0.0) && (set != Set::Layer || thick < 0.01), "{name}: {thick}");
            assert_eq!((Set::named(name), set.name()), (Some(set), name));
            if set.has_width() {
                let wide = set.flat_points(4000, Some(1.0));
                assert!(wide.iter().all(|x| (0.0..=1.0).contains(&x[1])), "{name} leaves the unit square");
                let away = wide.iter().map(|x| (x[1] - 0.5).abs()).sum::<f64>() / 4000.0;
                assert!((0.2..0.25).contains(&away), "{name} is not wider: {away}");
            }
            let mean = |d: usize| points.iter().map(|x| x[d]).sum::<f64>() / 4000.0;
            let deviation = |d: usize| (points.iter().map(|x| (x[d] - mean(d)).powi(2)).sum::<f64>() / 4000.0).sqrt();
            let expected = match set {
                Set::Uniform => [0.289; 3],
                Set::Normal => [0.1; 3],
                Set::Layer => [0.289, 0.289, 0.01],
                // Of the half-mass radius 1.3; large radii are rare and large.
                Set::Plummer => [1.6; 3],
                Set::TwoClusters => [15.0, 1.15, 1.15],
            };
            for d in 0..3 {
                let ratio = deviation(d) / expected[d];
                assert!((0.6..1.6).contains(&ratio), "{name} {d}: {}", deviation(d));
            }
        }
    }
}
