//! From strengths on a mesh to potential and field there: Fourier transforms with the waves of the far kernel alone.
//!
//! A plane of one x is transformed along z and y first, and of its waves those within the sphere
//! |k| ≤ K are kept. Lines along x follow, a few at a time: forward, times the kernel, and back. The
//! derivative along an axis is a factor along this axis alone, so that the four functions share what
//! their transforms have in common.

use std::f64::consts::PI;
use std::sync::Arc;

use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, FftNum, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};

use super::real;
use super::window::{FUNCTIONS, stride};
use crate::math::{CollectVec, Real};

/// Lines along x that one task transforms.
const LINES: usize = 16;

/// Lines along y that are copied together: their numbers share cache lines.
const TOGETHER: usize = 8;

/// The transforms of a mesh.
pub struct Transform<T: FftNum> {
    counts: [usize; 3],
    /// 2π over each side.
    wave: [f64; 3],
    /// K.
    highest: f64,
    rows: Vec<Row>,
    /// The most waves of a row.
    most: usize,
    /// How many waves the rows have.
    lines: usize,
    along_z: (Arc<dyn RealToComplex<T>>, Arc<dyn ComplexToReal<T>>),
    along_y: [Arc<dyn Fft<T>>; 2],
    along_x: [Arc<dyn Fft<T>>; 2],
}

/// Waves (m_y, m_z) of one m_y with |k| ≤ K.
struct Row {
    /// The place of m_y among the points along y.
    y: usize,
    /// How many m_z from 0 there are.
    waves: usize,
    /// The place of the first among the waves of all rows.
    start: usize,
}

/// A wave of −∂/∂x along the axis of its component `k`, where `value` is that of the function.
#[inline(always)]
fn slope<T: Real + FftNum>(k: f64, value: Complex<T>) -> Complex<T> {
    let k: T = real(k);
    Complex::new(k * value.im, -k * value.re)
}

/// m of a place among `count` points, of both signs.
fn number(place: usize, count: usize) -> f64 {
    if 2 * place > count { place as f64 - count as f64 } else { place as f64 }
}

impl<T: Real + FftNum> Transform<T> {
    /// Of so many points over the sides of a box, with waves up to `highest`.
    pub fn new(counts: [usize; 3], sides: [f64; 3], highest: f64) -> Self {
        let wave = sides.map(|s| 2.0 * PI / s);
        let (mut rows, mut lines) = (vec![], 0);
        for y in 0..counts[1] {
            let left = highest.powi(2) - (number(y, counts[1]) * wave[1]).powi(2);
            if left >= 0.0 {
                let waves = (left.sqrt() / wave[2]) as usize + 1;
                rows.push(Row { y, waves, start: lines });
                lines += waves;
            }
        }
        let most = rows.iter().map(|r| r.waves).max().unwrap_or(0);
        let (mut real, mut planner) = (RealFftPlanner::new(), FftPlanner::new());
        let mut both = |n| [planner.plan_fft_forward(n), planner.plan_fft_inverse(n)];
        let (along_y, along_x) = (both(counts[1]), both(counts[0]));
        let along_z = (real.plan_fft_forward(counts[2]), real.plan_fft_inverse(counts[2]));
        Transform { counts, wave, highest, rows, most, lines, along_z, along_y, along_x }
    }

    /// Potential and field of the strengths on `planes`, the functions of a point one after the
    /// other, where `kernel` is the factor of a wave: of its places along the axes and of k².
    pub fn apply(&self, planes: &[Vec<T>], kernel: impl Fn([usize; 3], f64) -> f64 + Sync) -> Vec<Vec<T>> {
        let spectra = planes.par_iter().map(|plane| self.forward(plane)).collect_vec();
        let starts: Vec<usize> = (0..self.lines).step_by(LINES).collect();
        let waves: Vec<(usize, usize)> =
            self.rows.iter().flat_map(|row| (0..row.waves).map(move |z| (row.y, z))).collect();
        let line = |&start: &usize| self.lines(start, &waves, &spectra, &kernel);
        let blocks = starts.par_iter().map(line).collect_vec();
        (0..self.counts[0]).into_par_iter().map(|x| self.backward(x, &blocks)).collect_vec()
    }

    /// The waves of a plane, row after row.
    fn forward(&self, plane: &[T]) -> Vec<Complex<T>> {
        let [_, ny, nz] = self.counts;
        let (half, zero) = (nz / 2 + 1, Complex::new(T::ZERO, T::ZERO));
        let along_z = &self.along_z.0;
        let mut spectrum = vec![zero; ny * half];
        let (mut input, mut scratch) = (along_z.make_input_vec(), along_z.make_scratch_vec());
        for (row, out) in plane.chunks_exact(stride(nz)).zip(spectrum.chunks_exact_mut(half)) {
            input.copy_from_slice(&row[..nz]);
            along_z.process_with_scratch(&mut input, out, &mut scratch).expect("lengths are those of the plan");
        }
        let mut out = vec![zero; self.lines];
        let mut buffer = vec![zero; TOGETHER * ny];
        let mut scratch = vec![zero; self.along_y[0].get_inplace_scratch_len()];
        for first in (0..self.most).step_by(TOGETHER) {
            let these = TOGETHER.min(self.most - first);
            let columns = &mut buffer[..these * ny];
            for y in 0..ny {
                (0..these).for_each(|k| columns[k * ny + y] = spectrum[y * half + first + k]);
            }
            self.along_y[0].process_with_scratch(columns, &mut scratch);
            for &Row { y, waves, start } in &self.rows {
                for k in 0..these.min(waves.saturating_sub(first)) {
                    out[start + first + k] = columns[k * ny + y];
                }
            }
        }
        out
    }

