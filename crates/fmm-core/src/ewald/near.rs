//! Real space: sources in cells, and the images of cells around each target.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::screen::{Banded, Bare, Screened, Soft};
use super::{Hessians, Part, Sums};
use crate::kernel::{AXES, Hessian, Newton, Softening, Spline};
use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{CollectVec, Number};

/// Bodies that a cell holds at least, on average.
const FEWEST: f64 = 8.0;

/// Targets that one task serves.
const TARGETS: usize = 8;

/// Sources by cell.
pub struct Cells {
    sides: [f64; 3],
    count: [usize; 3],
    /// First source of each cell, z fastest, and one past the last.
    start: Vec<u32>,
    /// Coordinates and strengths in the order of cells, and two vectors more.
    x: [Vec<f64>; 3],
    q: Vec<f64>,
}

impl Cells {
    /// Of wrapped positions in a box from the origin.
    pub fn new(sides: [f64; 3], part: &Part, position: &[[f64; 3]], strength: &[f64]) -> Self {
        let volume: f64 = sides.iter().product();
        let fewest = (FEWEST * volume / position.len().max(1) as f64).cbrt();
        let wanted = f64::max(part.cutoff() / 4.0, fewest);
        let count = sides.map(|s| ((s / wanted) as usize).clamp(1, 512));
        let cell_of = |x: &[f64; 3]| {
            (0..3).fold(0, |cell, d| {
                let i = (x[d] / sides[d] * count[d] as f64) as usize;
                cell * count[d] + i.min(count[d] - 1)
            })
        };
        let cells: Vec<usize> = position.par_iter().map(cell_of).collect_vec();
        let mut start = vec![0u32; count.iter().product::<usize>() + 1];
        cells.iter().for_each(|&c| start[c + 1] += 1);
        for c in 1..start.len() {
            start[c] += start[c - 1];
        }
        let (mut place, padded) = (start.clone(), position.len() + 2 * f64::WIDTH);
        let (mut x, mut q) = ([(); 3].map(|()| vec![0.0; padded]), vec![0.0; padded]);
        for (i, &c) in cells.iter().enumerate() {
            let k = place[c] as usize;
            place[c] += 1;
            (0..3).for_each(|d| x[d][k] = position[i][d]);
            q[k] = strength[i];
        }
        Cells { sides, count, start, x, q }
    }

    /// The part of real space at wrapped `targets`.
    pub fn sums(&self, softening: Softening, part: &Part, targets: &[[f64; 3]]) -> Sums {
        let all = self.all::<Field>(softening, part, targets);
        Sums {
            potential: all.iter().map(|(s, _)| s[0]).collect(),
            field: all.iter().map(|(s, _)| [s[1], s[2], s[3]]).collect(),
            largest: all.iter().map(|(_, largest)| *largest).collect(),
        }
    }

    /// The same of second derivatives.
    pub fn hessians(&self, softening: Softening, part: &Part, targets: &[[f64; 3]]) -> Hessians {
        let all = self.all::<Second>(softening, part, targets);
        Hessians {
            hessian: all.iter().map(|(s, _)| Hessian::combine(s[0], std::array::from_fn(|k| s[k + 1]))).collect(),
            largest: all.iter().map(|(_, largest)| *largest).collect(),
        }
    }

    /// The sums at `targets`, and the size of the largest term.
    fn all<Q: Terms>(&self, softening: Softening, part: &Part, targets: &[[f64; 3]]) -> Vec<(Q::Sums, f64)> {
        let task = |targets| dispatch(Near { cells: self, softening, part, targets, terms: PhantomData::<Q> });
        targets.par_chunks(TARGETS).flat_map_iter(task).collect()
    }

    /// Finds the places of the sources of each run of cells that may be closer to `target` than `cutoff`, and the target as these images
    /// see it.
    fn around(&self, target: &[f64; 3], cutoff: f64, runs: &mut Vec<(Range<usize>, [f64; 3])>) {
        runs.clear();
        let size: [f64; 3] = std::array::from_fn(|d| self.sides[d] / self.count[d] as f64);
        let range = |d: usize, reach: f64| {
            ((target[d] - reach) / size[d]).floor() as i64..=((target[d] + reach) / size[d]).floor() as i64
        };
        // The distance of the target from a slab of cells.
        let gap = |d: usize, i: i64| {
            let low = i as f64 * size[d];
            (low - target[d]).max(target[d] - low - size[d]).max(0.0)
        };
        let count = self.count.map(|c| c as i64);
        for i in range(0, cutoff) {
            for j in range(1, cutoff) {
                let left = cutoff * cutoff - gap(0, i).powi(2) - gap(1, j).powi(2);
                if left < 0.0 {
                    continue;
                }
                let row = (i.rem_euclid(count[0]) * count[1] + j.rem_euclid(count[1])) * count[2];
                let depth = range(2, left.sqrt());
                let (first, last) = (*depth.start(), *depth.end());
                for image in first.div_euclid(count[2])..=last.div_euclid(count[2]) {
                    let low = (first - image * count[2]).max(0);
                    let high = (last - image * count[2]).min(count[2] - 1);
                    let images = [i.div_euclid(count[0]), j.div_euclid(count[1]), image];
                    let seen = std::array::from_fn(|d| target[d] - images[d] as f64 * self.sides[d]);
                    let places = [row + low, row + high + 1].map(|cell| self.start[cell as usize] as usize);
                    runs.push((places[0]..places[1], seen));
                }
            }
        }
    }
}

struct Near<'a, Q> {
    cells: &'a Cells,
    softening: Softening,
    part: &'a Part,
    targets: &'a [[f64; 3]],
    terms: PhantomData<Q>,
}

