//! The stages that work on expansions.

mod at_bodies;
mod m2l;

use std::ops::Range;

pub use at_bodies::Series;
use cust::memory::DevicePointer;
use fmm_core::expansion::{Lattice, between_cells};
use fmm_core::lists::Space;
use fmm_core::math::CollectVec;
use fmm_core::{Error, Precision, Stage};
use rayon::prelude::*;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::cartesian::Softened;
pub use crate::cartesian::Stage as AtBodies;
use crate::direct;
use crate::geometry::Tiles;
use crate::m2l_schedule::Offsets;
use crate::mma_layout::{Arithmetic, DeviceReal};
use crate::operators::{Basis, Cut, Operators};
use crate::place::Place;
use crate::ternary_root;
use crate::view::{BOUNDS, CELLS, CELLS_IN_BOX, GatherView, LatticeView, SquaresView, TILE, TranslateView, TreeView};

/// Warps of a block, at most.
const WARPS: usize = 4;

/// Blocks of a translation that fill a device.
const TRANSLATING: usize = 264;

/// Below this tolerance the 11 bits of TF32 are too few.
const TF32_FLOOR: f64 = 4e-4;

/// Warps of M2L that fill a device. Where there are fewer the operators are shared out; the bits of a sum depend on this and not on
/// the device.
const FILLED: usize = 2048;

/// The most shares.
const MOST_PARTS: usize = 12;

/// The number of tables that are kept in addition to those of the last sum, and the highest order
/// whose tables are kept so: some 0.1 GB. A sum that is repeated with a higher order needs two, and to
/// make those of order 18 takes 45 ms.
const SPARE: usize = 3;
const LIGHT: usize = 24;

/// The passes of M2M: all cells, those of this GPU's share alone, those of several shares with
/// their children.
const ALL_CELLS: u32 = 0;
const OWN_CELLS: u32 = 1;
const JOINT_CELLS: u32 = 2;

/// Threads of the blocks that add up squares of strengths.
const SQUARES: usize = 128;

/// Expansions of all cells.
pub struct Far<T: DeviceReal> {
    operators: Operators<T>,
    /// `[source cells][n]`
    pub multipoles: Buffer<T>,
    /// `[target cells][n]`
    pub locals: Buffer<T>,
    /// Σq² of scaled strengths, where they have both signs and errors are wanted. `[source cells]`
    pub squares: Buffer<f32>,
    /// 0, 1, 2, …: the cells that may have P2L, if any has.
    cells: Buffer<u32>,
    /// `[tiles][slots][CELLS]`
    table: Buffer<u32>,
    fault: Buffer<u32>,
    /// Multipoles about the centers of their parents, and after M2M in the order of the lanes of M2L.
    packed: Buffer<T>,
    /// See [`M2lView::cell_scale`](crate::view::M2lView::cell_scale).
    cell_scale: Buffer<f32>,
    partial: Buffer<T>,
    parts: usize,
    /// Tables of other orders: where the guard refuses a sum, the next one has the same two orders again.
    spare: Vec<Operators<T>>,
    /// The images that lists do not know, the operator of the last sum first, and what each was made for.
    lattices: Vec<(usize, Known, Buffer<f64>)>,
}

/// What operators of images were made for.
#[derive(Clone, PartialEq)]
enum Known {
    /// The aspect of a box and the images that its lists know.
    Root([f64; 3], Vec<[i32; 3]>),
    TernaryRoot,
}