    /// Some lines along x: those of the potential and of the component of the field along x, `LINES` values for each x.
    fn lines(
        &self,
        start: usize,
        waves: &[(usize, usize)],
        spectra: &[Vec<Complex<T>>],
        kernel: &impl Fn([usize; 3], f64) -> f64,
    ) -> [Vec<Complex<T>>; 2] {
        let nx = self.counts[0];
        let these = &waves[start..waves.len().min(start + LINES)];
        let zero = Complex::new(T::ZERO, T::ZERO);
        let [mut potential, mut field] = [(); 2].map(|()| vec![zero; LINES * nx]);
        for (x, spectrum) in spectra.iter().enumerate() {
            (0..these.len()).for_each(|k| potential[k * nx + x] = spectrum[start + k]);
        }
        let [forward, inverse] = &self.along_x;
        let mut scratch = vec![zero; forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len())];
        forward.process_with_scratch(&mut potential, &mut scratch);
        for (k, &(y, z)) in these.iter().enumerate() {
            let across = (number(y, self.counts[1]) * self.wave[1]).powi(2) + (z as f64 * self.wave[2]).powi(2);
            for x in 0..nx {
                let along = number(x, nx) * self.wave[0];
                let square = along * along + across;
                let within = square > 0.0 && square <= self.highest * self.highest;
                let factor = if within { kernel([x, y, z], square) } else { 0.0 };
                let value = potential[k * nx + x].scale(real(factor));
                potential[k * nx + x] = value;
                field[k * nx + x] = slope(along, value);
            }
        }
        [potential, field].map(|mut lines| {
            inverse.process_with_scratch(&mut lines, &mut scratch);
            let mut by_plane = vec![zero; LINES * nx];
            for x in 0..nx {
                (0..these.len()).for_each(|k| by_plane[x * LINES + k] = lines[k * nx + x]);
            }
            by_plane
        })
    }

    /// Potential and field on the plane x.
    fn backward(&self, x: usize, blocks: &[[Vec<Complex<T>>; 2]]) -> Vec<T> {
        let [_, ny, nz] = self.counts;
        let (half, zero) = (nz / 2 + 1, Complex::new(T::ZERO, T::ZERO));
        let at = |which: usize, place: usize| blocks[place / LINES][which][x * LINES + place % LINES];
        let mut scratch = vec![zero; self.along_y[1].get_inplace_scratch_len()];
        let mut buffer = vec![zero; TOGETHER * ny];
        let mut spectrum = vec![zero; ny * half];
        // All waves of a function, or of its slope.
        let mut along_y = |which: usize, is_slope: bool, spectrum: &mut [Complex<T>]| {
            for first in (0..self.most).step_by(TOGETHER) {
                let these = TOGETHER.min(self.most - first);
                let columns = &mut buffer[..these * ny];
                columns.fill(zero);
                for &Row { y, waves, start } in &self.rows {
                    let along = number(y, ny) * self.wave[1];
                    for k in 0..these.min(waves.saturating_sub(first)) {
                        let value = at(which, start + first + k);
                        columns[k * ny + y] = if is_slope { slope(along, value) } else { value };
                    }
                }
                self.along_y[1].process_with_scratch(columns, &mut scratch);
                for y in 0..ny {
                    (0..these).for_each(|k| spectrum[y * half + first + k] = columns[k * ny + y]);
                }
            }
        };
        let inverse = &self.along_z.1;
        let mut plane = vec![T::ZERO; FUNCTIONS * ny * stride(nz)];
        let (mut input, mut row) = (inverse.make_input_vec(), inverse.make_output_vec());
        let mut z_scratch = inverse.make_scratch_vec();
        let mut along_z = |function: usize, is_slope: bool, spectrum: &[Complex<T>]| {
            let rows = plane.chunks_exact_mut(FUNCTIONS * stride(nz));
            for (out, waves) in rows.zip(spectrum.chunks_exact(half)) {
                for (m, value) in waves.iter().enumerate() {
                    let along = m as f64 * self.wave[2];
                    input[m] = if is_slope { slope(along, *value) } else { *value };
                }
                // What a real function cannot have is rounding.
                input[0].im = T::ZERO;
                if nz % 2 == 0 {
                    input[half - 1].im = T::ZERO;
                }
                let done = inverse.process_with_scratch(&mut input, &mut row, &mut z_scratch);
                done.expect("lengths are those of the plan");
                for (point, value) in out.chunks_exact_mut(FUNCTIONS).zip(row.iter().cycle()) {
                    point[function] = *value;
                }
            }
        };
        along_y(0, false, &mut spectrum);
        along_z(0, false, &spectrum);
        along_z(3, true, &spectrum);
        along_y(1, false, &mut spectrum);
        along_z(1, false, &spectrum);
        along_y(0, true, &mut spectrum);
        along_z(2, false, &spectrum);
        plane
    }
}
