//! Particles from a file.

use std::path::Path;

use super::Initial;
use crate::failure::Failure;
use crate::files::npy::{self, Npy};
use crate::files::snapshot::{Snapshot, Units};
use crate::files::{FileError, Kind, Table, csv, ids, particles, tipsy};
use crate::messages::number;
use crate::scenario::{FileUnits, Law, Scenario};

/// Reads a snapshot in an HDF5 file (`.hdf`, or `.hdf5` and `.h5` of GADGET's format), with the
/// units that it states.
pub type ReadHdf5 = fn(&Path) -> Result<(Snapshot, Option<Units>), FileError>;

/// The [`ReadHdf5`] of programs that have no HDF5.
///
/// # Errors
/// [`FileError::Data`] with the way to convert the file.
pub fn no_hdf5(path: &Path) -> Result<(Snapshot, Option<Units>), FileError> {
    let name = path.display();
    let table = path.with_extension("npy");
    let what =
        format!("HDF5 files are read by the command alone; convert it with: nbody convert {name} {}", table.display());
    Err(FileError::data(path, what))
}

/// Columns that are looked for.
const COLUMNS: [&str; 16] =
    ["id", "x", "y", "z", "vx", "vy", "vz", "mass", "m", "charge", "q", "circulation", "wx", "wy", "wz", "volume"];

/// Names of charges and circulations.
const CHARGE: [&str; 2] = ["charge", "q"];
const CIRCULATION: [&str; 3] = ["circulation", "charge", "q"];

/// Names of the strengths and volumes of vortex particles in space.
const VORTICITY: [&str; 3] = ["wx", "wy", "wz"];
const VOLUME: [&str; 2] = ["volume", "mass"];

/// Reads a table or a snapshot and converts its numbers to the scenario's units. Those of the file are the ones that it states, else
/// `named`, else the scenario's.
pub fn read(path: &Path, named: FileUnits, scenario: &Scenario, hdf5: ReadHdf5) -> Result<Initial, Failure> {
    let (mut particles, stated) = match Kind::of(path) {
        Some(Kind::Hdf5) => {
            let (s, units) = hdf5(path)?;
            (from_snapshot(path, scenario, s)?, units)
        }
        Some(Kind::Tipsy) => (from_snapshot(path, scenario, tipsy::read(path)?)?, None),
        Some(Kind::Npy) => match npy::read(path, &COLUMNS)? {
            Npy::Array { rows, width, values } => (array(path, scenario, rows, width, &values)?, None),
            Npy::Table(t) => (table(&t, scenario)?, None),
        },
        Some(Kind::Csv) | None => {
            let particles = table(&csv::read(path, &COLUMNS)?, scenario)?;
            (particles, particles::units_of_csv(path, named != FileUnits::default())?)
        }
    };
    particles.convert(factors(path, stated, named, scenario)?);
    if scenario.plane.is_some() {
        particles.check_plane(path)?;
    }
    if scenario.vortices_in_space() {
        particles.check_volumes(path, scenario.viscosity > 0.0)?;
        return Ok(particles);
    }
    if scenario.vortices() {
        return Ok(Initial::vortices(particles.position, particles.charge));
    }
    particles.check(path, scenario.law)?;
    Ok(particles)
}

/// What lengths, velocities, masses and charges of a file are multiplied by.
fn factors(path: &Path, stated: Option<Units>, named: FileUnits, scenario: &Scenario) -> Result<[f64; 4], Failure> {
    let own = scenario.units.snapshot();
    if let Some(u) = stated {
        if named != FileUnits::default() {
            return Err(wrong(path, format!("it states its own units, {u}; leave particles.units out")));
        }
        return match (u == Units::default(), own == Units::default()) {
            _ if u == own => Ok([1.0; 4]),
            (_, true) => {
                let what = format!(
                    "it has physical units ({u}); choose units.system = \"galactic\", \"astro\", \"solar\", \"md\" or \"si\""
                );
                Err(wrong(path, what))
            }
            // A file of pure numbers says 1, or nothing.
            (true, _) => Err(wrong(path, "it is in pure numbers; choose units.system = \"nbody\"".into())),
            _ if scenario.law == Law::Coulomb => {
                let what = format!(
                    "its units are {u}, which say nothing of its charges; choose the units.system that it was written in"
                );
                Err(wrong(path, what))
            }
            _ => {
                let velocity = u.velocity_cm_per_s / own.velocity_cm_per_s;
                Ok([u.length_cm / own.length_cm, velocity, u.mass_g / own.mass_g, 1.0])
            }
        };
    }
    let mut factors = [1.0; 4];
    for (factor, (_, dimension, unit)) in factors.iter_mut().zip(named.named()) {
        if let Some(unit) = unit {
            let one = scenario.units.convert(&format!("1 {unit}"), dimension);
            *factor = one.map_err(|why| wrong(path, why))?;
        }
    }
    Ok(factors)
}

