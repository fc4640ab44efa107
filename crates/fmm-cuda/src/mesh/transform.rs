//! The Fourier transforms of a mesh: which factors lines have, how many of them a block takes, and the launches.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::mesh::Influence;

use super::tables::{place_real, real_width};
use super::view::{MOST_FACTORS, TRANSFORM_THREADS, TransformView};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::kernels::MOST_SHARED;

/// The most lines of a block: enough that they are read in whole sectors of memory.
const MOST_LINES: usize = 8;

/// Arrays of a mesh, in its precision.
#[derive(Default)]
pub struct MeshArrays {
    /// Strengths. `[x][y][z]`
    pub mesh: Buffer<u8>,
    /// Potential and field. `[x][y][z][4]`
    pub functions: Buffer<u8>,
    spectrum: Buffer<u8>,
    rows: Buffer<u8>,
    potential: Buffer<u8>,
    slope: Buffer<u8>,
    spectra: Buffer<u8>,
}

/// What the transforms of one mesh have in common.
pub struct Transform {
    counts: [usize; 3],
    single: bool,
    wave: [f64; 3],
    highest: f64,
    kernel: f64,
    factors: [Vec<u32>; 3],
    roots: [Buffer<u8>; 3],
    inverse: [Buffer<f64>; 3],
    powers: Buffer<f64>,
    row_waves: Buffer<u32>,
    depth: usize,
}

