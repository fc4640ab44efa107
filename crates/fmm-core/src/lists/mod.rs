//! Interaction lists: which cells meet by which operator.

mod traverse;

pub use traverse::Rule;

/// One entry of a list: a source cell, and the class of the translation (zero where none is needed).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Zeroable)]
#[repr(C)]
pub struct Pair {
    /// Source cell.
    pub source: u32,
    /// Index of the translation operator, see [`Classes`].
    pub class: u32,
}

/// Rows of pairs, one row a target cell, so that every target is written by its owner alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Csr {
    /// First pair of each row, and one past the last pair. `[cells + 1]`
    pub start: Vec<u64>,
    /// Pairs. `[start[cells]]`
    pub pairs: Vec<Pair>,
}

impl Csr {
    /// The pairs of one target cell.
    pub fn row(&self, cell: usize) -> &[Pair] {
        &self.pairs[self.start[cell] as usize..self.start[cell + 1] as usize]
    }
}

/// The four lists of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    /// Well-separated cells of one level.
    pub m2l: Csr,
    /// Small sources seen by the bodies of a large leaf.
    pub m2p: Csr,
    /// The bodies of a large leaf seen by a small cell.
    pub p2l: Csr,
    /// Neighbours, and pairs too small for anything else.
    pub p2p: Csr,
}

/// Numbers the offsets between cells of one level, source minus target in units of their side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classes<const D: usize> {
    radius: i32,
}

impl<const D: usize> Classes<D> {
    /// The offsets that can occur when cells closer than √`separation2` sides are never accepted: parents
    /// lie within that distance, children within twice that and one.
    pub fn new(separation2: f64) -> Self {
        Classes { radius: 2 * separation2.sqrt().ceil() as i32 + 1 }
    }

    /// The largest offset along an axis.
    pub fn radius(&self) -> i32 {
        self.radius
    }

    /// Number of classes, used or not.
    pub fn len(&self) -> usize {
        (2 * self.radius as usize + 1).pow(D as u32)
    }

    /// Never: there is at least the class of the offset zero.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether the offsets between children of cells at `offset` are all numbered.
    pub fn hold_children(&self, offset: [i32; D]) -> bool {
        offset.iter().all(|o| 2 * o.abs() < self.radius)
    }

    /// The class of an offset.
    #[inline]
    pub fn class(&self, offset: [i32; D]) -> u32 {
        let width = 2 * self.radius + 1;
        offset.iter().rev().fold(0, |c, o| c * width + o + self.radius) as u32
    }

    /// The offset of a class.
    #[inline]
    pub fn offset(&self, class: u32) -> [i32; D] {
        let width = 2 * self.radius + 1;
        let mut rest = class as i32;
        std::array::from_fn(|_| {
            let o = rest % width - self.radius;
            rest /= width;
            o
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_offsets_are_one_to_one() {
        let classes = Classes::<3>::new(4.0);
        for c in 0..classes.len() as u32 {
            assert_eq!(classes.class(classes.offset(c)), c);
        }
        assert_eq!(classes.offset(classes.class([3, -2, 0])), [3, -2, 0]);
    }
}
