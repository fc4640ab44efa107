//! Where the arrays of a sum by fast methods are.

use cust::memory::DevicePointer;

use crate::cells::CellParts;
use crate::geometry::Tiles;
use crate::view::{Body, CsrView, Sum, TreeView};

/// Where the arrays of a sum are.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources, perhaps the same.
    pub sources: TreeView,
    /// Cells of the targets as operators take them.
    pub target_tiles: &'a Tiles,
    /// Cells of the sources.
    pub source_tiles: &'a Tiles,
    /// First cell of each level of the sources, and one past the last. `[levels + 1]`
    pub source_cells: &'a [u32],
    /// Leaves of the targets, and how many.
    pub target_leaves: (DevicePointer<u32>, usize),
    /// Leaves of the sources.
    pub source_leaves: (DevicePointer<u32>, usize),
    /// Well-separated cells.
    pub m2l: CsrView,
    /// Multipoles at leaves.
    pub m2p: CsrView,
    /// Bodies of leaves to cells.
    pub p2l: CsrView,
    /// Direct sums.
    pub p2p: CsrView,
    /// How many there are of each of the four.
    pub pairs: [usize; 4],
    /// In the order of their tree.
    pub target_bodies: DevicePointer<Body>,
    /// In the order of their tree; see [`needed`](Place::needed).
    pub source_bodies: DevicePointer<Body>,
    /// In the order of the targets' tree, of scaled strengths.
    pub sums: DevicePointer<Sum>,
    /// How the GPUs of a team divide the multipoles, if they do.
    pub parts: Option<&'a CellParts>,
    /// 1 for the leaves of the sources whose bodies are here; null: all are.
    pub needed: DevicePointer<u8>,
    /// Whether targets and sources are the same bodies, of which none sees itself.
    pub same: bool,
    /// Of the periodic box, or 0.
    pub sides: [f64; 3],
    /// The first of the 27 cells of a box with a ternary root; `None` for a binary root.
    pub ternary_root: Option<u32>,
}
