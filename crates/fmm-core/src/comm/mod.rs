//! Ranks: parts of one program that share no particles, and the messages between them.
//!
//! [`Comm`] is the only way from one rank to another. [`Solo`] is a single rank, [`Threads`] has the ranks of one
//! process, and the program `nbody-mpi` has processes that MPI has started. All calls are collective: every rank
//! makes the same ones in the same order.

mod threads;

pub use threads::{Threads, run};

use bytemuck::{AnyBitPattern, NoUninit};

use crate::math::blocked::{added, blocks};

/// The ranks of a program, as one of them sees them.
///
/// Messages are bytes of any length: a backend whose counts are 32-bit sends them in pieces. A call does not return
/// if another rank ends early; the backend then ends this rank too.
pub trait Comm: Sync {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Replaces each value by its sum over all ranks. `values` has the same length everywhere.
    fn sum(&self, values: &mut [u64]);

    /// Replaces each value by the largest of all ranks. `values` has the same length everywhere.
    fn max(&self, values: &mut [f64]);

    /// The messages of all ranks, by rank.
    fn all_gather(&self, own: &[u8]) -> Vec<Vec<u8>>;

    /// Sends message k to rank k and returns the messages to this rank, by rank.
    ///
    /// # Panics
    /// If there are not as many messages as ranks.
    fn all_to_all(&self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>>;

    /// Waits until all ranks are here.
    fn barrier(&self);

    /// Ends all ranks with this exit code.
    fn abort(&self, code: i32) -> !;
}

/// The single rank of a program that has no others.
#[derive(Debug, Clone, Copy, Default)]
pub struct Solo;

impl Comm for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum(&self, _: &mut [u64]) {}

    fn max(&self, _: &mut [f64]) {}

    fn all_gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        vec![own.to_vec()]
    }

    fn all_to_all(&self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        assert_eq!(messages.len(), 1, "one message a rank");
        messages
    }

    fn barrier(&self) {}

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}

/// The values of a message.
///
/// # Panics
/// If its length is that of no whole number of values.
pub fn values<T: AnyBitPattern + NoUninit>(message: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(message)
}

/// The values of all ranks, one rank after the other.
pub fn gathered<T: AnyBitPattern + NoUninit>(comm: &dyn Comm, own: &[T]) -> Vec<T> {
    comm.all_gather(bytemuck::cast_slice(own)).iter().flat_map(|message| values(message)).collect()
}

/// Sends values k to rank k and returns those for this rank, by rank.
pub fn exchanged<T: AnyBitPattern + NoUninit>(comm: &dyn Comm, to: &[Vec<T>]) -> Vec<Vec<T>> {
    let messages = to.iter().map(|values| bytemuck::cast_slice(values).to_vec()).collect();
    comm.all_to_all(messages).iter().map(|message| values(message)).collect()
}

/// The values of all ranks on the first, one rank after the other; none on others.
pub fn collected<T: AnyBitPattern + NoUninit>(comm: &dyn Comm, own: &[T]) -> Vec<T> {
    let mut to = vec![vec![]; comm.size()];
    to[0] = own.to_vec();
    exchanged(comm, &to).concat()
}

/// The values of the first rank, on all ranks; those of others are not looked at.
pub fn from_first<T: AnyBitPattern + NoUninit>(comm: &dyn Comm, own: &[T]) -> Vec<T> {
    let own = if comm.rank() == 0 { bytemuck::cast_slice(own) } else { &[] };
    values(&comm.all_gather(own)[0])
}

/// Sums `N` terms of each of the `n` elements of this rank, and of those of the others: the bits of [`blocked_sums`](crate::math::blocked_sums)
/// over all of them, if each rank but the last has whole blocks.
pub fn blocked_sums<const N: usize>(comm: &dyn Comm, n: usize, term: impl Fn(usize) -> [f64; N] + Sync) -> [f64; N] {
    added(gathered(comm, &blocks(n, term)))
}

/// The sum over all ranks.
pub fn sum(comm: &dyn Comm, value: u64) -> u64 {
    let mut values = [value];
    comm.sum(&mut values);
    values[0]
}

/// The largest of all ranks.
pub fn max(comm: &dyn Comm, value: f64) -> f64 {
    let mut values = [value];
    comm.max(&mut values);
    values[0]
}

/// How many elements the ranks before this one have, and how many all have, where this one has `own`.
pub fn before(comm: &dyn Comm, own: usize) -> [usize; 2] {
    let counts = gathered(comm, &[own as u64]);
    [&counts[..comm.rank()], &counts[..]].map(|counts| counts.iter().sum::<u64>() as usize)
}
