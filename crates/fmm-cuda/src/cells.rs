//! Trees and lists as the operators read them: made here, or copied from the CPU.

use fmm_core::Error;
use fmm_core::lists::Csr;
use fmm_core::tree::{Cube, Tree};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{DeviceCsr, DeviceTree, Work};
use crate::view::{CELLS, CsrView, NONE, TreeView};

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
            centre: tree.centre.pointer().cast(),
            half: self.half.pointer(),
            level_start: self.level_start.pointer(),
            bodies: tree.bodies.pointer().cast(),
            children: tree.children.pointer().cast(),
            parent: tree.parent.pointer(),
            octant: tree.octant.pointer(),
            cells: tree.cells() as u32,
            levels: self.half.len() as u32,
        }
    }
}

/// Rows that were made on the device.
pub fn made(list: &DeviceCsr) -> CsrView {
    CsrView { start: list.start.pointer(), pairs: list.pairs.pointer().cast() }
}

/// Rows of pairs on the device.
#[derive(Default)]
pub struct Rows {
    start: Buffer<u64>,
    pairs: Buffer<u32>,
}

impl Rows {
    /// Copies `list`.
    pub fn upload(&mut self, list: &Csr) -> Result<(), Error> {
        // SAFETY: a pair is two numbers of 32 bits, laid out as in C.
        let flat = unsafe { std::slice::from_raw_parts(list.pairs.as_ptr().cast::<u32>(), 2 * list.pairs.len()) };
        self.start.upload(&list.start)?;
        self.pairs.upload(flat)
    }

    /// What kernels read.
    pub fn view(&self) -> CsrView {
        CsrView { start: self.start.pointer(), pairs: self.pairs.pointer() }
    }
}

/// The cells of a tree in tiles of [`CELLS`]: a tile has cells of one level and octant, in their order, then [`NONE`]. Two tiles of an
/// octant, then two of the next: so tiles side by side are of cells side by side, which share sources, whatever their octants.
pub struct Tiles {
    /// `[][CELLS]`
    pub cells: Vec<u32>,
    /// First tile of each level, and one past the last. `[levels + 1]`
    pub level_start: Vec<usize>,
}

impl Tiles {
    /// The tiles of `tree`.
    pub fn new(tree: &Tree<3>) -> Self {
        let (mut cells, mut level_start) = (vec![], vec![0]);
        for level in 0..tree.levels() {
            let mut octants: [Vec<u32>; 8] = Default::default();
            tree.level(level).for_each(|c| octants[usize::from(tree.octant[c])].push(c as u32));
            octants.iter_mut().for_each(|octant| octant.resize(octant.len().next_multiple_of(CELLS), NONE));
            let longest = octants.iter().map(Vec::len).max().unwrap_or(0);
            for first in (0..longest).step_by(2 * CELLS) {
                for octant in &octants {
                    cells.extend_from_slice(&octant[first.min(octant.len())..(first + 2 * CELLS).min(octant.len())]);
                }
            }
            level_start.push(cells.len() / CELLS);
        }
        Tiles { cells, level_start }
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::tree::Cube;

    use super::*;

    #[test]
    fn tiles_hold_every_cell_once_and_one_octant_each() {
        let points: Vec<[f64; 3]> =
            (0..3000).map(|i| [0.618, 0.414, 0.732].map(|f| (f64::from(i) * f).fract())).collect();
        let tree = Tree::octree(&points, Cube::around(&[&points]), 5);
        let tiles = Tiles::new(&tree);
        let mut seen: Vec<u32> = tiles.cells.iter().copied().filter(|&c| c != NONE).collect();
        seen.sort_unstable();
        assert!(seen.iter().enumerate().all(|(i, &c)| i as u32 == c) && seen.len() == tree.len());
        for level in 0..tree.levels() {
            for tile in tiles.level_start[level]..tiles.level_start[level + 1] {
                let cells = &tiles.cells[tile * CELLS..(tile + 1) * CELLS];
                assert!(cells[0] != NONE && tree.level(level).contains(&(cells[0] as usize)));
                let octant = tree.octant[cells[0] as usize];
                assert!(cells.iter().all(|&c| c == NONE || tree.octant[c as usize] == octant));
            }
        }
    }
}
