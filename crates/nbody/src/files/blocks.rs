//! Fields on a grid of blocks: VTKHDF of overlapping AMR, which ParaView and VTK open as it is, and CSV at the centers of the cells.
//!
//! `/VTKHDF/LevelN` has the corners of all blocks of that level, in cells of the level, and the fields of their cells one block after the
//! other. A block that is refined is there too, with means over its parts: a reader hides it. Time and step are attributes of
//! `/Grid`, which VTK does not look at.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use fmm_core::grid::{BLOCK, Block, CELLS, Grid};
use fmm_core::math::CollectVec;
use hdf5::Group;
use hdf5::types::FixedAscii;
use ndarray::ArrayView2;
use rayon::prelude::*;

use super::hdf::{self, Number, Reader, put, put_attr, put_attrs, put_group};
use super::run_id::{self, RunId};
use super::snapshot::Float;
use super::{FileError, atomic};

/// A vector in each cell, block after block, and its name.
pub type Field<'a> = (&'static str, &'a [[f64; 3]]);

/// Writes the fields of `grid` at a step and time of a run, and returns the size in bytes.
///
/// # Errors
/// [`FileError::Unwritable`] for a value that is not finite or does not fit the precision; [`FileError::Io`], [`FileError::Hdf5`]. In
/// each case an old file of that name is untouched.
pub fn write(
    path: &Path,
    grid: &Grid,
    (run, step, time): (Option<RunId>, u64, f64),
    fields: &[Field],
    precision: Float,
) -> Result<u64, FileError> {
    check(path, grid, fields, precision)?;
    let numbers = grid.cells() * 3 * fields.len() * if precision == Float::F32 { 4 } else { 8 };
    // Refined blocks are a seventh at most.
    let estimate = (numbers * 7 / 6) as u64 + (1 << 20);
    let coarser: Vec<BTreeMap<Block, Vec<[f64; 3]>>> = fields.iter().map(|(_, f)| refined(grid, f)).collect();
    hdf::write_file(path, estimate, |file| {
        let about = put_group(file, "Grid")?;
        run.map_or(Ok(()), |run| run_id::put(run, &about))?;
        put_attr(&about, "Step", step)?;
        put_attr(&about, "Time", time)?;
        put_attr(&about, "Blocks", grid.blocks().len() as u64)?;
        let vtk = put_group(file, "VTKHDF")?;
        put_attrs(&vtk, "Version", &[1i64, 0])?;
        put_attr(&vtk, "Type", FixedAscii::<14>::from_ascii("OverlappingAMR").map_err(|e| e.to_string())?)?;
        put_attr(&vtk, "GridDescription", FixedAscii::<3>::from_ascii("XYZ").map_err(|e| e.to_string())?)?;
        put_attrs(&vtk, "Origin", &grid.corner())?;
        for level in 0..=grid.finest() {
            let leaves = grid.blocks().iter().enumerate().filter(|(_, b)| b.level == level);
            let leaves: Vec<(usize, Block)> = leaves.map(|(i, &b)| (i, b)).collect();
            let split: Vec<Block> =
                coarser.first().iter().flat_map(|c| c.keys()).copied().filter(|b| b.level == level).collect();
            let group = put_group(&vtk, &format!("Level{level}"))?;
            put_attrs(&group, "Spacing", &[grid.spacing(level); 3])?;
            let corner = |b: &Block| {
                let first = b.index.map(|i| (i as usize * BLOCK) as i32);
                let last = first.map(|f| f + BLOCK as i32 - 1);
                [first[0], last[0], first[1], last[1], first[2], last[2]]
            };
            let boxes: Vec<[i32; 6]> = leaves.iter().map(|(_, b)| corner(b)).chain(split.iter().map(corner)).collect();
            put(&group, "AMRBox", ArrayView2::from(&boxes[..]), true)?;
            for empty in ["PointData", "FieldData"] {
                put_group(&group, empty)?;
            }
            let data = put_group(&group, "CellData")?;
            for ((name, field), coarser) in fields.iter().zip(&coarser) {
                let mut values: Vec<[f64; 3]> = Vec::with_capacity(boxes.len() * CELLS);
                leaves.iter().for_each(|(i, _)| values.extend(&field[i * CELLS..(i + 1) * CELLS]));
                split.iter().for_each(|b| values.extend(&coarser[b]));
                match precision {
                    Float::F64 => put_vectors(&data, name, &values)?,
                    Float::F32 => {
                        let single: Vec<[f32; 3]> = values.iter().map(|v| v.map(|v| v as f32)).collect();
                        put_vectors(&data, name, &single)?;
                    }
                }
            }
        }
        Ok(())
    })
}

fn put_vectors<T: Number>(group: &Group, name: &str, values: &[[T; 3]]) -> hdf5::Result<()> {
    put(group, name, ArrayView2::from(values), false)
}

/// Checks that a file of this precision can hold the fields.
///
/// # Errors
/// [`FileError::Unwritable`] for a value that is not finite or does not fit the precision.
pub fn check(path: &Path, grid: &Grid, fields: &[Field], precision: Float) -> Result<(), FileError> {
    let limit = if precision == Float::F32 { f64::from(f32::MAX) } else { f64::MAX };
    for (name, values) in fields {
        assert_eq!(values.len(), grid.cells(), "a value for each cell");
        if let Some(c) = values.par_iter().position_first(|v| v.iter().any(|v| v.is_nan() || v.abs() > limit)) {
            let (place, value) = (grid.center_of(c / CELLS, c % CELLS), values[c]);
            let what = format!("{name} at {place:?} is {value:?}, which its precision cannot hold");
            return Err(FileError::unwritable(path, what));
        }
    }
    Ok(())
}

