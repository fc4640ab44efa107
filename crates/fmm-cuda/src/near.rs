//! Direct sums by lists of leaves.

use cust::stream::Stream;
use fmm_core::expansion::Pairs;
use fmm_core::{Error, Precision, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::kernel;
use crate::fmm::Place;
use crate::geometry::DeviceTree;
use crate::view::NearView;

/// Targets of a task, at most: what the lanes of a warp can hold in double precision.
const TARGETS: u32 = 128;

/// Warps of a block.
const WARPS: usize = 4;

/// The tasks of the direct sums.
#[derive(Default)]
pub struct Near {
    tasks: Buffer<u32>,
    again: Buffer<u32>,
}

impl Near {
    /// Cuts the leaves of `tree` into tasks.
    pub fn plan(&mut self, gpu: &Gpu, tree: &DeviceTree) -> Result<(), Error> {
        let mut tasks = vec![];
        gpu.finish()?;
        let bodies = tree.bodies.download()?;
        for leaf in tree.leaves.download()? {
            let [begin, end] = bodies[leaf as usize];
            let parts = (end - begin).div_ceil(TARGETS);
            for k in 0..parts {
                let cut = |k: u32| begin + (u64::from(end - begin) * u64::from(k) / u64::from(parts)) as u32;
                tasks.extend([leaf, cut(k), cut(k + 1)]);
            }
        }
        self.tasks.upload(&tasks)?;
        self.again.resize(tasks.len() / 3)
    }

    /// Queues the direct sums; in single precision also, in double, those of tasks with a pair closer than `closest` half sides.
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
        let count = self.tasks.len() / 3;
        if count == 0 {
            return Ok(());
        }
        let (name, length) = kernel(softening, 1.0);
        let view = NearView {
            targets: place.targets,
            sources: place.sources,
            list: place.p2p,
            target_bodies: place.target_bodies,
            source_bodies: place.source_bodies,
            tasks: self.tasks.pointer(),
            again: if precision == Precision::F32 { self.again.pointer() } else { Buffer::new().pointer() },
            sums: place.sums,
            softening: length,
            smooth_below: softening.smooth_below(),
            closest,
            count: count as u32,
            same: u32::from(place.same),
            potential: u32::from(potential),
        };
        let launch = |name: &str| {
            let blocks = count.div_ceil(WARPS) as u32;
            // SAFETY: the arrays have the lengths that the trees and the view say.
            unsafe { gpu.kernels().launch(stream, name, blocks, 32 * WARPS as u32, &view) }
        };
        if precision == Precision::F32 {
            launch(&format!("p2p_list_{name}{}_f32", if potential { "_potential" } else { "" }))?;
        }
        launch(&format!("p2p_list_{name}_potential_f64"))
    }
}
