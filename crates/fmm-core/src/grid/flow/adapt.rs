//! Blocks that follow a flow: split ahead of what needs smaller cells, joined where nothing does.

use super::super::forest::Forest;
use super::super::levels::Levels;
use super::super::padded::padded;
use super::super::transfer::Values;
use super::super::vorticity::Vorticity;
use super::super::wavelet::{AROUND, detail};
use super::Flow;
use super::body_blocks::BodyBlocks;

/// Cells beyond a block whose details count as its own, so that what moves finds blocks of its level ahead. Even.
pub(super) const BUFFER: usize = 2;

impl Flow {
    /// Splits and joins blocks by the details of ω in them and in [`BUFFER`] cells around; those
    /// around bodies are of the finest level.
    pub(super) fn adapt(&mut self, bodies: &BodyBlocks) {
        if self.method.thresholds.finest == 0 {
            return;
        }
        let levels = Levels::of(&self.grid, &self.vorticity, Values::Means);
        let before = Forest::of(&self.grid);
        let mut after = before.clone();
        after.adapt(self.method.thresholds, true, |block| match levels.level(block.level) {
            _ if bodies.need(block) => f64::INFINITY,
            Some(level) if before.has(block) => detail(&padded(&level.around(block), BUFFER + AROUND), BUFFER),
            // Parts of what has just been split have no details of their own.
            _ => 0.0,
        });
        let grid = after.grid(&self.grid);
        if grid != self.grid {
            let vorticity = levels.onto(Values::Means, &grid);
            (self.grid, self.vorticity) = (grid, vorticity);
        }
    }
}

/// A vorticity whose values in cells that are larger than those of the finest level are means of these: of eight values at
/// ±√((H² − h²)/12) from the center along each axis, with an error of fourth order.
pub(super) struct Means<'a> {
    pub of: &'a dyn Vorticity,
    /// h of the finest level.
    pub finest: f64,
}

impl Vorticity for Means<'_> {
    fn cell(&self, center: [f64; 3], side: f64) -> [f64; 3] {
        if side < 1.5 * self.finest {
            return self.of.cell(center, side);
        }
        let away = ((side * side - self.finest * self.finest) / 12.0).sqrt();
        let mut mean = [0.0; 3];
        for c in 0..8 {
            let at = std::array::from_fn(|d| center[d] + if c >> d & 1 == 0 { -away } else { away });
            let value = self.of.cell(at, self.finest);
            (0..3).for_each(|k| mean[k] += value[k] / 8.0);
        }
        mean
    }
}
