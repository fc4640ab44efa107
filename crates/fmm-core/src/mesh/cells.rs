//! Bodies in cells, and what lies within a cut-off of a cell.

use std::ops::Range;

use rayon::prelude::*;

use super::{real, sorted_by};
use crate::math::scale::scale_of;
use crate::math::simd::Vector;
use crate::math::{CollectVec, Real};
use crate::{PeriodicBox, Surroundings};

/// Cells that the cut-off is long.
const PER_CUTOFF: f64 = 2.0;

/// Bodies that a cell holds at least, on average.
const FEWEST: f64 = 2.0;

/// Cells, or groups of targets, that one task serves.
pub const GROUPS: usize = 32;

/// Bodies by cells of a box from the origin.
pub struct Cells<T> {
    counts: [usize; 3],
    size: [f64; 3],
    /// The body of each place.
    pub order: Vec<u32>,
    /// The first place of each cell, z fastest, and one past the last.
    pub start: Vec<u32>,
    /// Coordinates from the center of the cell, and a vector more.
    pub x: [Vec<T>; 3],
    /// The index of the cell along z, and a vector more.
    depth: Vec<T>,
}

impl<T: Real> Cells<T> {
    /// Of positions in a box from the origin.
    pub fn new(counts: [usize; 3], sides: [f64; 3], position: &[[f64; 3]]) -> Self {
        let size: [f64; 3] = std::array::from_fn(|d| sides[d] / counts[d] as f64);
        let index = |x: f64, d: usize| ((x / sides[d] * counts[d] as f64) as usize).min(counts[d] - 1);
        let cell_of = |x: &[f64; 3]| (0..3).fold(0, |cell, d| cell * counts[d] + index(x[d], d));
        let items = sorted_by(position, cell_of);
        let mut start = vec![0u32; counts.iter().product::<usize>() + 1];
        items.iter().for_each(|item| start[item.key as usize + 1] += 1);
        for cell in 1..start.len() {
            start[cell] += start[cell - 1];
        }
        let order = items.par_iter().map(|item| item.index).collect_vec();
        let from_center = |x: f64, d: usize| real(x - (index(x, d) as f64 + 0.5) * size[d]);
        let x = [0, 1, 2].map(|d| {
            let mut all = order.par_iter().map(|&i| from_center(position[i as usize][d], d)).collect_vec();
            all.resize(all.len() + T::WIDTH, T::ZERO);
            all
        });
        let mut depth = order.par_iter().map(|&i| real(index(position[i as usize][2], 2) as f64)).collect_vec();
        depth.resize(depth.len() + T::WIDTH, T::ZERO);
        Cells { counts, size, order, start, x, depth }
    }

    /// How many cells there are.
    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    /// The places of the bodies of a cell.
    pub fn places(&self, cell: usize) -> Range<usize> {
        self.start[cell] as usize..self.start[cell + 1] as usize
    }

    /// The cell of a place.
    pub fn cell_of(&self, place: u32) -> usize {
        self.start.partition_point(|&s| s <= place) - 1
    }
}

/// Sources by cells, and where those lie that a cell may see.
pub struct Sources<T> {
    /// The cells.
    pub cells: Cells<T>,
    /// And a vector more.
    q: Vec<T>,
    cutoff: f64,
    /// Columns of cells with bodies within the cut-off of one at (0, 0), and how far along z they are.
    columns: Vec<([i64; 2], i64)>,
}

impl<T: Real> Sources<T> {
    /// Of positions in a box from the origin, with these strengths.
    pub fn new(sides: [f64; 3], cutoff: f64, position: &[[f64; 3]], strength: &[f64]) -> Self {
        let fewest = (FEWEST * sides.iter().product::<f64>() / position.len().max(1) as f64).cbrt();
        let wanted = f64::max(cutoff / PER_CUTOFF, fewest);
        let cells = Cells::new(sides.map(|s| ((s / wanted) as usize).clamp(1, 512)), sides, position);
        let mut q = cells.order.par_iter().map(|&i| real(strength[i as usize])).collect_vec();
        q.resize(q.len() + T::WIDTH, T::ZERO);
        let columns = columns(&cells.size, cutoff);
        Sources { cells, q, cutoff, columns }
    }

    /// The same in a periodic box, of positions anywhere, in units of about the cut-off, so that squares are numbers; and what lengths
    /// are multiplied by.
    pub fn in_box(side: [f64; 3], cutoff: f64, position: &[[f64; 3]], strength: &[f64]) -> (Self, f64) {
        let scale = scale_of(cutoff);
        let cell = PeriodicBox { side: side.map(|s| s * scale), surroundings: Surroundings::TinFoil };
        let at = position.par_iter().map(|x| cell.wrapped(x.map(|x| x * scale))).collect_vec();
        (Sources::new(cell.side, cutoff * scale, &at, strength), scale)
    }

