//! Snapshots in GADGET's HDF5 format by other programs (GADGET-2 to 4, AREPO, SWIFT, GIZMO): all collisionless particles
//! of a snapshot in one file that is not cosmological.

use std::path::Path;

use hdf5::Group;

use super::hdf::Reader;
use super::snapshot::{Snapshot, Units};
use super::{FileError, ids};

/// Where programs keep their units: group, and attributes of length, mass, and velocity or (the last) time, in CGS.
const PLACES: [(&str, [&str; 4]); 3] = [
    ("/Header", ["UnitLength_in_cm", "UnitMass_in_g", "UnitVelocity_in_cm_per_s", ""]),
    ("/Parameters", ["UnitLength_in_cm", "UnitMass_in_g", "UnitVelocity_in_cm_per_s", ""]),
    ("/Units", ["Unit length in cgs (U_L)", "Unit mass in cgs (U_M)", "", "Unit time in cgs (U_t)"]),
];

/// Reads the particles of types 1 to 5 (halo, disc, bulge, stars, boundary), rows in the order of
/// types, with the units if the file states them.
///
/// # Errors
/// As [`snapshot::read`](super::snapshot::read), and [`FileError::Data`] for a cosmological file (its coordinates are
/// comoving, its velocities divided by √a, its units contain h), for gas, and for one file of several.
pub fn read(path: &Path) -> Result<(Snapshot, Option<Units>), FileError> {
    let reader = Reader::open(path)?;
    let header = reader.need_group("/Header")?;
    let number = |name: &str| Ok(reader.attr(&header, name)?.and_then(|v| v.first().copied()));
    for name in ["Redshift", "Omega0", "OmegaLambda"] {
        let value: Option<f64> = number(name)?;
        if value.is_some_and(|v| v != 0.0) {
            let what = format!("{name} = {} of /Header: a cosmological file", value.unwrap_or_default());
            return Err(reader.error(format!("{what}, whose comoving values would be misread; convert it first")));
        }
    }
    if let Some(h) = number("HubbleParam")?.filter(|h| ![0.0, 1.0].contains(h)) {
        let what = format!("HubbleParam = {h} of /Header: lengths and masses in units of 1/h");
        return Err(reader.error(format!("{what}; convert them, and set HubbleParam to 1")));
    }
    if let Some(files) = number("NumFilesPerSnapshot")?.filter(|&n| n > 1.0) {
        return Err(reader.error(format!("one of {files} files of a snapshot; join them into one first")));
    }
    let counts = reader.attr(&header, "NumPart_ThisFile")?;
    let counts = counts.ok_or_else(|| reader.error("attribute NumPart_ThisFile of /Header is missing"))?;
    let masses = reader.attr(&header, "MassTable")?.unwrap_or_default();
    let mut all = Snapshot { time: number("Time")?.unwrap_or(0.0), ..Snapshot::default() };
    for (kind, &count) in counts.iter().enumerate().filter(|(_, count)| **count != 0.0) {
        if !(0.0..4_294_967_295.0).contains(&count) || count.fract() != 0.0 {
            return Err(reader.error(format!("NumPart_ThisFile[{kind}] = {count} is not a number of particles")));
        }
        if kind == 0 {
            let what = format!("{count} particles of gas; only collisionless ones (PartType1 to 5) can be run");
            return Err(reader.error(what));
        }
        add(&reader, &mut all, kind, count as usize, masses.get(kind).copied().unwrap_or(0.0))?;
    }
    // Files that `nbody convert` wrote; of some particles alone they would be none.
    all.vorticity = all.vorticity.filter(|vorticity| vorticity.len() == all.id.len());
    all.charge = all.charge.filter(|charge| charge.len() == all.id.len());
    match ids::repeated(&all.id) {
        Some(id) => Err(reader.error(format!("ParticleIDs has the id {id} twice"))),
        None => Ok((all, units(&reader)?)),
    }
}

/// Adds the particles of a type.
fn add(reader: &Reader, all: &mut Snapshot, kind: usize, n: usize, mass: f64) -> Result<(), FileError> {
    let place = format!("/PartType{kind}");
    let group: Group = reader.need_group(&place)?;
    let missing = |name: &str| reader.error(format!("{place}/{name} is missing"));
    all.position.extend(reader.vectors(&group, "Coordinates", n)?.ok_or_else(|| missing("Coordinates"))?);
    all.velocity.extend(reader.vectors(&group, "Velocities", n)?.ok_or_else(|| missing("Velocities"))?);
    all.id.extend(reader.integers(&group, "ParticleIDs", n)?.ok_or_else(|| missing("ParticleIDs"))?);
    if let Some(vorticity) = reader.vectors(&group, "Vorticity", n)? {
        all.vorticity.get_or_insert_default().extend(vorticity);
    }
    if let Some(charge) = reader.scalars(&group, "Charges", n)? {
        all.charge.get_or_insert_default().extend(charge);
    }
    match reader.scalars(&group, "Masses", n)? {
        Some(masses) => all.mass.extend(masses),
        None if mass > 0.0 => all.mass.extend(std::iter::repeat_n(mass, n)),
        None => return Err(missing("Masses")),
    }
    Ok(())
}

fn units(reader: &Reader) -> Result<Option<Units>, FileError> {
    for (place, names) in PLACES {
        let Some(group) = reader.group(place)? else { continue };
        let mut values = [None; 4];
        for (value, name) in values.iter_mut().zip(names).filter(|(_, name)| !name.is_empty()) {
            *value = reader.attr(&group, name)?.and_then(|v| v.first().copied());
        }
        let [Some(length_cm), Some(mass_g), velocity, time] = values else { continue };
        let Some(velocity_cm_per_s) = velocity.or(time.map(|t| length_cm / t)) else { continue };
        if [length_cm, mass_g, velocity_cm_per_s].iter().any(|v| *v <= 0.0) {
            return Err(reader.error(format!("the units of {place} are not above 0")));
        }
        return Ok(Some(Units { length_cm, mass_g, velocity_cm_per_s }));
    }
    Ok(None)
}
