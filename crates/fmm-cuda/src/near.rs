//! Direct sums by lists of leaves.

use cust::memory::DevicePointer;
use cust::stream::Stream;
use fmm_core::kernel::Pairs;
use fmm_core::{Error, Precision, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::kernel;
use crate::place::Place;
use crate::view::{Float4, NearView, TILE};

/// Targets of a task, at most: `MOST_TARGETS` of the kernels.
const TARGETS: usize = 128;

/// Tasks of a block that looks for targets to be summed again: `LOOKED_AT` of the kernels.
const LOOKED_AT: usize = 8;

/// What direct sums by lists need in addition to trees and lists.
#[derive(Default)]
pub struct Near {
    tasks: Buffer<u32>,
    again: Buffer<u64>,
    /// The sources from the centers of their leaves.
    near: Buffer<f32>,
    /// Σ|q| of these leaves.
    sizes: Buffer<f32>,
    /// Whether the last sum had pairs in single precision.
    single: bool,
    targets: usize,
    sources: usize,
}

impl Near {
    /// Bytes more of device memory than there are now for so many sources.
    pub fn growth(&self, sources: usize) -> usize {
        self.near.growth(4 * sources)
    }

    /// The sources of the last sum from the centers of their leaves, Σ|q| of leaves, and the targets that were summed
    /// again in double precision, if its pairs were in single precision.
    pub fn rounded(&self) -> Option<(DevicePointer<Float4>, DevicePointer<f32>, DevicePointer<u64>)> {
        self.single.then(|| (self.near.pointer().cast(), self.sizes.pointer(), self.again.pointer()))
    }

    /// Makes ready for so many bodies.
    pub fn plan(&mut self, targets: usize, sources: usize) {
        (self.targets, self.sources) = (targets, sources);
    }

    /// Queues the direct sums, of the field and where wanted of the potential. Unless all is in double
    /// precision, those of targets with a pair closer than `closest` half sides of a leaf, or with a sum
    /// beyond what single precision holds, are done again in double.
    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    pub fn sum(
        &mut self,
        gpu: &Gpu,
        stream: &Stream,
        place: &Place,
        softening: Softening,
        precision: Precision,
        closest: f64,
        potential: bool,
    ) -> Result<(), Error> {
        if self.targets == 0 || self.sources == 0 {
            return Ok(());
        }
        let single = precision != Precision::F64;
        self.single = single;
        // A place for each cell, and some for what leaves hold beyond `TARGETS`.
        let count = place.targets.cells as usize + self.targets / TARGETS + 1;
        self.tasks.resize(3 * count)?;
        self.tasks.fill(stream, 0xff)?;
        if single {
            self.again.resize(2 * count)?;
            self.again.fill(stream, 0)?;
            self.near.resize(4 * self.sources)?;
            self.sizes.resize(place.sources.cells as usize)?;
        }
        let (name, length) = kernel(softening, 1.0);
        let boxed = if place.sides == [0.0; 3] { "" } else { "box_" };
        let view = NearView {
            targets: place.targets,
            sources: place.sources,
            list: place.p2p,
            target_bodies: place.target_bodies,
            source_bodies: place.source_bodies,
            needed: place.needed,
            near: self.near.pointer().cast(),
            sizes: self.sizes.pointer(),
            tasks: self.tasks.pointer(),
            again: if single { self.again.pointer() } else { Buffer::new().pointer() },
            sums: place.sums,
            softening: length,
            smooth_below: softening.smooth_below(),
            closest,
            sides: place.sides,
            count: count as u32,
            same: u32::from(place.same),
        };
        let launch = |name: &str, blocks: usize, threads: usize| {
            // SAFETY: the arrays have the lengths that the trees and the view say.
            unsafe { gpu.kernels().launch(stream, name, blocks as u32, threads as u32, &view) }
        };
        launch("near_tasks", (place.targets.cells as usize).div_ceil(TILE), TILE)?;
        let potential = if potential { "_potential" } else { "" };
        if single {
            launch("near_bodies", (place.sources.cells as usize).div_ceil(TILE / 32), TILE)?;
            launch(&format!("p2p_list_{boxed}{name}{potential}_f32"), count, 32)?;
        }
        let blocks = if single { count.div_ceil(LOOKED_AT) } else { count };
        launch(&format!("p2p_list_{boxed}{name}{potential}_f64"), blocks, 32)
    }
}
