//! The stages that work on expansions.

use cust::memory::DevicePointer;
use fmm_core::plan::Plan;
use fmm_core::tree::Tree;
use fmm_core::{Error, Family, Settings, Stage};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::cartesian::{Softened, Stage as AtBodies};
use crate::cells::Tiles;
use crate::kernels::SHARED;
use crate::operators::{Basis, DeviceReal, Offsets, Operators};
use crate::view::{CELLS, CsrView, FarView, M2lView, TILE, TranslateView, TreeView};

use super::fmm::Place;

/// Warps of a block, at most.
const WARPS: usize = 4;

/// Below this tolerance the 11 bits of TF32 are too few.
const TF32_FLOOR: f64 = 4e-4;

/// Warps of M2L that fill a device. Where there are fewer the operators are shared out; the bits of a sum depend on this and not on
/// the device.
const FILLED: usize = 2048;

/// The most shares.
const MOST_PARTS: usize = 12;

/// Reals that hold one coefficient of the bodies of a warp.
const ROW: usize = 33;

/// Expansions of all cells, and who has work.
pub struct Far<T: DeviceReal> {
    operators: Operators<T>,
    /// `[source cells][n]`
    pub multipoles: Buffer<T>,
    /// `[target cells][n]`
    pub locals: Buffer<T>,
    /// Cells with bodies to make multipoles of, cells of P2L, leaves of L2P, leaves of M2P.
    work: [Buffer<u32>; 4],
    target_tiles: Tiled,
    source_tiles: Option<Tiled>,
    /// `[tiles][slots][CELLS]`
    table: Buffer<u32>,
    fault: Buffer<u32>,
    /// Multipoles in the order of the lanes of M2L.
    packed: Buffer<T>,
    partial: Buffer<T>,
    parts: usize,
}

/// Tiles on the device.
struct Tiled {
    cells: Buffer<u32>,
    level_start: Vec<usize>,
}

impl Tiled {
    fn new(tree: &Tree<3>) -> Result<Self, Error> {
        let tiles = Tiles::new(tree);
        let mut cells = Buffer::new();
        cells.upload(&tiles.cells)?;
        Ok(Tiled { cells, level_start: tiles.level_start })
    }

    fn len(&self) -> usize {
        self.level_start.last().copied().unwrap_or(0)
    }
}

impl<T: DeviceReal> Far<T> {
    /// Makes ready for `plan` to keep the tolerance of `settings`; `kept` may hold the tables of an earlier one.
    pub fn new(
        gpu: &Gpu,
        plan: &Plan<3>,
        offsets: Offsets,
        settings: &Settings,
        kept: Option<Operators<T>>,
    ) -> Result<Self, Error> {
        let Settings { tolerance, softening, .. } = *settings;
        let cells = &plan.targets;
        let basis = Basis {
            order: plan.choice.order.unwrap_or(1),
            softened: (plan.choice.expansion == Some(Family::Cartesian)).then_some(Softened {
                softening,
                side: cells.side,
                levels: cells.levels(),
            }),
            offsets,
            split: size_of::<T>() == 4 && tolerance < TF32_FLOOR,
        };
        let operators = match kept {
            Some(kept) if kept.basis == basis => kept,
            _ => Operators::new(gpu, basis)?,
        };
        let (targets, sources) = (&plan.targets, plan.source_tree());
        let n = operators.cut.n;
        let rows = |list: &fmm_core::lists::Csr| -> Vec<u32> {
            (0..targets.len() as u32).filter(|&c| !list.row(c as usize).is_empty()).collect()
        };
        let with_bodies = |tree: &Tree<3>| -> Vec<u32> {
            tree.leaves.iter().copied().filter(|&leaf| tree.count(leaf as usize) > 0).collect()
        };
        let lists = [with_bodies(sources), rows(&plan.lists.p2l), with_bodies(targets), rows(&plan.lists.m2p)];
        let mut far = Far {
            operators,
            multipoles: Buffer::new(),
            locals: Buffer::new(),
            work: Default::default(),
            target_tiles: Tiled::new(targets)?,
            source_tiles: plan.sources.as_ref().map(Tiled::new).transpose()?,
            table: Buffer::new(),
            fault: Buffer::new(),
            packed: Buffer::new(),
            partial: Buffer::new(),
            parts: 1,
        };
        for (buffer, cells) in far.work.iter_mut().zip(&lists) {
            buffer.upload(cells)?;
        }
        far.multipoles.resize(sources.len() * n)?;
        far.locals.resize(targets.len() * n)?;
        far.fault.upload(&[0])?;
        if plan.schedule().contains(&Stage::M2L) {
            let (tiles, tables) = (far.target_tiles.len(), &far.operators.m2l);
            far.table.resize(tiles * tables.slots * CELLS)?;
            far.packed.resize((sources.len() + 1) * tables.cut.pitch())?;
            let warps = tiles.div_ceil(2) * WARPS * (tables.cut.columns / tables.cut.tiles);
            far.parts = (FILLED / warps.max(1)).clamp(1, MOST_PARTS);
            far.partial.resize(if far.parts > 1 { far.parts * targets.len() * n } else { 0 })?;
        }
        Ok(far)
    }

