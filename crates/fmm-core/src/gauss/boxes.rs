//! One level of boxes on a lattice: who lies in which, and who are neighbours.

use std::ops::Range;

use rayon::prelude::*;

use crate::math::CollectVec;

/// Boxes an axis at most: numbers along all axes then fit a key, and rounding moves no point by a noticeable part of a box.
const MOST: f64 = (1u64 << 30) as f64;

/// The part of a half side by which a point can lie outside its box, at most.
pub const MARGIN: f64 = 1.0 / 128.0;

/// Cubes of one side that cover all points. Centers are multiples of a power of two, so that their differences are exact.
#[derive(Debug, Clone, PartialEq)]
pub struct Lattice<const D: usize> {
    /// The corner.
    pub origin: [f64; D],
    /// Side of a box.
    pub side: f64,
    /// Boxes along each axis.
    pub count: [i64; D],
    /// 1/side.
    pub inverse: f64,
}

/// 2^⌊log₂ x⌋ for normal positive x.
fn power_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0x7ff0_0000_0000_0000)
}

impl<const D: usize> Lattice<D> {
    /// Boxes of at least the side `wanted` around the points between `low` and `high`.
    pub fn new(low: [f64; D], high: [f64; D], wanted: f64) -> Self {
        let extent: [f64; D] = std::array::from_fn(|d| high[d] - low[d]);
        let largest = extent.into_iter().fold(0.0, f64::max);
        let furthest = low.iter().chain(&high).fold(0.0f64, |m, x| m.max(x.abs()));
        let wanted = wanted.max(largest / MOST * 1.01).max(furthest / MOST / 4096.0);
        // Ten bits of the side; centers lie on multiples of half its last one.
        let unit = power_below(wanted) / 512.0;
        let side = (wanted / unit).ceil() * unit;
        let count = extent.map(|e| ((e / side).ceil() as i64).max(1));
        let origin = std::array::from_fn(|d| {
            let middle = low[d] + 0.5 * extent[d];
            ((middle - 0.5 * count[d] as f64 * side) / unit).round() * unit
        });
        Lattice { origin, side, count, inverse: 1.0 / side }
    }

    /// The box of a point.
    #[inline]
    pub fn cell(&self, x: &[f64; D]) -> [i64; D] {
        // Casting cuts off what is below the first box; rounding of the product is within the margin.
        std::array::from_fn(|d| i64::from(((x[d] - self.origin[d]) * self.inverse) as u32).min(self.count[d] - 1))
    }

    /// The center of a box.
    pub fn center(&self, cell: &[i64; D]) -> [f64; D] {
        std::array::from_fn(|d| self.origin[d] + (cell[d] as f64 + 0.5) * self.side)
    }

    /// The number of a box; those that follow each other along x do so in their numbers.
    #[inline]
    pub fn key(&self, cell: &[i64; D]) -> u128 {
        (0..D).rev().fold(0, |key, d| key * self.count[d] as u128 + cell[d] as u128)
    }

    /// The same for lattices that are small enough for a table.
    #[inline]
    fn place(&self, cell: &[i64; D]) -> usize {
        (0..D).rev().fold(0, |key, d| key * self.count[d] as usize + cell[d] as usize)
    }

    fn cell_of_key(&self, mut key: u128) -> [i64; D] {
        std::array::from_fn(|d| {
            let n = self.count[d] as u128;
            let here = (key % n) as i64;
            key /= n;
            here
        })
    }

    /// How many boxes there are, if a table of them is not too long for n points.
    fn table(&self, n: usize) -> Option<usize> {
        let total = self.count.iter().map(|&c| c as f64).product::<f64>();
        (total <= 4.0 * n as f64 + 65_536.0).then_some(total as usize)
    }

    /// How many boxes along an axis are within `cutoff` sides of another, as far as there are any.
    pub fn reach(&self, cutoff: f64) -> i64 {
        let most = self.count.into_iter().max().unwrap_or(1) - 1;
        if cutoff < most as f64 { cutoff.ceil() as i64 } else { most }
    }

    /// How far along axis 0 boxes are no farther than `reach` (in sides) for each row of boxes around `cell`: calls `row` with the first and
    /// last box of each.
    pub fn rows(&self, cell: &[i64; D], reach: f64, row: &mut impl FnMut([i64; D], i64)) {
        let mut at = *cell;
        self.rows_from(D - 1, cell, &mut at, reach * reach * (1.0 + 1e-6), row);
    }