impl<Q: Terms> Task<f64> for Near<'_, Q> {
    type Out = Vec<(Q::Sums, f64)>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        let spline = |e: f64| Spline(V::constant(1.0 / (2.8 * e)));
        match (self.part, self.softening) {
            (Part::Gauss(split), Softening::Spline(e)) => {
                self.all::<V, _>(Soft { alpha: split.alpha, kernel: spline(e) })
            }
            (Part::Gauss(split), _) => self.all::<V, _>(Bare { alpha: split.alpha }),
            (Part::Band(band), Softening::Spline(e)) => self.all::<V, _>(Banded { band, kernel: spline(e) }),
            (Part::Band(band), _) => self.all::<V, _>(Banded { band, kernel: Newton }),
        }
    }
}

impl<Q: Terms> Near<'_, Q> {
    #[inline(always)]
    fn all<V: Vector<Scalar = f64>, S: Screened<V>>(self, screened: S) -> Vec<(Q::Sums, f64)> {
        let Cells { x, q, .. } = self.cells;
        // Ones, then zeros: the sources of two vectors that belong to a run.
        let mut kept = [0.0; 32];
        kept[..16].fill(1.0);
        let (mut out, mut runs) = (Vec::with_capacity(self.targets.len()), vec![]);
        for target in self.targets {
            let (mut sums, mut largest) = ([V::zero(); 7], V::zero());
            self.cells.around(target, self.part.cutoff(), &mut runs);
            for (places, seen) in &runs {
                let at = [V::splat(seen[0]), V::splat(seen[1]), V::splat(seen[2])];
                let (mut j, to) = (places.start, places.end);
                while j < to {
                    let (mut d, mut r2, mut strength) = ([[V::zero(); 3]; 2], [V::zero(); 2], [V::zero(); 2]);
                    for m in 0..2 {
                        let from = j + m * f64::WIDTH;
                        d[m] = [
                            at[0].sub(V::load(&x[0][from..])),
                            at[1].sub(V::load(&x[1][from..])),
                            at[2].sub(V::load(&x[2][from..])),
                        ];
                        r2[m] = d[m][0].mul_add(d[m][0], d[m][1].mul_add(d[m][1], d[m][2].mul(d[m][2])));
                        strength[m] = V::load(&q[from..]);
                    }
                    if to - j < 2 * f64::WIDTH {
                        for m in 0..2 {
                            let mask = V::load(&kept[16 - (to - j) + m * f64::WIDTH..]);
                            strength[m] = strength[m].mul(mask);
                        }
                    }
                    largest = largest.max(Q::meet(screened, d, r2, strength, &mut sums));
                    j += 2 * f64::WIDTH;
                }
            }
            let mut lanes = [0.0; 16];
            largest.store(&mut lanes);
            out.push((Q::of(sums.map(|s| s.sum())), lanes.into_iter().fold(0.0, f64::max).sqrt()));
        }
        out
    }
}

/// What is summed.
trait Terms: Sync {
    type Sums: Copy + Send;

    /// Adds the terms of sources of a `strength` at a difference `d` to the first of `sums`. Returns the square of the bare
    /// terms' size, the larger of each lane.
    fn meet<V: Vector<Scalar = f64>>(
        screened: impl Screened<V>,
        d: [[V; 3]; 2],
        r2: [V; 2],
        strength: [V; 2],
        sums: &mut [V; 7],
    ) -> V;

    fn of(sums: [f64; 7]) -> Self::Sums;
}

/// Potential and field.
struct Field;

impl Terms for Field {
    type Sums = [f64; 4];

    #[inline(always)]
    fn meet<V: Vector<Scalar = f64>>(
        screened: impl Screened<V>,
        d: [[V; 3]; 2],
        r2: [V; 2],
        strength: [V; 2],
        sums: &mut [V; 7],
    ) -> V {
        let found = screened.eval(r2);
        let mut largest = V::zero();
        for m in 0..2 {
            let (potential, force, bare) = found[m];
            let force = force.mul(strength[m]);
            sums[0] = potential.mul_add(strength[m], sums[0]);
            for k in 0..3 {
                sums[k + 1] = force.mul_add(d[m][k], sums[k + 1]);
            }
            let bare = bare.mul(strength[m]);
            largest = largest.max(bare.mul(bare).mul(r2[m]));
        }
        largest
    }

    fn of(sums: [f64; 7]) -> [f64; 4] {
        std::array::from_fn(|k| sums[k])
    }
}

/// Second derivatives, as [`Hessian`] has them: Σ q g, and Σ q h x_i x_j.
struct Second;

impl Terms for Second {
    type Sums = [f64; 7];

    #[inline(always)]
    fn meet<V: Vector<Scalar = f64>>(
        screened: impl Screened<V>,
        d: [[V; 3]; 2],
        r2: [V; 2],
        strength: [V; 2],
        sums: &mut [V; 7],
    ) -> V {
        let found = screened.second(r2);
        let mut largest = V::zero();
        for m in 0..2 {
            let ([g, h, bare_g, bare_h], d, strength) = (found[m], d[m], strength[m]);
            sums[0] = g.mul_add(strength, sums[0]);
            let h = h.mul(strength);
            for (k, [i, j]) in AXES.into_iter().enumerate() {
                sums[k + 1] = h.mul(d[i]).mul_add(d[j], sums[k + 1]);
            }
            // Eigenvalues along and across the line to the source.
            let (along, across) = (bare_h.mul(r2[m]).sub(bare_g).mul(strength), bare_g.mul(strength));
            largest = largest.max(along.mul_add(along, across.mul(across).mul(V::constant(2.0))));
        }
        largest
    }

    fn of(sums: [f64; 7]) -> [f64; 7] {
        sums
    }
}
