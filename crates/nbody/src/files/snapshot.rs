//! Snapshots: one HDF5 file that astronomers' tools (yt, pynbody) and ParaView open alike.
//!
//! The arrays are stored once, in GADGET-style groups; `/VTKHDF` points at the same arrays by hard link.
//! ParaView 5.11 wants the ending `.hdf`, VTKHDF version 1.0 and a fixed-length ASCII `Type`.

use std::ops::Range;
use std::path::Path;

use hdf5::types::FixedAscii;
use hdf5::{File, Group};

use super::hdf::{self, Reader, put_attr, put_attrs, put_group, put_one, put_rows};
use super::{FileError, header, ids, run_id};
use nbody_sim::files::rows::Rows;
pub use nbody_sim::files::snapshot::{Field, Float, Layout, Snapshot, Units};

/// Writes a snapshot, rows in the order of the ids, and returns its size in bytes.
///
/// # Errors
/// [`FileError::Unwritable`] if arrays differ in length, a value is not finite or does not fit the precision, an id
/// appears twice or a field is asked for that the snapshot lacks; [`FileError::Io`], [`FileError::Hdf5`]. In each
/// case an old file of that name is untouched.
pub fn write(path: &Path, snapshot: &Snapshot, layout: &Layout) -> Result<u64, FileError> {
    // Before the order of the rows, which needs arrays of one length.
    snapshot.check(layout).map_err(|what| FileError::unwritable(path, what))?;
    let snapshot = snapshot.in_id_order();
    if let Some(id) = ids::repeated(&snapshot.id) {
        return Err(FileError::unwritable(path, format!("two particles have the id {id}")));
    }
    write_checked(path, &snapshot, &*snapshot, layout)
}

/// The same of particles whose `rows` are in memory or on other ranks, each with an id of its own; `about` says all else, and its own arrays are
/// not looked at.
///
/// # Errors
/// As [`write()`].
pub fn write_rows(path: &Path, about: &Snapshot, rows: &dyn Rows, layout: &Layout) -> Result<u64, FileError> {
    rows.check(layout).map_err(|what| FileError::unwritable(path, what))?;
    write_checked(path, about, rows, layout)
}

fn write_checked(path: &Path, about: &Snapshot, rows: &dyn Rows, layout: &Layout) -> Result<u64, FileError> {
    // Ids, the arrays of /VTKHDF, and at most four vectors and four scalars; compression only makes it smaller.
    let bytes_per_row = 8 + 17 + 16 * 8;
    let estimate = (rows.count() * bytes_per_row) as u64 + (1 << 20);
    hdf::write_file(path, estimate, |file| {
        header::put(file, about, rows, layout)?;
        put_particles(file, rows, layout)?;
        put_vtkhdf(file, about, rows.count(), layout)
    })
}

/// `/PartType1`: only whole numbers and masses compress; coordinates shrink by a tenth at ten times the time.
fn put_particles(file: &File, rows: &dyn Rows, layout: &Layout) -> hdf5::Result<()> {
    let (group, n) = (put_group(file, "PartType1")?, rows.count());
    for field in Field::ALL.into_iter().filter(|&f| layout.wants(f)) {
        let (_, name, _) = field.names();
        let (shape, compress) = ((n, field.width()), matches!(field, Field::Mass | Field::Charge));
        match layout.precision {
            _ if field == Field::Id => put_rows(&group, name, shape, true, |some| rows.ids(some))?,
            Float::F64 => put_rows(&group, name, shape, compress, |some| rows.floats(field, some))?,
            Float::F32 => {
                let single = |some| rows.floats(field, some).iter().map(|&v| v as f32).collect();
                put_rows::<f32>(&group, name, shape, compress, single)?;
            }
        }
    }
    Ok(())
}

/// `/VTKHDF`: the same `n` rows by hard link, and one vertex cell for each particle so that filters work.
fn put_vtkhdf(file: &File, s: &Snapshot, n: usize, layout: &Layout) -> hdf5::Result<()> {
    let vtk = put_group(file, "VTKHDF")?;
    put_attrs(&vtk, "Version", &[1i64, 0])?;
    put_attr(&vtk, "Type", FixedAscii::<16>::from_ascii("UnstructuredGrid").map_err(|e| e.to_string())?)?;
    for name in ["NumberOfPoints", "NumberOfCells", "NumberOfConnectivityIds"] {
        put_one(&vtk, name, n as i64)?;
    }
    let counting = |rows: Range<usize>| (rows.start as i64..rows.end as i64).collect();
    put_rows::<i64>(&vtk, "Connectivity", (n, 1), true, counting)?;
    put_rows::<i64>(&vtk, "Offsets", (n + 1, 1), true, counting)?;
    put_rows::<u8>(&vtk, "Types", (n, 1), true, |rows| vec![1; rows.len()].into())?;
    file.link_hard("/PartType1/Coordinates", "/VTKHDF/Points")?;
    let points = put_group(&vtk, "PointData")?;
    for field in Field::ALL.into_iter().filter(|&f| f != Field::Position && layout.wants(f)) {
        let (_, name, point_name) = field.names();
        points.link_hard(&format!("/PartType1/{name}"), point_name)?;
    }
    let fields = put_group(&vtk, "FieldData")?;
    put_one(&fields, "time", s.time)?;
    put_one(&fields, "step", s.step as i64)
}

