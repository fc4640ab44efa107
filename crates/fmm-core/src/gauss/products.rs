//! Products of matrices in tiles of registers.

use super::series::LANES;
use crate::math::simd::Vector;

/// Adds the rank-k product of a (k rows of `lda`, from column `i`) and b (k rows of `ldb`, from column `j`).
#[inline(always)]
pub fn product<V: Vector<Scalar = f64>, const M: usize, const N: usize>(
    a: &[f64],
    (lda, i): (usize, usize),
    b: &[f64],
    (ldb, j): (usize, usize),
    k: usize,
    sums: &mut [[V; N]; M],
) {
    if k == 0 {
        return;
    }
    // So that no bound is checked inside.
    let (a, b) = (&a[i..(k - 1) * lda + i + M], &b[j..(k - 1) * ldb + j + N * LANES]);
    for k in 0..k {
        let a = &a[k * lda..][..M];
        let b = &b[k * ldb..][..N * LANES];
        let mut row = [V::zero(); N];
        for n in 0..N {
            row[n] = V::load(&b[n * LANES..]);
        }
        for m in 0..M {
            let x = V::splat(a[m]);
            for n in 0..N {
                sums[m][n] = x.mul_add(row[n], sums[m][n]);
            }
        }
    }
}

/// One of the products aᵀ b that make a matrix.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    /// k rows.
    pub a: &'a [f64],
    /// k rows.
    pub b: &'a [f64],
    /// Rows of either.
    pub k: usize,
    /// Rows of the result that it reaches, from the first on.
    pub rows: usize,
}

/// c (`rows` of `row`) becomes the sum of all products, and of what it was if `ADD`; rows of their a have `lda` numbers, those of b `ldb`.
#[inline(always)]
pub fn products<'a, V: Vector<Scalar = f64>, const ADD: bool>(
    all: impl Iterator<Item = Product<'a>> + Clone,
    (lda, ldb): (usize, usize),
    c: &mut [f64],
    (rows, row): (usize, usize),
) {
    let mut i = 0;
    while i < rows {
        let mut j = 0;
        while j < row {
            let wide = j + 2 * LANES <= row;
            macro_rules! tile {
                ($m:literal, $n:literal) => {{
                    let mut sums = [[V::zero(); $n]; $m];
                    for m in 0..if ADD { $m } else { 0 } {
                        for n in 0..$n {
                            sums[m][n] = V::load(&c[(i + m) * row + j + n * LANES..]);
                        }
                    }
                    for one in all.clone().filter(|one| i < one.rows) {
                        product::<V, $m, $n>(one.a, (lda, i), one.b, (ldb, j), one.k, &mut sums);
                    }
                    for m in 0..$m {
                        for n in 0..$n {
                            sums[m][n].store(&mut c[(i + m) * row + j + n * LANES..]);
                        }
                    }
                }};
            }
            match (rows - i, wide) {
                (1, true) => tile!(1, 2),
                (2, true) => tile!(2, 2),
                (3, true) => tile!(3, 2),
                (_, true) => tile!(4, 2),
                (1, false) => tile!(1, 1),
                (2, false) => tile!(2, 1),
                (3, false) => tile!(3, 1),
                (_, false) => tile!(4, 1),
            }
            j += if wide { 2 * LANES } else { LANES };
        }
        i += 4;
    }
}
