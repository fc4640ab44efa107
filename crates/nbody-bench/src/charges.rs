//! Charges in periodic boxes, the same numbers on every machine.

use std::f64::consts::PI;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a box holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charges {
    /// Ions up to a quarter of a spacing along each axis from the places of rock salt, in a cube.
    RockSalt,
    /// Molecules of TIP3P water, turned at random, up to a tenth of a spacing from the places of a cubic lattice.
    Water,
    /// A ball of such ions in a cube that is four times as wide.
    Droplet,
    /// Such ions in a box of 10 : 1 : 1.
    Long,
}

/// Sides of a box, places and charges.
pub struct Charged {
    /// Of the box.
    pub side: [f64; 3],
    /// In the box.
    pub position: Vec<[f64; 3]>,
    /// Neutral together.
    pub charge: Vec<f64>,
}

impl Charges {
    /// All with their names.
    pub const ALL: [(&'static str, Charges); 4] = [
        ("rock-salt", Charges::RockSalt),
        ("water", Charges::Water),
        ("droplet", Charges::Droplet),
        ("long", Charges::Long),
    ];

    /// That of a name.
    pub fn named(name: &str) -> Option<Self> {
        Charges::ALL.iter().find(|(n, _)| *n == name).map(|(_, c)| *c)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Charges::ALL[self as usize].0
    }

    /// The names, for messages.
    pub fn allowed() -> String {
        Charges::ALL.map(|(n, _)| n).join(", ")
    }

    /// About `n` charges, as many as fill whole cells of the lattice.
    pub fn of(self, n: usize) -> Charged {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let whole = |of: f64| (of.cbrt().round() as usize).max(1);
        match self {
            Charges::RockSalt => ions([2 * whole(n as f64 / 8.0); 3], &mut random),
            Charges::Long => {
                let width = 2 * whole(n as f64 / 80.0);
                ions([10 * width, width, width], &mut random)
            }
            Charges::Droplet => drop(n, &mut random),
            Charges::Water => water(whole(n as f64 / 3.0), &mut random),
        }
    }
}

fn shaken(place: [usize; 3], part: f64, random: &mut ChaCha8Rng) -> [f64; 3] {
    place.map(|c| c as f64 + 0.5 + part * (2.0 * random.random::<f64>() - 1.0))
}

/// The places of a lattice.
fn lattice(count: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [nx, ny, nz] = count;
    (0..nx * ny * nz).map(move |k| [k / (ny * nz), k / nz % ny, k % nz])
}

fn sign(place: [usize; 3]) -> f64 {
    if place.iter().sum::<usize>() % 2 == 0 { 1.0 } else { -1.0 }
}

fn ions(count: [usize; 3], random: &mut ChaCha8Rng) -> Charged {
    let position = lattice(count).map(|place| shaken(place, 0.25, random)).collect();
    Charged { side: count.map(|c| c as f64), position, charge: lattice(count).map(sign).collect() }
}

/// The ions of either sign that are closest to the center.
fn drop(n: usize, random: &mut ChaCha8Rng) -> Charged {
    let radius = (3.0 * n as f64 / (4.0 * PI)).cbrt();
    let width = 2 * (radius.ceil() as usize + 2);
    let side = 8.0 * radius;
    let from_center =
        |place: [usize; 3]| -> f64 { place.iter().map(|&c| (c as f64 + 0.5 - 0.5 * width as f64).powi(2)).sum() };
    let mut places: Vec<[usize; 3]> = lattice([width; 3]).collect();
    places.sort_by(|&a, &b| from_center(a).total_cmp(&from_center(b)));
    let of = |wanted: f64| places.iter().filter(move |&&p| sign(p) == wanted).take(n.div_ceil(2));
    let shift = 0.5 * (side - width as f64);
    let (position, charge) =
        of(1.0).chain(of(-1.0)).map(|&p| (shaken(p, 0.25, random).map(|c| c + shift), sign(p))).unzip();
    Charged { side: [side; 3], position, charge }
}

/// Lengths in nm and charges of TIP3P water (Jorgensen et al. 1983), at 33.4 molecules per nm³.
const BOND: f64 = 0.09572;
const ANGLE: f64 = 104.52;
const SPACING: f64 = 0.3105;
const HYDROGEN: f64 = 0.417;

fn water(count: usize, random: &mut ChaCha8Rng) -> Charged {
    let side = count as f64 * SPACING;
    let (mut position, mut charge) = (vec![], vec![]);
    let half = 0.5 * ANGLE.to_radians();
    for place in lattice([count; 3]) {
        let oxygen = shaken(place, 0.1, random).map(|c| c * SPACING);
        // A turn at random (Marsaglia 1972): the axis of the molecule, and one across it.
        let [axis, across] = frame(random);
        let hydrogen = |sign: f64| -> [f64; 3] {
            std::array::from_fn(|d| {
                let x = oxygen[d] + BOND * (half.cos() * axis[d] + sign * half.sin() * across[d]);
                x.rem_euclid(side)
            })
        };
        position.extend([oxygen, hydrogen(1.0), hydrogen(-1.0)]);
        charge.extend([-2.0 * HYDROGEN, HYDROGEN, HYDROGEN]);
    }
    Charged { side: [side; 3], position, charge }
}

/// Two directions at random, at a right angle.
fn frame(random: &mut ChaCha8Rng) -> [[f64; 3]; 2] {
    let cosine = 2.0 * random.random::<f64>() - 1.0;
    let sine = (1.0 - cosine * cosine).sqrt();
    let (s, c) = (std::f64::consts::TAU * random.random::<f64>()).sin_cos();
    let (t, u) = (std::f64::consts::TAU * random.random::<f64>()).sin_cos();
    let (along, around) = ([cosine * c, cosine * s, -sine], [-s, c, 0.0]);
    [[sine * c, sine * s, cosine], std::array::from_fn(|d| u * along[d] + t * around[d])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_neutral_and_hold_what_they_say() {
        for (name, charges) in Charges::ALL {
            assert_eq!(Charges::named(name), Some(charges));
            let Charged { side, position, charge } = charges.of(3000);
            assert!((2000..4500).contains(&position.len()) && position.len() == charge.len(), "{name}");
            assert!(charge.iter().sum::<f64>().abs() < 1e-9, "{name}");
            assert!(position.iter().all(|x| (0..3).all(|d| (0.0..side[d]).contains(&x[d]))), "{name}");
        }
        let distance = |a: &[f64; 3], b: &[f64; 3]| (0..3).map(|d| (a[d] - b[d]).powi(2)).sum::<f64>().sqrt();
        let Charged { position: water, .. } = Charges::Water.of(3000);
        let inner = water.chunks(3).find(|m| m[0].iter().all(|c| (0.5..1.0).contains(c))).unwrap();
        assert!((distance(&inner[0], &inner[1]) - BOND).abs() < 1e-12);
        assert!((distance(&inner[1], &inner[2]) - 0.151_39).abs() < 1e-5, "{}", distance(&inner[1], &inner[2]));
        let Charged { position: ball, side, .. } = Charges::Droplet.of(3000);
        let center = side.map(|s| 0.5 * s);
        let widest = ball.iter().map(|x| distance(x, &center)).fold(0.0, f64::max);
        assert!((0.9..1.25).contains(&(8.0 * widest / side[0])), "{widest} of {side:?}");
        assert_eq!(Charges::Long.of(3000).side, [60.0, 6.0, 6.0]);
    }
}
