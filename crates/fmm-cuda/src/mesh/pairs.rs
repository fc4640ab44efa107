//! Pairs within the cut-off of a sum with a mesh.

use cust::stream::Stream;
use fmm_core::mesh::{self, Far};
use fmm_core::{Error, Softening};

use super::cells::InCells;
use super::view::{BrickView, CutoffView, Lattice, MESH_TILE, NEAR_WARPS, TERMS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct;

/// Numbers of coefficients that kernels are written for, in single and in double precision.
const WRITTEN: [&[usize]; 2] = [&[8, 10, 12, 14, 16, TERMS], &[12, 16, 20, 24, TERMS]];

/// Blocks that sum targets again.
const BLOCKS_AGAIN: usize = 264;

/// What the pairs of one box, recipe and cut-off have in common.
pub struct Pairs {
    far: Far,
    /// Along x and y. `[columns][2]`
    columns: Buffer<i32>,
}

/// The results.
#[derive(Default)]
pub struct PairSums {
    /// Potential and field, scaled. `[targets][4]`
    pub sums: Buffer<f64>,
    again: Buffer<u32>,
}

impl PairSums {
    /// Bytes more of device memory than there are now for `n` targets.
    pub fn growth(&self, n: usize) -> usize {
        self.sums.growth(4 * n) + self.again.growth(n + 1)
    }
}

/// A sum of pairs.
#[derive(Clone, Copy)]
pub struct PairRequest<'a> {
    /// The mesh.
    pub lattice: &'a Lattice,
    /// See [`Lattice::brick`].
    pub brick: [u32; 3],
    /// Sources.
    pub sources: &'a InCells,
    /// Targets, if they are others.
    pub targets: Option<&'a InCells>,
    /// None, or a spline; unscaled.
    pub softening: Softening,
    /// Whether pairs are in single precision.
    pub single: bool,
    /// Pairs within so many cut-offs, or half diagonals of a brick, are too close for it.
    pub closest: f64,
}

/// `coefficients`, the highest first, with zeros before them up to a number of `terms`.
fn padded<T: Copy + Default>(coefficients: &[f64], terms: usize, of: impl Fn(f64) -> T) -> [T; TERMS] {
    let mut all = [T::default(); TERMS];
    let before = terms - coefficients.len();
    all[before..terms].iter_mut().zip(coefficients).for_each(|(to, &from)| *to = of(from));
    all
}

impl BrickView {
    /// Of the pairs up to `cutoff`, in the units of the cells.
    pub fn new(lattice: &Lattice, brick: [u32; 3], cutoff: f64, sources: &InCells, targets: &InCells) -> Self {
        let (square, half, [x, y, z]) = (cutoff * cutoff, lattice.half_diagonal(brick), lattice.size);
        // Both factors of a product lose a part of 2⁻¹⁰ at most.
        let reach2 = square + 1.05 * half * (half + cutoff) / 256.0;
        let units = [x, y, z, square, 1.0 / z, reach2];
        BrickView {
            lattice: *lattice,
            targets: targets.near.pointer(),
            target_depth: targets.depth.pointer(),
            target_start: targets.start.pointer(),
            sources: sources.near.pointer(),
            depth: sources.depth.pointer(),
            start: sources.start.pointer(),
            units,
            units_f32: units.map(|x| x as f32),
            brick,
            reach: lattice.size.map(|size| (1.0001 * cutoff / size) as u32 + 1),
        }
    }
}

impl Pairs {
    /// Of a far kernel, with the cells of a mesh.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn new(far: Far, lattice: &Lattice) -> Result<Self, Error> {
        let all = mesh::columns(&lattice.size, far.cutoff);
        let flat: Vec<i32> = all.iter().flat_map(|(at, _)| at.map(|i| i as i32)).collect();
        let mut columns = Buffer::new();
        columns.upload(&flat)?;
        Ok(Pairs { far, columns })
    }

    /// Queues the sums.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn sum(&self, gpu: &Gpu, stream: &Stream, request: &PairRequest, to: &mut PairSums) -> Result<(), Error> {
        let PairRequest { lattice, brick, sources, targets, softening, single, closest } = *request;
        let at = targets.unwrap_or(sources);
        let n = at.bodies.len();
        to.sums.resize(4 * n)?;
        to.again.resize(1 + n)?;
        if n == 0 {
            return Ok(());
        }
        let (kernel, length) = direct::kernel(softening, lattice.scale);
        let Far { cutoff, potential, force } = &self.far;
        let needed = potential.len().max(force.len() + 1);
        let written = WRITTEN[usize::from(!single)];
        let terms = *written.iter().find(|&&n| n >= needed).unwrap_or(&TERMS);
        let square = cutoff * cutoff;
        // Coordinates are rounded by a part of what they are.
        let too_close = if single { (closest * cutoff.max(lattice.half_diagonal(brick))).powi(2) } else { 0.0 };
        let units = [2.0 / square, too_close];
        let mut view = CutoffView {
            bricks: BrickView::new(lattice, brick, *cutoff, sources, at),
            target_cell: at.cell.pointer(),
            columns: self.columns.pointer(),
            sums: to.sums.pointer(),
            again: to.again.pointer(),
            target_bodies: at.bodies.pointer(),
            source_bodies: sources.bodies.pointer(),
            units,
            units_f32: units.map(|x| x as f32),
            cutoff2: square,
            softening: length,
            potential: padded(potential, terms, |x| x),
            force: padded(force, terms - 1, |x| x),
            potential_f32: padded(potential, terms, |x| x as f32),
            force_f32: padded(force, terms - 1, |x| x as f32),
            columns_len: (self.columns.len() / 2) as u32,
            same: u32::from(targets.is_none()),
        };
        let name = format!("mesh_near_{kernel}_{}_{terms}", if single { "f32" } else { "f64" });
        let blocks = lattice.bricks(brick);
        let kernels = gpu.kernels();
        // SAFETY: all arrays have the lengths that the view says.
        unsafe {
            to.again.fill(stream, 0)?;
            kernels.launch(stream, &name, blocks, (32 * NEAR_WARPS) as u32, &view)?;
            if single {
                // All coefficients that there are, in double precision.
                (view.potential, view.force) = (padded(potential, TERMS, |x| x), padded(force, TERMS - 1, |x| x));
                let blocks = n.div_ceil(MESH_TILE / 32).min(BLOCKS_AGAIN) as u32;
                kernels.launch(stream, &format!("mesh_near_again_{kernel}"), blocks, MESH_TILE as u32, &view)?;
            }
        }
        Ok(())
    }
}
