//! Vectors from parallel iterators.

use rayon::iter::IndexedParallelIterator;

/// Collects an iterator whose length is known.
pub trait CollectVec: IndexedParallelIterator {
    /// As `collect` into a vector, which has a second loop for iterators of unknown length compiled with each call.
    fn collect_vec(self) -> Vec<Self::Item> {
        let mut items = Vec::new();
        self.collect_into_vec(&mut items);
        items
    }
}

impl<I: IndexedParallelIterator> CollectVec for I {}