    /// Bytes of device memory that expansions and tables of `plan` take.
    pub fn bytes(plan: &Plan<3>) -> usize {
        let cartesian = plan.choice.expansion == Some(Family::Cartesian);
        let n = plan
            .choice
            .order
            .map_or(0, |p| if cartesian { (p + 1) * (p + 2) * (p + 3) / 6 } else { (p + 1) * (p + 1) });
        // 189 slots of the classical rule, and half as many cells again for tiles that are not full.
        let slots = if plan.schedule().contains(&Stage::M2L) { 189 } else { 0 };
        let cells = plan.targets.len() + plan.sources.as_ref().map_or(plan.targets.len(), Tree::len);
        cells * n * size_of::<T>() + plan.targets.len() * slots * 6
    }

    /// The tables, for the next plan.
    pub fn into_operators(self) -> Operators<T> {
        self.operators
    }

    fn m2l(&mut self, gpu: &Gpu, place: &Place) -> Result<(), Error> {
        if self.table.is_empty() {
            return Ok(());
        }
        let (tables, tiles) = (&self.operators.m2l, self.target_tiles.len());
        let cut = tables.cut;
        let view = M2lView {
            list: place.m2l,
            tiles: self.target_tiles.cells.pointer(),
            table: self.table.pointer(),
            octant: place.targets.octant,
            level_start: place.targets.level_start,
            slot_of: tables.slot_of.pointer(),
            operators: tables.operators.pointer(),
            source_signs: tables.source_signs.pointer(),
            target_signs: tables.target_signs.pointer(),
            order: tables.order.pointer(),
            matrices: tables.matrices.pointer().cast(),
            multipoles: self.multipoles.pointer().cast(),
            packed: self.packed.pointer().cast(),
            from: self.packed.pointer().cast(),
            to: self.locals.pointer().cast(),
            partial: self.partial.pointer().cast(),
            fault: self.fault.pointer(),
            tiles_len: tiles as u32,
            slots: tables.slots as u32,
            classes: (tables.slot_of.len() / 8) as u32,
            parts: self.parts as u32,
            cells: place.targets.cells,
            zero_row: place.sources.cells,
            n: cut.n as u32,
            columns: cut.columns as u32,
            pitch: cut.pitch() as u32,
            steps: cut.steps as u32,
            half: u32::from(cut.half),
            levels: place.targets.levels,
            per_level: tables.per_level as u32,
        };
        let real = T::NAME;
        let split = if self.operators.basis.split { "_split" } else { "" };
        let launch = |name: &str, grid: (usize, usize), threads: usize| {
            let grid = (grid.0 as u32, grid.1 as u32);
            // SAFETY: the arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch(gpu.stream(), name, grid, threads as u32, &view) }
        };
        launch("m2l_table", (2 * tiles, 1), 256)?;
        launch(&format!("m2l_pack{split}_{real}"), (self.packed.len().div_ceil(4 * TILE), 1), TILE)?;
        let blocks = tiles.div_ceil(2) * (cut.columns / cut.tiles);
        launch(&format!("m2l_dense{split}_{real}_{}", cut.tiles), (blocks, self.parts), 32 * WARPS)?;
        if self.parts > 1 {
            launch(&format!("m2l_parts_{real}"), (self.locals.len().div_ceil(TILE), 1), TILE)?;
        }
        Ok(())
    }

    /// Whether a pair was met whose class no operator serves. The work must be finished.
    pub fn faulty(&self) -> Result<bool, Error> {
        Ok(self.fault.download()? != [0])
    }

