//! Points in the boxes of a lattice, on the device: [`Occupied`] and [`Sorted`] of the same points, element by element.
//!
//! The numbers of the boxes are sorted with the indices of the points; where they change a box begins. What goes to the host is a number and a
//! first point for each box that holds any, from which the plan is made there.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::gauss::boxes::{Lattice, Occupied, Sorted};

use super::view::{BOX_DIGITS, GaussBoxesView, GaussPoint, RUN_TILE, THREADS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::view::RADIX;
use crate::geometry::{Work, launch, sort_keys};

/// Blocks that share the points where bounds and numbers are found.
const SHARES: usize = 1024;

/// Arrays that sets of points share, one after the other.
#[derive(Default)]
pub struct Scratch {
    key: [Buffer<u64>; 2],
    occupied: Buffer<u64>,
    start: Buffer<u32>,
    found: Buffer<u32>,
    bins: Buffer<u32>,
    bounds: Buffer<f64>,
}

/// Points as they were given: here, and on the device.
#[derive(Clone, Copy)]
pub struct Given<'a, const D: usize> {
    /// In the memory of this machine.
    pub points: &'a [[f64; D]],
    /// `[n][D]`
    pub position: DevicePointer<f64>,
}

/// Points in the order of boxes.
#[derive(Default)]
pub struct DeviceBoxes {
    index: [Buffer<u32>; 2],
    /// Which of the two has the order.
    side: usize,
    /// Centers of the boxes. `[boxes]`
    pub center: Buffer<GaussPoint>,
    /// The points. `[n]`
    pub points: Buffer<GaussPoint>,
}

impl DeviceBoxes {
    /// Bytes of device memory for `n` points, the boxes' own arrays included.
    pub fn bytes(n: usize) -> usize {
        // Two keys, two indices, numbers and first points of as many boxes, centers and points;
        // status words of the sort.
        n * (16 + 8 + 12 + 64) + n / 2
    }

    /// Indices of the points in the order of boxes.
    pub fn order(&self) -> DevicePointer<u32> {
        self.index[self.side].pointer()
    }

    /// The indices, once they are sorted.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn download_order(&self) -> Result<Vec<u32>, Error> {
        self.index[self.side].download()
    }

    /// Sorts the points by their boxes; these come back.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn sort<const D: usize>(
        &mut self,
        gpu: &Gpu,
        (work, scratch): (&mut Work, &mut Scratch),
        given: Given<D>,
        lattice: &Lattice<D>,
    ) -> Result<Occupied<D>, Error> {
        let n = given.points.len();
        let total = lattice.count.iter().fold(1u128, |t, &c| t * c as u128);
        if n == 0 || total > 1 << 63 {
            // Numbers of so many boxes are no keys of the sort.
            let occupied = Occupied::new(lattice, given.points);
            self.index[0].upload(&Sorted::new(lattice, &occupied, given.points).order)?;
            self.side = 0;
            let center = |cell: &[i64; D]| point(lattice.center(cell));
            self.center.upload(&occupied.cells.iter().map(center).collect::<Vec<_>>())?;
            gpu.settle()?;
            return Ok(occupied);
        }
        let digits = (128 - (total - 1).leading_zeros() as usize).div_ceil(8).max(1);
        let Scratch { key, occupied, start, found, bins, .. } = scratch;
        for d in 0..2 {
            key[d].resize(n)?;
            self.index[d].resize(n)?;
        }
        occupied.resize(n)?;
        start.resize(n + 1)?;
        found.resize(1)?;
        bins.resize(BOX_DIGITS * RADIX)?;
        bins.fill(gpu.stream(), 0)?;
        let tickets = work.tickets(gpu, digits + 1)?;
        let tiles = n.div_ceil(RUN_TILE);
        let mut view = GaussBoxesView {
            key: key[0].pointer(),
            bins: bins.pointer(),
            occupied: occupied.pointer(),
            start: start.pointer(),
            found: found.pointer(),
            // SAFETY: there are so many.
            ticket: unsafe { tickets.add(digits) },
            ..view(given.position, n, lattice)
        };
        let arrays = [0, 1].map(|d| (key[d].pointer(), self.index[d].pointer()));
        self.side = digits % 2;
        // SAFETY: all arrays have the lengths that the views say.
        unsafe {
            launch(gpu, "gauss_keys", n.div_ceil(THREADS).min(SHARES), THREADS, &view)?;
            sort_keys(gpu, work, n, arrays, bins.pointer(), digits, tickets)?;
            view.key = key[self.side].pointer();
            (view.status, view.epoch) = work.launch(gpu, tiles)?;
            launch(gpu, "gauss_runs", tiles, THREADS, &view)?;
        }
        gpu.finish()?;
        let boxes = found.download()?[0] as usize;
        let keys = occupied.download_first(boxes)?.into_iter().map(u128::from).collect();
        self.center.resize(boxes)?;
        view.center = self.center.pointer();
        view.n = boxes as u32;
        // SAFETY: there are so many boxes.
        unsafe { launch(gpu, "gauss_centers", boxes.div_ceil(THREADS), THREADS, &view)? };
        Ok(Occupied::of_runs(lattice, keys, start.download_first(boxes + 1)?))
    }

    /// Queues the gathering of the points, with these strengths or none.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver refuses.
    pub fn gather<const D: usize>(
        &mut self,
        gpu: &Gpu,
        given: Given<D>,
        lattice: &Lattice<D>,
        strength: DevicePointer<f64>,
    ) -> Result<(), Error> {
        let n = given.points.len();
        self.points.resize(n)?;
        if n == 0 {
            return Ok(());
        }
        let order = self.order();
        let view =
            GaussBoxesView { strength, order, points: self.points.pointer(), ..view(given.position, n, lattice) };
        // SAFETY: all arrays have n elements.
        unsafe { launch(gpu, "gauss_gather", n.div_ceil(THREADS), THREADS, &view) }
    }
}

