//! Trees: flat arrays of cells in level order.

pub mod key;
mod octree;
pub mod sort;

use rayon::prelude::*;

/// Which cells of a tree are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Those with more bodies than this.
    Leaves(usize),
    /// Those above this level.
    Depth(usize),
}

/// Cells over sorted bodies. Cell 0 is the root; the cells of a level are consecutive, and so are the
/// children of a cell and the bodies of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree<const D: usize> {
    /// Side of the root cube; the longest side of a root that is none.
    pub side: f64,
    /// Sorted place → index in the caller's order, of the bodies of `leaves`. `[N]`
    pub order: Vec<u32>,
    /// First body of a cell and one past its last, as sorted places. `[cells]`
    pub bodies: Vec<[u32; 2]>,
    /// First child of a cell and one past its last; equal for a leaf, [`Tree::STUB`] where they are not
    /// part of this tree. `[cells]`
    pub children: Vec<[u32; 2]>,
    /// Parent of a cell; the root's is itself. `[cells]`
    pub parent: Vec<u32>,
    /// Which corner of the parent: bit d set in the upper half of axis d. `[cells]`
    pub octant: Vec<u8>,
    /// Geometric center. `[cells]`
    pub center: Vec<[f64; D]>,
    /// First cell of each level, and one past the last cell. `[levels + 1]`
    pub level_start: Vec<u32>,
    /// Bodies beyond which a leaf holds one place only.
    pub leaf_size: usize,
    /// Leaves, in the order of their bodies; of a tree that is one rank's part of a whole, those with
    /// bodies of the rank. Its targets are the bodies of these leaves.
    pub leaves: Vec<u32>,
    /// Pairs of bodies at bitwise the same place.
    pub coincident_pairs: u64,
}

impl<const D: usize> Tree<D> {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Number of levels; the root alone makes one.
    pub fn levels(&self) -> usize {
        self.level_start.len() - 1
    }

    /// The cells of `level`.
    pub fn level(&self, level: usize) -> std::ops::Range<usize> {
        self.level_start[level] as usize..self.level_start[level + 1] as usize
    }

    /// Half the (longest) side of the cells of `level`.
    pub fn half(&self, level: usize) -> f64 {
        self.side * 0.5f64.powi(level as i32 + 1)
    }

    /// The bodies of a cell, as sorted places.
    pub fn body_range(&self, cell: usize) -> std::ops::Range<usize> {
        self.bodies[cell][0] as usize..self.bodies[cell][1] as usize
    }

    /// Number of bodies in a cell.
    pub fn count(&self, cell: usize) -> usize {
        self.body_range(cell).len()
    }

    /// The children of a cell.
    pub fn child_range(&self, cell: usize) -> std::ops::Range<usize> {
        self.children[cell][0] as usize..self.children[cell][1] as usize
    }

    /// Whether a cell has no children.
    pub fn is_leaf(&self, cell: usize) -> bool {
        self.children[cell][0] == self.children[cell][1]
    }

    /// The children of a cell that has some, none of which are here.
    pub const STUB: [u32; 2] = [1, 0];

    /// The bodies of [`leaves`](Tree::leaves), as sorted places.
    pub fn owned(&self) -> std::ops::Range<u32> {
        match (self.leaves.first(), self.leaves.last()) {
            (Some(&first), Some(&last)) => self.bodies[first as usize][0]..self.bodies[last as usize][1],
            _ => 0..0,
        }
    }

    /// Whether all bodies of a cell are [owned](Tree::owned).
    pub fn owns(&self, cell: usize) -> bool {
        let (owned, [start, end]) = (self.owned(), self.bodies[cell]);
        owned.start <= start && end <= owned.end
    }

    /// Whether a cell holds targets: bodies that are [owned](Tree::owned).
    pub fn has_targets(&self, cell: usize) -> bool {
        let (owned, [start, end]) = (self.owned(), self.bodies[cell]);
        (start < owned.end && owned.start < end) || start == end
    }

