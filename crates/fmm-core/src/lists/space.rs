//! The space that lists are made in: the root cell and those of its images that meet it through lists.

use super::Rule;

/// Bits of an image's number along an axis.
const BITS: u32 = 10;

/// The root cell and its images.
#[derive(Debug, Clone, PartialEq)]
pub struct Space<const D: usize> {
    /// Sides of the root cell, all equal but in rectangular periodic boxes.
    pub sides: [f64; D],
    /// The images of the root, by their places in units of the sides, that its bodies may be too close to for the operator of the
    /// lattice; in open space that is the root itself alone.
    pub near: Vec<[i32; D]>,
}

impl<const D: usize> Space<D> {
    /// A cube without images.
    pub fn open(side: f64) -> Self {
        Space { sides: [side; D], near: vec![[0; D]] }
    }

    /// A box that repeats. Images that `rule` separates from the box belong to the operator of the lattice.
    pub fn periodic(sides: [f64; D], rule: &Rule) -> Self {
        let mut space = Space { sides, near: vec![] };
        let (aspect, limit) = (space.aspect(), rule.separation2 * space.stretch());
        let most = aspect.map(|a| ((limit.sqrt() / a).ceil() as i32).max(rule.most_near));
        let counts = most.map(|m| 2 * m + 1);
        for number in 0..counts.iter().product::<i32>() {
            let mut rest = number;
            let image: [i32; D] = std::array::from_fn(|d| {
                let place = rest % counts[d] - most[d];
                rest /= counts[d];
                place
            });
            if !rule.far(image, &aspect, space.stretch()) {
                space.near.push(image);
            }
        }
        space
    }

    /// The sides over the longest.
    pub fn aspect(&self) -> [f64; D] {
        let longest = self.sides.into_iter().fold(0.0, f64::max);
        self.sides.map(|s| s / longest)
    }

    /// The squared diagonal of a cell over that of a cube with its longest side.
    pub fn stretch(&self) -> f64 {
        self.aspect().iter().map(|a| a * a).sum::<f64>() / D as f64
    }

    /// Where the image of this class lies: see [`image_class`].
    #[inline]
    pub fn shift(&self, class: u32) -> [f64; D] {
        if class == 0 {
            return [0.0; D];
        }
        let image = image_of::<D>(class);
        std::array::from_fn(|d| f64::from(image[d]) * self.sides[d])
    }

    /// Where the image of this class has the point `x` of the box.
    #[inline]
    pub fn place(&self, class: u32, x: &[f64; D]) -> [f64; D] {
        let shift = self.shift(class);
        std::array::from_fn(|d| x[d] + shift[d])
    }

    /// `center` as seen from the image of this class: what is relative to it there is relative to `center` here.
    #[inline]
    pub fn seen_from(&self, class: u32, center: &[f64; D]) -> [f64; D] {
        let shift = self.shift(class);
        std::array::from_fn(|d| center[d] - shift[d])
    }
}

/// The class of a pair whose source is an image, where it needs no other: 0 for the source itself.
///
/// # Panics
/// Debug builds, if a number does not fit.
pub fn image_class<const D: usize>(image: [i32; D]) -> u32 {
    debug_assert!(image.iter().all(|n| n.abs() < 1 << (BITS - 1)));
    image.iter().rev().fold(0, |class, n| class << BITS | (*n as u32 & ((1 << BITS) - 1)))
}

/// The image of a class.
pub fn image_of<const D: usize>(class: u32) -> [i32; D] {
    std::array::from_fn(|d| {
        let bits = class >> (d as u32 * BITS);
        (bits << (32 - BITS)) as i32 >> (32 - BITS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_classes_are_one_to_one() {
        for image in [[0, 0, 0], [1, -1, 0], [-4, 511, -511], [-1, -1, -1]] {
            assert_eq!(image_of(image_class(image)), image);
        }
        assert_eq!((image_class([0; 3]), image_of::<3>(0)), (0, [0; 3]));
    }

    #[test]
    fn near_images_are_those_of_the_rule() {
        let rule = |separation2| Rule { separation2, ..Rule::classical() };
        assert_eq!(Space::periodic([2.0; 3], &rule(4.0)).near.len(), 27);
        assert_eq!(Space::periodic([2.0; 3], &rule(4.0001)).near.len(), 33);
        // Longer along x: fewer images along it, more along the others.
        let near = Space::periodic([2.0, 1.0, 1.0], &rule(4.0)).near;
        let most = |d: usize| near.iter().map(|n| n[d]).max().unwrap();
        assert_eq!([most(0), most(1), most(2)], [1, 2, 2]);
        assert!(near.iter().all(|n| near.contains(&n.map(|c| -c))));
        assert_eq!(Space::<3>::open(1.0).stretch(), 1.0);
    }
}