fn wrong(path: &Path, what: String) -> Failure {
    Failure::new(65, format!("{}: {what}", path.display()))
}

fn from_snapshot(path: &Path, scenario: &Scenario, s: Snapshot) -> Result<Initial, Failure> {
    let n = s.mass.len();
    if scenario.vortices_in_space() {
        let lacking = || {
            let what = "no vorticity, which force.law = \"vortex\" in space needs: snapshots of such runs have it where \
                        output.fields has \"vorticity\"";
            wrong(path, what.into())
        };
        let particles = Initial::vortices_in_space(s.position, s.vorticity.ok_or_else(lacking)?, s.mass);
        return Ok(particles.in_order_of(&s.id));
    }
    let charge = match (scenario.law, s.charge) {
        (_, Some(charge)) => charge,
        (Law::Gravity, None) => vec![0.0; n],
        (Law::Coulomb, None) => return Err(wrong(path, "no charges, which force.law = \"coulomb\" needs".into())),
        (Law::Vortex, None) => {
            return Err(wrong(path, "no circulations (as charges), which force.law = \"vortex\" needs".into()));
        }
    };
    let velocity = if s.velocity.is_empty() { vec![[0.0; 3]; n] } else { s.velocity };
    Ok(Initial { position: s.position, velocity, mass: s.mass, charge, vorticity: vec![] }.in_order_of(&s.id))
}

/// A table with a header: x, y, z and mass; vx, vy, vz, 0 if absent; charge for Coulomb; id, if the rows are to be
/// sorted.
fn table(table: &Table, scenario: &Scenario) -> Result<Initial, Failure> {
    const MASS: [&str; 2] = ["mass", "m"];
    if scenario.plane.is_some() {
        if table.dimension()? < 2 {
            return Err(table.error("a run in the plane needs the columns x and y").into());
        }
    } else if table.dimension()? != 3 {
        return Err(table.error("a run in three dimensions needs the columns x, y and z").into());
    }
    let n = table.rows();
    let velocity = table.vectors(["vx", "vy", "vz"])?.unwrap_or_else(|| vec![[0.0; 3]; n]);
    if scenario.vortices_in_space() {
        let lacking =
            || table.error("a run of vortices in space needs the columns wx, wy and wz: vorticity times volume");
        let vorticity = table.vectors(VORTICITY)?.ok_or_else(lacking)?;
        let volume = match table.one_of(&VOLUME)? {
            None if scenario.viscosity > 0.0 => {
                return Err(table.error("time.viscosity needs the column volume, which is not there").into());
            }
            given => given.map_or_else(|| vec![0.0; n], <[f64]>::to_vec),
        };
        return in_order(Initial::vortices_in_space(table.positions()?, vorticity, volume), table);
    }
    let charge = match scenario.law {
        Law::Gravity => vec![0.0; n],
        Law::Coulomb => table.need(&CHARGE)?.to_vec(),
        Law::Vortex => table.need(&CIRCULATION)?.to_vec(),
    };
    // Vortices have no masses.
    let mass = if scenario.vortices() { vec![0.0; n] } else { table.need(&MASS)?.to_vec() };
    in_order(Initial { position: table.positions()?, velocity, mass, charge, vorticity: vec![] }, table)
}

/// The rows in the order of the ids, if the table has any.
fn in_order(particles: Initial, table: &Table) -> Result<Initial, Failure> {
    let Some(id) = table.id() else { return Ok(particles) };
    match ids::repeated(id) {
        Some(twice) => Err(table.error(format!("two rows have the id {twice}; give each its own")).into()),
        None => Ok(particles.in_order_of(id)),
    }
}

