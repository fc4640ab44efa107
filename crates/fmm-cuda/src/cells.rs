//! Trees and lists of the CPU, copied to the device.

use fmm_core::Error;
use fmm_core::lists::Csr;
use fmm_core::tree::Tree;

use crate::buffer::Buffer;
use crate::view::{CELLS, CsrView, NONE, TreeView};

/// A tree on the device.
#[derive(Default)]
pub struct Cells {
    /// Sorted place → index in the caller's order.
    pub order: Buffer<u32>,
    centre: Buffer<f64>,
    half: Buffer<f64>,
    level_start: Buffer<u32>,
    bodies: Buffer<u32>,
    children: Buffer<u32>,
    parent: Buffer<u32>,
    octant: Buffer<u8>,
}

impl Cells {
    /// Copies `tree`.
    pub fn upload(&mut self, tree: &Tree<3>) -> Result<(), Error> {
        let halves: Vec<f64> = (0..tree.levels()).map(|level| tree.half(level)).collect();
        self.order.upload(&tree.order)?;
        self.centre.upload(tree.centre.as_flattened())?;
        self.half.upload(&halves)?;
        self.level_start.upload(&tree.level_start)?;
        self.bodies.upload(tree.bodies.as_flattened())?;
        self.children.upload(tree.children.as_flattened())?;
        self.parent.upload(&tree.parent)?;
        self.octant.upload(&tree.octant)
    }

    /// What kernels read.
    pub fn view(&self) -> TreeView {
        TreeView {
            centre: self.centre.pointer(),
            half: self.half.pointer(),
            level_start: self.level_start.pointer(),
            bodies: self.bodies.pointer(),
            children: self.children.pointer(),
            parent: self.parent.pointer(),
            octant: self.octant.pointer(),
            cells: self.parent.len() as u32,
            levels: self.half.len() as u32,
        }
    }
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

/// The cells of a tree in tiles of [`CELLS`]: a tile has cells of one level and octant, in their order, then [`NONE`].
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
            for octant in 0..8 {
                cells.extend(tree.level(level).filter(|&c| tree.octant[c] == octant).map(|c| c as u32));
                cells.resize(cells.len().next_multiple_of(CELLS), NONE);
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
