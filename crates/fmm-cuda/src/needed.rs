//! The bodies that one GPU of a team needs of a tree that all of them share.

use std::ops::Range;

use cust::memory::DevicePointer;
use fmm_core::Error;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::cells::Cells;
use crate::geometry::DeviceLists;
use crate::view::{Body, NeededView, Points, TILE};

/// The leaves whose bodies are needed, 1 for each; empty where all are. `[cells]`
#[derive(Default)]
pub struct Needed(Buffer<u8>);

impl Needed {
    /// Has all bodies needed.
    pub fn all(&mut self) -> Result<(), Error> {
        self.0.resize(0)
    }

    /// The leaves as kernels take them; null: all.
    pub fn pointer(&self) -> DevicePointer<u8> {
        self.0.pointer()
    }

    /// Bytes more of device memory than there are now for a tree.
    pub fn growth(&self, cells: &Cells) -> usize {
        self.0.growth(cells.tree.cells())
    }

    /// Queues the copying of sources into the order of their tree: of those that `lists` name, of
    /// this GPU's share, and of `more`, which are sorted places.
    pub fn gather(
        &mut self,
        gpu: &Gpu,
        (cells, lists): (&Cells, &DeviceLists),
        (sources, strength_scale): (Points, f64),
        more: Range<usize>,
        bodies: &mut Buffer<Body>,
    ) -> Result<(), Error> {
        let tree = &cells.tree;
        bodies.resize(sources.n)?;
        self.0.resize(tree.cells())?;
        self.0.fill(gpu.stream(), 0)?;
        let view = NeededView {
            tree: cells.view(),
            leaves: tree.leaves.pointer(),
            pairs: DevicePointer::null(),
            needed: self.0.pointer(),
            position: sources.position,
            strength: sources.strength,
            order: tree.order.pointer(),
            bodies: bodies.pointer(),
            strength_scale,
            pairs_len: 0,
            leaf_count: tree.leaves.len() as u32,
            more: [more.start as u32, more.end as u32],
        };
        let launch = |name, threads: usize, view: &NeededView| {
            let blocks = threads.div_ceil(TILE) as u32;
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch(gpu.stream(), name, blocks, TILE as u32, view) }
        };
        for list in [lists.p2l(), lists.p2p()] {
            let (pairs, pairs_len) = (list.pairs.pointer().cast(), list.pairs.len());
            launch("mark_needed", pairs_len, &NeededView { pairs, pairs_len: pairs_len as u64, ..view })?;
        }
        launch("gather_needed", 32 * tree.leaves.len(), &view)
    }
}
