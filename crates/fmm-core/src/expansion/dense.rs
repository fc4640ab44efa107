//! M2L of low orders as matrix products: one (p+1)² × (p+1)² matrix a class, several pairs at a time.
//!
//! O(p⁴) operations, but no gathering: coefficients of a source are broadcast, those of a target are lanes. Up to
//! order 4 that is as fast as rotations or faster, see docs/performance.md.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::expansion::{Expansion, Translation, matrix as matrix_of};
use crate::lists::ByClass;
use crate::lists::Classes;
use crate::math::Real;
use crate::math::simd::{Task, Vector};

/// Pairs that share each load of a matrix.
const PAIRS: usize = 4;

/// How many vectors of target coefficients are worked on together, with [`PAIRS`] enough to fill the registers: what pads `vectors` least.
fn rows(vectors: usize) -> usize {
    if vectors.next_multiple_of(3) < vectors.next_multiple_of(4) { 3 } else { 4.min(vectors) }
}

/// The M2L matrices of all classes, of one family and order.
pub struct Operators<T> {
    n: usize,
    /// Vectors of target coefficients in a block.
    rows: usize,
    /// By class, empty for near cells: for each block of rows, the column of each source coefficient.
    matrices: Vec<Vec<T>>,
}

/// What has been made: by number type, order and classes.
type Made = Mutex<HashMap<(TypeId, usize, usize), Arc<dyn Any + Send + Sync>>>;

impl<T: Real> Operators<T> {
    /// The matrices of the expansion that `expansion` makes, which must depend on `order` alone; made when first asked for.
    pub fn shared<E: Expansion<f64, 3>>(order: usize, classes: Classes<3>, expansion: impl FnOnce() -> E) -> Arc<Self> {
        static MADE: OnceLock<Made> = OnceLock::new();
        let key = (TypeId::of::<T>(), order, classes.len());
        let mut made = MADE.get_or_init(Made::default).lock().unwrap_or_else(PoisonError::into_inner);
        let operators = made.entry(key).or_insert_with(|| Arc::new(Self::new(&expansion(), classes)));
        operators.clone().downcast().expect("the number type is part of the key")
    }

    fn new<E: Expansion<f64, 3>>(expansion: &E, classes: Classes<3>) -> Self {
        let n = expansion.len();
        let rows = rows(n.div_ceil(T::WIDTH));
        let block = rows * T::WIDTH;
        let matrix = |class: u32| {
            if classes.offset(class).iter().all(|o| o.abs() <= 1) {
                return vec![];
            }
            let mut matrix = vec![T::ZERO; n.div_ceil(block) * n * block];
            for (k, column) in matrix_of(expansion, Translation::M2L(class)).chunks_exact(n).enumerate() {
                for (row, image) in column.iter().enumerate() {
                    matrix[(row / block * n + k) * block + row % block] = T::from_f64(*image);
                }
            }
            matrix
        };
        // Not in parallel: others may wait for the lock with work of this pool in hand.
        Operators { n, rows, matrices: (0..classes.len() as u32).map(matrix).collect() }
    }
}

/// M2L of one block of target cells.
pub struct Multiply<'a, T> {
    /// All matrices.
    pub operators: &'a Operators<T>,
    /// The pairs.
    pub pairs: &'a ByClass,
    /// Multipoles of all source cells.
    pub sources: &'a [T],
    /// Local expansions of the block, which the results are added to.
    pub targets: &'a mut [T],
}

impl<T: Real> Task<T> for Multiply<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        match self.operators.rows {
            1 => self.blocks::<V, 1>(),
            2 => self.blocks::<V, 2>(),
            3 => self.blocks::<V, 3>(),
            _ => self.blocks::<V, 4>(),
        }
    }
}

impl<T: Real> Multiply<'_, T> {
    #[inline(always)]
    fn blocks<V: Vector<Scalar = T>, const ROWS: usize>(self) {
        let n = self.operators.n;
        let block = ROWS * T::WIDTH;
        let mut image = vec![T::ZERO; block];
        for (class, same_class) in self.pairs.runs() {
            let matrix = &self.operators.matrices[class as usize];
            for batch in same_class.chunks(PAIRS) {
                // Idle places repeat the first pair.
                let mut from = [&self.sources[..n]; PAIRS];
                for k in 0..PAIRS {
                    let source = batch[if k < batch.len() { k } else { 0 }].1 as usize;
                    from[k] = &self.sources[source * n..(source + 1) * n];
                }
                for (b, columns) in matrix.chunks_exact(n * block).enumerate() {
                    let sums = product::<T, V, ROWS>(columns, from);
                    let range = b * block..n.min((b + 1) * block);
                    for (pair, sums) in batch.iter().zip(&sums) {
                        for r in 0..ROWS {
                            sums[r].store(&mut image[r * T::WIDTH..]);
                        }
                        let target = &mut self.targets[pair.0 as usize * n..(pair.0 as usize + 1) * n][range.clone()];
                        for (t, i) in target.iter_mut().zip(&image) {
                            *t += *i;
                        }
                    }
                }
            }
        }
    }
}

/// One block of rows times the coefficients of several sources.
#[inline(always)]
fn product<T: Real, V: Vector<Scalar = T>, const ROWS: usize>(
    columns: &[T],
    from: [&[T]; PAIRS],
) -> [[V; ROWS]; PAIRS] {
    let mut sums = [[V::zero(); ROWS]; PAIRS];
    let n = from[0].len();
    let [a, b, c, d] = [&from[0][..n], &from[1][..n], &from[2][..n], &from[3][..n]];
    for (k, column) in columns.chunks_exact(ROWS * T::WIDTH).enumerate().take(n) {
        let x = [V::splat(a[k]), V::splat(b[k]), V::splat(c[k]), V::splat(d[k])];
        for r in 0..ROWS {
            let m = V::load(&column[r * T::WIDTH..]);
            for p in 0..PAIRS {
                sums[p][r] = m.mul_add(x[p], sums[p][r]);
            }
        }
    }
    sums
}
