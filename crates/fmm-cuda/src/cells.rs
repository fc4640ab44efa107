//! Trees and lists as the operators read them.

use fmm_core::Error;
use fmm_core::tree::{Cube, Tree};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{DeviceCsr, DeviceTree, Work};
use crate::view::{CsrView, TreeView};

/// A tree on the device.
#[derive(Default)]
pub struct Cells {
    /// Its arrays.
    pub tree: DeviceTree,
    half: Buffer<f64>,
    level_start: Buffer<u32>,
}

impl Cells {
    /// Copies `tree`.
    pub fn upload(&mut self, tree: &Tree<3>) -> Result<(), Error> {
        self.tree.upload(tree)?;
        self.levels()
    }

    /// Makes the tree of `position`, `[n][3]`. If the host had to make it, it says so.
    pub fn build(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        position: &Buffer<f64>,
        cube: Cube<3>,
        leaf_size: usize,
    ) -> Result<(), Error> {
        self.tree.build(gpu, work, position, cube, leaf_size)?;
        self.levels()
    }

    fn levels(&mut self) -> Result<(), Error> {
        let level_start = self.tree.level_start();
        // As `Tree::half` has it.
        let half = |level: usize| self.tree.side() * 0.5f64.powi(level as i32 + 1);
        let halves: Vec<f64> = (0..level_start.len() - 1).map(half).collect();
        self.half.upload(&halves)?;
        self.level_start.upload(level_start)
    }

    /// What kernels read.
    pub fn view(&self) -> TreeView {
        let tree = &self.tree;
        TreeView {
            center: tree.center.pointer().cast(),
            half: self.half.pointer(),
            level_start: self.level_start.pointer(),
            bodies: tree.bodies.pointer().cast(),
            children: tree.children.pointer().cast(),
            parent: tree.parent.pointer(),
            octant: tree.octant.pointer(),
            cells: tree.cells() as u32,
            levels: self.half.len() as u32,
            share: tree.share(),
        }
    }
}

/// Rows as kernels read them.
pub fn rows(list: &DeviceCsr) -> CsrView {
    CsrView { start: list.start.pointer(), pairs: list.pairs.pointer().cast() }
}
