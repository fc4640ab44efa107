//! How the bodies of a set lie, as far as the choice of a method asks: their cube, and what a sample of them shows.

use fmm_core::Error;
use fmm_core::accuracy::Spread;
use fmm_core::tree::Cube;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::sort::{Key, sort};
use crate::geometry::view::{DIGITS, FOUND_BOUNDS, FOUND_LEVELS, FOUND_SIZE, SurveyView, THREADS};
use crate::geometry::work::{Work, launch};
use crate::view::Points;
use crate::view::{Bounds, OrderView, TILE};

use cust::memory::DevicePointer;

/// Blocks that share the positions where their bounds are sought.
const SHARES: usize = 512;

/// Blocks that share the sample.
const SAMPLERS: usize = 64;

/// The arrays of a survey.
#[derive(Default)]
pub struct Survey {
    shares: Buffer<Bounds>,
    sample: Buffer<f64>,
    bounds: Buffer<f64>,
    bins: Buffer<u32>,
    found: Buffer<u64>,
    key: Buffer<u64>,
    order: Buffer<u32>,
}

impl Survey {
    /// The cube around all points of all sets: that of [`Cube::around`], bit for bit.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn cube(&mut self, gpu: &Gpu, sets: &[Points]) -> Result<Cube<3>, Error> {
        let mut corners = vec![];
        for points in sets.iter().filter(|points| points.n > 0) {
            let blocks = points.n.div_ceil(TILE).min(SHARES);
            self.shares.resize(blocks)?;
            let view = OrderView { bounds: self.shares.pointer(), ..OrderView::of(*points) };
            // SAFETY: a share for each block.
            unsafe { gpu.kernels().launch(gpu.stream(), "bounds_f64", blocks as u32, TILE as u32, &view)? };
            gpu.finish()?;
            corners.extend(self.shares.download()?.iter().flat_map(|share| [share.low, share.high]));
        }
        // The cube depends on the extremes alone.
        Ok(Cube::around(&[&corners]))
    }

    /// What [`Spread::of`] says of `n` positions in `cube`, number by number. Without `dense` the level where bodies are dense is
    /// left out: it takes a sort.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn spread(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        points: Points,
        cube: Cube<3>,
        dense: bool,
    ) -> Result<Spread<3>, Error> {
        if points.n == 0 {
            return Ok(Spread::of(&[], &cube));
        }
        let step = Spread::<3>::step(points.n);
        let count = points.n.div_ceil(step);
        let blocks = count.div_ceil(THREADS).min(SAMPLERS);
        self.sample.resize(3 * count)?;
        self.bounds.resize(6 * blocks)?;
        self.bins.resize(Spread::<3>::DIVISIONS.pow(3))?;
        self.found.resize(FOUND_SIZE)?;
        self.bins.fill(gpu.stream(), 0)?;
        self.found.fill(gpu.stream(), 0)?;
        let mut view = SurveyView {
            position: points.position,
            sample: self.sample.pointer(),
            key: DevicePointer::null(),
            bounds: self.bounds.pointer(),
            bins: self.bins.pointer(),
            found: self.found.pointer(),
            corner: cube.corner,
            side: cube.side,
            step: step as u64,
            count: count as u32,
            blocks: blocks as u32,
            apart: Spread::<3>::apart(step) as u32,
            unused: 0,
        };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe {
            launch(gpu, "survey_sample", blocks, THREADS, &view)?;
            launch(gpu, "survey_join", 1, THREADS, &view)?;
        }
        if dense {
            sort(gpu, work, self.sample.pointer(), count, Key::Cell(cube), DIGITS, &mut self.key, &mut self.order)?;
            view.key = self.key.pointer();
            // SAFETY: as above.
            unsafe { launch(gpu, "survey_levels", blocks, THREADS, &view)? };
        }
        gpu.finish()?;
        let found = self.found.download()?;
        let bound = |k: usize| f64::from_bits(found[FOUND_BOUNDS + k]);
        Ok(Spread {
            count,
            low: std::array::from_fn(bound),
            high: std::array::from_fn(|d| bound(3 + d)),
            pairs: found[0],
            dense_level: Spread::<3>::dense_level(&found[FOUND_LEVELS..]),
        })
    }
}
