//! Pairs within the cut-off: the kernel less what the mesh has of it.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::{real, sorted_by};
use crate::Cancel;
use crate::bodies::coincident_pairs;
use crate::kernel::{Radial, Softening, UseRadial};
use crate::math::prolate::Prolate;
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Real, horner};

/// Cells that the cut-off is long.
const PER_CUTOFF: f64 = 2.0;

/// Bodies that a cell holds at least, on average.
const FEWEST: f64 = 2.0;

/// Groups of targets that one task serves.
const GROUPS: usize = 32;

/// The far kernel within the cut-off, as polynomials of t = 2 r²/r_c² − 1.
#[derive(Debug, Clone)]
pub struct Far {
    /// r_c.
    pub cutoff: f64,
    /// Its potential, the highest power first.
    pub potential: Vec<f64>,
    /// Its force over r.
    pub force: Vec<f64>,
}

impl Far {
    /// With errors of about `accuracy` of the force at the cut-off.
    pub(super) fn new(prolate: &Prolate, cutoff: f64, accuracy: f64) -> Self {
        let fit = prolate.mean(0.02 * accuracy);
        let unit = 1.0 / (prolate.whole() * cutoff);
        // dt/dr = 4 r/r_c².
        Far { cutoff, potential: fit.powers(unit), force: fit.derivative().powers(-4.0 * unit / (cutoff * cutoff)) }
    }
}

/// Bodies by cells of a box from the origin.
struct Cells<T> {
    counts: [usize; 3],
    size: [f64; 3],
    /// The body of each place.
    order: Vec<u32>,
    /// The first place of each cell, z fastest, and one past the last.
    start: Vec<u32>,
    /// Coordinates from the center of the cell, and a vector more.
    x: [Vec<T>; 3],
    /// The index of the cell along z, and a vector more.
    depth: Vec<T>,
}

impl<T: Real> Cells<T> {
    fn new(counts: [usize; 3], sides: [f64; 3], position: &[[f64; 3]]) -> Self {
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

    fn places(&self, cell: usize) -> Range<usize> {
        self.start[cell] as usize..self.start[cell + 1] as usize
    }

    /// The cell of a place.
    fn cell_of(&self, place: u32) -> usize {
        self.start.partition_point(|&s| s <= place) - 1
    }
}

/// Sources by cells, and the targets that see them.
pub struct Near<'a, T> {
    far: &'a Far,
    softening: Softening,
    /// The square of the distance within which pairs lose digits.
    closest: f64,
    sources: Cells<T>,
    /// Columns of cells with bodies within the cut-off of one at (0, 0), and how far along z they are.
    columns: Vec<([i64; 2], i64)>,
    /// And a vector more.
    q: Vec<T>,
    /// None: the sources.
    targets: Option<Cells<T>>,
}

impl<'a, T: Real> Near<'a, T> {
    /// Of positions in a box from the origin. Pairs within `closest` cut-offs are reported.
    pub fn new(
        sides: [f64; 3],
        far: &'a Far,
        (softening, closest): (Softening, f64),
        (position, strength): (&[[f64; 3]], &[f64]),
        targets: Option<&[[f64; 3]]>,
    ) -> Self {
        let fewest = (FEWEST * sides.iter().product::<f64>() / position.len().max(1) as f64).cbrt();
        let wanted = f64::max(far.cutoff / PER_CUTOFF, fewest);
        let counts = sides.map(|s| ((s / wanted) as usize).clamp(1, 512));
        let sources = Cells::new(counts, sides, position);
        let mut q = sources.order.par_iter().map(|&i| real(strength[i as usize])).collect_vec();
        q.resize(q.len() + T::WIDTH, T::ZERO);
        let targets = targets.map(|t| Cells::new(counts, sides, t));
        let columns = columns(&sources.size, far.cutoff);
        Near { far, softening, closest: (closest * far.cutoff).powi(2), sources, columns, q, targets }
    }

    fn targets(&self) -> &Cells<T> {
        self.targets.as_ref().unwrap_or(&self.sources)
    }

