//! Translations by rotation: turn the translation onto the z axis, shift there, turn back, O(p³).
//!
//! The only rotation matrix that is needed exchanges x and z: R_n^m(Sr) = Σ_l B_n^{m,l} R_n^l(r), B real and its own
//! inverse. With rotations about z (a phase each order) it composes to any direction. On the stored half of the
//! orders Re and Im decouple, and half of the entries vanish: Re^m meets Re^l where n+m+l is even, Im^m meets
//! Im^l where it is odd. The recurrences follow Dehnen (2014), App. A.

use super::harmonics::at;
use crate::math::Real;
use crate::math::simd::Vector;

/// Rows that are worked on together at most, so that each load of a coefficient serves several products: all of one
/// parity up to degree 11.
const ROWS: usize = 6;

/// Coefficients of every other order, Re or Im, of one degree: the place of the first, and of the second, after which
/// they are four apart. (Order 0 has no Im.)
#[derive(Debug, Clone, Copy)]
struct Every {
    first: usize,
    second: usize,
}

impl Every {
    /// From order m of degree n on.
    fn from(n: usize, m: usize, imaginary: bool) -> Self {
        let place = |m: usize| if m == 0 { n * n } else { n * n + 2 * m - 1 + usize::from(imaginary) };
        Every { first: place(m), second: place(m + 2) }
    }
}

/// Rows of the exchange that meet the same columns.
#[derive(Debug, Clone)]
struct Block {
    rows: usize,
    columns: usize,
    from: Every,
    to: Every,
}

/// The exchange of x and z for coefficients of degree 0..=p.
#[derive(Debug, Clone)]
pub struct Swap<T> {
    blocks: Vec<Block>,
    /// Of each block the rows of each column.
    table: Vec<T>,
}

/// B_n for n = 0..=p, indexed [n][m + n][l + n].
fn exchange(p: usize) -> Vec<Vec<Vec<f64>>> {
    let mut all = vec![vec![vec![1.0]]];
    for n in 1..=p as isize {
        let before = &all[n as usize - 1];
        let b = |m: isize, l: isize| {
            if m.abs() < n && l.abs() < n { before[(m + n - 1) as usize][(l + n - 1) as usize] } else { 0.0 }
        };
        let row = |m: isize| {
            (-n..=n)
                .map(|l| {
                    if l == n {
                        -b(m, n - 1) + 0.5 * (b(m + 1, n - 1) + b(m - 1, n - 1))
                    } else if l == -n {
                        b(m, 1 - n) + 0.5 * (b(m + 1, 1 - n) + b(m - 1, 1 - n))
                    } else {
                        0.5 * (b(m + 1, l) - b(m - 1, l))
                    }
                })
                .collect()
        };
        let next = (-n..=n).map(row).collect();
        all.push(next);
    }
    all
}

impl<T: Real> Swap<T> {
    /// The exchange for multipoles (M' = B M) or, `transposed`, for local expansions (L' = Bᵀ L).
    pub fn new(p: usize, transposed: bool) -> Self {
        let (mut blocks, mut table) = (vec![], vec![]);
        for (n, b) in exchange(p).iter().enumerate() {
            let entry = |m: isize, l: isize| {
                let (m, l) = if transposed { (l, m) } else { (m, l) };
                b[(m + n as isize) as usize][(l + n as isize) as usize]
            };
            for (imaginary, parity) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
                // Im of order 0 is none.
                let first = |parity: usize| if imaginary && parity == 0 { 2 } else { parity };
                let column = first((n + parity + usize::from(imaginary)) % 2);
                let (rows, columns) = ((first(parity)..=n).step_by(2), (column..=n).step_by(2));
                for rows in rows.collect::<Vec<_>>().chunks(ROWS) {
                    for l in columns.clone() {
                        for &m in rows {
                            let (m, l) = (m as isize, l as isize);
                            let mirror = if l == 0 { 0.0 } else { entry(m, -l) * if l % 2 == 0 { 1.0 } else { -1.0 } };
                            table.push(T::from_f64(entry(m, l) + if imaginary { -mirror } else { mirror }));
                        }
                    }
                    let every = |m: usize| Every::from(n, m, imaginary);
                    let (from, to) = (every(column), every(rows[0]));
                    blocks.push(Block { rows: rows.len(), columns: columns.clone().count(), from, to });
                }
            }
        }
        Swap { blocks, table }
    }

    /// `to = B from`, every degree.
    #[inline(always)]
    pub fn apply<V: Vector<Scalar = T>>(&self, from: &[V], to: &mut [V]) {
        let mut table = &self.table[..];
        for block in &self.blocks {
            let here;
            (here, table) = table.split_at(block.rows * block.columns);
            match block.rows {
                6 => rows::<V, 6>(here, block, from, to),
                5 => rows::<V, 5>(here, block, from, to),
                4 => rows::<V, 4>(here, block, from, to),
                3 => rows::<V, 3>(here, block, from, to),
                2 => rows::<V, 2>(here, block, from, to),
                _ => rows::<V, 1>(here, block, from, to),
            }
        }
    }
}

