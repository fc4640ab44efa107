//! Reads a field back from a file of fields on blocks ([`blocks`](super::blocks)): its size in every cell.

use std::path::Path;

use fmm_core::grid::{BLOCK, CELLS};

use super::FileError;
use super::hdf::Reader;

/// Levels beyond which a file is damaged: sides are halved at each.
const MOST_LEVELS: usize = 32;

/// A block of `BLOCK`³ cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// Its level; the side of a cell is halved from level to level.
    pub level: usize,
    /// The first cell along x, y, z, counted in cells of the level.
    pub first: [i64; 3],
    /// The size of the vector in each cell, `[CELLS]`, x fastest. Blocks that are refined hold means.
    pub values: Vec<f64>,
}

/// A field on blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Magnitude {
    /// The lowest corner of the domain.
    pub corner: [f64; 3],
    /// The side of a cell of each level.
    pub spacing: Vec<f64>,
    /// All blocks, coarse ones first; those that are refined too.
    pub blocks: Vec<Cells>,
}

/// The size of a vector field, "vorticity" for example; `None` where the file does not have the
/// field.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] for a file that is not HDF5, is
/// not a file of cells, or is damaged.
pub fn magnitude(path: &Path, field: &str) -> Result<Option<Magnitude>, FileError> {
    let reader = Reader::open(path)?;
    let root = reader.need_group("/VTKHDF")?;
    let corner = match reader.attr(&root, "Origin")?.as_deref() {
        Some(&[x, y, z]) => [x, y, z],
        _ => return Err(reader.error("/VTKHDF Origin is not three numbers")),
    };
    let mut all = Magnitude { corner, spacing: vec![], blocks: vec![] };
    for level in 0..MOST_LEVELS {
        let place = format!("/VTKHDF/Level{level}");
        let Some(group) = reader.group(&place)? else { break };
        let spacing = reader.need_attr(&group, "Spacing")?;
        if spacing.is_nan() || spacing <= 0.0 {
            return Err(reader.error(format!("{place} Spacing = {spacing} is not above 0")));
        }
        all.spacing.push(spacing);
        let n = reader.length(&group, "AMRBox")?.unwrap_or(0);
        let boxes = reader.rows(&group, "AMRBox", (n, 6), 0..n)?.unwrap_or_default();
        let data = reader.need_group(&format!("{place}/CellData"))?;
        let Some(vectors) = reader.vectors(&data, field, n * CELLS)? else { return Ok(None) };
        for (cells, ends) in vectors.chunks_exact(CELLS).zip(boxes.chunks_exact(6)) {
            if (0..3).any(|k| ends[2 * k + 1] - ends[2 * k] != (BLOCK - 1) as f64) {
                return Err(reader.error(format!("{place}/AMRBox has a block of other than {BLOCK} cells a side")));
            }
            let first = [0, 2, 4].map(|k| ends[k] as i64);
            let values = cells.iter().map(|v| v.iter().map(|v| v * v).sum::<f64>().sqrt()).collect();
            all.blocks.push(Cells { level, first, values });
        }
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use fmm_core::grid::Grid;

    use super::*;
    use crate::files::blocks;
    use crate::files::snapshot::Float;

    #[test]
    fn cells_come_back_with_their_places() {
        let coarse = Grid::uniform([1.0, 2.0, 3.0], 2.0, 1);
        let [first, rest @ ..] = coarse.blocks()[0].children();
        let grid = Grid::new([1.0, 2.0, 3.0], 2.0, 1, rest.into_iter().chain(first.children()).collect());
        let field: Vec<[f64; 3]> = (0..grid.cells()).map(|i| grid.center_of(i / CELLS, i % CELLS)).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.hdf");
        blocks::write(&path, &grid, (None, 0, 0.0), &[("vorticity", &field)], Float::F64).unwrap();
        assert_eq!(magnitude(&path, "stream").unwrap(), None);
        let all = magnitude(&path, "vorticity").unwrap().unwrap();
        // 15 blocks and the two that are refined.
        assert_eq!((all.corner, all.spacing.len(), all.blocks.len()), ([1.0, 2.0, 3.0], 3, 17));
        for block in &all.blocks {
            for (c, value) in block.values.iter().enumerate() {
                let cell = [c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)];
                let at = |k: usize| {
                    all.corner[k] + (block.first[k] as f64 + cell[k] as f64 + 0.5) * all.spacing[block.level]
                };
                let expected = (0..3).map(|k| at(k).powi(2)).sum::<f64>().sqrt();
                assert!((value - expected).abs() < 1e-12 * expected, "{value} {expected}");
            }
        }
    }
}
