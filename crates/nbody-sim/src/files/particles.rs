//! Particles as tables, CSV or structured `.npy`: one row a particle, in the order of the ids.
//!
//! Columns: `id`, `x y z`, `vx vy vz`, `mass`, `charge`, `potential`, `ax ay az`,
//! `force_error`, `wx wy wz`, as far as the snapshot has them. In CSV, comments `# key = value` before the names
//! of the columns hold the rest of a snapshot; `.npy` has no place for it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use super::csv::{self, Column};
use super::error::READ;
use super::npy::{self, Npy};
use super::snapshot::{Field, Float, Layout, Snapshot, Units};
use super::{FileError, Kind, Table, atomic, ids, regular, unit_comments};

/// Particles, and the precision of the numbers that they came as.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The particles.
    pub snapshot: Snapshot,
    /// f32 if every number is one.
    pub precision: Float,
    /// Columns of a table that no snapshot has, and that were left out.
    pub dropped: Vec<String>,
}

/// Columns that are read; `m` and `q` are other names of `mass` and `charge`.
const NAMES: [&str; 19] = [
    "id",
    "x",
    "y",
    "z",
    "vx",
    "vy",
    "vz",
    "mass",
    "m",
    "potential",
    "ax",
    "ay",
    "az",
    "charge",
    "q",
    "force_error",
    "wx",
    "wy",
    "wz",
];

/// The columns of a field, in the order of its components.
const fn columns(field: Field) -> &'static [&'static str] {
    match field {
        Field::Id => &["id"],
        Field::Position => &["x", "y", "z"],
        Field::Velocity => &["vx", "vy", "vz"],
        Field::Mass => &["mass"],
        Field::Potential => &["potential"],
        Field::Acceleration => &["ax", "ay", "az"],
        Field::Charge => &["charge"],
        Field::ForceError => &["force_error"],
        Field::Vorticity => &["wx", "wy", "wz"],
    }
}

fn checked<'a>(path: &Path, s: &'a Snapshot, precision: Float) -> Result<std::borrow::Cow<'a, Snapshot>, FileError> {
    s.check(&Layout { fields: s.fields(), precision }).map_err(|what| FileError::unwritable(path, what))?;
    Ok(s.in_id_order())
}

/// The floating-point columns, rounded to the precision.
fn split(s: &Snapshot, precision: Float) -> Vec<(&'static str, Vec<f64>)> {
    let round = |v: f64| if precision == Float::F32 { f64::from(v as f32) } else { v };
    let mut split = vec![];
    for field in s.fields() {
        let Some((values, width)) = s.floats(field) else { continue };
        for (k, name) in columns(field).iter().enumerate() {
            split.push((*name, values.iter().skip(k).step_by(width).map(|&v| round(v)).collect()));
        }
    }
    split
}

/// The ids first, as readers expect them.
fn columns_of<'a>(s: &'a Snapshot, split: &'a [(&'static str, Vec<f64>)]) -> Vec<(&'static str, Column<'a>)> {
    let floats = split.iter().map(|(name, values)| (*name, Column::Float(values)));
    std::iter::once(("id", Column::Id(&s.id))).chain(floats).collect()
}

/// Writes CSV whose numbers read back to the same bits; returns the size in bytes.
///
/// # Errors
/// [`FileError::Unwritable`] for arrays of different lengths and values that are not finite or do not fit the
/// precision; [`FileError::Io`].
pub fn write_csv(path: &Path, snapshot: &Snapshot, precision: Float) -> Result<u64, FileError> {
    let s = checked(path, snapshot, precision)?;
    let mut text = vec![];
    for (key, value) in facts(&s, precision) {
        let _ = writeln!(text, "# {key} = {value}");
    }
    let split = split(&s, precision);
    let list = columns_of(&s, &split);
    csv::write(&mut text, &list).map_err(FileError::io(path, "write"))?;
    atomic::replace(path, &text)?;
    Ok(text.len() as u64)
}

