//! The initial state of a run, and what is suspicious of the tables that it comes from.

use crate::console;
use crate::failure::Failure;
use crate::files::particles;
use crate::initial::Initial;
use crate::messages::clipped;
use crate::scenario::{Model, Scenario};

/// Columns that a warning names.
const NAMED: usize = 10;

/// The particles of a scenario. A table without velocities whose other columns are not read is
/// worth a warning, unless `quiet`.
///
/// # Errors
/// Those of [`Initial::of`].
pub fn read(scenario: &Scenario, quiet: bool) -> Result<Initial, Failure> {
    let initial = Initial::of(scenario)?;
    for group in scenario.groups.iter().filter(|_| !quiet && !scenario.vortices()) {
        let Model::File { path, .. } = &group.model else { continue };
        let ignored = particles::ignored_without_velocities(path)?;
        if ignored.is_empty() {
            continue;
        }
        let mut names: Vec<_> = ignored.iter().take(NAMED).map(|name| clipped(name)).collect();
        if let more @ 1.. = ignored.len().saturating_sub(NAMED) {
            names.push(format!("{more} more").into());
        }
        console::tell(format_args!(
            "nbody: warning: {}: no columns vx, vy, vz: its particles start at rest; not read: {}",
            path.display(),
            names.join(", ")
        ));
    }
    Ok(initial)
}
