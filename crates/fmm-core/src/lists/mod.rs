//! Interaction lists: which cells meet by which operator.

mod by_class;
mod reach;
mod rule;
mod space;
mod traverse;

pub use by_class::{ByClass, Shifted};
pub use reach::{Reach, Seen};
pub use rule::Rule;
pub use space::{Space, image_class, image_of};

use crate::Csr;

/// One entry of a list: a source cell, and the class of the translation; where none is needed, that of the image that the source is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bytemuck::Zeroable)]
#[repr(C)]
pub struct Pair {
    /// Source cell.
    pub source: u32,
    /// Index of the translation operator, see [`Classes`], or of the image, see [`image_class`].
    pub class: u32,
}

/// The four lists of a plan. An entry is a source cell, with what the geometry adds to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists<T = Pair> {
    /// Well-separated cells of one level.
    pub m2l: Csr<T>,
    /// Small sources seen by the bodies of a large leaf.
    pub m2p: Csr<T>,
    /// The bodies of a large leaf seen by a small cell.
    pub p2l: Csr<T>,
    /// Neighbors, and pairs too small for anything else.
    pub p2p: Csr<T>,
}

/// Numbers the offsets between cells of one level, source minus target in units of their sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Classes<const D: usize> {
    radius: [i32; D],
    /// The sides of a cell over the longest.
    aspect: [f64; D],
}

impl<const D: usize> Classes<D> {
    /// The offsets that can occur when cubes closer than √`separation2` sides are never accepted: parents
    /// lie within that distance, children within twice that and one.
    pub fn new(separation2: f64) -> Self {
        Classes { radius: [2 * separation2.sqrt().ceil() as i32 + 1; D], aspect: [1.0; D] }
    }

    /// The same of cells with the shape of the root of `space`.
    pub fn of_space(separation2: f64, space: &Space<D>) -> Self {
        let (aspect, reach) = (space.aspect(), (separation2 * space.stretch()).sqrt());
        Classes { radius: aspect.map(|a| 2 * (reach / a).ceil() as i32 + 1), aspect }
    }

    /// At least the offsets between children of cells that are near by [`Rule::most_near`].
    pub fn with_near(self, most_near: i32) -> Self {
        Classes { radius: self.radius.map(|r| r.max(2 * most_near + 1)), ..self }
    }

    /// The largest offset along an axis.
    pub fn radius(&self) -> i32 {
        self.radius.into_iter().max().unwrap_or(0)
    }

    /// The largest offsets along the axes.
    pub fn radii(&self) -> [i32; D] {
        self.radius
    }

    /// The sides of a cell over the longest: 1 for cubes.
    pub fn aspect(&self) -> [f64; D] {
        self.aspect
    }

    /// Whether cells are cubes.
    pub fn are_cubic(&self) -> bool {
        self.aspect == [1.0; D]
    }

    /// Number of classes, used or not.
    pub fn len(&self) -> usize {
        self.radius.iter().map(|r| 2 * *r as usize + 1).product()
    }

    /// Never: there is at least the class of the offset zero.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether the offsets between children of cells at `offset` are all numbered.
    pub fn hold_children(&self, offset: [i32; D]) -> bool {
        offset.iter().zip(self.radius).all(|(o, radius)| 2 * o.abs() < radius)
    }

    /// The class of an offset.
    #[inline]
    pub fn class(&self, offset: [i32; D]) -> u32 {
        (0..D).rev().fold(0, |c, d| c * (2 * self.radius[d] + 1) + offset[d] + self.radius[d]) as u32
    }

    /// The offset of a class.
    #[inline]
    pub fn offset(&self, class: u32) -> [i32; D] {
        let mut rest = class as i32;
        std::array::from_fn(|d| {
            let width = 2 * self.radius[d] + 1;
            let o = rest % width - self.radius[d];
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
        let rule = Rule { separation2: 4.0, ..Rule::classical() };
        let long = Classes::of_space(4.0, &Space::periodic([3.0, 1.0, 2.0], &rule));
        for c in 0..long.len() as u32 {
            assert_eq!(long.class(long.offset(c)), c);
        }
        let cubes = Classes::of_space(5.0, &Space::periodic([3.0; 3], &rule));
        assert_eq!(cubes, Classes::new(5.0));
    }
}
