//! Particles: the state that the integrator advances.

use rayon::prelude::*;

use crate::Error;
use crate::math::CollectVec;

/// Positions, velocities and strengths of N particles, all `f64`, in the order of the caller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Particles {
    /// Positions, `[N]` of (x, y, z).
    pub position: Vec<[f64; 3]>,
    /// Velocities, `[N]`; may be empty where nothing moves.
    pub velocity: Vec<[f64; 3]>,
    /// Source strengths q: masses for gravity, charges for Coulomb.
    pub strength: Vec<f64>,
    /// `a_i = coupling_i · e_i` with e = −∇Σ q/r: −G for gravity, k_e q_i/m_i for Coulomb. `[N]`, or empty.
    pub coupling: Vec<f64>,
    /// Vorticity times volume of vortex particles in space, whose volumes are their strengths; empty for all others. `[N]`
    pub vorticity: Vec<[f64; 3]>,
}

impl Particles {
    /// Number of particles.
    pub fn len(&self) -> usize {
        self.position.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.position.is_empty()
    }

    /// Checks that every position, velocity and strength is finite and that N fits an index.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the first bad index and the count; [`Error::TooMany`]; [`Error::Shape`].
    pub fn check(&self) -> Result<(), Error> {
        let n = self.position.len();
        for (what, length) in [
            ("velocities", self.velocity.len()),
            ("couplings", self.coupling.len()),
            ("vorticities", self.vorticity.len()),
        ] {
            check_shape(what, n, if length == 0 { n } else { length })?;
        }
        check_positions(&self.position)?;
        check_finite("velocity", self.velocity.as_flattened(), 3)?;
        check_finite("vorticity", self.vorticity.as_flattened(), 3)?;
        check_sources(&self.position, &[&self.strength])
    }

    /// v += h · coupling · e, with a field e at each particle.
    pub fn kick(&mut self, h: f64, field: &[[f64; 3]]) {
        self.velocity.par_iter_mut().zip(field).zip(&self.coupling).for_each(|((v, e), c)| {
            for d in 0..3 {
                v[d] += h * (*c * e[d]);
            }
        });
    }

    /// x += h v.
    pub fn drift(&mut self, h: f64) {
        self.position.par_iter_mut().zip(&self.velocity).for_each(|(x, v)| {
            for d in 0..3 {
                x[d] += h * v[d];
            }
        });
    }
}

/// Checks that positions are finite and that their number fits an index.
///
/// # Errors
/// [`Error::TooMany`], [`Error::NotFinite`].
pub fn check_positions<const D: usize>(position: &[[f64; D]]) -> Result<(), Error> {
    if position.len() >= u32::MAX as usize {
        return Err(Error::TooMany(position.len()));
    }
    check_finite("position", position.as_flattened(), D)
}

/// Checks sources: positions, and a finite strength for each of them in every column.
///
/// # Errors
/// Those of [`check_positions`], [`Error::Shape`].
pub fn check_sources<const D: usize>(position: &[[f64; D]], columns: &[&[f64]]) -> Result<(), Error> {
    check_positions(position)?;
    columns.iter().try_for_each(|strength| {
        check_shape("strengths", position.len(), strength.len())?;
        check_finite("strength", strength, 1)
    })
}

