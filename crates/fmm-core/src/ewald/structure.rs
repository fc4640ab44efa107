//! Structure factors S(k) = Σ q e^(ikx) of the sources, k = 2π(a/L_x, b/L_y, c/L_z).
//!
//! For |a|, |b|, |c| there are eight sums of q times a cosine or a sine of each of ax, by, cz: with signs they are the
//! real and imaginary parts of the four waves (a, ±b, ±c), for half the products of these one by one. Sources are lanes.

use rayon::prelude::*;

use crate::math::CollectVec;
use crate::math::Number;
use crate::math::simd::{Task, Vector, dispatch};

/// The number of parts of the sources that are summed separately. It does not depend on the number of threads.
const PARTS: usize = 32;

/// Fewer sources make no part.
const FEWEST: usize = 256;

/// Vectors of sources that share each load of the sums.
const GROUP: usize = 4;

/// Rows that are summed together have about so many waves of an octant: their sums stay in the caches.
const TOGETHER: usize = 256;

/// Waves (a, b, c) of an octant with c from 0 to the last number but one.
pub type Octant = (usize, usize, usize);

/// The sums of the waves of an octant.
pub struct Structure {
    /// The first wave of each row.
    start: Vec<usize>,
    /// Of cos cos cos, then with a sine along z, along y, along y and z, along x, …
    sums: Vec<[f64; 8]>,
}

impl Structure {
    /// Of `rows` of waves and of sources in a box from the origin.
    pub fn new(sides: [f64; 3], rows: &[Octant], position: &[[f64; 3]], strength: &[f64]) -> Self {
        let mut start = vec![0];
        rows.iter().for_each(|row| start.push(start[start.len() - 1] + row.2));
        let mut blocks = vec![];
        let mut first = 0;
        for row in 0..rows.len() {
            if start[row + 1] - start[first] >= TOGETHER || row + 1 == rows.len() {
                blocks.push(first..row + 1);
                first = row + 1;
            }
        }
        let part = position.len().div_ceil(PARTS).max(FEWEST).next_multiple_of(GROUP * f64::WIDTH);
        let parts: Vec<(&[[f64; 3]], &[f64])> = position.chunks(part).zip(strength.chunks(part)).collect();
        let tasks: Vec<(usize, usize)> =
            (0..blocks.len()).flat_map(|block| (0..parts.len()).map(move |part| (block, part))).collect();
        let of = |&(block, part): &(usize, usize)| {
            let ((x, q), rows) = (parts[part], &rows[blocks[block].clone()]);
            dispatch(Block { sides, rows, x, q })
        };
        let found = tasks.par_iter().map(of).collect_vec();
        let mut sums = vec![[0.0; 8]; start[rows.len()]];
        for ((block, _), found) in tasks.iter().zip(found) {
            let to = &mut sums[start[blocks[*block].start]..];
            to.iter_mut().zip(found).for_each(|(to, from)| (0..8).for_each(|k| to[k] += from[k]));
        }
        Structure { start, sums }
    }

    /// S of the wave of a row with this c, of (a, −b, c) if `mirrored`.
    pub fn of(&self, row: usize, mirrored: bool, c: i32) -> [f64; 2] {
        let [ccc, ccs, csc, css, scc, scs, ssc, sss] = self.sums[self.start[row] + c.unsigned_abs() as usize];
        let (y, z) = (if mirrored { -1.0 } else { 1.0 }, if c < 0 { -1.0 } else { 1.0 });
        [ccc - y * z * css - z * scs - y * ssc, scc + y * csc + z * ccs - y * z * sss]
    }
}

/// Sums over a part of the sources for some rows.
struct Block<'a> {
    sides: [f64; 3],
    rows: &'a [Octant],
    x: &'a [[f64; 3]],
    q: &'a [f64],
}

