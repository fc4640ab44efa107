//! Particles from a file.

use std::path::Path;

use super::Initial;
use crate::fault::Fault;
use crate::files::{csv, snapshot};
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
    Ok(Initial { position: s.position, velocity, mass: s.mass, charge }.in_order_of(&s.id))
}

/// A table with a header: x, y, z and mass; vx, vy, vz, 0 if absent; charge for Coulomb; id, if the rows are to be
/// sorted.
fn table(path: &Path, scenario: &Scenario) -> Result<Initial, Fault> {
    const MASS: [&str; 2] = ["mass", "m"];
    const CHARGE: [&str; 2] = ["charge", "q"];
    let wanted = ["id", "x", "y", "z", "vx", "vy", "vz", "mass", "m", "charge", "q"];
    let table = csv::read(path, &wanted)?;
    if table.dimension()? != 3 {
        return Err(table.error("a run in three dimensions needs the columns x, y and z").into());
    }
    let n = table.rows();
    let velocity = table.vectors(["vx", "vy", "vz"])?.unwrap_or_else(|| vec![[0.0; 3]; n]);
    let charge = match scenario.law {
        Law::Gravity => vec![0.0; n],
        Law::Coulomb => table.need(&CHARGE)?.to_vec(),
    };
    let particles = Initial { position: table.positions()?, velocity, mass: table.need(&MASS)?.to_vec(), charge };
    let Some(id) = table.id() else { return Ok(particles) };
    let mut sorted = id.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|w| w[0] == w[1]) {
        Some(pair) => Err(table.error(format!("two rows have the id {}; give each its own", pair[0])).into()),
        None => Ok(particles.in_order_of(id)),
    }
}

impl Initial {
    /// Rows in the order of the ids, so that particles keep their numbers from run to run.
    fn in_order_of(self, id: &[u64]) -> Initial {
        if id.is_sorted() {
            return self;
        }
        let mut order: Vec<usize> = (0..id.len()).collect();
        order.sort_by_key(|&i| id[i]);
        Initial {
            position: order.iter().map(|&i| self.position[i]).collect(),
            velocity: order.iter().map(|&i| self.velocity[i]).collect(),
            mass: order.iter().map(|&i| self.mass[i]).collect(),
            charge: order.iter().map(|&i| self.charge[i]).collect(),
        }
    }

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
