//! The rival of the solver on grids: Hockney's fast convolution in free space, on a uniform grid.
//!
//! Ψ = K ∗ ω over n³ cells, by Fourier transforms of twice as many a side, so that images do not reach (Hockney & Eastwood 1981). The
//! kernel is the solver's own, so that on one grid both have the same error but for rounding. Transforms skip the rows of zeros;
//! the transform of the kernel is real and even and kept for an octant. u by central differences of fourth order.

use std::sync::Arc;

use fmm_core::grid::{BLOCK, CELLS, Green, Grid, Solution, Work};
use fmm_core::math::CollectVec;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftPlanner};

/// Columns that are transformed together: a cache line of them is read at once.
const COLUMNS: usize = 8;

/// A convolution with Green's function.
pub struct Hockney {
    n: usize,
    /// The transform of the kernel, (n + 1)³, times h³/(2n)³.
    kernel: Vec<f64>,
    real: Arc<dyn RealToComplex<f64>>,
    back: Arc<dyn ComplexToReal<f64>>,
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
    /// Scratch numbers that both transforms need in addition to a column.
    scratch: usize,
    h: f64,
}

impl Hockney {
    /// For grids of n³ cells with side h.
    pub fn new(n: usize, h: f64, green: Green) -> Self {
        let (mut reals, mut planner) = (RealFftPlanner::new(), FftPlanner::new());
        let (real, back) = (reals.plan_fft_forward(2 * n), reals.plan_fft_inverse(2 * n));
        let (forward, inverse) = (planner.plan_fft_forward(2 * n), planner.plan_fft_inverse(2 * n));
        let (m, e2) = (n + 1, green.core(h).powi(2));
        let factor = h * h * h / (4.0 * std::f64::consts::PI * (8 * n * n * n) as f64);
        let value = |c: usize| {
            let [i, j, k] = [c % m, c / m % m, c / (m * m)].map(|i| i as f64 * h);
            let r2 = i * i + j * j + k * k;
            let s = r2 + e2;
            if s == 0.0 { 0.0 } else { factor * (r2 + 1.5 * e2) / (s * s.sqrt()) }
        };
        let mut kernel: Vec<f64> = (0..m * m * m).into_par_iter().map(value).collect_vec();
        // The first axis goes last each time: after three turns they are in order again.
        for _ in 0..3 {
            let lines: Vec<Vec<f64>> = kernel.par_chunks(m).map(|line| even(line, &*real)).collect_vec();
            kernel = (0..m * m * m).into_par_iter().map(|c| lines[c % (m * m)][c / (m * m)]).collect_vec();
        }
        let scratch = forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len());
        Hockney { n, kernel, real, back, forward, inverse, scratch, h }
    }

    /// Bytes of the arrays of one convolution, without its input and output.
    pub fn bytes(&self) -> usize {
        16 * self.n * 2 * self.n * (self.n + 1) + 8 * self.kernel.len()
    }

    /// K ∗ `field`, n³ values, x fastest.
    pub fn convolve(&self, field: &[f64]) -> Vec<f64> {
        let n = self.n;
        let row = n + 1;
        let mut space = vec![Complex64::ZERO; n * 2 * n * row];
        space.par_chunks_mut(2 * n * row).zip(field.par_chunks(n * n)).for_each(|(plane, values)| {
            let mut line = vec![0.0; 2 * n];
            let mut scratch = self.real.make_scratch_vec();
            for (to, from) in plane.chunks_exact_mut(row).zip(values.chunks_exact(n)) {
                line[..n].copy_from_slice(from);
                line[n..].fill(0.0);
                transformed(self.real.process_with_scratch(&mut line, to, &mut scratch));
            }
            let mut rows: Vec<&mut [Complex64]> = plane.chunks_exact_mut(row).collect();
            columns(&mut rows, (n, 2 * n), self.scratch, |column, scratch, _| {
                self.forward.process_with_scratch(column, scratch)
            });
        });
        // Rows of one (k_y, all z) together: each thread owns its own.
        let mut by_y: Vec<Vec<&mut [Complex64]>> = (0..2 * n).map(|_| Vec::with_capacity(n)).collect();
        for (r, line) in space.chunks_exact_mut(row).enumerate() {
            by_y[r % (2 * n)].push(line);
        }
        by_y.into_par_iter().enumerate().for_each(|(y, mut rows)| {
            let y = y.min(2 * n - y);
            columns(&mut rows, (n, n), self.scratch, |column, scratch, x| {
                self.forward.process_with_scratch(column, scratch);
                for (z, value) in column.iter_mut().enumerate() {
                    *value *= self.kernel[x + row * (y + row * z.min(2 * n - z))];
                }
                self.inverse.process_with_scratch(column, scratch);
            });
        });
        let mut out = vec![0.0; n * n * n];
        out.par_chunks_mut(n * n).zip(space.par_chunks_mut(2 * n * row)).for_each(|(values, plane)| {
            let mut rows: Vec<&mut [Complex64]> = plane.chunks_exact_mut(row).collect();
            columns(&mut rows, (2 * n, n), self.scratch, |column, scratch, _| {
                self.inverse.process_with_scratch(column, scratch)
            });
            let mut line = vec![0.0; 2 * n];
            let mut scratch = self.back.make_scratch_vec();
            for (to, from) in values.chunks_exact_mut(n).zip(plane.chunks_exact_mut(row)) {
                // Those of a real line have none; rounding leaves some.
                (from[0].im, from[n].im) = (0.0, 0.0);
                transformed(self.back.process_with_scratch(from, &mut line, &mut scratch));
                to.copy_from_slice(&line[..n]);
            }
        });
        out
    }

    /// Ψ and u of `vorticity` on a uniform grid of n³ cells.
    pub fn solve(&self, grid: &Grid, vorticity: &[[f64; 3]]) -> Solution {
        let n = self.n;
        let psi = [0, 1, 2].map(|k| {
            let mut field = vec![0.0; n * n * n];
            for (i, w) in vorticity.iter().enumerate() {
                field[lattice(grid, n, i)] = w[k];
            }
            self.convolve(&field)
        });
        let derivative = |field: &[f64], place: usize, d: usize| {
            let (step, i) = (n.pow(d as u32), place / n.pow(d as u32) % n);
            // At the faces there is no vorticity, and differences become one-sided.
            let at = |o: isize| field[(place as isize + o * step as isize) as usize];
            match i {
                0 => (at(1) - at(0)) / self.h,
                _ if i + 1 == n => (at(0) - at(-1)) / self.h,
                _ if i == 1 || i + 2 == n => (at(1) - at(-1)) / (2.0 * self.h),
                _ => (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * self.h),
            }
        };
        let both = |i: usize| {
            let p = lattice(grid, n, i);
            let curl = |a: usize, b: usize| derivative(&psi[b], p, a) - derivative(&psi[a], p, b);
            ([psi[0][p], psi[1][p], psi[2][p]], [curl(1, 2), curl(2, 0), curl(0, 1)])
        };
        let (mut stream, mut velocity) = (vec![], vec![]);
        (0..vorticity.len()).into_par_iter().map(both).unzip_into_vecs(&mut stream, &mut velocity);
        Solution { psi: stream, velocity, work: Work::default() }
    }
}