    /// The numbers of all cells, in parts that one task serves each.
    pub fn parts(&self) -> Vec<Range<usize>> {
        let all = self.cells.len();
        (0..all).step_by(GROUPS).map(|first| first..all.min(first + GROUPS)).collect()
    }

    /// Other bodies by the same cells.
    pub fn cells_of(&self, sides: [f64; 3], position: &[[f64; 3]]) -> Cells<T> {
        Cells::new(self.cells.counts, sides, position)
    }

    /// Collects the images of sources that may be within the cut-off of a body of a cell, relative to its center.
    #[inline(always)]
    pub fn pack<V: Vector<Scalar = T>>(&self, cell: usize, packed: &mut Packed<T>) {
        let Cells { counts, size, .. } = &self.cells;
        let at = [cell / (counts[1] * counts[2]), cell / counts[2] % counts[1], cell % counts[2]].map(|i| i as i64);
        let wrap = |d: usize, i: i64| (at[d] + i).rem_euclid(counts[d] as i64) as usize;
        let nz = counts[2] as i64;
        packed.len = 0;
        for ([i, j], reach) in &self.columns {
            let row = (wrap(0, *i) * counts[1] + wrap(1, *j)) * counts[2];
            let shift = [V::constant(*i as f64 * size[0]), V::constant(*j as f64 * size[1])];
            let (mut low, high) = (at[2] - reach, at[2] + reach);
            while low <= high {
                let image = low.div_euclid(nz);
                let last = high.min(image * nz + nz - 1);
                let cells = [low, last + 1].map(|k| self.cells.start[row + (k - image * nz) as usize] as usize);
                let seen = V::constant((at[2] - image * nz) as f64);
                packed.push(self, cells[0]..cells[1], shift, seen);
                low = last + 1;
            }
        }
        // The rest of the last vectors: somewhere, without strength.
        packed.room(packed.len + 2 * T::WIDTH);
        for place in [packed.len, packed.len + T::WIDTH] {
            V::zero().store(&mut packed.q[place..]);
            for x in &mut packed.x {
                V::constant(2.0 * self.cutoff).store(&mut x[place..]);
            }
        }
    }
}

/// Sources around a cell, and a vector without strength at the end.
#[derive(Default)]
pub struct Packed<T> {
    /// Coordinates from the center of the cell.
    pub x: [Vec<T>; 3],
    /// Strengths.
    pub q: Vec<T>,
    /// How many there are.
    pub len: usize,
}

impl<T: Real> Packed<T> {
    #[inline(always)]
    fn room(&mut self, len: usize) {
        if self.q.len() < len {
            let more = len.next_power_of_two();
            self.x.iter_mut().chain([&mut self.q]).for_each(|v| v.resize(more, T::ZERO));
        }
    }

    /// Adds the sources of a part of a column of cells, as a cell sees them that is so far away along
    /// x and y, and whose index along z is `seen`. What is copied beyond them, the next ones replace.
    #[inline(always)]
    fn push<V: Vector<Scalar = T>>(&mut self, sources: &Sources<T>, places: Range<usize>, shift: [V; 2], seen: V) {
        self.room(self.len + places.len() + T::WIDTH);
        let Cells { x: [x, y, z], depth, size, .. } = &sources.cells;
        let size = V::constant(size[2]);
        let mut done = 0;
        while done < places.len() {
            let (from, to) = (places.start + done, self.len + done);
            V::load(&x[from..]).add(shift[0]).store(&mut self.x[0][to..]);
            V::load(&y[from..]).add(shift[1]).store(&mut self.x[1][to..]);
            let along = V::load(&depth[from..]).sub(seen);
            along.mul_add(size, V::load(&z[from..])).store(&mut self.x[2][to..]);
            V::load(&sources.q[from..]).store(&mut self.q[to..]);
            done += T::WIDTH;
        }
        self.len += places.len();
    }
}

/// Columns of cells of this size that may hold bodies within the cut-off of one of the cell (0, 0, 0):
/// their places, and how far along z.
pub fn columns(size: &[f64; 3], cutoff: f64) -> Vec<([i64; 2], i64)> {
    let reach = [0, 1].map(|d| (cutoff / size[d]) as i64 + 1);
    let gap = |d: usize, i: i64| ((i.abs() - 1).max(0) as f64 * size[d]).powi(2);
    let mut all = vec![];
    for i in -reach[0]..=reach[0] {
        for j in -reach[1]..=reach[1] {
            let left = cutoff * cutoff - gap(0, i) - gap(1, j);
            if left >= 0.0 {
                all.push(([i, j], (left.sqrt() / size[2]) as i64 + 1));
            }
        }
    }
    all
}