/// Writes a structured `.npy` array; returns the size in bytes. Time, step, units, box and diagnostics have no place
/// in it.
///
/// # Errors
/// As [`write_csv`].
pub fn write_npy(path: &Path, snapshot: &Snapshot, precision: Float) -> Result<u64, FileError> {
    let s = checked(path, snapshot, precision)?;
    let split = split(&s, precision);
    let mut bytes = vec![];
    let single = precision == Float::F32;
    npy::write_table_as(&mut bytes, &columns_of(&s, &split), single).map_err(FileError::io(path, "write"))?;
    atomic::replace(path, &bytes)?;
    Ok(bytes.len() as u64)
}

/// Reads CSV: at least x and mass; ids count from 0 where there are none.
///
/// # Errors
/// As [`csv::read`]; [`FileError::Data`] for an id that appears twice and a comment `# key = value` whose value is wrong.
pub fn read_csv(path: &Path) -> Result<Loaded, FileError> {
    let table = csv::read(path, &NAMES)?;
    unit_comments::check(path, false)?;
    let dropped = table.others(&NAMES);
    let mut loaded = Loaded { snapshot: from_table(&table)?, precision: Float::F64, dropped };
    take_comments(path, "", &mut loaded)?;
    Ok(loaded)
}

/// Takes the comments `# key = value` before the rows of a CSV file whose keys begin with `prefix`.
fn take_comments(path: &Path, prefix: &str, loaded: &mut Loaded) -> Result<(), FileError> {
    let file = regular::table(path)?;
    for line in BufReader::new(file).lines() {
        let line = line.map_err(FileError::io(path, READ))?;
        // Spreadsheets begin a file with a mark of the byte order.
        let line = line.trim_start_matches('\u{feff}').trim();
        let Some(comment) = line.strip_prefix('#') else {
            if line.is_empty() {
                continue;
            }
            break;
        };
        if let Some((key, value)) = comment.split_once('=').filter(|(key, _)| key.trim().starts_with(prefix)) {
            take_fact(loaded, key.trim(), value.trim())
                .map_err(|why| FileError::data(path, format!("the comment \"{line}\": {why}")))?;
        }
    }
    Ok(())
}

/// The units that the comments of a CSV file state, as `nbody convert` writes them. None where they
/// state nothing, or pure numbers. `named` says whether the scenario names its units.
///
/// # Errors
/// [`FileError::Io`]; [`FileError::Data`] for a unit that is no number above 0, where only some of
/// the three are stated, and for comments on units that are not read.
pub fn units_of_csv(path: &Path, named: bool) -> Result<Option<Units>, FileError> {
    unit_comments::check(path, named)?;
    let none = Units { length_cm: f64::NAN, mass_g: f64::NAN, velocity_cm_per_s: f64::NAN };
    let snapshot = Snapshot { units: none, ..Snapshot::default() };
    let mut loaded = Loaded { snapshot, precision: Float::F64, dropped: vec![] };
    take_comments(path, "unit_", &mut loaded)?;
    let units = loaded.snapshot.units;
    let all = [units.length_cm, units.mass_g, units.velocity_cm_per_s];
    if all.iter().all(|u| u.is_nan()) {
        return Ok(None);
    }
    if !all.iter().all(|&u| u > 0.0) {
        let what = "the comments # unit_length_cm, # unit_mass_g and # unit_velocity_cm_per_s state units together; all three are \
                    needed, each above 0";
        return Err(FileError::data(path, what));
    }
    Ok(Some(units).filter(|u| *u != Units::default()))
}

/// Reads a structured `.npy` array, as [`read_csv`].
///
/// # Errors
/// As [`npy::read`]; [`FileError::Data`] for a plain array and an id that appears twice.
pub fn read_npy(path: &Path) -> Result<Loaded, FileError> {
    let Npy::Table(table) = npy::read(path, &NAMES)? else {
        let what = "a plain array; a structured one with the fields x, y, z and mass is needed";
        return Err(FileError::data(path, what));
    };
    let precision = if npy::is_single(path)? { Float::F32 } else { Float::F64 };
    Ok(Loaded { snapshot: from_table(&table)?, precision, dropped: table.others(&NAMES) })
}