    /// Pairs of distinct sources, at these positions, at bitwise the same place: they share a cell.
    pub fn coincident_pairs(&self, position: &[[f64; 3]]) -> u64 {
        let cells = 0..self.sources.start.len() - 1;
        let of_cell = |cell: usize| match &self.sources.order[self.sources.places(cell)] {
            [] | [_] => 0,
            few => coincident_pairs(&few.iter().map(|&i| position[i as usize]).collect::<Vec<_>>()),
        };
        cells.into_par_iter().map(of_cell).sum()
    }

    /// Which bodies are close together.
    pub fn neighbours(self) -> Neighbours {
        let Cells { order, start, .. } = self.sources;
        Neighbours { order, start, others: self.targets.map(|targets| (targets.order, targets.start)) }
    }

    /// Potential and field at all places; fewer if they are cancelled.
    pub fn sums(&self, cancel: &Cancel) -> Vec<Sum> {
        let cells = 0..self.sources.start.len() - 1;
        self.at(&cells.map(|cell| (cell, self.targets().places(cell))).collect::<Vec<_>>(), cancel)
    }

    /// The same at some places.
    pub fn sums_at(&self, places: &[u32]) -> Vec<Sum> {
        let one = |&place: &u32| (self.targets().cell_of(place), place as usize..place as usize + 1);
        self.at(&places.iter().map(one).collect::<Vec<_>>(), &Cancel::default())
    }

    fn at(&self, groups: &[(usize, Range<usize>)], cancel: &Cancel) -> Vec<Sum> {
        let some = |groups| if cancel.is_set() { vec![] } else { dispatch(Meet { near: self, groups }) };
        groups.par_chunks(GROUPS).flat_map_iter(some).collect()
    }
}

/// Sources and targets of a box by cells.
pub struct Neighbours {
    /// The source of each place.
    order: Vec<u32>,
    /// The first place of each cell, and one past the last.
    start: Vec<u32>,
    /// The same of the targets; none: the sources.
    others: Option<(Vec<u32>, Vec<u32>)>,
}

/// So many sources before and after those of its cell are looked at for the largest term of a target.
pub const MARGIN: usize = 32;

/// So many before and after the target at most: any number may lie in a cell.
pub const MOST_LOOKED_AT: usize = 2048;

impl Neighbours {
    /// The target of each place.
    pub fn targets(&self) -> &[u32] {
        self.others.as_ref().map_or(&self.order, |(order, _)| order)
    }

    /// Sources next to the target of a place.
    pub fn of(&self, place: usize) -> &[u32] {
        let start = self.others.as_ref().map_or(&self.start, |(_, start)| start);
        let cell = start.partition_point(|&s| s as usize <= place) - 1;
        let [begin, end] = [self.start[cell] as usize, self.start[cell + 1] as usize];
        let middle = if self.others.is_some() { begin.midpoint(end) } else { place };
        let first = begin.saturating_sub(MARGIN).max(middle.saturating_sub(MOST_LOOKED_AT));
        &self.order[first..self.order.len().min(end + MARGIN).min(middle + MOST_LOOKED_AT)]
    }
}

/// Potential and field of a target, and whether a pair was too close.
pub type Sum = ([f64; 4], bool);

/// Groups of targets, each of places of one cell, meet the sources around them.
struct Meet<'a, T> {
    near: &'a Near<'a, T>,
    groups: &'a [(usize, Range<usize>)],
}

impl<T: Real> Task<T> for Meet<'_, T> {
    type Out = Vec<Sum>;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> Self::Out {
        let softening = self.near.softening;
        softening.with_radial(1.0, With { meet: self, vectors: PhantomData::<V> })
    }
}

/// [`Meet`] with the radial function of a kernel.
struct With<'a, T, V> {
    meet: Meet<'a, T>,
    vectors: PhantomData<V>,
}

/// The most coefficients of a polynomial.
pub const TERMS: usize = 48;

