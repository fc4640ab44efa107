//! Files of a grid: ω, Ψ and u in its cells.

use fmm_core::grid::Grid;

use crate::failure::Failure;
use crate::files::blocks;
use crate::files::snapshot::Float;
use crate::run::directory::RunDirectory;
use crate::scenario::grid::{Format, GridField, GridScenario};

/// The fields that files hold, of ω, Ψ and u in the cells.
fn wanted<'a>(scenario: &GridScenario, [vorticity, stream, velocity]: [&'a [[f64; 3]]; 3]) -> Vec<blocks::Field<'a>> {
    let values = |f: &GridField| -> blocks::Field {
        let values = match f {
            GridField::Vorticity => vorticity,
            GridField::Stream => stream,
            GridField::Velocity => velocity,
        };
        (f.name(), values)
    };
    scenario.fields.iter().map(values).collect()
}

/// Sees that the first file can hold ω, Ψ and u, before an earlier run's files are removed.
///
/// # Errors
/// 70 for values that it cannot hold.
pub(super) fn fit(
    scenario: &GridScenario,
    directory: &RunDirectory,
    grid: &Grid,
    fields: [&[[f64; 3]]; 3],
) -> Result<(), Failure> {
    let fields = wanted(scenario, fields);
    let of_format = |format: &Format| {
        let (ending, precision) = match format {
            Format::Vtkhdf => ("hdf", scenario.precision),
            Format::Csv => ("csv", Float::F64),
        };
        blocks::check(&directory.path().join(format!("grid_000000.{ending}")), grid, &fields, precision)
    };
    Ok(scenario.formats.iter().try_for_each(of_format)?)
}

/// Writes the files of one time, with ω, Ψ and u in the cells; returns the names and sizes of those
/// in the index.
///
/// # Errors
/// 70 for values that the precision cannot hold, 74 for files that cannot be written.
pub(super) fn write(
    scenario: &GridScenario,
    directory: &mut RunDirectory,
    grid: &Grid,
    fields: [&[[f64; 3]]; 3],
    (number, step, time): (u64, u64, f64),
) -> Result<Option<(String, u64)>, Failure> {
    let fields = wanted(scenario, fields);
    let mut listed = None;
    if scenario.formats.contains(&Format::Vtkhdf) {
        let (name, of) = (format!("grid_{number:06}.hdf"), (directory.id(), step, time));
        let bytes = blocks::write(&directory.path().join(&name), grid, of, &fields, scenario.precision)?;
        directory.list(&name, time)?;
        listed = Some((name, bytes));
    }
    if scenario.formats.contains(&Format::Csv) {
        blocks::write_csv(&directory.path().join(format!("grid_{number:06}.csv")), grid, &fields)?;
    }
    Ok(listed)
}