/// The columns that a run does not read, of a table that has no velocities: they may be there by
/// another name. None of a table that has them, of an array without names and of a snapshot.
///
/// # Errors
/// Those of reading the names.
pub fn ignored_without_velocities(path: &Path) -> Result<Vec<String>, FileError> {
    let names = match Kind::of(path) {
        Some(Kind::Csv) => csv::names(path)?,
        Some(Kind::Npy) => npy::names(path)?,
        Some(Kind::Hdf5 | Kind::Tipsy) | None => return Ok(vec![]),
    };
    if names.iter().any(|name| columns(Field::Velocity).contains(&name.as_str())) {
        return Ok(vec![]);
    }
    Ok(names.into_iter().filter(|name| !NAMES.contains(&name.as_str())).collect())
}

fn from_table(table: &Table) -> Result<Snapshot, FileError> {
    let n = table.rows();
    let id = table.id().map_or_else(|| (0..n as u64).collect(), <[u64]>::to_vec);
    if let Some(twice) = ids::repeated(&id) {
        return Err(table.error(format!("two rows have the id {twice}; give each its own")));
    }
    Ok(Snapshot {
        id,
        position: table.positions()?,
        velocity: table.vectors(["vx", "vy", "vz"])?.unwrap_or_default(),
        mass: table.need(&["mass", "m"])?.to_vec(),
        charge: table.one_of(&["charge", "q"])?.map(<[f64]>::to_vec),
        potential: table.column("potential").map(<[f64]>::to_vec),
        acceleration: table.vectors(["ax", "ay", "az"])?,
        force_error: table.column("force_error").map(<[f64]>::to_vec),
        vorticity: table.vectors(["wx", "wy", "wz"])?,
        ..Snapshot::default()
    })
}

const DIAGNOSTICS: &str = "diagnostics.";

/// What a snapshot holds in addition to its arrays.
fn facts(s: &Snapshot, precision: Float) -> Vec<(String, String)> {
    let precision = if precision == Float::F32 { "f32" } else { "f64" };
    let mut list = vec![
        ("time".to_string(), format!("{:?}", s.time)),
        ("step".into(), s.step.to_string()),
        ("box_size".into(), format!("{:?}", s.box_size)),
        ("unit_length_cm".into(), format!("{:?}", s.units.length_cm)),
        ("unit_mass_g".into(), format!("{:?}", s.units.mass_g)),
        ("unit_velocity_cm_per_s".into(), format!("{:?}", s.units.velocity_cm_per_s)),
        ("precision".into(), precision.into()),
    ];
    list.extend(s.diagnostics.iter().map(|(name, v)| (format!("{DIAGNOSTICS}{name}"), format!("{v:?}"))));
    list
}

/// Puts a fact back where it was; other comments are left alone.
fn take_fact(loaded: &mut Loaded, key: &str, value: &str) -> Result<(), String> {
    let number = || match value.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(v),
        _ => Err(format!("\"{value}\" is not a finite number")),
    };
    let s = &mut loaded.snapshot;
    match key {
        "time" => s.time = number()?,
        "step" => s.step = value.parse().map_err(|_| format!("\"{value}\" is not a whole number of 0 or more"))?,
        "box_size" => s.box_size = number()?,
        "unit_length_cm" => s.units.length_cm = number()?,
        "unit_mass_g" => s.units.mass_g = number()?,
        "unit_velocity_cm_per_s" => s.units.velocity_cm_per_s = number()?,
        "precision" if value == "f32" => loaded.precision = Float::F32,
        "precision" if value == "f64" => loaded.precision = Float::F64,
        "precision" => return Err(format!("\"{value}\"; allowed: f32, f64")),
        _ => {
            if let Some(name) = key.strip_prefix(DIAGNOSTICS) {
                s.diagnostics.push((name.to_string(), number()?));
            }
        }
    }
    Ok(())
}
