//! What is suspicious of a scenario: of the tables that particles come from, of distances of vortices and of its solver.

use crate::failure::Failure;
use crate::files::particles;
use crate::messages::{clipped, number};
use crate::scenario::models::Surface;
use crate::scenario::{Model, Scenario};
use crate::vortex_ring::VortexRing;

/// Columns that a warning names.
const NAMED: usize = 10;

/// Of a side: as far as a box may differ from a crystal that fits it. A side is often written with few digits.
const FITS: f64 = 1e-3;

/// A warning for each table without velocities whose other columns are not read: they may be
/// velocities by another name.
///
/// # Errors
/// Those of reading the names of columns.
pub fn suspicious(scenario: &Scenario) -> Result<Vec<String>, Failure> {
    let unused = scenario.settings.unused();
    let mut warnings: Vec<String> =
        unused.into_iter().map(|key| format!("solver.{key} has no effect with solver.method = \"direct\"")).collect();
    for (index, group) in scenario.groups.iter().enumerate() {
        let core = scenario.softening_length();
        if let Model::VortexRing(VortexRing { spacing, .. }) = group.model
            && spacing > core
        {
            warnings.push(format!(
                "particles.{index}.spacing = {} is above force.softening.length = {}: particles whose cores do not overlap \
                 are no smooth flow, and exchange too little by viscosity",
                number(spacing),
                number(core)
            ));
        }
        if let Model::Crystal { lattice, cells, spacing, surface: Surface::Periodic, .. } = group.model
            && let Some(cell) = scenario.settings.boundary.periodic()
        {
            let side = cells as f64 * lattice.side() * spacing;
            if cell.side.iter().any(|box_side| (box_side / side - 1.0).abs() > FITS) {
                warnings.push(format!(
                    "particles.{index}: its surface is periodic, with a side of {}, and boundary.side is {}: at the faces of \
                     the box the crystal has gaps, or lies over itself",
                    number(side),
                    cell.side.map(number).join(", ")
                ));
            }
        }
    }
    for group in scenario.groups.iter().filter(|_| !scenario.vortices()) {
        let Model::File { path, .. } = &group.model else { continue };
        let ignored = particles::ignored_without_velocities(path)?;
        if ignored.is_empty() {
            continue;
        }
        let mut names: Vec<_> = ignored.iter().take(NAMED).map(|name| clipped(name)).collect();
        if let more @ 1.. = ignored.len().saturating_sub(NAMED) {
            names.push(format!("{more} more").into());
        }
        warnings.push(format!(
            "{}: no columns vx, vy, vz: its particles start at rest; not read: {}",
            path.display(),
            names.join(", ")
        ));
    }
    Ok(warnings)
}