/// An array without names: x, y, z, perhaps vx, vy, vz, then the mass, and the charge for Coulomb.
fn array(path: &Path, scenario: &Scenario, rows: usize, width: usize, values: &[f64]) -> Result<Initial, Failure> {
    if scenario.plane.is_some() || scenario.vortices() {
        let what = "rows without names are for masses and charges in three dimensions; give a structured array with \
                    the fields x, y and so on";
        return Err(wrong(path, what.into()));
    }
    let last = if scenario.law == Law::Coulomb { 2 } else { 1 };
    let moving = match width.checked_sub(last) {
        Some(3) => false,
        Some(6) => true,
        _ => {
            let charge = if last == 2 { ", charge" } else { "" };
            let what = format!(
                "rows of {width} numbers; {} (x, y, z, mass{charge}) or {} (x, y, z, vx, vy, vz, mass{charge}) are \
                 expected, or a structured array with these names",
                3 + last,
                6 + last
            );
            return Err(wrong(path, what));
        }
    };
    let row = |i: usize| &values[i * width..(i + 1) * width];
    let three = |r: &[f64], k: usize| [r[k], r[k + 1], r[k + 2]];
    let column = |k: usize| (0..rows).map(|i| row(i)[k]).collect::<Vec<_>>();
    Ok(Initial {
        position: (0..rows).map(|i| three(row(i), 0)).collect(),
        velocity: (0..rows).map(|i| if moving { three(row(i), 3) } else { [0.0; 3] }).collect(),
        mass: column(width - last),
        charge: if last == 2 { column(width - 1) } else { vec![0.0; rows] },
        vorticity: vec![],
    })
}

impl Initial {
    /// Multiplies lengths, velocities, masses and charges.
    fn convert(&mut self, [length, velocity, mass, charge]: [f64; 4]) {
        self.position.as_flattened_mut().iter_mut().for_each(|x| *x *= length);
        self.velocity.as_flattened_mut().iter_mut().for_each(|v| *v *= velocity);
        self.mass.iter_mut().for_each(|m| *m *= mass);
        self.charge.iter_mut().for_each(|q| *q *= charge);
    }

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
            vorticity: if self.vorticity.is_empty() {
                vec![]
            } else {
                order.iter().map(|&i| self.vorticity[i]).collect()
            },
        }
    }

    /// Refuses particles outside the plane z = 0, with the first row.
    fn check_plane(&self, path: &Path) -> Result<(), Failure> {
        let outside = |v: &[f64; 3]| v[2] != 0.0;
        for (what, values) in [("z", &self.position), ("vz", &self.velocity)] {
            if let Some(row) = values.iter().position(outside) {
                let z = number(values[row][2]);
                let line = format!("{what} = {z} of particle {row}; allowed with run.dimensions = 2: 0");
                return Err(wrong(path, line));
            }
        }
        Ok(())
    }

    /// Refuses volumes below 0, and with viscosity those of 0, with the first row.
    fn check_volumes(&self, path: &Path, viscous: bool) -> Result<(), Failure> {
        let bad = self.mass.iter().position(|&v| v < 0.0 || viscous && v == 0.0);
        let Some(row) = bad else { return Ok(()) };
        let range = if viscous { "above 0, which time.viscosity needs" } else { "0 or more" };
        let volume = number(self.mass[row]);
        Err(wrong(path, format!("volume = {volume} of particle {row}; allowed: {range}")))
    }

    /// Refuses masses that the law cannot use, with the first row.
    fn check(&self, path: &Path, law: Law) -> Result<(), Failure> {
        let bad = match law {
            Law::Vortex => None,
            Law::Gravity => self.mass.iter().position(|&m| m < 0.0),
            Law::Coulomb => self.mass.iter().position(|&m| m <= 0.0),
        };
        let Some(row) = bad else { return Ok(()) };
        let range = if law == Law::Gravity { "0 or more" } else { "above 0" };
        let mass = self.mass[row];
        Err(Failure::new(
            65,
            format!("{}: mass = {} of particle {row}; allowed: {range}", path.display(), number(mass)),
        ))
    }
}
