//! The direct sum: every source at every target.
//!
//! Single precision needs bodies in the order of their keys (`kernels/near/p2p.cu` says why),
//! double takes the caller's.

use fmm_core::math::scale::power_of_two_below;
use fmm_core::tree::Cube;
use fmm_core::{Error, Precision, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::order::{Ordered, Units};
use crate::view::{SumView, TARGETS_F32, TARGETS_F64, TILE};

use cust::memory::DevicePointer;

/// Blocks that fill any GPU evenly. The shares of a sum, and with them its bits, depend on this and not on the device.
pub const BLOCKS: usize = 8192;

/// What is summed and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// In the caller's unit of length.
    pub softening: Softening,
    /// `F32`, or else double.
    pub precision: Precision,
    /// Also the potential.
    pub potential: bool,
}

/// The arrays of a sum.
#[derive(Default)]
pub struct Direct {
    /// The sources, which may be the targets too.
    pub sources: Ordered,
    /// The targets, where they are not the sources.
    pub targets: Ordered,
    partial: Buffer<f64>,
}

/// Where the sums go, in the caller's order.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// `[targets][3]`, or null.
    pub field: DevicePointer<f64>,
    /// `[targets]`, or null.
    pub potential: DevicePointer<f64>,
}

/// How the work is divided: blocks of targets, shares of the sources, tiles in a share.
fn cut(request: &Request, sources: usize, targets: usize) -> (usize, usize, usize) {
    let held = if request.precision == Precision::F32 { TARGETS_F32 } else { TARGETS_F64 };
    let blocks = targets.div_ceil(TILE * held);
    let tiles = sources.div_ceil(TILE);
    let wanted = (BLOCKS / blocks.max(1)).clamp(1, tiles.max(1));
    let tiles_each = tiles.div_ceil(wanted).max(1);
    (blocks, tiles.div_ceil(tiles_each), tiles_each)
}

impl Direct {
    /// Queues the sum of the arranged sources at the arranged targets, or at themselves.
    pub fn sum(&mut self, gpu: &Gpu, request: &Request, units: Units, same: bool, output: Output) -> Result<(), Error> {
        let at = if same { &self.sources } else { &self.targets };
        let (n_sources, n_targets) = (self.sources.bodies.len(), at.bodies.len());
        let (blocks, splits, tiles_per_split) = cut(request, n_sources, n_targets);
        if n_targets == 0 {
            return Ok(());
        }
        let components = if request.potential { 4 } else { 3 };
        self.partial.resize(splits * components * n_targets)?;
        let (name, length) = kernel(request.softening, units.scale);
        let view = SumView {
            targets: at.bodies.pointer(),
            sources: self.sources.bodies.pointer(),
            target_bounds: at.bounds.pointer(),
            source_bounds: self.sources.bounds.pointer(),
            partial: self.partial.pointer(),
            order: at.order.pointer(),
            field: output.field,
            potential: output.potential,
            softening: length,
            field_scale: units.scale * units.scale / units.strength_scale,
            potential_scale: units.scale / units.strength_scale,
            n_targets: n_targets as u32,
            n_sources: n_sources as u32,
            splits: splits as u32,
            tiles_per_split: tiles_per_split as u32,
            same: u32::from(same),
            components: components as u32,
        };
        let real = if request.precision == Precision::F32 { "f32" } else { "f64" };
        let potential = if request.potential { "_potential" } else { "" };
        // SAFETY: all arrays have the lengths that the view says; without sources there are no shares to write or add.
        unsafe {
            let launch =
                |name: &str, grid: (u32, u32)| gpu.kernels().launch(gpu.stream(), name, grid, TILE as u32, &view);
            if splits > 0 {
                launch(&format!("p2p_{name}{potential}_{real}"), (blocks as u32, splits as u32))?;
            }
            launch("reduce_f64", (n_targets.div_ceil(TILE) as u32, 1))
        }
    }

    /// Bytes of device memory that a sum allocates in addition to the caller's arrays and its own
    /// present ones.
    pub fn growth(&self, request: &Request, sources: usize, targets: Option<usize>) -> usize {
        let sorted = request.precision == Precision::F32;
        let n = targets.unwrap_or(sources);
        let (_, splits, _) = cut(request, sources, n);
        let bodies = self.sources.growth(sources, sorted) + targets.map_or(0, |n| self.targets.growth(n, sorted));
        bodies + self.partial.growth(splits * if request.potential { 4 } else { 3 } * n)
    }
}

/// Name and length of a kernel of space in the kernels of the device.
pub fn kernel(softening: Softening, scale: f64) -> (&'static str, f64) {
    match softening {
        Softening::None => ("newton", 0.0),
        // So short that the kernel is that of a point: a scale of its own would overflow.
        Softening::Spline(e) if e * scale < 1e-100 => ("newton", 0.0),
        Softening::Spline(e) => ("spline", 2.8 * e * scale),
        other => (other.name(), other.parameter() * scale),
    }
}

/// The units of a sum in `cube`: half its side and the largest strength become numbers from 1 to 2.
pub fn units(cube: Cube<3>, largest_strength: f64) -> Units {
    let inverse = |x: f64| power_of_two_below(1.0 / x);
    Units { cube, scale: inverse(cube.side / 2.0), strength_scale: inverse(largest_strength) }
}

/// Refuses what does not fit the memory that is free.
pub fn fits(gpu: &Gpu, bytes: usize, what: &str) -> Result<(), Error> {
    // What is there already needs no asking, which takes as long as a launch.
    let free = if bytes == 0 { 0 } else { gpu.free_memory()? };
    if bytes <= free {
        return Ok(());
    }
    let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    Err(Error::Device(format!(
        "{what} need {:.2} GiB of GPU memory, and {:.2} GiB are free on {}",
        gib(bytes),
        gib(free),
        gpu.description().name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_cut_into_whole_shares() {
        let request = Request { softening: Softening::None, precision: Precision::F32, potential: false };
        for (sources, targets) in
            [(1, 1), (0, 5), (255, 1), (257, 3000), (1 << 20, 1 << 20), (5_000_000, 7), (7, 5_000_000)]
        {
            let (blocks, splits, each) = cut(&request, sources, targets);
            let tiles = sources.div_ceil(TILE);
            assert!(blocks * TILE * TARGETS_F32 >= targets, "{sources} {targets}");
            assert!(splits * each >= tiles && splits * each < tiles + each, "{sources} {targets}: {splits} of {each}");
            assert!(blocks * splits <= BLOCKS.max(blocks), "{sources} {targets}");
        }
    }

    #[test]
    fn units_are_powers_of_two() {
        let cube = Cube { corner: [0.0; 3], side: 6.0 };
        let units = units(cube, 5.0);
        assert_eq!((units.scale, units.strength_scale), (0.25, 0.125));
        assert_eq!(super::units(cube, 0.0).strength_scale, 1.0);
    }
}