#[inline(always)]
fn rows<V: Vector, const R: usize>(table: &[V::Scalar], block: &Block, from: &[V], to: &mut [V]) {
    let mut sums = [V::zero(); R];
    let Every { first: mut place, second: mut next } = block.from;
    for entries in table.chunks_exact(R) {
        let x = from[place];
        for r in 0..R {
            sums[r] = V::splat(entries[r]).mul_add(x, sums[r]);
        }
        (place, next) = (next, next + 4);
    }
    to[block.to.first] = sums[0];
    for r in 1..R {
        to[block.to.second + 4 * (r - 1)] = sums[r];
    }
}

/// The phases that turn a direction onto the z axis: powers 0..=p of e1 and e2.
#[derive(Debug, Clone)]
pub struct Direction<T> {
    first: Vec<[T; 2]>,
    second: Vec<[T; 2]>,
}

impl<T: Real> Direction<T> {
    /// For the direction `d`, not zero.
    pub fn new(p: usize, d: [f64; 3]) -> Self {
        let rho = d[0].hypot(d[1]);
        let r = rho.hypot(d[2]);
        // e1 = (dx + i dy)/(i rho), e2 = (dz + i rho)/r.
        let e1 = if rho == 0.0 { [1.0, 0.0] } else { [d[1] / rho, -d[0] / rho] };
        let e2 = [d[2] / r, rho / r];
        let powers = |e: [f64; 2]| {
            let mut power = [1.0, 0.0];
            (0..=p)
                .map(|_| {
                    let here = power.map(T::from_f64);
                    power = [power[0] * e[0] - power[1] * e[1], power[0] * e[1] + power[1] * e[0]];
                    here
                })
                .collect()
        };
        Direction { first: powers(e1), second: powers(e2) }
    }

    /// Turns `lanes` so that the direction lies on +z; `swap` is the exchange of the coefficients' kind.
    #[inline(always)]
    pub fn turn<V: Vector<Scalar = T>>(&self, swap: &Swap<T>, lanes: &mut [V], scratch: &mut [V]) {
        phase(&self.first, true, lanes);
        swap.apply(lanes, scratch);
        phase(&self.second, true, scratch);
        swap.apply(scratch, lanes);
    }

    /// The inverse of [`Direction::turn`].
    #[inline(always)]
    pub fn turn_back<V: Vector<Scalar = T>>(&self, swap: &Swap<T>, lanes: &mut [V], scratch: &mut [V]) {
        swap.apply(lanes, scratch);
        phase(&self.second, false, scratch);
        swap.apply(scratch, lanes);
        phase(&self.first, false, lanes);
    }
}

/// A^m ← A^m e^m, or conj(e)^m.
#[inline(always)]
fn phase<V: Vector>(powers: &[[V::Scalar; 2]], conjugate: bool, lanes: &mut [V]) {
    for l in 1..powers.len() {
        // Re and Im of the orders from 1 on.
        let orders = lanes[at(l, 1)..(l + 1) * (l + 1)].chunks_exact_mut(2);
        for (part, [c, s]) in orders.zip(&powers[1..]) {
            let (c, s) = (V::splat(*c), V::splat(if conjugate { -*s } else { *s }));
            let (re, im) = (part[0], part[1]);
            part[0] = s.neg_mul_add(im, c.mul(re));
            part[1] = s.mul_add(re, c.mul(im));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::simd::Array;

    #[test]
    fn the_exchange_has_its_known_entries_and_is_its_own_inverse() {
        let all = exchange(30);
        assert_eq!(all[3][3], [2.5, 0.0, -0.5, 0.0, 0.5, 0.0, -2.5]);
        assert_eq!(all[3][6], [0.125, -0.125, 0.125, -0.125, 0.125, -0.125, 0.125]);
        let p = 30;
        let n = (p + 1) * (p + 1);
        type A = Array<f64, 8>;
        let from: Vec<A> = (0..n).map(|i| A::splat((i as f64 * 0.7).sin())).collect();
        for transposed in [false, true] {
            let swap = Swap::<f64>::new(10, transposed);
            let (mut a, mut b) = (vec![A::zero(); 121], vec![A::zero(); 121]);
            swap.apply(&from[..121], &mut a);
            swap.apply(&a, &mut b);
            for (x, y) in from.iter().zip(&b) {
                assert!((x.sum() - y.sum()).abs() < 1e-11);
            }
        }
    }
}
