//! The blocks of all levels of a grid as a device reads them, and fields on other levels and other
//! grids.

use std::ops::Range;

use fmm_core::Error;
use fmm_core::grid::blocks::CELLS;
use fmm_core::grid::hierarchy::{Hierarchy, NONE, Source};
use fmm_core::grid::transfer::Values;
use fmm_core::grid::{Block, Grid};

use super::memory::Array;
use super::view::{AROUND, FieldView, KIND_NOTHING, KIND_PARTS, KIND_SAME, RECORD, SLICES};
use super::{Device, after, blank};

/// A grid and its hierarchy.
pub struct Tables {
    /// The grid.
    pub grid: Grid,
    /// Its blocks of all levels.
    pub hierarchy: Hierarchy,
    /// The blocks around each of the grid's.
    pub around: Array<u32>,
    /// Place and level of each block.
    pub block: Array<u32>,
    /// A bit for each block around one of the grid's that is of another level.
    pub others: Array<u32>,
    /// What blocks that are made come from.
    records: Array<u32>,
    /// Which of them are made together.
    rounds: Vec<Range<usize>>,
}

fn record(source: &Source) -> [u32; RECORD] {
    let mut record = [NONE; RECORD];
    match source {
        Source::Nothing => record[AROUND] = KIND_NOTHING,
        Source::Same(number) => (record[0], record[AROUND]) = (*number, KIND_SAME),
        Source::Parts(parts) => {
            record[..8].copy_from_slice(parts);
            record[AROUND] = KIND_PARTS;
        }
        Source::Above(around, part) => {
            record[..AROUND].copy_from_slice(around);
            record[AROUND] = *part as u32;
        }
    }
    record
}

/// A field with N numbers a cell on all levels of a grid.
pub struct OnLevels<'a> {
    /// In the cells of the grid.
    pub own: &'a Array<f64>,
    /// In those of blocks that are made from them.
    pub made: Array<f64>,
    numbers: usize,
    values: Values,
}

impl Tables {
    /// Those of a grid.
    pub fn new(device: &Device, grid: &Grid) -> Result<Self, Error> {
        let hierarchy = Hierarchy::of(grid);
        let around: Vec<[u32; AROUND]> = grid.blocks().iter().map(|&b| hierarchy.around(b)).collect();
        let place = |b: &Block| [b.index[0], b.index[1], b.index[2], u32::from(b.level)];
        let block: Vec<[u32; 4]> = hierarchy.blocks().iter().map(place).collect();
        let others: Vec<u32> = grid.blocks().iter().map(|&b| grid.other_levels(b)).collect();
        let records: Vec<[u32; RECORD]> = hierarchy.rounds().iter().flatten().map(record).collect();
        let mut end = 0;
        let round = |round: &Vec<Source>| {
            let start = end;
            end += round.len();
            start..end
        };
        let rounds = hierarchy.rounds().iter().map(round).collect();
        Ok(Tables {
            around: device.with(around.as_flattened())?,
            block: device.with(block.as_flattened())?,
            others: device.with(&others)?,
            records: device.with(records.as_flattened())?,
            rounds,
            grid: grid.clone(),
            hierarchy,
        })
    }

    /// The view of the blocks of the grid and of a field on all levels.
    pub fn view(&self, field: &OnLevels) -> FieldView {
        FieldView { made: field.made.pointer(), numbers: field.numbers as u32, ..self.alone(field.own) }
    }

    /// The view of the blocks of the grid and of a field with three numbers in them.
    pub fn alone(&self, field: &Array<f64>) -> FieldView {
        FieldView {
            own: field.pointer(),
            around: self.around.pointer(),
            block: self.block.pointer(),
            corner: self.grid.corner(),
            spacing: self.grid.spacing(0),
            own_blocks: self.hierarchy.own() as u32,
            ..blank()
        }
    }

    /// A field on all levels.
    pub fn levels<'a>(
        &self,
        device: &Device,
        own: &'a Array<f64>,
        (numbers, values): (usize, Values),
    ) -> Result<OnLevels<'a>, Error> {
        let (each, count) = (CELLS * numbers, self.hierarchy.blocks().len() - self.hierarchy.own());
        let field = OnLevels { own, made: device.array(count * each)?, numbers, values };
        for round in self.rounds.iter().filter(|r| !r.is_empty()) {
            let view = FieldView {
                table: after(self.records.pointer(), RECORD * round.start),
                out: after(field.made.pointer(), each * round.start),
                points: u32::from(values == Values::Points),
                ..self.view(&field)
            };
            device.launch("field_fill", SLICES * round.len(), &view)?;
        }
        Ok(field)
    }

    /// A field in the cells of another grid.
    pub fn onto(&self, device: &Device, field: &OnLevels, grid: &Grid) -> Result<Array<f64>, Error> {
        let kind = (field.numbers, field.values);
        if let Some(between) = self.hierarchy.between(grid) {
            let (tables, there) = (Tables::new(device, &between)?, self.onto(device, field, &between)?);
            return tables.onto(device, &tables.levels(device, &there, kind)?, grid);
        }
        let records: Vec<[u32; RECORD]> = grid.blocks().iter().map(|&b| record(&self.hierarchy.source(b))).collect();
        let records = device.with(records.as_flattened())?;
        let out = device.array(grid.cells() * field.numbers)?;
        let view = FieldView {
            table: records.pointer(),
            out: out.pointer(),
            points: u32::from(field.values == Values::Points),
            ..self.view(field)
        };
        device.launch("field_fill", SLICES * grid.blocks().len(), &view)?;
        Ok(out)
    }
}
