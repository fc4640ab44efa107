//! Pairs within the cut-off: the kernel less what the mesh has of it.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::cells::{Cells, GROUPS, Packed, Sources};
use super::real;
use crate::Cancel;
use crate::bodies::coincident_pairs;
use crate::kernel::{Radial, Softening, UseRadial};
use crate::math::prolate::Prolate;
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{Real, horner};

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

/// Sources by cells, and the targets that see them.
pub struct Near<'a, T> {
    far: &'a Far,
    softening: Softening,
    /// The square of the distance within which pairs lose digits.
    closest: f64,
    sources: Sources<T>,
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
        let sources = Sources::new(sides, far.cutoff, position, strength);
        let targets = targets.map(|t| sources.cells_of(sides, t));
        Near { far, softening, closest: (closest * far.cutoff).powi(2), sources, targets }
    }

    fn targets(&self) -> &Cells<T> {
        self.targets.as_ref().unwrap_or(&self.sources.cells)
    }

    /// Pairs of distinct sources, at these positions, at bitwise the same place: they share a cell.
    pub fn coincident_pairs(&self, position: &[[f64; 3]]) -> u64 {
        let cells = 0..self.sources.cells.len();
        let of_cell = |cell: usize| match &self.sources.cells.order[self.sources.cells.places(cell)] {
            [] | [_] => 0,
            few => coincident_pairs(&few.iter().map(|&i| position[i as usize]).collect::<Vec<_>>()),
        };
        cells.into_par_iter().map(of_cell).sum()
    }

    /// Which bodies are close together.
    pub fn neighbours(self) -> Neighbours {
        let Cells { order, start, .. } = self.sources.cells;
        Neighbours { order, start, others: self.targets.map(|targets| (targets.order, targets.start)) }
    }

    /// Potential and field at all places; fewer if they are cancelled.
    pub fn sums(&self, cancel: &Cancel) -> Vec<Sum> {
        let cells = 0..self.sources.cells.len();
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
            near.sources.pack::<V>(*cell, &mut packed);
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