impl<T: Real, V: Vector<Scalar = T>> UseRadial<V> for With<'_, T, V> {
    type Out = Vec<Sum>;

    #[inline(always)]
    fn run<K: Radial<V>>(self, kernel: K) -> Self::Out {
        let Meet { near, groups } = self.meet;
        let Far { cutoff, potential, force } = near.far;
        let terms: Vec<[T; 2]> = horner::pairs(potential, force).iter().map(|pair| pair.map(real)).collect();
        let one = V::constant(1.0);
        let (square, to_t) = (V::constant(cutoff * cutoff), V::constant(2.0 / (cutoff * cutoff)));
        let (closest, reports) = (V::constant(near.closest), near.closest > 0.0);
        // Where the sources are the targets, each is close to itself.
        let itself = if near.targets.is_none() { 1.0 } else { 0.0 };
        let (mut out, mut packed) = (vec![], Packed::default());
        for (cell, places) in groups.iter().filter(|g| !g.1.is_empty()) {
            near.pack::<V>(*cell, &mut packed);
            let Packed { x: [x, y, z], q, len } = &packed;
            let targets = near.targets();
            for place in places.clone() {
                let at: [V; 3] = std::array::from_fn(|d| V::splat(targets.x[d][place]));
                let (mut sum, mut close) = ([V::zero(); 4], V::zero());
                let mut j = 0;
                while j < *len {
                    let (mut d, mut r2, mut t) = ([[V::zero(); 3]; 2], [V::zero(); 2], [V::zero(); 2]);
                    for m in 0..2 {
                        let from = j + m * T::WIDTH;
                        d[m] = [
                            at[0].sub(V::load(&x[from..])),
                            at[1].sub(V::load(&y[from..])),
                            at[2].sub(V::load(&z[from..])),
                        ];
                        r2[m] = d[m][0].mul_add(d[m][0], d[m][1].mul_add(d[m][1], d[m][2].mul(d[m][2])));
                        t[m] = r2[m].mul_add(to_t, V::constant(-1.0));
                    }
                    let [far, far_force] = horner::two(&terms, t);
                    for m in 0..2 {
                        let (bare, bare_force) = kernel.eval::<false>(r2[m]);
                        let q = V::load(&q[j + m * T::WIDTH..]).keep_where_at_least(square, r2[m]);
                        let push = bare_force.sub(far_force[m]).mul(q);
                        sum[0] = bare.sub(far[m]).mul_add(q, sum[0]);
                        for c in 0..3 {
                            sum[c + 1] = push.mul_add(d[m][c], sum[c + 1]);
                        }
                        if reports {
                            close = close.add(one.sub(one.keep_where_at_least(r2[m], closest)));
                        }
                    }
                    j += 2 * T::WIDTH;
                }
                out.push((sum.map(|s| s.sum().to_f64()), reports && close.sum().to_f64() > itself));
            }
        }
        out
    }
}

/// Sources around a cell, and a vector without strength at the end.
#[derive(Default)]
struct Packed<T> {
    x: [Vec<T>; 3],
    q: Vec<T>,
    len: usize,
}

impl<T: Real> Near<'_, T> {
    /// Collects the images of sources that may be within the cut-off of a body of a cell, relative to its center.
    #[inline(always)]
    fn pack<V: Vector<Scalar = T>>(&self, cell: usize, packed: &mut Packed<T>) {
        let Cells { counts, size, .. } = &self.sources;
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
                let cells = [low, last + 1].map(|k| self.sources.start[row + (k - image * nz) as usize] as usize);
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
                V::constant(2.0 * self.far.cutoff).store(&mut x[place..]);
            }
        }
    }
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
    fn push<V: Vector<Scalar = T>>(&mut self, near: &Near<T>, places: Range<usize>, shift: [V; 2], seen: V) {
        self.room(self.len + places.len() + T::WIDTH);
        let Cells { x: [x, y, z], depth, size, .. } = &near.sources;
        let size = V::constant(size[2]);
        let mut done = 0;
        while done < places.len() {
            let (from, to) = (places.start + done, self.len + done);
            V::load(&x[from..]).add(shift[0]).store(&mut self.x[0][to..]);
            V::load(&y[from..]).add(shift[1]).store(&mut self.x[1][to..]);
            let along = V::load(&depth[from..]).sub(seen);
            along.mul_add(size, V::load(&z[from..])).store(&mut self.x[2][to..]);
            V::load(&near.q[from..]).store(&mut self.q[to..]);
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