fn check_shape(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

/// Strengths that a thread adds up at once.
pub(crate) const CHUNK: usize = 1 << 14;

/// Σ|q|, added in the same order on any number of threads.
pub fn total_size(strengths: &[f64]) -> f64 {
    sizes(strengths).iter().sum()
}

/// Σ|q| of each run of [`CHUNK`] strengths.
pub(crate) fn sizes(strengths: &[f64]) -> Vec<f64> {
    let of_chunk = |chunk: &[f64]| chunk.iter().map(|q| q.abs()).sum::<f64>();
    strengths.par_chunks(CHUNK).map(of_chunk).collect_vec()
}

/// Pairs of points at bitwise the same place, where −0 is 0.
pub fn coincident_pairs<const D: usize>(points: &[[f64; D]]) -> u64 {
    let mut keys: Vec<[u64; D]> = points.par_iter().map(|x| x.map(|c| (c + 0.0).to_bits())).collect_vec();
    keys.par_sort_unstable();
    keys.chunk_by(|a, b| a == b).map(|same| same.len() as u64 * (same.len() as u64 - 1) / 2).sum()
}

/// The smallest distance between points at different places, and the largest coordinate, that sums in space take.
const REACH: [f64; 2] = [1e-100, 1e100];

/// The same distance as a part of the largest coordinate. Squares of smaller ones count as zero in the units of a set.
const PART: f64 = 1e-98;

/// The smallest distance that sums in space take of points whose largest coordinate is this.
fn nearest(largest: f64) -> f64 {
    REACH[0].max(PART * largest)
}

/// Whether points are within the range of [`check_reach`] as far as the sizes of their coordinates tell: of the smallest that
/// is not 0, and of the largest. Others have to be looked at.
pub fn surely_in_reach(smallest: f64, largest: f64) -> bool {
    largest <= REACH[1] && smallest >= nearest(largest)
}

/// Checks that the cubes of all distances in space are within the range of `f64`: beyond it forces would be 0, or infinite.
///
/// # Errors
/// [`Error::Magnitude`] for a coordinate above 1e100, and for two points at different places whose
/// distance is less than 1e-100, or less than 1e-98 of the largest coordinate.
pub fn check_reach(points: &[&[[f64; 3]]]) -> Result<(), Error> {
    let largest = REACH[1];
    let coordinates = || points.iter().flat_map(|p| p.as_flattened()).map(|x| x.abs());
    if let Some(value) = coordinates().find(|x| *x > largest) {
        return Err(Error::Magnitude { what: "a coordinate", value });
    }
    let smallest = nearest(coordinates().fold(0.0, f64::max));
    // Two different numbers are that close only if both are next to 0.
    if !coordinates().any(|x| x > 0.0 && x < smallest) {
        return Ok(());
    }
    // Points that fall together where tiny coordinates become 0 are closer than that, or at the same place.
    let flushed = |x: &[f64; 3]| x.map(|c| if c.abs() < smallest { 0.0 } else { c + 0.0 }.to_bits());
    let mut all: Vec<_> = points.iter().flat_map(|p| p.iter()).map(|x| (flushed(x), x)).collect();
    all.par_sort_unstable_by_key(|(key, _)| *key);
    for pair in all.windows(2) {
        let [(a, x), (b, y)] = pair else { continue };
        let apart = (0..3).map(|k| (x[k] - y[k]).abs()).fold(0.0, f64::max);
        if a == b && apart > 0.0 {
            return Err(Error::Magnitude { what: "a distance", value: apart });
        }
    }
    Ok(())
}

pub(crate) fn check_finite(what: &'static str, values: &[f64], per: usize) -> Result<(), Error> {
    let mut bad = values.iter().enumerate().filter(|(_, v)| !v.is_finite());
    match bad.next() {
        None => Ok(()),
        Some((i, &value)) => Err(Error::NotFinite { what, index: i / per, value, count: 1 + bad.count() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coincident_bodies_are_counted_in_pairs() {
        let (a, b) = ([0.0, 1.0, 2.0], [-0.0, 1.0, 2.0]);
        assert_eq!(coincident_pairs(&[a, b, [3.0; 3], a, [3.0; 3]]), 3 + 1);
        assert_eq!(coincident_pairs::<3>(&[]), 0);
    }

    #[test]
    fn coordinates_and_distances_outside_of_the_range_are_refused() {
        let of = |points: &[[f64; 3]]| check_reach(&[points, &[]]);
        let pair = |x: f64| of(&[[0.0; 3], [x, 0.0, 0.0]]);
        assert!([1e100, -1e100, 1e-100, 0.0, -0.0, 1.0].map(pair).iter().all(Result::is_ok));
        assert_eq!(pair(-1e101), Err(Error::Magnitude { what: "a coordinate", value: 1e101 }));
        assert_eq!(pair(1e-101), Err(Error::Magnitude { what: "a distance", value: 1e-101 }));
        // A tiny coordinate is no tiny distance, and equal points are at distance 0.
        assert_eq!(of(&[[0.0, 1.0, 0.0], [1e-200, 2.0, 0.0], [1e-200, 2.0, 0.0]]), Ok(()));
        let near = of(&[[5.0, 1e-300, 0.0], [3.0, 0.0, 0.0], [5.0, -1e-200, 0.0]]);
        assert_eq!(near, Err(Error::Magnitude { what: "a distance", value: 1e-200 }));
        // As a part of the largest coordinate.
        let three = |near: f64, far: f64| of(&[[0.0; 3], [near, 0.0, 0.0], [0.0, far, 0.0]]);
        assert!(three(1e-80, 1e17).is_ok() && three(1.0, 1e97).is_ok());
        assert_eq!(three(1e-80, 1e76), Err(Error::Magnitude { what: "a distance", value: 1e-80 }));
        assert_eq!(three(1.0, 1e99), Err(Error::Magnitude { what: "a distance", value: 1.0 }));
        // Sources and targets together.
        assert!(check_reach(&[&[[0.0; 3]], &[[1e-300, 0.0, 0.0]]]).is_err());
    }
}