    fn rows_from(
        &self,
        axis: usize,
        cell: &[i64; D],
        at: &mut [i64; D],
        rest: f64,
        row: &mut impl FnMut([i64; D], i64),
    ) {
        // Boxes k apart have a gap of k − 1 sides.
        let far = (rest.max(0.0).sqrt().ceil()).min(MOST) as i64;
        let (first, last) = ((cell[axis] - far).max(0), (cell[axis] + far).min(self.count[axis] - 1));
        if axis == 0 {
            at[0] = first;
            row(*at, last);
            return;
        }
        for here in first..=last {
            at[axis] = here;
            let gap = ((here - cell[axis]).abs() - 1).max(0) as f64;
            self.rows_from(axis - 1, cell, at, rest - gap * gap, row);
        }
    }
}

/// Boxes that hold points, in the order of their numbers.
#[derive(Debug, Clone)]
pub struct Occupied<const D: usize> {
    /// Where they are.
    pub cells: Vec<[i64; D]>,
    /// Their numbers.
    pub keys: Vec<u128>,
    /// Points before each box, and all of them at the end.
    pub start: Vec<u32>,
    /// How many boxes have a smaller number than each of the lattice, where the lattice is no larger than the points are many.
    table: Vec<u32>,
}

impl<const D: usize> Occupied<D> {
    /// Counts the points in each box.
    pub fn new(lattice: &Lattice<D>, points: &[[f64; D]]) -> Self {
        match lattice.table(points.len()) {
            Some(total) => {
                let mut counts = vec![0u32; total];
                for x in points {
                    counts[lattice.place(&lattice.cell(x))] += 1;
                }
                Self::of_counts(lattice, counts.into_iter().enumerate().map(|(k, c)| (k as u128, c)), total)
            }
            None => {
                let mut keys: Vec<u128> = points.par_iter().map(|x| lattice.key(&lattice.cell(x))).collect_vec();
                keys.par_sort_unstable();
                let runs = keys.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32));
                Self::of_counts(lattice, runs, 0)
            }
        }
    }

    /// The boxes of these numbers, which ascend, with their first points and at the end the number of all points.
    pub fn of_runs(lattice: &Lattice<D>, keys: Vec<u128>, start: Vec<u32>) -> Self {
        let cells: Vec<[i64; D]> = keys.par_iter().map(|&key| lattice.cell_of_key(key)).collect_vec();
        let points = start.last().copied().unwrap_or(0) as usize;
        let mut table = vec![];
        if let Some(total) = lattice.table(points) {
            table.reserve(total);
            for (i, &key) in keys.iter().enumerate() {
                table.resize(key as usize + 1, i as u32);
            }
            table.resize(total, keys.len() as u32);
        }
        Occupied { cells, keys, start, table }
    }

    fn of_counts(lattice: &Lattice<D>, counts: impl Iterator<Item = (u128, u32)>, total: usize) -> Self {
        let mut all = Occupied { cells: vec![], keys: vec![], start: vec![0], table: Vec::with_capacity(total) };
        let mut points = 0;
        for (key, count) in counts {
            if total > 0 {
                all.table.push(all.cells.len() as u32);
            }
            if count > 0 {
                points += count;
                all.keys.push(key);
                all.cells.push(lattice.cell_of_key(key));
                all.start.push(points);
            }
        }
        all
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no box.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Points of a box.
    pub fn count(&self, i: usize) -> usize {
        (self.start[i + 1] - self.start[i]) as usize
    }

    /// The points of a box, in the order of boxes.
    pub fn range(&self, i: usize) -> Range<usize> {
        self.start[i] as usize..self.start[i + 1] as usize
    }

    /// The first box whose number is not smaller.
    #[inline]
    fn first(&self, key: u128) -> usize {
        if self.table.is_empty() {
            return self.keys.partition_point(|&k| k < key);
        }
        self.table.get(key as usize).map_or(self.len(), |&i| i as usize)
    }

    /// Those of a row of the lattice, from its first to its last box.
    #[inline]
    pub fn row(&self, lattice: &Lattice<D>, from: &[i64; D], last: i64) -> Range<usize> {
        let key = lattice.key(from);
        self.first(key)..self.first(key + (last - from[0]) as u128 + 1)
    }

    /// The box at a place of the lattice.
    pub fn find(&self, lattice: &Lattice<D>, cell: &[i64; D]) -> Option<usize> {
        let row = self.row(lattice, cell, cell[0]);
        (!row.is_empty()).then_some(row.start)
    }
}