/// The factors 8, 7, 5, 4, 3 and 2 of a number that has no others above 7: as few as there can be, without a 2 where two 4 do.
fn factors(count: usize) -> Vec<u32> {
    let (mut rest, mut twos, mut all) = (count, 0, vec![]);
    while rest.is_multiple_of(2) {
        rest /= 2;
        twos += 1;
    }
    for f in [7, 5, 3] {
        while rest.is_multiple_of(f) {
            rest /= f;
            all.push(f as u32);
        }
    }
    debug_assert_eq!(rest, 1, "{count}");
    while twos > 0 {
        let these = match twos {
            1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        all.push(1 << these);
        twos -= these;
    }
    all
}

/// The largest m of waves along an axis.
fn most(highest: f64, wave: f64) -> usize {
    (highest / wave) as usize
}

/// Bytes of shared memory of `pitch` lines of `points` complex numbers in so many buffers.
fn shared(points: usize, single: bool, buffers: usize, pitch: usize) -> usize {
    2 * real_width(single) * buffers * points * pitch
}

/// Checks that a block has room for the lines of a mesh of so many points.
///
/// # Errors
/// [`Error::Unsupported`] where it has not.
pub fn check_lines(counts: [usize; 3], single: bool) -> Result<(), Error> {
    let fits = [(0, 3, 1), (1, 2, 1), (2, 2, 3)].iter().all(|&(axis, buffers, pitch)| {
        shared(counts[axis], single, buffers, pitch) <= MOST_SHARED && factors(counts[axis]).len() <= MOST_FACTORS
    });
    let [x, y, z] = counts;
    let why = || {
        format!(
            "the mesh of this box, {x} × {y} × {z} points, has lines that are too long for a GPU; use device cpu, or \
             method auto"
        )
    };
    if fits { Ok(()) } else { Err(Error::Unsupported(why())) }
}

impl Transform {
    /// Of a mesh of so many points over a box of these scaled sides.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for lines that do not fit a block's memory; [`Error::Device`] without the memory.
    pub fn new(counts: [usize; 3], sides: [f64; 3], influence: &Influence, single: bool) -> Result<Self, Error> {
        let wave = sides.map(|s| 2.0 * std::f64::consts::PI / s);
        let Influence { highest, powers, inverse, volume } = influence;
        let [rows, depth] = [1, 2].map(|d| most(*highest, wave[d]));
        let row_waves: Vec<u32> = (0..=2 * rows)
            .map(|row| {
                let y = if row <= rows { row as f64 } else { row as f64 - (2 * rows + 1) as f64 };
                let left = highest.powi(2) - (y * wave[1]).powi(2);
                if left >= 0.0 { ((left.sqrt() / wave[2]) as usize).min(depth) as u32 + 1 } else { 0 }
            })
            .collect();
        let roots = |n: usize| {
            let angle = |k: usize| -2.0 * std::f64::consts::PI * k as f64 / n as f64;
            let all: Vec<f64> = (0..n).flat_map(|k| [angle(k).cos(), angle(k).sin()]).collect();
            place_real(&all, single)
        };
        let placed = |values: &[f64]| {
            let mut buffer = Buffer::new();
            buffer.upload(values)?;
            Ok::<_, Error>(buffer)
        };
        let mut of_rows = Buffer::new();
        of_rows.upload(&row_waves)?;
        let [x, y, z] = counts;
        check_lines(counts, single)?;
        let transform = Transform {
            counts,
            single,
            wave,
            highest: *highest,
            kernel: 4.0 * std::f64::consts::PI / volume,
            factors: counts.map(factors),
            roots: [roots(x)?, roots(y)?, roots(z)?],
            inverse: [placed(&inverse[0])?, placed(&inverse[1])?, placed(&inverse[2])?],
            powers: placed(powers)?,
            row_waves: of_rows,
            depth: depth + 1,
        };
        Ok(transform)
    }

    /// Bytes of the shared memory of `buffers` of `pitch` lines.
    fn shared(&self, axis: usize, buffers: usize, pitch: usize) -> usize {
        shared(self.counts[axis], self.single, buffers, pitch)
    }

    /// The most lines of which all fit, where `pitch` lines have room for so many.
    fn lines(&self, axis: usize, buffers: usize, pitch: impl Fn(usize) -> usize) -> (usize, usize) {
        let mut lines = MOST_LINES;
        while lines > 1 && self.shared(axis, buffers, pitch(lines)) > MOST_SHARED / 2 {
            lines /= 2;
        }
        (lines, self.shared(axis, buffers, pitch(lines)))
    }

    /// Bytes of each array, in the order of [`MeshArrays::all`].
    fn lengths(&self) -> [usize; 7] {
        let [x, y, z] = self.counts;
        let (points, spectrum) = (x * y * z, x * y * self.depth);
        let rows = x * self.row_waves.len() * self.depth;
        [points.div_ceil(2), 2 * points, spectrum, rows, rows, rows, 3 * spectrum]
            .map(|n| 2 * real_width(self.single) * n)
    }

    /// Bytes more of device memory than there are now.
    pub fn growth(&self, arrays: &mut MeshArrays) -> usize {
        arrays.all().into_iter().zip(self.lengths()).map(|(b, n)| b.growth(n)).sum()
    }

    /// Makes room.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn ready(&self, arrays: &mut MeshArrays) -> Result<(), Error> {
        arrays.all().into_iter().zip(self.lengths()).try_for_each(|(b, n)| b.resize(n))
    }

    /// Queues the transforms, from strengths to functions.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn apply(&self, gpu: &Gpu, arrays: &MeshArrays) -> Result<(), Error> {
        let [x, y, _] = self.counts;
        let (depth, rows) = (self.depth, self.row_waves.len());
        let along_z = self.lines(2, 2, |lines| lines + 1);
        let along_y = self.lines(1, 2, |lines| lines);
        let along_x = self.lines(0, 3, |lines| lines);
        let back_z = self.lines(2, 2, |lines| 2 * lines + 1);
        let steps = [
            ("mesh_z_forward", ((x * y / 2).div_ceil(along_z.0), 1, 1), along_z),
            ("mesh_y_forward", (depth.div_ceil(along_y.0), x, 1), along_y),
            ("mesh_x", (depth.div_ceil(along_x.0), rows, 1), along_x),
            ("mesh_y_backward", (depth.div_ceil(along_y.0), x, 3), along_y),
            ("mesh_z_backward", ((x * y).div_ceil(back_z.0), 1, 1), back_z),
        ];
        let view = self.view(arrays);
        for (name, grid, (lines, shared)) in steps {
            let name = format!("{name}_{}", if self.single { "f32" } else { "f64" });
            let view = TransformView { lines: lines as u32, ..view };
            let grid = (grid.0 as u32, grid.1 as u32, grid.2 as u32);
            // SAFETY: all arrays have the lengths that the view says, and the memory of a block holds its lines.
            unsafe {
                gpu.kernels().launch_with(gpu.stream(), &name, grid, (TRANSFORM_THREADS as u32, shared), &view)?;
            }
        }
        Ok(())
    }

    fn view(&self, arrays: &MeshArrays) -> TransformView {
        let of = |b: &Buffer<u8>| b.pointer();
        let mut factors = [[0; MOST_FACTORS]; 3];
        for (to, from) in factors.iter_mut().zip(&self.factors) {
            to[..from.len()].copy_from_slice(from);
        }
        let roots: [DevicePointer<u8>; 3] = std::array::from_fn(|d| self.roots[d].pointer());
        TransformView {
            mesh: of(&arrays.mesh),
            spectrum: of(&arrays.spectrum),
            rows: of(&arrays.rows),
            potential: of(&arrays.potential),
            slope: of(&arrays.slope),
            spectra: of(&arrays.spectra),
            functions: of(&arrays.functions),
            roots,
            inverse: std::array::from_fn(|d| self.inverse[d].pointer()),
            powers: self.powers.pointer(),
            row_waves: self.row_waves.pointer(),
            wave: self.wave,
            highest2: self.highest * self.highest,
            kernel: self.kernel,
            counts: self.counts.map(|n| n as u32),
            factor_count: std::array::from_fn(|d| self.factors[d].len() as u32),
            factors,
            depth: self.depth as u32,
            row_count: self.row_waves.len() as u32,
            power_count: self.powers.len() as u32,
            lines: 0,
        }
    }
}

impl MeshArrays {
    fn all(&mut self) -> [&mut Buffer<u8>; 7] {
        let MeshArrays { mesh, functions, spectrum, rows, potential, slope, spectra } = self;
        [mesh, functions, spectrum, rows, potential, slope, spectra]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LONGEST_LINES;

    #[test]
    fn factors_make_the_number_and_are_few() {
        for n in [4usize, 6, 8, 10, 12, 14, 16, 24, 30, 64, 168, 210, 500, 512, 686, 1024, 1250, 2100] {
            let all = factors(n);
            assert_eq!(all.iter().product::<u32>() as usize, n, "{all:?}");
            assert!(all.iter().all(|f| [2, 3, 4, 5, 7, 8].contains(f)) && all.len() <= MOST_FACTORS);
        }
        assert_eq!(factors(16), [4, 4]);
        assert_eq!(factors(168), [7, 3, 8]);
    }

    #[test]
    fn the_longest_lines_are_those_that_have_room() {
        for (axis, longest) in LONGEST_LINES.into_iter().enumerate() {
            for (single, longest) in [(false, longest), (true, 2 * longest)] {
                let of = |n: usize| check_lines(std::array::from_fn(|d| if d == axis { n } else { 8 }), single).is_ok();
                assert!(of(longest) && !of(2 * longest), "{axis} {single}");
            }
        }
    }
}