/// Means over the parts of every block that is refined.
fn refined(grid: &Grid, field: &[[f64; 3]]) -> BTreeMap<Block, Vec<[f64; 3]>> {
    let mut coarser: BTreeMap<Block, Vec<[f64; 3]>> = BTreeMap::new();
    for level in (1..=grid.finest()).rev() {
        let leaves = grid.blocks().iter().enumerate().filter(|(_, b)| b.level == level);
        let mut parts: Vec<(Block, Vec<[f64; 3]>)> =
            leaves.map(|(i, &b)| (b, field[i * CELLS..(i + 1) * CELLS].to_vec())).collect();
        parts.extend(coarser.iter().filter(|(b, _)| b.level == level).map(|(b, v)| (*b, v.clone())));
        for (block, values) in parts {
            let Some(parent) = block.parent() else { continue };
            let mean = coarser.entry(parent).or_insert_with(|| vec![[0.0; 3]; CELLS]);
            let offset: [usize; 3] = std::array::from_fn(|d| (block.index[d] as usize & 1) * BLOCK / 2);
            for (c, value) in values.iter().enumerate() {
                let [i, j, k] = [c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)];
                let place = offset[0] + i / 2 + BLOCK * (offset[1] + j / 2 + BLOCK * (offset[2] + k / 2));
                (0..3).for_each(|d| mean[place][d] += value[d] / 8.0);
            }
        }
    }
    coarser
}

/// Writes the fields as a table: x, y, z, h, and three columns a field, a row for each cell. Numbers read back to the same bits.
///
/// # Errors
/// As [`write()`], without HDF5.
pub fn write_csv(path: &Path, grid: &Grid, fields: &[Field]) -> Result<(), FileError> {
    check(path, grid, fields, Float::F64)?;
    let mut header = "x,y,z,h".to_string();
    for (name, _) in fields {
        for axis in ["x", "y", "z"] {
            header.push_str(&format!(",{name}_{axis}"));
        }
    }
    let rows = |(b, block): (usize, &Block)| {
        let (mut text, mut digits) = (Vec::new(), ryu::Buffer::new());
        for c in 0..CELLS {
            let place = grid.center_of(b, c).into_iter().chain([grid.spacing(block.level)]);
            let values = fields.iter().flat_map(|(_, f)| f[b * CELLS + c]);
            for (i, value) in place.chain(values).enumerate() {
                if i > 0 {
                    text.push(b',');
                }
                text.extend_from_slice(digits.format_finite(value).as_bytes());
            }
            text.push(b'\n');
        }
        text
    };
    let blocks: Vec<Vec<u8>> = grid.blocks().par_iter().enumerate().map(rows).collect_vec();
    let mut all = Vec::with_capacity(header.len() + 1 + blocks.iter().map(Vec::len).sum::<usize>());
    // Writing to memory does not fail.
    let _ = writeln!(all, "{header}");
    blocks.iter().for_each(|b| all.extend_from_slice(b));
    atomic::replace(path, &all)
}

/// What a file of fields is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct About {
    /// Number of the step.
    pub step: u64,
    /// Its time.
    pub time: f64,
    /// Blocks of 16³ cells.
    pub blocks: u64,
}

/// What [`write()`] has noted in a file; `None` where it has not written it.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] for a file that is not HDF5 or damaged.
pub fn about(path: &Path) -> Result<Option<About>, FileError> {
    let reader = Reader::open(path)?;
    let Some(group) = reader.group("/Grid")? else { return Ok(None) };
    let [step, time, blocks] = ["Step", "Time", "Blocks"].map(|name| reader.need_attr(&group, name));
    Ok(Some(About { step: step? as u64, time: time?, blocks: blocks? as u64 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let coarse = Grid::uniform([0.0; 3], 1.0, 1);
        let [first, rest @ ..] = coarse.blocks()[0].children();
        Grid::new([0.0; 3], 1.0, 1, rest.into_iter().chain(first.children()).collect())
    }

    #[test]
    fn refined_blocks_hold_means() {
        let grid = grid();
        let field: Vec<[f64; 3]> = (0..grid.cells())
            .map(|i| {
                let [x, y, z] = grid.center_of(i / CELLS, i % CELLS);
                [x, 1.0, y - 2.0 * z]
            })
            .collect();
        let coarser = refined(&grid, &field);
        assert_eq!(coarser.len(), 2);
        for (block, means) in &coarser {
            for (c, mean) in means.iter().enumerate() {
                let cell = [c % BLOCK, c / BLOCK % BLOCK, c / (BLOCK * BLOCK)].map(|i| i as i64);
                let [x, y, z] = grid.center(*block, cell);
                assert!((mean[0] - x).abs() < 1e-14 && mean[1] == 1.0 && (mean[2] - y + 2.0 * z).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_the_rest_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (grid, path) = (grid(), folder.path().join("a.hdf"));
        let mut field = vec![[1.0, 2.0, 1e39]; grid.cells()];
        let error = write(&path, &grid, (None, 0, 0.0), &[("velocity", &field)], Float::F32).unwrap_err();
        assert!(error.to_string().contains("velocity at [0.0078125, 0.0078125, 0.0078125]"), "{error}");
        write(&path, &grid, (None, 3, 0.5), &[("velocity", &field)], Float::F64).unwrap();
        assert_eq!(about(&path).unwrap(), Some(About { step: 3, time: 0.5, blocks: 15 }));
        field[7][0] = f64::NAN;
        assert!(write_csv(&folder.path().join("a.csv"), &grid, &[("velocity", &field)]).is_err());
    }
}
