//! Blocks that follow a flow: split ahead of what needs smaller cells, joined where nothing does.

use super::super::blocks::Block;
use super::super::forest::Forest;
use super::super::vorticity::Vorticity;
use super::Flow;
use super::body_blocks::BodyBlocks;
use super::store::FieldStore;
use crate::Error;

/// Cells beyond a block whose details count as its own, so that what moves finds blocks of its level ahead. Even.
pub(super) const BUFFER: usize = 2;

impl<F> Flow<F> {
    /// Splits and joins blocks by the details of ω in them and in [`BUFFER`] cells around; those
    /// around bodies are of the finest level.
    pub(super) fn adapt<S: FieldStore<Field = F> + ?Sized>(
        &mut self,
        store: &mut S,
        bodies: &BodyBlocks,
    ) -> Result<(), Error> {
        if self.method.thresholds.finest == 0 {
            return Ok(());
        }
        let before = Forest::of(&self.grid);
        let mut after = before.clone();
        let mut details = store.details(&self.grid, &self.vorticity, BUFFER)?;
        after.adapt(self.method.thresholds, true, |blocks| {
            // Parts of what has just been split have no details of their own.
            let (mut known, mut asked) = (vec![0.0; blocks.len()], vec![]);
            for (i, &block) in blocks.iter().enumerate() {
                if bodies.need(block) {
                    known[i] = f64::INFINITY;
                } else if before.has(block) {
                    asked.push((i, block));
                }
            }
            let found = details(&asked.iter().map(|(_, block)| *block).collect::<Vec<Block>>())?;
            asked.iter().zip(found).for_each(|((i, _), detail)| known[*i] = detail);
            Ok::<_, Error>(known)
        })?;
        drop(details);
        let grid = after.grid(&self.grid);
        if grid != self.grid {
            self.vorticity = store.onto(&self.grid, &self.vorticity, &grid)?;
            self.grid = grid;
        }
        Ok(())
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