/// A length that does not fit would be a mistake of this file.
fn transformed(result: Result<(), realfft::FftError>) {
    result.expect("lines are as long as they were planned");
}

/// The transform of a line that goes on evenly: its real part, which is all of it.
fn even(line: &[f64], plan: &dyn RealToComplex<f64>) -> Vec<f64> {
    let n = line.len() - 1;
    let mut whole: Vec<f64> = (0..2 * n).map(|i| line[i.min(2 * n - i)]).collect();
    let mut out = plan.make_output_vec();
    transformed(plan.process(&mut whole, &mut out));
    out.into_iter().map(|c| c.re).collect()
}

/// Each column of `rows`, padded with zeros from `filled` rows to twice half of the planned length, through `work` and back into the first
/// `kept` rows; `work` gets the number of the column.
fn columns(
    rows: &mut [&mut [Complex64]],
    (filled, kept): (usize, usize),
    scratch: usize,
    work: impl Fn(&mut [Complex64], &mut [Complex64], usize),
) {
    let width = rows[0].len();
    let length = 2 * (width - 1);
    let mut gathered = vec![Complex64::ZERO; COLUMNS * length];
    let mut scratch = vec![Complex64::ZERO; scratch];
    for first in (0..width).step_by(COLUMNS) {
        let count = COLUMNS.min(width - first);
        for (c, column) in gathered.chunks_exact_mut(length).take(count).enumerate() {
            for (value, row) in column.iter_mut().zip(rows.iter().take(filled)) {
                *value = row[first + c];
            }
            column[filled..].fill(Complex64::ZERO);
            work(column, &mut scratch, first + c);
        }
        for (z, row) in rows.iter_mut().take(kept).enumerate() {
            for c in 0..count {
                row[first + c] = gathered[c * length + z];
            }
        }
    }
}

/// Where cell `i` of the fields lies among n³ cells, x fastest.
fn lattice(grid: &Grid, n: usize, i: usize) -> usize {
    let (block, c) = (grid.blocks()[i / CELLS], i % CELLS);
    let cell = [c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)];
    let [x, y, z]: [usize; 3] = std::array::from_fn(|d| block.index[d] as usize * BLOCK + cell[d]);
    x + n * (y + n * z)
}

#[cfg(test)]
mod tests {
    use fmm_core::grid::{GaussianRing, Parts, Solver, Vorticity};
    use fmm_core::{Precision, StageTimes};

    use super::*;

    #[test]
    fn the_convolution_is_the_direct_sum() {
        let ring = |center, axis, radius, core| {
            Box::new(GaussianRing { center, axis, radius, core, circulation: 1.0 }) as Box<dyn Vorticity>
        };
        let rings =
            Parts(vec![ring([0.4, 0.5, 0.5], [0.0, 0.6, 0.8], 0.25, 0.09), ring([0.5; 3], [1.0, 0.0, 0.0], 0.2, 0.08)]);
        let grid = Grid::uniform([0.0; 3], 1.0, 2);
        let field = grid.sample(&rings);
        for green in [Green::Singular, Green::Regularised] {
            let found = Hockney::new(32, 1.0 / 32.0, green).solve(&grid, &field);
            let solver = Solver { green, theta: 0.0, precision: Precision::F64, ..Solver::default() };
            let direct = solver.solve(&grid, &field, &mut StageTimes::default()).unwrap();
            let size = |v: &[[f64; 3]]| v.as_flattened().iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let apart = |a: &[[f64; 3]], b: &[[f64; 3]]| {
                a.as_flattened().iter().zip(b.as_flattened()).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / size(b)
            };
            assert!(apart(&found.psi, &direct.psi) < 1e-13, "{}", apart(&found.psi, &direct.psi));
            // Differences against the derivatives of the kernel's sum: the rings have three cells a core.
            assert!(apart(&found.velocity, &direct.velocity) < 0.06, "{}", apart(&found.velocity, &direct.velocity));
        }
    }
}
