//! Trees and lists as the operators read them.

use std::ops::Range;

use fmm_core::Error;
use fmm_core::tree::{Cube, Tree};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{DeviceCsr, DeviceTree, Work};
use crate::shares::{Divided, Member, for_kernels};
use crate::view::{BOUNDS, CellPartsView, CsrView, TILE, TreeView};

/// A tree on the device.
#[derive(Default)]
pub struct Cells {
    /// Its arrays.
    pub tree: DeviceTree,
    half: Buffer<f64>,
    level_start: Buffer<u32>,
    parts: Option<CellParts>,
    found: Buffer<u32>,
}

/// How the GPUs of a team divide the multipoles of a tree.
pub struct CellParts {
    /// Where the shares of the bodies begin, and where the last ends.
    pub bounds: [u32; BOUNDS],
    /// Cells that each GPU knows alone, level by level. `[members][levels]`
    pub of: Vec<Vec<Range<usize>>>,
}

impl Cells {
    /// Divides the tree's targets between the GPUs of a team, and where they are the sources too
    /// the multipoles.
    pub fn divide(&mut self, gpu: &Gpu, member: Option<&Member>, same: bool) -> Result<(), Error> {
        let n = self.tree.order.len();
        self.undivide();
        self.tree.divide(member.map(|member| member.begin(n)));
        let Some(member) = member.filter(|_| same && n > 0) else { return Ok(()) };
        let ends = member.bounds(n, Divided::ByWork);
        let (members, levels) = (ends.len() - 1, self.half.len());
        let bounds = for_kernels(&ends);
        self.found.resize(2 * levels * members)?;
        // The levels have been copied, for which the queue does not wait.
        gpu.settle()?;
        let view = CellPartsView { tree: self.view(), parts: self.found.pointer(), bounds, members: members as u32 };
        let blocks = (levels * members).div_ceil(TILE) as u32;
        // SAFETY: a place for each level and share.
        unsafe { gpu.kernels().launch(gpu.stream(), "cell_parts", blocks, TILE as u32, &view)? };
        let found = self.found.read(gpu.stream())?;
        let part = |i: usize| found[2 * i] as usize..found[2 * i + 1] as usize;
        let of = (0..members).map(|k| (0..levels).map(|level| part(level * members + k)).collect()).collect();
        self.parts = Some(CellParts { bounds, of });
        Ok(())
    }

    /// Leaves all of the tree to this GPU.
    pub fn undivide(&mut self) {
        self.tree.divide(None);
        self.parts = None;
    }

    /// How the multipoles are divided, if they are.
    pub fn parts(&self) -> Option<&CellParts> {
        self.parts.as_ref()
    }

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