/// Points in the order of the boxes that hold them.
#[derive(Debug, Clone)]
pub struct Sorted<const D: usize> {
    /// The caller's number of each point; within a box in ascending order.
    pub order: Vec<u32>,
    /// Coordinates in this order.
    pub x: [Vec<f64>; D],
}

impl<const D: usize> Sorted<D> {
    /// Sorts the points into their boxes.
    pub fn new(lattice: &Lattice<D>, occupied: &Occupied<D>, points: &[[f64; D]]) -> Self {
        let mut order = vec![0u32; points.len()];
        if occupied.table.is_empty() {
            let key = |i: u32| lattice.key(&lattice.cell(&points[i as usize]));
            let mut keyed: Vec<(u128, u32)> =
                (0..points.len() as u32).into_par_iter().map(|i| (key(i), i)).collect_vec();
            keyed.par_sort_unstable();
            order.iter_mut().zip(keyed).for_each(|(to, (_, i))| *to = i);
        } else {
            let mut next = occupied.start.clone();
            for (i, x) in points.iter().enumerate() {
                let at = &mut next[occupied.table[lattice.place(&lattice.cell(x))] as usize];
                order[*at as usize] = i as u32;
                *at += 1;
            }
        }
        let x = std::array::from_fn(|d| order.par_iter().map(|&i| points[i as usize][d]).collect_vec());
        Sorted { order, x }
    }
}

/// The coordinates of a cell in an order in which lines along `axis` are together and ascend.
#[inline]
pub fn along<const D: usize>(axis: usize, cell: &[i64; D]) -> [i64; D] {
    let mut key = [cell[axis]; D];
    for (to, d) in (0..D).rev().filter(|&d| d != axis).enumerate() {
        key[to] = cell[d];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(n: usize) -> Vec<[f64; 3]> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..n).map(|_| [next(), 2.0 * next() - 7.0, 1e3 + next()]).collect()
    }

    #[test]
    fn every_point_is_in_the_box_that_says_so() {
        let points = points(3000);
        // The last has more boxes than a table may hold.
        for side in [10.0, 0.7, 0.1, 1e-3] {
            let lattice = Lattice::new([0.0, -7.0, 1e3], [1.0, -5.0, 1e3 + 1.0], side);
            let occupied = Occupied::new(&lattice, &points);
            assert_eq!(occupied.table.is_empty(), side == 1e-3);
            let again = Occupied::of_runs(&lattice, occupied.keys.clone(), occupied.start.clone());
            assert!(again.table == occupied.table && again.cells == occupied.cells);
            let sorted = Sorted::new(&lattice, &occupied, &points);
            let mut seen = vec![false; points.len()];
            for i in 0..occupied.len() {
                let (cell, center) = (occupied.cells[i], lattice.center(&occupied.cells[i]));
                assert_eq!(occupied.find(&lattice, &cell), Some(i));
                assert!(!occupied.range(i).is_empty());
                for j in occupied.range(i) {
                    seen[sorted.order[j] as usize] = true;
                    for d in 0..3 {
                        assert_eq!(sorted.x[d][j], points[sorted.order[j] as usize][d]);
                        let half = 0.5 * lattice.side * (1.0 + MARGIN);
                        assert!((sorted.x[d][j] - center[d]).abs() <= half, "{side} {cell:?}");
                    }
                }
            }
            assert!(seen.into_iter().all(|s| s));
        }
    }

    #[test]
    fn rows_hold_every_box_within_reach() {
        let lattice = Lattice { origin: [0.0; 3], side: 1.0, count: [9, 8, 7], inverse: 1.0 };
        let (cell, reach) = ([3, 0, 6], 2.5);
        let mut near = vec![];
        lattice.rows(&cell, reach, &mut |from, last| near.extend((from[0]..=last).map(|x| [x, from[1], from[2]])));
        let mut all = 0;
        for (x, y, z) in (0..9).flat_map(|x| (0..8).flat_map(move |y| (0..7).map(move |z| (x, y, z)))) {
            let gap = [x - cell[0], y - cell[1], z - cell[2]].map(|d: i64| (d.abs() - 1).max(0) as f64);
            let within = gap.iter().map(|g| g * g).sum::<f64>() < reach * reach;
            assert_eq!(near.contains(&[x, y, z]), within, "{x} {y} {z}");
            all += usize::from(within);
        }
        assert_eq!(near.len(), all);
    }
}
