//! Lennard-Jones forces between the ions of a periodic box, in cells of a tree of their own.

use cust::memory::{DeviceCopy, DevicePointer};
use fmm_core::boundary::PeriodicBox;
use fmm_core::tree::Cube;
use fmm_core::{Beside, Error};

use crate::Gpu;
use crate::boxed::{self, Boxed};
use crate::buffer::Buffer;
use crate::geometry::view::CellsView;
use crate::geometry::{DeviceTree, Work, launch};
use crate::inputs::Ends;
use crate::view::{Body, GatherView, TILE};

/// Ions of a leaf: a lane has each.
const LEAF: usize = 32;

/// Warps of a block.
const WARPS: usize = 4;

/// What acts between ions beside Coulomb's law: 4ε ((σ/r)¹² − (σ/r)⁶) up to a cut-off, where potential and force are shifted to zero. Ions are of
/// two kinds, positive and negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShortRange {
    /// σ², ε, and u and −u' of the unshifted potential at the cut-off, of an ion of kind a beside one of kind b at place 2 a + b; kind 1 is
    /// negative.
    pub kinds: [[f64; 4]; 4],
    /// The cut-off, at most half of the shortest side of the box.
    pub cutoff: f64,
    /// The field that does to a unit charge what a force of 1 does: 1 over Coulomb's constant.
    pub per_charge: f64,
}

/// `kernels/short.cu` has the same struct.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
struct ShortView {
    cells: CellsView,
    leaves: DevicePointer<u32>,
    order: DevicePointer<u32>,
    ions: DevicePointer<Body>,
    field: DevicePointer<f64>,
    partial: DevicePointer<f64>,
    kinds: [[f64; 4]; 4],
    sides: [f64; 3],
    aspect: [f64; 3],
    cutoff: f64,
    per_charge: f64,
    count: u32,
    unused: u32,
}

/// What `short_layout` in `kernels/short.cu` must hold.
pub const SHORT_LAYOUT: &[usize] = &{
    use std::mem::offset_of;
    [
        size_of::<Body>(),
        size_of::<ShortView>(),
        offset_of!(ShortView, kinds),
        offset_of!(ShortView, sides),
        offset_of!(ShortView, count),
    ]
};

/// The arrays of these forces.
#[derive(Default)]
pub struct Neighbours {
    tree: DeviceTree,
    ions: Buffer<Body>,
    partial: Buffer<f64>,
}

impl Neighbours {
    /// Adds the forces to `field`, in the caller's order, of ions whose places in the box `boxed` knows; tells their energy and virial.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    pub fn add(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        pairs: &ShortRange,
        cell: &PeriodicBox,
        boxed: &Boxed,
        ends: Ends,
        field: &Buffer<f64>,
    ) -> Result<Beside, Error> {
        let n = ends.sources.n;
        if n == 0 {
            return Ok(Beside::default());
        }
        let cube = Cube { corner: [0.0; 3], side: cell.longest() };
        self.tree.build(gpu, work, boxed.places(cell, ends).0, cube, LEAF)?;
        boxed::unstretch(gpu, cell, &self.tree)?;
        self.ions.resize(n)?;
        let within = boxed.ends(ends).sources;
        let gather = GatherView {
            position: within.position,
            strength: within.strength,
            order: self.tree.order.pointer(),
            bodies: self.ions.pointer(),
            n: n as u32,
            ..GatherView::default()
        };
        let count = self.tree.leaves.len();
        self.partial.resize(2 * count)?;
        let view = ShortView {
            cells: self.tree.view(),
            leaves: self.tree.leaves.pointer(),
            order: self.tree.order.pointer(),
            ions: self.ions.pointer(),
            field: field.pointer(),
            partial: self.partial.pointer(),
            kinds: pairs.kinds,
            sides: cell.side,
            aspect: cell.side.map(|s| s / cell.longest()),
            cutoff: pairs.cutoff,
            per_charge: pairs.per_charge,
            count: count as u32,
            unused: 0,
        };
        // SAFETY: all arrays have the lengths that the tree and the views say.
        unsafe {
            launch(gpu, "gather_tree_f64", n.div_ceil(TILE), TILE, &gather)?;
            launch(gpu, "short_range", count.div_ceil(WARPS), 32 * WARPS, &view)?;
        }
        gpu.finish()?;
        let mut beside = Beside::default();
        for leaf in self.partial.download()?.as_chunks::<2>().0 {
            beside.energy += leaf[0];
            beside.virial += leaf[1];
        }
        Ok(beside)
    }
}