/// What is said of [`foreign`] files.
pub const FOREIGN: &str = "an HDF5 file, but no snapshot: it has neither /Header nor /PartType1 (files of nbody eval hold sums, not particles)";

/// What is said of fields on a grid where particles are asked for.
const GRID: &str =
    "fields on a grid, not particles; ParaView opens it, and output.formats = [\"csv\"] makes the run write tables";

/// Whether an HDF5 file has nothing of a snapshot, a checkpoint or a temporal VTKHDF file.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] for a file that is not HDF5 or damaged.
pub fn foreign(path: &Path) -> Result<bool, FileError> {
    is_foreign(&Reader::open(path)?)
}

/// The time of a snapshot, of particles or of a grid.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] for a file that is not HDF5, is damaged or has no time.
pub fn time(path: &Path) -> Result<f64, FileError> {
    let reader = Reader::open(path)?;
    let group = match reader.group("/Grid")? {
        Some(grid) => grid,
        None => reader.need_group("/Header")?,
    };
    reader.need_attr(&group, "Time")
}

fn is_foreign(reader: &Reader) -> Result<bool, FileError> {
    for group in ["/Header", "/PartType1", "/Checkpoint", "/VTKHDF/Steps"] {
        if reader.group(group)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a snapshot of ours, or a GADGET file with nothing but `/PartType1`, rows in the order of the file.
///
/// Arrays that the file lacks are `None` (velocities: empty); `Masses` may be a constant in `MassTable`.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] for a file that is not HDF5, or is damaged, or
/// lacks an array or has it in another shape or type, or whose data lie in another file, are not finite or have an
/// id twice.
pub fn read(path: &Path) -> Result<Snapshot, FileError> {
    let reader = Reader::open(path)?;
    if is_foreign(&reader)? {
        let grid = reader.group("/Grid")?.is_some();
        return Err(reader.error(if grid { GRID } else { FOREIGN }));
    }
    if reader.group("/Checkpoint")?.is_some() {
        let what = format!("a checkpoint, not a snapshot; make one of it: nbody convert {} start.hdf", path.display());
        return Err(reader.error(what));
    }
    let header = reader.need_group("/Header")?;
    let n = particle_count(&reader, &header)?;
    let number = |name, default| Ok(reader.attr(&header, name)?.and_then(|v| v.first().copied()).unwrap_or(default));
    let mut s = Snapshot {
        time: reader.need_attr(&header, "Time")?,
        box_size: number("BoxSize", 0.0)?,
        units: Units {
            length_cm: number("UnitLength_in_cm", 1.0)?,
            mass_g: number("UnitMass_in_g", 1.0)?,
            velocity_cm_per_s: number("UnitVelocity_in_cm_per_s", 1.0)?,
        },
        run: run_id::get(&header),
        ..Snapshot::default()
    };
    // GADGET files that `nbody convert` made.
    s.step = number("Step", 0.0)? as u64;
    if reader.group("/VTKHDF")?.is_some() {
        let group = reader.need_group("/VTKHDF/FieldData")?;
        let step = reader.integers(&group, "step", 1)?;
        s.step = step.ok_or_else(|| reader.error("/VTKHDF/FieldData/step is missing"))?[0];
    }
    if let Some(group) = reader.group("/Diagnostics")? {
        for name in reader.attr_names(&group)? {
            s.diagnostics.push((name.clone(), reader.need_attr(&group, &name)?));
        }
    }
    let Some(group) = reader.group("/PartType1")? else {
        // GADGET leaves out the groups of absent types.
        return if n == 0 { Ok(s) } else { Err(reader.error("/PartType1 is missing")) };
    };
    let missing = |name: &str| reader.error(format!("/PartType1/{name} is missing"));
    s.position = reader.vectors(&group, "Coordinates", n)?.ok_or_else(|| missing("Coordinates"))?;
    s.id = reader.integers(&group, "ParticleIDs", n)?.ok_or_else(|| missing("ParticleIDs"))?;
    s.mass = match (reader.scalars(&group, "Masses", n)?, reader.attr(&header, "MassTable")?) {
        (Some(masses), _) => masses,
        (None, Some(table)) if table.get(1).is_some_and(|&m| m > 0.0) => vec![table[1]; n],
        _ => return Err(missing("Masses")),
    };
    s.velocity = reader.vectors(&group, "Velocities", n)?.unwrap_or_default();
    s.charge = reader.scalars(&group, "Charges", n)?;
    s.potential = reader.scalars(&group, "Potential", n)?;
    s.acceleration = reader.vectors(&group, "Acceleration", n)?;
    s.force_error = reader.scalars(&group, "ForceError", n)?;
    s.vorticity = reader.vectors(&group, "Vorticity", n)?;
    match ids::repeated(&s.id) {
        Some(id) => Err(reader.error(format!("/PartType1/ParticleIDs has the id {id} twice"))),
        None => Ok(s),
    }
}

/// Checks that `/VTKHDF`, if there is one, shows the particles of `snapshot`, read from the same file.
///
/// # Errors
/// [`FileError::Data`] that names the array.
pub fn check_vtkhdf(path: &Path, snapshot: &Snapshot) -> Result<(), FileError> {
    let reader = Reader::open(path)?;
    let Some(vtk) = reader.group("/VTKHDF")? else { return Ok(()) };
    let n = snapshot.id.len();
    let need = |name: &str, length: usize| {
        let missing = || reader.error(format!("/VTKHDF/{name} is missing"));
        reader.integers(&vtk, name, length)?.ok_or_else(missing)
    };
    let wrong = |name: &str| reader.error(format!("/VTKHDF/{name} is not that of {n} vertex cells"));
    for name in ["NumberOfPoints", "NumberOfCells", "NumberOfConnectivityIds"] {
        if need(name, 1)? != [n as u64] {
            return Err(wrong(name));
        }
    }
    for (name, length) in [("Connectivity", n), ("Offsets", n + 1)] {
        if need(name, length)?.iter().enumerate().any(|(i, &v)| v != i as u64) {
            return Err(wrong(name));
        }
    }
    if need("Types", n)?.iter().any(|&t| t != 1) {
        return Err(wrong("Types"));
    }
    match reader.vectors(&vtk, "Points", n)? {
        Some(points) if points == snapshot.position => {}
        _ => return Err(reader.error("/VTKHDF/Points are not /PartType1/Coordinates")),
    }
    let fields = reader.need_group("/VTKHDF/FieldData")?;
    match reader.scalars(&fields, "time", 1)? {
        Some(time) if time == [snapshot.time] => Ok(()),
        _ => Err(reader.error("/VTKHDF/FieldData/time is not the Time of /Header")),
    }
}

/// In which precision a file that [`read`] reads holds its positions; f64 where it has none.
///
/// # Errors
/// As [`read`], for what is looked at.
pub fn precision(path: &Path) -> Result<Float, FileError> {
    let reader = Reader::open(path)?;
    let single = match reader.group("/PartType1")? {
        Some(group) => reader.is_single(&group, "Coordinates")?,
        None => false,
    };
    Ok(if single { Float::F32 } else { Float::F64 })
}

/// N of a file that holds all of its snapshot and no other type of particle.
fn particle_count(reader: &Reader, header: &Group) -> Result<usize, FileError> {
    let files = reader.attr(header, "NumFilesPerSnapshot")?.unwrap_or(vec![1.0]);
    if files != [1.0] {
        return Err(reader.error(format!("one of {files:?} files of a snapshot; join them into one first")));
    }
    let counts = reader.attr(header, "NumPart_ThisFile")?;
    let counts = counts.ok_or_else(|| reader.error("attribute NumPart_ThisFile of /Header is missing"))?;
    for (kind, &count) in counts.iter().enumerate() {
        if !(0.0..4_294_967_296.0).contains(&count) || count.fract() != 0.0 {
            return Err(reader.error(format!("NumPart_ThisFile[{kind}] = {count} is not a number of particles")));
        }
        if kind != 1 && count > 0.0 {
            return Err(reader.error(format!("{count} particles of type {kind}; only /PartType1 is read")));
        }
    }
    counts
        .get(1)
        .map(|&n| n as usize)
        .ok_or_else(|| reader.error("NumPart_ThisFile of /Header has fewer than 2 values"))
}