impl<T: DeviceReal> Far<T> {
    /// Makes ready for expansions of an order, perhaps of a softened kernel, at `place` to keep `tolerance`,
    /// in `precision`, perhaps with Σq² of all source cells; `kept` has the memory and perhaps the tables of an earlier sum.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, before any is taken.
    pub fn ready(
        gpu: &Gpu,
        kept: Option<Self>,
        (order, softened): (usize, Option<Softened>),
        offsets: Offsets,
        (tolerance, precision): (f64, Precision),
        squares: bool,
        place: &Place,
    ) -> Result<Self, Error> {
        // In a box potentials are small compared with those of single images.
        let open = place.sides == [0.0; 3];
        let arithmetic = match precision {
            Precision::F32 if open && tolerance >= TF32_FLOOR => Arithmetic::Tf32,
            Precision::F32 => Arithmetic::TwoBf16,
            Precision::Mixed if open && softened.is_none() => Arithmetic::TwoHalves,
            Precision::Mixed | Precision::Auto | Precision::F64 => Arithmetic::Double,
        };
        let basis = Basis { order, softened, offsets, arithmetic };
        let mut far = match kept {
            Some(kept) if kept.operators.basis == basis => kept,
            Some(mut kept) => {
                let known = kept.spare.iter().position(|o| o.basis == basis);
                let next = known.map_or_else(|| Operators::new(gpu, basis), |at| Ok(kept.spare.remove(at)))?;
                let last = std::mem::replace(&mut kept.operators, next);
                if last.basis.order <= LIGHT {
                    kept.spare.insert(0, last);
                    kept.spare.truncate(SPARE);
                }
                kept
            }
            None => Far {
                operators: Operators::new(gpu, basis)?,
                multipoles: Buffer::new(),
                locals: Buffer::new(),
                squares: Buffer::new(),
                cells: Buffer::new(),
                table: Buffer::new(),
                fault: Buffer::new(),
                packed: Buffer::new(),
                cell_scale: Buffer::new(),
                partial: Buffer::new(),
                parts: 1,
                spare: vec![],
                lattices: vec![],
            },
        };
        let (targets, sources) = (place.targets.cells as usize, place.sources.cells as usize);
        let (n, tables, tiles) = (far.operators.cut.n, &far.operators.m2l, place.target_tiles.count());
        let m2l = place.pairs[0] > 0;
        let warps = 2 * tiles * (tables.cut.columns / tables.cut.tiles);
        far.parts = (FILLED / warps.max(1)).clamp(1, MOST_PARTS);
        let slots = if m2l { tiles * tables.slots } else { 0 };
        // M2M has its rows in the same place.
        let row = tables.cut.pitch() * arithmetic.bytes() / size_of::<T>();
        let packed = if m2l { ((sources + 1) * row).max(sources * n) } else { sources * n };
        let scales = if m2l && arithmetic == Arithmetic::TwoHalves { sources + 1 } else { 0 };
        let partial = if m2l && far.parts > 1 { far.parts * targets * n } else { 0 };
        let cells = if place.pairs[2] > 0 { targets } else { 0 };
        let squares = if squares { sources } else { 0 };
        let more = far.multipoles.growth(sources * n)
            + far.squares.growth(squares)
            + far.locals.growth(targets * n)
            + far.table.growth(slots * CELLS)
            + far.packed.growth(packed)
            + far.cell_scale.growth(scales)
            + far.partial.growth(partial)
            + far.cells.growth(cells);
        direct::fits(gpu, more, &format!("expansions of {} cells", targets.max(sources)))?;
        far.multipoles.resize(sources * n)?;
        far.locals.resize(targets * n)?;
        far.squares.resize(squares)?;
        far.table.resize(slots * CELLS)?;
        far.packed.resize(packed)?;
        far.cell_scale.resize(scales)?;
        far.partial.resize(partial)?;
        far.fault.resize(1)?;
        far.fault.fill(gpu.stream(), 0)?;
        far.cells.resize(cells)?;
        if cells > 0 {
            let view = GatherView { inverse: far.cells.pointer(), n: cells as u32, ..GatherView::default() };
            // SAFETY: a place for each number.
            unsafe { gpu.kernels().launch(gpu.stream(), "count_up", cells.div_ceil(TILE) as u32, TILE as u32, &view)? };
        }
        Ok(far)
    }