    /// Queues one stage.
    pub fn stage(&mut self, gpu: &Gpu, place: &Place, stage: Stage) -> Result<(), Error> {
        match stage {
            Stage::P2M => {
                self.multipoles.fill(gpu.stream(), 0)?;
                self.locals.fill(gpu.stream(), 0)?;
                self.bodies(gpu, place, AtBodies::P2M, place.p2l)
            }
            Stage::P2L => self.bodies(gpu, place, AtBodies::P2L, place.p2l),
            Stage::L2P => self.bodies(gpu, place, AtBodies::L2P, place.m2p),
            Stage::M2P => self.bodies(gpu, place, AtBodies::M2P, place.m2p),
            Stage::M2L => self.m2l(gpu, place),
            Stage::M2M => {
                let tiles = self.source_tiles.as_ref().unwrap_or(&self.target_tiles);
                let mut view = self.translate_view(place.sources, tiles);
                view.matrices = self.operators.m2m.pointer().cast();
                (view.from, view.to) = (self.multipoles.pointer().cast(), self.multipoles.pointer().cast());
                for level in (0..(place.sources.levels - 1) as usize).rev() {
                    self.translate(gpu, "m2m", view, tiles.level_start[level]..tiles.level_start[level + 1])?;
                }
                Ok(())
            }
            Stage::L2L => {
                let tiles = &self.target_tiles;
                let mut view = self.translate_view(place.targets, tiles);
                view.matrices = self.operators.l2l.pointer().cast();
                view.slots = 1;
                (view.from, view.to) = (self.locals.pointer().cast(), self.locals.pointer().cast());
                for level in 1..place.targets.levels as usize {
                    self.translate(gpu, "l2l", view, tiles.level_start[level]..tiles.level_start[level + 1])?;
                }
                Ok(())
            }
            other => unreachable!("{} is no stage of expansions", other.name()),
        }
    }

    /// P2M, P2L, L2P or M2P.
    fn bodies(&self, gpu: &Gpu, place: &Place, stage: AtBodies, list: CsrView) -> Result<(), Error> {
        // The places of work and recurrences.
        let (name, work, factors, local) = match stage {
            AtBodies::P2M => ("p2m", 0, 0, false),
            AtBodies::P2L => ("p2l", 1, 1, true),
            AtBodies::L2P => ("l2p", 2, 0, true),
            AtBodies::M2P => ("m2p", 3, 2, false),
        };
        let work = &self.work[work];
        if work.is_empty() {
            return Ok(());
        }
        let coefficients = if local { self.locals.pointer().cast() } else { self.multipoles.pointer().cast() };
        if let Some(cartesian) = &self.operators.cartesian {
            return cartesian.launch::<T>(gpu, place, stage, list, work, coefficients);
        }
        let order = self.operators.basis.order;
        // What a warp keeps in shared memory: harmonics of its bodies, or four weights of each harmonic.
        let (reals, gathers) = match name {
            "p2m" | "p2l" => (self.operators.cut.n * ROW, true),
            "l2p" => (4 * self.operators.cut.n, false),
            _ => (4 * (order + 2) * (order + 2), false),
        };
        let each = reals * size_of::<T>();
        let staged = each <= SHARED;
        let warps = if staged { (SHARED / each).min(WARPS) } else { WARPS };
        assert!(staged || gathers, "the weights of any order fit");
        let view = FarView {
            targets: place.targets,
            sources: place.sources,
            list,
            target_bodies: place.target_bodies,
            source_bodies: place.source_bodies,
            work: work.pointer(),
            factors: self.operators.recurrences[factors].pointer().cast(),
            coefficients,
            sums: place.sums,
            count: work.len() as u32,
            order: order as u32,
            staged: u32::from(staged),
        };
        let shared = if staged { warps * each } else { 0 };
        let blocks = work.len().div_ceil(warps) as u32;
        let name = format!("{name}_spherical_{}", T::NAME);
        // SAFETY: the arrays have the lengths that the trees and the view say.
        unsafe { gpu.kernels().launch_with(gpu.stream(), &name, blocks, (32 * warps as u32, shared), &view) }
    }

    fn translate_view(&self, tree: TreeView, tiles: &Tiled) -> TranslateView {
        let cut = self.operators.cut;
        TranslateView {
            tree,
            tiles: tiles.cells.pointer(),
            matrices: DevicePointer::null(),
            from: DevicePointer::null(),
            to: DevicePointer::null(),
            first_tile: 0,
            slots: 8,
            n: cut.n as u32,
            columns: cut.columns as u32,
            part: cut.part as u32,
            depth: cut.depth as u32,
        }
    }

    fn translate(
        &self,
        gpu: &Gpu,
        name: &str,
        mut view: TranslateView,
        tiles: std::ops::Range<usize>,
    ) -> Result<(), Error> {
        if tiles.is_empty() {
            return Ok(());
        }
        let cut = self.operators.cut;
        view.first_tile = tiles.start as u32;
        let grid = (tiles.len() as u32, cut.columns.div_ceil(cut.part) as u32);
        let name = format!("{name}_spherical_{}", T::NAME);
        // SAFETY: the arrays have the lengths that the trees and the view say.
        unsafe { gpu.kernels().launch_with(gpu.stream(), &name, grid, (cut.threads as u32, cut.shared), &view) }
    }
}
