//! Bodies in the order of their keys, and the bounds of tiles of them.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::tree::Cube;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{DIGITS, Key, Work, sort};
use crate::view::{Body, Bounds, OrderView, Points, TILE};

/// Lengths and strengths of a sum: what they are multiplied by, powers of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// The cube around all bodies.
    pub cube: Cube<3>,
    /// Of positions.
    pub scale: f64,
    /// Of strengths.
    pub strength_scale: f64,
}

/// Bodies as the sums read them.
#[derive(Default)]
pub struct Ordered {
    /// `[n]`
    pub bodies: Buffer<Body>,
    /// Place of each body in the caller's order; empty where the order is the caller's.
    pub order: Buffer<u32>,
    /// Of each tile; empty where the order is the caller's.
    pub bounds: Buffer<Bounds>,
    key: Buffer<u64>,
    work: Work,
}

impl OrderView {
    /// Of `points` as they are, and with nothing else.
    pub fn of(points: Points) -> Self {
        OrderView {
            position: points.position,
            strength: points.strength,
            order: DevicePointer::null(),
            bodies: DevicePointer::null(),
            bounds: DevicePointer::null(),
            scale: 1.0,
            strength_scale: 1.0,
            n: points.n as u32,
            unused: 0,
        }
    }
}

impl Ordered {
    /// Fills `bodies`, and with `sorted` their order and bounds.
    pub fn arrange(&mut self, gpu: &Gpu, points: Points, units: Units, sorted: bool) -> Result<(), Error> {
        let n = points.n;
        let tiles = n.div_ceil(TILE);
        self.bodies.resize(n)?;
        if sorted {
            let by = Key::Cell(units.cube);
            sort(gpu, &mut self.work, points.position, n, by, DIGITS, &mut self.key, &mut self.order)?;
        } else {
            self.order.resize(0)?;
        }
        self.bounds.resize(if sorted { tiles } else { 0 })?;
        if n == 0 {
            return Ok(());
        }
        let view = OrderView {
            order: self.order.pointer(),
            bodies: self.bodies.pointer(),
            bounds: self.bounds.pointer(),
            scale: units.scale,
            strength_scale: units.strength_scale,
            ..OrderView::of(points)
        };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(gpu.stream(), "gather_f64", tiles as u32, TILE as u32, &view) }
    }

    /// Bytes more of device memory than there are now for `n` bodies.
    pub fn growth(&self, n: usize, sorted: bool) -> usize {
        let bodies = self.bodies.growth(n);
        if !sorted {
            return bodies;
        }
        bodies
            + self.key.growth(n)
            + self.order.growth(n)
            + self.bounds.growth(n.div_ceil(TILE))
            + self.work.sort_growth(n)
    }
}