    /// Makes ready the operator of the images that are not near in `space`, or those between the
    /// cells of a ternary root.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn ready_lattice(&mut self, space: &Space<3>, ternary: bool) -> Result<(), Error> {
        let order = self.operators.basis.order;
        let wanted = if ternary { Known::TernaryRoot } else { Known::Root(space.aspect(), space.near.clone()) };
        if let Some(at) = self.lattices.iter().position(|(p, known, _)| *p == order && *known == wanted) {
            self.lattices.swap(0, at);
            return Ok(());
        }
        let mut lattice = Buffer::new();
        if ternary {
            lattice.upload(&between_cells(order, ternary_root::ACROSS, 4.0))?;
        } else {
            let (operator, n) = (Lattice::new(order, space), self.operators.cut.n);
            // What each coefficient alone comes to.
            let row = |k: usize| operator.apply(&(0..n).map(|j| f64::from(u8::from(j == k))).collect::<Vec<_>>());
            lattice.upload(&(0..n).into_par_iter().map(row).collect_vec().concat())?;
        }
        self.lattices.insert(0, (order, wanted, lattice));
        self.lattices.truncate(SPARE + 1);
        Ok(())
    }

    /// Whether a pair was met whose class no operator serves. The work must be finished.
    pub fn faulty(&self) -> Result<bool, Error> {
        Ok(self.fault.download()? != [0])
    }

    /// [`M2lView::cell_scale`](crate::view::M2lView::cell_scale) of the last sum, null if it multiplied no halves.
    pub fn scales_of_halves(&self) -> DevicePointer<f32> {
        if self.cell_scale.is_empty() { DevicePointer::null() } else { self.cell_scale.pointer() }
    }

    /// Queues one stage.
    pub fn stage(&mut self, gpu: &Gpu, place: &Place, stage: Stage) -> Result<(), Error> {
        match stage {
            Stage::P2M => {
                self.multipoles.fill(gpu.stream(), 0)?;
                self.locals.fill(gpu.stream(), 0)?;
                self.bodies(gpu, place, AtBodies::P2M, place.source_leaves)
            }
            Stage::P2L if place.pairs[2] == 0 => Ok(()),
            Stage::M2P if place.pairs[1] == 0 => Ok(()),
            Stage::P2L => {
                let all = (self.cells.pointer(), self.cells.len());
                self.bodies(gpu, place, AtBodies::P2L, all)
            }
            Stage::L2P => self.bodies(gpu, place, AtBodies::L2P, place.target_leaves),
            Stage::M2P => self.bodies(gpu, place, AtBodies::M2P, place.target_leaves),
            Stage::M2L => self.m2l(gpu, place),
            Stage::Lattice => {
                let n = self.operators.cut.n;
                let Some((_, known, lattice)) = self.lattices.first() else { return Ok(()) };
                // The root comes first; the cells of a ternary root begin with their level.
                let from = n * place.ternary_root.unwrap_or(0) as usize;
                let view = LatticeView {
                    matrix: lattice.pointer(),
                    multipole: self.multipoles.pointer().wrapping_add(from).cast(),
                    local: self.locals.pointer().wrapping_add(from).cast(),
                    n: n as u32,
                    place: ternary_root::places(),
                };
                let (name, grid, threads) = match known {
                    Known::Root(..) => ("box_lattice", (n.div_ceil(TILE) as u32, 1), TILE),
                    Known::TernaryRoot => {
                        ("box_ternary_root", (CELLS_IN_BOX as u32, n.div_ceil(32) as u32), 32 * CELLS_IN_BOX)
                    }
                };
                let name = format!("{name}_{}", T::NAME);
                // SAFETY: there are expansions of so many cells.
                unsafe { gpu.kernels().launch(gpu.stream(), &name, grid, threads as u32, &view) }
            }
            Stage::M2M => {
                let tiles = place.source_tiles;
                let mut view = self.translate_view(place.sources, tiles);
                view.matrices = self.operators.m2m.pointer().cast();
                // Nothing is packed yet.
                (view.from, view.to) = (self.multipoles.pointer().cast(), self.packed.pointer().cast());
                let up = |mut view: TranslateView, pass: u32| {
                    view.pass = pass;
                    (0..place.sources.levels as usize).rev().try_for_each(|level| {
                        view.translates = u32::from(level > 0);
                        self.add_squares(gpu, place, view, level)?;
                        self.translate(gpu, "m2m", view, tiles.level_start()[level]..tiles.level_start()[level + 1])
                    })
                };
                let Some(parts) = place.parts else { return up(view, ALL_CELLS) };
                (view.members, view.bounds) = (parts.of.len() as u32, parts.bounds);
                up(view, OWN_CELLS)?;
                let each = self.operators.cut.n * size_of::<T>();
                let bytes = |cells: &Range<usize>| cells.start * each..cells.end * each;
                gpu.exchange(&self.multipoles, "multipoles", &|k| parts.of[k].iter().map(bytes).collect())?;
                if !self.squares.is_empty() {
                    let bytes = |cells: &Range<usize>| 4 * cells.start..4 * cells.end;
                    gpu.exchange(&self.squares, "squares", &|k| parts.of[k].iter().map(bytes).collect())?;
                }
                up(view, JOINT_CELLS)
            }
            Stage::L2L => {
                let tiles = place.target_tiles;
                let mut view = self.translate_view(place.targets, tiles);
                view.matrices = self.operators.l2l.pointer().cast();
                (view.from, view.to) = (self.locals.pointer().cast(), self.locals.pointer().cast());
                for level in 1..place.targets.levels as usize {
                    self.translate(gpu, "l2l", view, tiles.level_start()[level]..tiles.level_start()[level + 1])?;
                }
                Ok(())
            }
            other => unreachable!("{} is no stage of expansions", other.name()),
        }
    }

    /// Tables of the order of the last sum.
    pub fn operators(&self) -> &Operators<T> {
        &self.operators
    }

    /// Queues Σq² of the cells of a level, where it is wanted.
    fn add_squares(&self, gpu: &Gpu, place: &Place, pass: TranslateView, level: usize) -> Result<(), Error> {
        let cells = place.source_cells[level]..place.source_cells[level + 1];
        if self.squares.is_empty() || cells.is_empty() {
            return Ok(());
        }
        let view = SquaresView {
            pass,
            bodies: place.source_bodies,
            squares: self.squares.pointer(),
            first: cells.start,
            count: cells.len() as u32,
        };
        let blocks = cells.len().div_ceil(SQUARES / 32) as u32;
        // SAFETY: a number for each cell, and all bodies of the leaves that the pass takes.
        unsafe { gpu.kernels().launch(gpu.stream(), "m2m_squares", blocks, SQUARES as u32, &view) }
    }

    fn translate_view(&self, tree: TreeView, tiles: &Tiles) -> TranslateView {
        let cut = self.operators.cut;
        TranslateView {
            tree,
            tiles: tiles.cells.pointer(),
            matrices: DevicePointer::null(),
            from: DevicePointer::null(),
            to: DevicePointer::null(),
            first_tile: 0,
            translates: 1,
            n: cut.n as u32,
            columns: cut.columns as u32,
            part: 0,
            depth: 0,
            pass: ALL_CELLS,
            members: 1,
            bounds: [0; BOUNDS],
        }
    }

    fn translate(&self, gpu: &Gpu, name: &str, mut view: TranslateView, tiles: Range<usize>) -> Result<(), Error> {
        if tiles.is_empty() {
            return Ok(());
        }
        // A block takes as long as it has coefficients: where there are few tiles, more of them.
        let cut = Cut::new(self.operators.cut.n, size_of::<T>(), TRANSLATING.div_ceil(tiles.len()));
        (view.part, view.depth, view.first_tile) = (cut.part as u32, cut.depth as u32, tiles.start as u32);
        let grid = (tiles.len() as u32, cut.columns.div_ceil(cut.part) as u32);
        let name = format!("{name}_spherical_{}", T::NAME);
        // SAFETY: the arrays have the lengths that the trees and the view say.
        unsafe { gpu.kernels().launch_with(gpu.stream(), &name, grid, (cut.threads as u32, cut.shared), &view) }
    }
}
