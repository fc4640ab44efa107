//! Vectors from parallel iterators.

use rayon::iter::IndexedParallelIterator;

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
