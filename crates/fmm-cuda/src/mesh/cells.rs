//! Bodies in the order of the cells of a mesh.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::math::scale::power_of_two_below;

use super::view::{BRICK_COLUMNS, CellsView, Lattice, MESH_TILE, NEAR_WARPS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{DIGITS, Key, Work, launch, sort};
use crate::view::{Body, Points};

/// The cut-off is at most so many cells long. Along z more cells cost nothing: they are one run of bodies.
const MOST_REACH: [f64; 3] = [4.0, 4.0, 8.0];

/// Cells along a cut-off of pairs that need no mesh.
const CELLS_ALONG: [f64; 3] = [2.5, 2.5, 5.0];

/// So many cells are few, however few bodies there are.
const FEW: f64 = 1e6;

/// Points of a cell at least.
const FEWEST: [usize; 3] = [2, 2, 1];

impl Lattice {
    /// The mesh of so many points over a box of these sides, and cells for pairs up to `cutoff`: of two points along x and y
    /// and of one along z, or of the next number that divides those of the side and makes cells long enough. Lengths are
    /// multiplied by `scale`.
    pub fn new(points: [usize; 3], side: [f64; 3], cutoff: f64, scale: f64) -> Self {
        let group = [0, 1, 2].map(|d| {
            let long_enough = |g: usize| g as f64 * side[d] / points[d] as f64 >= cutoff / MOST_REACH[d];
            (FEWEST[d]..points[d]).find(|&g| points[d].is_multiple_of(g) && long_enough(g)).unwrap_or(points[d])
        });
        let cells = [0, 1, 2].map(|d| points[d] / group[d]);
        Lattice {
            per_length: [0, 1, 2].map(|d| points[d] as f64 / side[d]),
            size: [0, 1, 2].map(|d| side[d] * scale / cells[d] as f64),
            scale,
            points: points.map(|n| n as u32),
            group: group.map(|n| n as u32),
            cells: cells.map(|n| n as u32),
            unused: 0,
        }
    }

    /// Cells of a box for pairs up to `cutoff` of so many `bodies`: a few along it, or longer ones where most of the box is
    /// empty and these would be far more than there are bodies. Scaled by a power of two that brings the cut-off near one,
    /// since squares of lengths must be numbers in single precision.
    pub fn of_pairs(side: [f64; 3], cutoff: f64, bodies: usize) -> Self {
        let along = |d: usize| (CELLS_ALONG[d] * side[d] / cutoff).max(1.0);
        let all: f64 = [0, 1, 2].map(along).iter().product();
        let fewer = (FEW.max(4.0 * bodies as f64) / all).cbrt().min(1.0);
        let cells = [0, 1, 2].map(|d| ((fewer * along(d)) as usize).max(1));
        Lattice::new([0, 1, 2].map(|d| FEWEST[d] * cells[d]), side, cutoff, power_of_two_below(1.0 / cutoff))
    }

    /// Half the diagonal of a brick of cells.
    pub fn half_diagonal(&self, brick: [u32; 3]) -> f64 {
        0.5 * [0, 1, 2].map(|d| f64::from(brick[d]) * self.size[d]).iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// How many cells there are.
    pub fn all_cells(&self) -> usize {
        self.cells.iter().map(|&n| n as usize).product()
    }

    /// The sides of bricks, in cells, whose targets a block of pairs has: about as many as fill its
    /// lanes but for a few of a hundred bricks, where `targets` are `crowding` times as dense as on
    /// average; and one to three cut-offs long.
    pub fn brick(&self, cutoff: f64, targets: usize, crowding: f64) -> [u32; 3] {
        let lanes = (32 * NEAR_WARPS) as f64;
        let volume: f64 = [0, 1, 2].map(|d| self.size[d] * f64::from(self.cells[d])).iter().product();
        let wanted = (lanes - 1.5 * lanes.sqrt()) * volume / (crowding * targets.max(1) as f64);
        let most = |d: usize, cutoffs: f64| self.cells[d].min((cutoffs * cutoff / self.size[d]) as u32).max(1);
        let cells = |d: usize, length: f64| ((length / self.size[d]).round() as u32).clamp(most(d, 1.0), most(d, 3.0));
        let [x, y] = [0, 1].map(|d| cells(d, wanted.cbrt()).min(BRICK_COLUMNS.isqrt() as u32));
        let z = cells(2, wanted / (f64::from(x) * self.size[0] * f64::from(y) * self.size[1]));
        [x, y, z]
    }

    /// How many bricks there are.
    pub fn bricks(&self, brick: [u32; 3]) -> u32 {
        self.cells.iter().zip(brick).map(|(cells, side)| cells.div_ceil(side)).product()
    }

    /// Digits of the keys of cells.
    fn digits(&self) -> usize {
        let bits = usize::BITS - (self.all_cells() - 1).leading_zeros();
        bits.div_ceil(8).max(1) as usize
    }
}

/// Sources or targets by cells.
#[derive(Default)]
pub struct InCells {
    key: Buffer<u64>,
    /// The body of each place. `[n]`
    pub order: Buffer<u32>,
    /// Unscaled positions and scaled strengths. `[n]`
    pub bodies: Buffer<Body>,
    /// See [`CellsView`]: numbers in the precision of pairs.
    pub near: Buffer<u8>,
    /// The same.
    pub depth: Buffer<u8>,
    /// The cell of each place. `[n]`
    pub cell: Buffer<u32>,
    /// The first place of each cell, and one past the last.
    pub start: Buffer<u32>,
}

impl InCells {
    /// Bytes more of device memory than there are now for `n` bodies, with pairs in double precision at worst.
    pub fn growth(&self, n: usize, cells: usize) -> usize {
        self.key.growth(n)
            + self.order.growth(n)
            + self.bodies.growth(n)
            + self.near.growth(32 * n)
            + self.depth.growth(8 * n)
            + self.cell.growth(n)
            + self.start.growth(cells + 1)
    }

    /// Queues the sort of `points`, which lie in the box, and all that follows from it. `single`: pairs are in single
    /// precision.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn arrange(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        lattice: &Lattice,
        points: Points,
        strength_scale: f64,
        single: bool,
    ) -> Result<(), Error> {
        let (n, cells, digits) = (points.n, lattice.all_cells(), lattice.digits());
        let width = if single { 4 } else { 8 };
        self.bodies.resize(n)?;
        self.near.resize(4 * width * n)?;
        self.depth.resize(width * n)?;
        self.cell.resize(n)?;
        self.start.resize(cells + 1)?;
        let Lattice { per_length, points: along, group, .. } = *lattice;
        let by = Key::Lattice { per_length, points: along, group };
        sort(gpu, work, points.position, n, by, digits, &mut self.key, &mut self.order)?;
        if n == 0 {
            return Ok(());
        }
        let name = if single { "mesh_arrange_f32" } else { "mesh_arrange_f64" };
        let view =
            CellsView { position: points.position, strength: points.strength, ..self.view(lattice, strength_scale, n) };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { launch(gpu, name, n.max(cells + 1).div_ceil(MESH_TILE), MESH_TILE, &view) }
    }

    /// Queues the counting of pairs at bitwise the same place.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn count_coincident(&self, gpu: &Gpu, lattice: &Lattice, found: &mut Buffer<u64>) -> Result<(), Error> {
        found.resize(1)?;
        found.fill(gpu.stream(), 0)?;
        let n = self.bodies.len();
        let view = CellsView { coincident: found.pointer(), ..self.view(lattice, 1.0, n) };
        // SAFETY: the cells are those of the last arrangement.
        unsafe { launch(gpu, "mesh_coincident", n.div_ceil(MESH_TILE), MESH_TILE, &view) }
    }

    fn view(&self, lattice: &Lattice, strength_scale: f64, n: usize) -> CellsView {
        CellsView {
            lattice: *lattice,
            position: DevicePointer::null(),
            strength: DevicePointer::null(),
            key: self.key.pointer(),
            order: self.order.pointer(),
            bodies: self.bodies.pointer(),
            near: self.near.pointer(),
            depth: self.depth.pointer(),
            cell: self.cell.pointer(),
            start: self.start.pointer(),
            coincident: DevicePointer::null(),
            strength_scale,
            n: n as u32,
            shift: 8 * (DIGITS - lattice.digits()) as u32,
            cells: lattice.all_cells() as u32,
            unused: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bricks_fill_the_lanes_of_a_block_and_are_smaller_where_bodies_crowd() {
        let (n, side) = (1e6, 100.0f64);
        let cutoff = |neighbours: f64| (3.0 * neighbours * side.powi(3) / (4.0 * std::f64::consts::PI * n)).cbrt();
        let targets = |neighbours: f64, points, crowding| {
            let lattice = Lattice::new([points; 3], [side; 3], cutoff(neighbours), 1.0);
            let brick = lattice.brick(cutoff(neighbours), n as usize, crowding);
            assert!(brick[0] * brick[1] <= BRICK_COLUMNS as u32 && lattice.bricks(brick) > 0);
            let cells: f64 = brick.iter().zip(lattice.cells).map(|(&b, all)| f64::from(b) / f64::from(all)).product();
            cells * n
        };
        for (neighbours, points) in [(48.0, 216), (64.0, 196), (96.0, 240)] {
            let found = targets(neighbours, points, 1.0);
            assert!((80.0..128.0).contains(&found), "{found}");
        }
        // A droplet of the bench: a brick of about one cut-off.
        let found = 122.0 * targets(8.0, 320, 122.0);
        assert!((100.0..400.0).contains(&found), "{found}");
    }

    #[test]
    fn cells_are_whole_points_and_not_much_smaller_than_the_cut_off() {
        for (points, side, cutoff) in [([24, 36, 28], [1.0, 1.5, 1.2], 0.2), ([8, 8, 500], [0.01, 0.02, 9.0], 0.3)] {
            let lattice = Lattice::new(points, side, cutoff, 2.0);
            for d in 0..3 {
                assert_eq!(lattice.cells[d] * lattice.group[d], points[d] as u32);
                assert!(lattice.cells[d] == 1 || lattice.size[d] >= 2.0 * cutoff / MOST_REACH[d], "{lattice:?}");
                assert!((lattice.size[d] * f64::from(lattice.cells[d]) / (2.0 * side[d]) - 1.0).abs() < 1e-14);
            }
        }
        assert_eq!(Lattice::new([8, 8, 500], [0.01, 0.02, 9.0], 0.3, 1.0).cells[..2], [1, 1]);
    }
}
