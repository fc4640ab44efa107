//! Bodies in the order of their keys, and the bounds of tiles of them.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::tree::Cube;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{Work, sort};
use crate::view::{Body, Bounds, OrderView, TILE};

/// Blocks that share the positions where their bounds are sought.
const SHARES: usize = 512;

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
    shares: Buffer<Bounds>,
}

/// Positions and strengths on the device, in the caller's order.
#[derive(Debug, Clone, Copy)]
pub struct Points {
    /// `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n]`, or null for targets.
    pub strength: DevicePointer<f64>,
    /// Number of bodies.
    pub n: usize,
}

impl Ordered {
    fn view(&self, points: Points) -> OrderView {
        OrderView {
            position: points.position,
            strength: points.strength,
            order: self.order.pointer(),
            bodies: self.bodies.pointer(),
            bounds: self.bounds.pointer(),
            scale: 1.0,
            strength_scale: 1.0,
            n: points.n as u32,
            unused: 0,
        }
    }

    /// The smallest and largest coordinates; infinite and the wrong way round for no bodies.
    pub fn extremes(&mut self, gpu: &Gpu, points: Points) -> Result<Bounds, Error> {
        let mut all = Bounds { low: [f64::INFINITY; 3], high: [f64::NEG_INFINITY; 3] };
        if points.n == 0 {
            return Ok(all);
        }
        let blocks = points.n.div_ceil(TILE).min(SHARES);
        self.shares.resize(blocks)?;
        let view = OrderView { bounds: self.shares.pointer(), ..self.view(points) };
        // SAFETY: a share for each block.
        unsafe { gpu.kernels().launch(gpu.stream(), "bounds_f64", blocks as u32, TILE as u32, &view)? };
        gpu.finish()?;
        for share in self.shares.download()? {
            for d in 0..3 {
                all.low[d] = all.low[d].min(share.low[d]);
                all.high[d] = all.high[d].max(share.high[d]);
            }
        }
        Ok(all)
    }

    /// Fills `bodies`, and with `sorted` their order and bounds.
    pub fn arrange(&mut self, gpu: &Gpu, points: Points, units: Units, sorted: bool) -> Result<(), Error> {
        let n = points.n;
        let tiles = n.div_ceil(TILE);
        self.bodies.resize(n)?;
        if sorted {
            sort(gpu, &mut self.work, points.position, n, units.cube, &mut self.key, &mut self.order)?;
        } else {
            self.order.resize(0)?;
        }
        self.bounds.resize(if sorted { tiles } else { 0 })?;
        if n == 0 {
            return Ok(());
        }
        let view = OrderView { scale: units.scale, strength_scale: units.strength_scale, ..self.view(points) };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(gpu.stream(), "gather_f64", tiles as u32, TILE as u32, &view) }
    }

    /// Bytes of device memory for `n` bodies.
    pub fn bytes(n: usize, sorted: bool) -> usize {
        // Keys and indices, both twice.
        let keys = if sorted { Work::sort_bytes(n) } else { 0 };
        n * size_of::<Body>() + keys + (n.div_ceil(TILE) + SHARES) * size_of::<Bounds>()
    }
}