/// The corners of the box around points; infinite if there are none.
///
/// # Errors
/// [`Error::Device`] without the memory, or if the driver fails.
pub fn bounds<const D: usize>(gpu: &Gpu, scratch: &mut Scratch, given: Given<D>) -> Result<[[f64; D]; 2], Error> {
    let n = given.points.len();
    let blocks = n.div_ceil(THREADS).min(SHARES);
    let mut all = [[f64::INFINITY; D], [f64::NEG_INFINITY; D]];
    if n == 0 {
        return Ok(all);
    }
    scratch.bounds.resize(6 * blocks)?;
    let lattice = Lattice::new([0.0; D], [0.0; D], 1.0);
    let view = GaussBoxesView { bounds: scratch.bounds.pointer(), ..view(given.position, n, &lattice) };
    // SAFETY: there are six numbers for each block.
    unsafe { launch(gpu, "gauss_bounds", blocks, THREADS, &view)? };
    gpu.finish()?;
    for part in scratch.bounds.download()?.as_chunks::<6>().0 {
        for d in 0..D {
            (all[0][d], all[1][d]) = (all[0][d].min(part[d]), all[1][d].max(part[3 + d]));
        }
    }
    Ok(all)
}

/// A place without strength.
fn point<const D: usize>(x: [f64; D]) -> GaussPoint {
    GaussPoint { x: std::array::from_fn(|d| if d < D { x[d] } else { 0.0 }), q: 0.0 }
}

/// What all kernels take.
fn view<const D: usize>(position: DevicePointer<f64>, n: usize, lattice: &Lattice<D>) -> GaussBoxesView {
    let none = DevicePointer::null();
    GaussBoxesView {
        position,
        strength: none,
        bounds: none,
        key: DevicePointer::null(),
        bins: DevicePointer::null(),
        occupied: DevicePointer::null(),
        start: DevicePointer::null(),
        center: DevicePointer::null(),
        found: DevicePointer::null(),
        order: DevicePointer::null(),
        points: DevicePointer::null(),
        status: DevicePointer::null(),
        ticket: DevicePointer::null(),
        origin: std::array::from_fn(|d| if d < D { lattice.origin[d] } else { 0.0 }),
        side: lattice.side,
        inverse: lattice.inverse,
        count: std::array::from_fn(|d| if d < D { lattice.count[d] as u64 } else { 1 }),
        epoch: 0,
        n: n as u32,
        axes: D as u32,
    }
}