    /// Whether a cell is an over-full leaf: then all its bodies are at bitwise the same place.
    pub fn is_one_place(&self, cell: usize) -> bool {
        self.is_leaf(cell) && self.count(cell) > self.leaf_size
    }

    /// The level of every cell.
    pub fn level_of(&self) -> Vec<u16> {
        (0..self.levels()).flat_map(|l| std::iter::repeat_n(l as u16, self.level(l).len())).collect()
    }
}

/// The cube that a tree divides: lower corner and side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cube<const D: usize> {
    /// Lower corner.
    pub corner: [f64; D],
    /// Side, positive.
    pub side: f64,
}

impl<const D: usize> Cube<D> {
    /// The cube around all points of all sets.
    ///
    /// Side and corner have few significant bits, so that the centers of cells, however deep, are exact: the
    /// side is a multiple of 1/16 of a power of two, the corner a multiple of 1/64 of that power.
    /// No points give the unit cube, and coincident points a cube of the size of their coordinates.
    pub fn around(sets: &[&[[f64; D]]]) -> Self {
        let (low, high) = bounds(sets);
        Cube::of_bounds(low, high)
    }

    /// The same of points with these smallest and largest coordinates; without points `low` is above `high`.
    pub fn of_bounds(low: [f64; D], high: [f64; D]) -> Self {
        if low[0] > high[0] {
            return Cube { corner: [0.0; D], side: 1.0 };
        }
        let magnitude = (0..D).map(|d| low[d].abs().max(high[d].abs())).fold(0.0, f64::max);
        let extent = (0..D).map(|d| high[d] - low[d]).fold(0.0, f64::max);
        // One place: any cube serves, if the square of its side is a number.
        let alone = if magnitude > 0.0 { magnitude } else { 1.0 };
        let extent = if extent > 0.0 { extent } else { alone }.max(1e-140);
        let mut unit = 2f64.powi(extent.log2().ceil() as i32) / 16.0;
        loop {
            // The smallest multiple of `unit` that reaches every point from a corner on the finer grid.
            let corner = low.map(|x| (x / (unit / 4.0)).floor() * (unit / 4.0));
            let needed = (0..D).map(|d| high[d] - corner[d]).fold(0.0, f64::max);
            let side = ((needed / unit).floor() + 1.0) * unit;
            if side <= 17.0 * unit {
                return Cube { corner, side };
            }
            unit *= 2.0;
        }
    }
}

/// The center of the child in corner `octant` of a cell with this half side.
pub(crate) fn child_center<const D: usize>(parent: &[f64; D], octant: u8, half: f64) -> [f64; D] {
    std::array::from_fn(|d| if octant >> d & 1 == 1 { parent[d] + half / 2.0 } else { parent[d] - half / 2.0 })
}

/// The smallest and the largest coordinates of all points of all sets; infinite without points.
pub fn bounds<const D: usize>(sets: &[&[[f64; D]]]) -> ([f64; D], [f64; D]) {
    let start = ([f64::INFINITY; D], [f64::NEG_INFINITY; D]);
    let join = |a: ([f64; D], [f64; D]), b: ([f64; D], [f64; D])| {
        (std::array::from_fn(|d| a.0[d].min(b.0[d])), std::array::from_fn(|d| a.1[d].max(b.1[d])))
    };
    sets.iter()
        .map(|set| set.par_iter().fold(|| start, |a, x| join(a, (*x, *x))).reduce(|| start, join))
        .fold(start, join)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_holds_its_points_closely() {
        let points = [[0.013, 0.2, 0.3], [0.97, 0.5, 0.999]];
        let cube = Cube::around(&[&points]);
        assert!(cube.side <= 1.0625, "{cube:?}");
        for x in points {
            for d in 0..3 {
                assert!(x[d] >= cube.corner[d] && x[d] < cube.corner[d] + cube.side);
            }
        }
        assert_eq!(Cube::<3>::around(&[&[]]).side, 1.0);
        assert!(Cube::around(&[&[[3.0, 1e6, 0.0]; 5]]).side > 0.0);
    }
}
