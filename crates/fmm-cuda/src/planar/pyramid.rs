//! The balanced pyramid on the device: the arrays of [`Pyramid`], element by element.
//!
//! Points are sorted along both axes once, 16 passes of the radix sort; then each halving is a stable partition of two lists of places.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::planar::Pyramid;

use super::view::{BoxesView, ExchangeView, PlanePoint, PyramidView, SPLIT_TILE, THREADS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::view::RADIX;
use crate::geometry::{Work, launch, sort_keys};

/// Digits of a key along an axis, and the most of the number of a leaf.
const DIGITS: usize = 8;
const LEAF_DIGITS: usize = 4;

/// Blocks that share the points where digits are counted: each adds its counts to those of all.
const SHARES: usize = 1024;

/// Arrays that pyramids share, one after the other.
#[derive(Default)]
pub struct Scratch {
    key: [Buffer<u64>; 2],
    list: [[Buffer<u64>; 2]; 2],
    index: [Buffer<u32>; 2],
    rank: [Buffer<u32>; 2],
    pivot: Buffer<u32>,
    bins: Buffer<u32>,
}

/// Boxes over points, on the device.
#[derive(Default)]
pub struct DevicePyramid {
    /// Indices of the points in the order of the leaves. `[n]`
    pub order: Buffer<u32>,
    /// The points in that order. `[n]`
    pub bodies: Buffer<PlanePoint>,
    points: Buffer<[u32; 2]>,
    center: Buffer<[f64; 2]>,
    radius: Buffer<f64>,
    exponent: Buffer<i32>,
    ties: Buffer<u64>,
    levels: usize,
}

/// Points in the caller's order: positions `[n][2]`, and strengths, null for zero.
#[derive(Clone, Copy)]
pub struct Given {
    /// `[n][2]`
    pub position: DevicePointer<f64>,
    /// Real and imaginary parts, `[n]` each.
    pub strengths: [DevicePointer<f64>; 2],
    /// Number of points.
    pub n: usize,
}

impl DevicePyramid {
    /// Queues the pyramid of points whose coordinates are multiplied by `scale`: that of [`Pyramid::new`].
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn build(
        &mut self,
        gpu: &Gpu,
        (work, scratch): (&mut Work, &mut Scratch),
        given: Given,
        scale: f64,
        levels: usize,
    ) -> Result<(), Error> {
        let n = given.n;
        self.levels = levels;
        if n == 0 {
            return self.take(&Pyramid::new(&[], scale, levels));
        }
        let boxes = Pyramid::first(levels + 1);
        self.order.resize(n)?;
        self.points.resize(boxes)?;
        self.center.resize(boxes)?;
        self.radius.resize(boxes)?;
        self.exponent.resize(boxes)?;
        self.ties.resize(2)?;
        let Scratch { key, list, index, rank, pivot, bins } = scratch;
        for d in 0..2 {
            key[d].resize(n)?;
            list[0][d].resize(n)?;
            list[1][d].resize(n)?;
            index[d].resize(n)?;
            rank[d].resize(n)?;
        }
        pivot.resize(1 << (2 * levels))?;
        bins.resize((2 * DIGITS + LEAF_DIGITS) * RADIX)?;
        bins.fill(gpu.stream(), 0)?;
        self.ties.fill(gpu.stream(), 0)?;
        let digits = levels.div_ceil(4).max(1);
        let tickets = work.tickets(gpu, 2 * DIGITS + 4 * levels + digits)?;
        let mut ticket = 0;
        let mut next = |count: usize| {
            ticket += count;
            // SAFETY: as many as there are.
            unsafe { tickets.add(ticket - count) }
        };
        let tiles = n.div_ceil(SPLIT_TILE);
        let both = |b: &[Buffer<u64>; 2]| [b[0].pointer(), b[1].pointer()];
        let mut view = PyramidView {
            position: given.position,
            key: both(key),
            index: [index[0].pointer(), index[1].pointer()],
            rank: [rank[0].pointer(), rank[1].pointer()],
            list: both(&list[0]).map(DevicePointer::cast),
            list_out: both(&list[1]).map(DevicePointer::cast),
            pivot: pivot.pointer(),
            points: self.points.pointer(),
            center: self.center.pointer(),
            radius: self.radius.pointer(),
            exponent: self.exponent.pointer(),
            leaf: DevicePointer::null(),
            bins: bins.pointer(),
            ties: self.ties.pointer(),
            status: DevicePointer::null(),
            ticket: tickets,
            scale,
            epoch: 0,
            n: n as u32,
            depth: 0,
            tiles: tiles as u32,
            digits: digits as u32,
        };
        let blocks = n.div_ceil(THREADS);
        let axes = |name: &str, blocks: usize, view: &PyramidView| {
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch(gpu.stream(), name, (blocks as u32, 2u32), THREADS as u32, view) }
        };
        // SAFETY: all arrays have the lengths that the views say.
        unsafe {
            work.mark(gpu, "keys")?;
            launch(gpu, "planar_keys", blocks.min(SHARES), THREADS, &view)?;
            work.mark(gpu, "sort")?;
            for d in 0..2 {
                let own = (key[d].pointer(), index[d].pointer());
                let other = (list[0][d].pointer(), rank[d].pointer());
                let bins = bins.pointer().add(d * DIGITS * RADIX);
                sort_keys(gpu, work, n, [own, other], bins, DIGITS, next(DIGITS))?;
            }
            work.mark(gpu, "lists of places")?;
            axes("planar_ranks", blocks, &view)?;
            axes("planar_lists", blocks, &view)?;
            work.mark(gpu, "halving")?;
            for depth in 0..=2 * levels {
                view.depth = depth as u32;
                launch(gpu, "planar_boxes", (1usize << depth).div_ceil(THREADS), THREADS, &view)?;
                if depth < 2 * levels {
                    (view.status, view.epoch) = work.launch(gpu, 2 * tiles)?;
                    view.ticket = next(2);
                    axes("planar_split", tiles, &view)?;
                    (view.list, view.list_out) = (view.list_out, view.list);
                }
            }
            work.mark(gpu, "leaves")?;
            // Indices sorted by leaf stay in their order within one.
            let [from, to] = view.list_out.map(DevicePointer::cast::<u64>);
            view.leaf = from;
            view.bins = bins.pointer().add(2 * DIGITS * RADIX);
            launch(gpu, "planar_leaves", blocks.min(SHARES), THREADS, &view)?;
            // The last pass ends in `order`.
            let (order, other) = (self.order.pointer(), rank[0].pointer());
            let pairs =
                if digits.is_multiple_of(2) { [(from, order), (to, other)] } else { [(from, other), (to, order)] };
            sort_keys(gpu, work, n, pairs, view.bins, digits, next(digits))
        }
    }

    /// Queues the gathering of the points in the order of the leaves, with strengths multiplied by `strength`.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn gather(&mut self, gpu: &Gpu, given: Given, scale: f64, strength: f64) -> Result<(), Error> {
        gather(gpu, &mut self.bodies, given, self.order.pointer(), scale, strength)
    }

    /// Copies the boxes of a pyramid of the host.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if a copy fails.
    pub(super) fn take(&mut self, tree: &Pyramid) -> Result<(), Error> {
        let center: Vec<[f64; 2]> = (0..tree.len()).map(|c| [tree.center[0][c], tree.center[1][c]]).collect();
        self.order.upload(&tree.order)?;
        self.points.upload(&tree.points)?;
        self.center.upload(&center)?;
        self.radius.upload(&tree.radius)?;
        self.exponent.upload(&tree.exponent)?;
        self.ties.upload(&[0, 0])
    }

    /// A copy of the pyramid, once its points are gathered.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn download(&self) -> Result<Pyramid, Error> {
        let (bodies, center) = (self.bodies.download()?, self.center.download()?);
        Ok(Pyramid {
            levels: self.levels,
            order: self.order.download()?,
            x: [0, 1].map(|d| bodies.iter().map(|b| b.x[d]).collect()),
            points: self.points.download()?,
            center: [0, 1].map(|d| center.iter().map(|c| c[d]).collect()),
            radius: self.radius.download()?,
            exponent: self.exponent.download()?,
        })
    }

    /// Number of the last level.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Number of boxes.
    pub fn boxes(&self) -> usize {
        self.points.len()
    }

    /// Whether there may be points at the same place: some have the same coordinate along each axis. The build must be done.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn may_coincide(&self) -> Result<bool, Error> {
        Ok(self.ties.download()?.iter().all(|&t| t > 0))
    }

    /// The arrays as kernels take them.
    pub fn view(&self) -> BoxesView {
        BoxesView {
            points: self.points.pointer(),
            center: self.center.pointer(),
            radius: self.radius.pointer(),
            exponent: self.exponent.pointer(),
            n: self.order.len() as u32,
            levels: self.levels as u32,
        }
    }
}

/// Queues the gathering of points, in `order` or the caller's.
pub fn gather(
    gpu: &Gpu,
    to: &mut Buffer<PlanePoint>,
    Given { position, strengths, n }: Given,
    order: DevicePointer<u32>,
    scale: f64,
    strength: f64,
) -> Result<(), Error> {
    to.resize(n)?;
    if n == 0 {
        return Ok(());
    }
    let none = DevicePointer::null();
    let view = ExchangeView {
        position,
        strengths,
        order,
        points: to.pointer(),
        potential: none,
        g: none,
        potential_out: none,
        field_out: none,
        scale,
        strength,
        sign: [0.0; 2],
        n: n as u32,
        width: 2,
    };
    // SAFETY: all arrays have n elements.
    unsafe { launch(gpu, "planar_gather", n.div_ceil(THREADS), THREADS, &view) }
}
