//! Particles from a file.

use std::path::Path;

use super::Initial;
use crate::fault::Fault;
use crate::files::snapshot;
use crate::scenario::{Law, Scenario};

/// Reads a table or a snapshot, its numbers in the scenario's units.
pub fn read(path: &Path, scenario: &Scenario) -> Result<Initial, Fault> {
    let particles = match path.extension().and_then(|e| e.to_str()) {
        Some("hdf") => snapshot_file(path, scenario)?,
        _ => table(path, scenario)?,
    };
    particles.check(path, scenario.law)?;
    Ok(particles)
}

fn snapshot_file(path: &Path, scenario: &Scenario) -> Result<Initial, Fault> {
    let s = snapshot::read(path)?;
    let units = scenario.units.snapshot();
    if s.units != units {
        let line = format!(
            "{}: its units are {:?}, the scenario's {:?}; choose the units.system that it was written in",
            path.display(),
            s.units,
            units
        );
        return Err(Fault::new(65, line));
    }
    let n = s.mass.len();
    let charge = match (scenario.law, s.charge) {
        (_, Some(charge)) => charge,
        (Law::Gravity, None) => vec![0.0; n],
        (Law::Coulomb, None) => {
            return Err(Fault::new(65, format!("{}: no charges, which force.law = \"coulomb\" needs", path.display())));
        }
    };
    let velocity = if s.velocity.is_empty() { vec![[0.0; 3]; n] } else { s.velocity };
    // Rows in the order of the ids, so that a run continued from a snapshot keeps its numbers.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| s.id[i]);
    Ok(Initial {
        position: order.iter().map(|&i| s.position[i]).collect(),
        velocity: order.iter().map(|&i| velocity[i]).collect(),
        mass: order.iter().map(|&i| s.mass[i]).collect(),
        charge: order.iter().map(|&i| charge[i]).collect(),
    })
}

impl Initial {
    /// Refuses masses that the law cannot use, with the first row.
    fn check(&self, path: &Path, law: Law) -> Result<(), Fault> {
        let bad = match law {
            Law::Gravity => self.mass.iter().position(|&m| m < 0.0),
            Law::Coulomb => self.mass.iter().position(|&m| m <= 0.0),
        };
        let Some(row) = bad else { return Ok(()) };
        let range = if law == Law::Gravity { "0 or more" } else { "above 0" };
        let mass = self.mass[row];
        Err(Fault::new(65, format!("{}: mass = {mass} of particle {row}; allowed: {range}", path.display())))
    }
}

fn table(path: &Path, _scenario: &Scenario) -> Result<Initial, Fault> {
    Err(Fault::new(65, format!("{}: tables are not read yet", path.display())))
}
