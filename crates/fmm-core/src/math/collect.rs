//! Vectors from parallel iterators.

use bytemuck::Zeroable;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Collects an iterator whose length is known.
pub trait CollectVec: IndexedParallelIterator {
    /// The items in their order. `collect` gives the same, but compiles a second loop, for iterators of unknown
    /// length, with each call.
    fn collect_vec(self) -> Vec<Self::Item> {
        let mut items = Vec::new();
        self.collect_into_vec(&mut items);
        items
    }
}

impl<I: IndexedParallelIterator> CollectVec for I {}

/// `n` zeros, written by all threads: memory that has been used before is not zero, and one thread
/// would be slow.
pub fn zeros<T: Zeroable + Send>(n: usize) -> Vec<T> {
    (0..n).into_par_iter().with_min_len(4096).map(|_| T::zeroed()).collect_vec()
}