impl Task<f64> for Block<'_> {
    type Out = Vec<[f64; 8]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        let Block { sides, rows, x, q } = self;
        let most: [usize; 3] = [
            rows.iter().map(|row| row.0).max().unwrap_or(0),
            rows.iter().map(|row| row.1).max().unwrap_or(0),
            rows.iter().map(|row| row.2).max().unwrap_or(0),
        ];
        let mut powers: [Vec<[[V; GROUP]; 2]>; 3] = most.map(|m| vec![[[V::zero(); GROUP]; 2]; m + 1]);
        let mut sums = vec![[V::zero(); 8]; rows.iter().map(|row| row.2).sum()];
        let mut lanes = [0.0; 16];
        for (x, q) in x.chunks(GROUP * f64::WIDTH).zip(q.chunks(GROUP * f64::WIDTH)) {
            let mut strength = [V::zero(); GROUP];
            for g in 0..GROUP {
                // Idle lanes have no strength.
                let body = |i: usize| g * f64::WIDTH + i;
                for i in 0..f64::WIDTH {
                    lanes[i] = q.get(body(i)).copied().unwrap_or(0.0);
                }
                strength[g] = V::load(&lanes);
                for d in 0..3 {
                    for i in 0..f64::WIDTH {
                        lanes[i] = x.get(body(i)).map_or(0.0, |x| x[d]);
                    }
                    let base = on_circle(V::load(&lanes).mul(V::constant(1.0 / sides[d])));
                    let mut here = [V::constant(1.0), V::zero()];
                    for power in &mut powers[d] {
                        (power[0][g], power[1][g]) = (here[0], here[1]);
                        here = product(here, base);
                    }
                }
            }
            let mut first = 0;
            for &(a, b, count) in rows {
                let mut across = [[V::zero(); GROUP]; 4];
                for g in 0..GROUP {
                    for i in 0..2 {
                        let along_x = strength[g].mul(powers[0][a][i][g]);
                        for j in 0..2 {
                            across[2 * i + j][g] = along_x.mul(powers[1][b][j][g]);
                        }
                    }
                }
                for (sums, along_z) in sums[first..first + count].iter_mut().zip(&powers[2]) {
                    for k in 0..2 {
                        for i in 0..4 {
                            let mut here = sums[2 * i + k];
                            for g in 0..GROUP {
                                here = across[i][g].mul_add(along_z[k][g], here);
                            }
                            sums[2 * i + k] = here;
                        }
                    }
                }
                first += count;
            }
        }
        sums.iter().map(|s| s.map(|v| v.sum())).collect()
    }
}

/// The product of complex numbers.
#[inline(always)]
fn product<V: Vector>([a, b]: [V; 2], [c, d]: [V; 2]) -> [V; 2] {
    [a.mul(c).sub(b.mul(d)), a.mul_add(d, b.mul(c))]
}

/// The cosine and sine of 2πu for 0 ≤ u ≤ 1: the series at a quarter of the angle from π, squared twice.
#[inline(always)]
fn on_circle<V: Vector<Scalar = f64>>(u: V) -> [V; 2] {
    /// Of ±1/n! for n = 16, 14, … 0 and n = 15, 13, … 1.
    const COSINE: [f64; 9] = [
        1.0 / 20_922_789_888_000.0,
        -1.0 / 87_178_291_200.0,
        1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0,
        1.0 / 40_320.0,
        -1.0 / 720.0,
        1.0 / 24.0,
        -1.0 / 2.0,
        1.0,
    ];
    const SINE: [f64; 8] = [
        -1.0 / 1_307_674_368_000.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5_040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
        1.0,
    ];
    let angle = u.sub(V::constant(0.5)).mul(V::constant(0.5 * std::f64::consts::PI));
    let square = angle.mul(angle);
    let (mut cosine, mut sine) = (V::zero(), V::zero());
    for c in COSINE {
        cosine = cosine.mul_add(square, V::constant(c));
    }
    for c in SINE {
        sine = sine.mul_add(square, V::constant(c));
    }
    let quarter = [cosine, sine.mul(angle)];
    let half = product(quarter, quarter);
    let [c, s] = product(half, half);
    [V::zero().sub(c), V::zero().sub(s)]
}
