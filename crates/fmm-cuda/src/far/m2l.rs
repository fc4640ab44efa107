//! M2L.

use fmm_core::Error;

use super::Far;
use crate::Gpu;
use crate::mma_layout::DeviceReal;
use crate::place::Place;
use crate::view::{M2lView, TILE};

/// Warps of a block of products, each with half of a tile: `WARPS` of the kernel.
const M2L_WARPS: usize = 4;
/// Cells of a block that puts coefficients in the order of the lanes of M2L, a warp each.
const CELLS_PER_BLOCK: usize = 8;

impl<T: DeviceReal> Far<T> {
    /// Queues the table of sources, the packing of their coefficients and the products.
    pub(super) fn m2l(&mut self, gpu: &Gpu, place: &Place) -> Result<(), Error> {
        if self.table.is_empty() {
            return Ok(());
        }
        let (tables, tiles) = (&self.operators.m2l, place.target_tiles.count());
        let cut = tables.cut;
        let view = M2lView {
            list: place.m2l,
            tiles: place.target_tiles.cells.pointer(),
            table: self.table.pointer(),
            octant: place.targets.octant,
            bodies: place.targets.bodies,
            level_start: place.targets.level_start,
            slot_of: tables.slot_of.pointer(),
            operators: tables.operators.pointer(),
            source_signs: tables.source_signs.pointer(),
            target_signs: tables.target_signs.pointer(),
            order: tables.order.pointer(),
            source_scale: tables.scales[0].pointer(),
            target_scale: tables.scales[1].pointer(),
            cell_scale: self.cell_scale.pointer(),
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
            share: place.targets.share,
        };
        let (real, numbers) = (T::NAME, self.operators.basis.arithmetic.name());
        let launch = |name: &str, grid: (usize, usize), threads: usize| {
            let grid = (grid.0 as u32, grid.1 as u32);
            // SAFETY: the arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch(gpu.stream(), name, grid, threads as u32, &view) }
        };
        launch("m2l_table", (2 * tiles, 1), 256)?;
        let rows = place.sources.cells as usize + 1;
        launch(&format!("m2l_pack_{numbers}"), (rows.div_ceil(CELLS_PER_BLOCK), 1), 32 * CELLS_PER_BLOCK)?;
        // The warps of a block share matrices: where each level has its own, they have one tile.
        let warps = if tables.per_level > 0 { 2 } else { M2L_WARPS };
        let blocks = (2 * tiles).div_ceil(warps) * (cut.columns / cut.tiles);
        launch(&format!("m2l_dense_{numbers}_{}", cut.tiles), (blocks, self.parts), 32 * warps)?;
        if self.parts > 1 {
            launch(&format!("m2l_parts_{real}"), (self.locals.len().div_ceil(TILE), 1), TILE)?;
        }
        Ok(())
    }
}
