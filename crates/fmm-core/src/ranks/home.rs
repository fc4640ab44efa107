//! The caller's particles: which rank has which, whether they can be summed, and the statistics of all of them.
//!
//! A rank is the home of consecutive particles in the caller's order. Shares are whole runs of 16,384, so that every
//! block of a sum over particles lies on one rank: blocks are then added in their order, and no bit depends on the
//! number of ranks.

use std::ops::Range;

use crate::accuracy::{Problem, Spread, Strengths};
use crate::bodies::{CHUNK, check_finite, check_positions, check_reach, check_sources, sizes, surely_in_reach};
use crate::comm::{self, Comm, gathered};
use crate::cpu::direct::Units;
use crate::math::scale::{power_of_two_below, scale_of};
use crate::tree::{Cube, bounds};
use crate::{Error, Particles};

/// The particles of `count` whose home is this rank of `size`, in the caller's order.
///
/// # Panics
/// If there is no such rank.
pub fn share(count: usize, rank: usize, size: usize) -> Range<usize> {
    assert!(rank < size, "rank {rank} of {size}");
    let chunks = count.div_ceil(CHUNK);
    let start = |rank: usize| (chunks * rank / size * CHUNK).min(count);
    start(rank)..start(rank + 1)
}

/// Checks the particles of all ranks as [`Particles::check`] checks them in one place.
///
/// # Errors
/// On all ranks the same.
pub(super) fn check(comm: &dyn Comm, particles: &Particles) -> Result<(), Error> {
    let Particles { position, velocity, strength, coupling, .. } = particles;
    let [first, count] = comm::before(comm, position.len());
    if count >= u32::MAX as usize {
        return Err(Error::TooMany(count));
    }
    let agreed = |what, own| agreed(comm, first, what, own);
    agreed("velocities", shape(position.len(), velocity.len()))?;
    agreed("couplings", shape(position.len(), coupling.len()))?;
    agreed("position", check_positions(position))?;
    agreed("velocity", check_finite("velocity", velocity.as_flattened(), 3))?;
    agreed("strength", check_sources(position, &[strength]))
}

/// Particles at their home.
#[derive(Clone, Copy)]
pub(super) struct Home<'a> {
    pub position: &'a [[f64; 3]],
    pub strength: &'a [f64],
    /// The place of the first of them among all.
    pub first: usize,
    /// How many particles all ranks have.
    pub count: usize,
}

impl<'a> Home<'a> {
    /// Checks the particles of all ranks.
    ///
    /// # Errors
    /// On all ranks the same: those of a sum over all particles in one place; [`Error::Shape`] for a share that is not
    /// that of [`share`].
    pub fn new(comm: &dyn Comm, position: &'a [[f64; 3]], strength: &'a [f64]) -> Result<Self, Error> {
        let [first, count] = comm::before(comm, position.len());
        if count >= u32::MAX as usize {
            return Err(Error::TooMany(count));
        }
        let expected = share(count, comm.rank(), comm.size()).len();
        let agreed = |what, own| agreed(comm, first, what, own);
        agreed(SHARE, shape(expected, position.len()))?;
        agreed("strengths", shape(position.len(), strength.len()))?;
        agreed("position", check_positions(position))?;
        agreed("strength", check_sources(position, &[strength]))?;
        let home = Home { position, strength, first, count };
        home.check_reach(comm)?;
        Ok(home)
    }

    /// The check of distances needs all particles where there are tiny coordinates: then, and only then, every rank gets them.
    fn check_reach(&self, comm: &dyn Comm) -> Result<(), Error> {
        let sizes = || self.position.as_flattened().iter().map(|x| x.abs());
        let largest = sizes().fold(0.0, f64::max);
        let smallest = sizes().filter(|&x| x > 0.0).fold(f64::INFINITY, f64::min);
        let mut ends = [largest, -smallest];
        comm.max(&mut ends);
        if surely_in_reach(-ends[1], ends[0]) {
            return Ok(());
        }
        check_reach(&[&gathered(comm, self.position)])
    }

    /// The cube around all particles.
    pub fn cube(&self, comm: &dyn Comm) -> Cube<3> {
        let (low, high) = bounds(&[self.position]);
        let mut ends = [-low[0], -low[1], -low[2], high[0], high[1], high[2]];
        comm.max(&mut ends);
        let [a, b, c, high @ ..] = ends;
        Cube::of_bounds([-a, -b, -c], high)
    }

    /// What choices depend on.
    pub fn problem(&self, comm: &dyn Comm, cube: &Cube<3>) -> Problem {
        let step = Spread::<3>::step(self.count);
        let skipped = self.first.next_multiple_of(step) - self.first;
        let own: Vec<[f64; 3]> = self.position.iter().skip(skipped).step_by(step).copied().collect();
        let spread = Spread::of_sample(&gathered(comm, &own), step, cube);
        let Strengths { largest, smallest, .. } = Strengths::of_column(self.strength);
        let mut ends = [largest, -smallest];
        comm.max(&mut ends);
        let strengths = Strengths { mixed: self.is_mixed(comm), largest: ends[0], smallest: -ends[1] };
        Problem::new(self.count, self.count, strengths, &spread, cube)
    }

    /// Whether the particles have both signs.
    pub fn is_mixed(&self, comm: &dyn Comm) -> bool {
        let any = |sign: fn(&f64) -> bool| u64::from(self.strength.iter().any(sign));
        let mut signs = [any(|q| *q > 0.0), any(|q| *q < 0.0)];
        comm.sum(&mut signs);
        signs.iter().all(|&s| s > 0)
    }

    /// The units of all particles, in which squares of forces are numbers.
    pub fn units(&self, comm: &dyn Comm) -> Units {
        let largest = |values: &[f64]| values.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let mut ends = [largest(self.position.as_flattened()), largest(self.strength)];
        comm.max(&mut ends);
        Units { length: power_of_two_below(1.0 / ends[0]), strength: scale_of(ends[1]) }
    }

    /// Σ|q| of all particles.
    pub fn total_size(&self, comm: &dyn Comm) -> f64 {
        gathered(comm, &sizes(self.strength)).iter().sum()
    }
}

/// What has the wrong length in a share that is none.
const SHARE: &str = "particles in the share of a rank";

fn shape(expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Shape { what: SHARE, expected, found }) }
}

/// The first error of all ranks in the check of `what`, as one place with all particles would give it.
fn agreed(comm: &dyn Comm, first: usize, what: &'static str, own: Result<(), Error>) -> Result<(), Error> {
    const FINE: u64 = 0;
    const NOT_FINITE: u64 = 1;
    const SHAPE: u64 = 2;
    let row = match own {
        Ok(()) => [FINE; 4],
        Err(Error::NotFinite { index, value, count, .. }) => {
            [NOT_FINITE, (first + index) as u64, value.to_bits(), count as u64]
        }
        Err(Error::Shape { expected, found, .. }) => [SHAPE, expected as u64, found as u64, 0],
        Err(error) => unreachable!("not an error of one rank: {error}"),
    };
    let all = gathered(comm, &[row]);
    match all.iter().find(|row| row[0] != FINE) {
        None => Ok(()),
        Some(&[NOT_FINITE, index, value, _]) => {
            let count = all.iter().map(|row| row[3]).sum::<u64>() as usize;
            Err(Error::NotFinite { what, index: index as usize, value: f64::from_bits(value), count })
        }
        Some(&[_, expected, found, _]) => {
            Err(Error::Shape { what, expected: expected as usize, found: found as usize })
        }
    }
}
