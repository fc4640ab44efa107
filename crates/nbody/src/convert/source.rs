//! What is converted, shown or checked: snapshots from any file that the program reads, one or many.

use std::path::{Path, PathBuf};

use toml::Table;

use crate::failure::Failure;
use crate::files::FileError;
use crate::files::checkpoint::{self, State};
use crate::files::formats::{by_ending, temporal::Temporal};
use crate::files::particles::Loaded;
use crate::files::series::{Entry, Series};
use crate::files::snapshot::{self, Float, Snapshot, Units};
use crate::units::System;

/// Snapshots of one place, in order of time.
pub enum Source {
    /// One file with one snapshot.
    One(Box<Loaded>),
    /// A run directory.
    Run {
        /// The directory.
        path: PathBuf,
        /// Its snapshots.
        entries: Vec<Entry>,
    },
    /// A VTKHDF file with steps.
    Temporal(Box<Temporal>),
}

/// Name of the index in a run directory.
pub const INDEX: &str = "run.hdf.series";

impl Source {
    /// Opens a file or a run directory.
    ///
    /// # Errors
    /// 66 where there is none, 65 where it is nothing that is read.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path.is_dir() || path.file_name().is_some_and(|n| n == INDEX) {
            let index = if path.is_dir() { path.join(INDEX) } else { path.to_owned() };
            let entries = match Series::read(&index) {
                Err(FileError::Missing { .. }) => {
                    let line = format!("{}: no run directory, it has no {INDEX}", path.display());
                    return Err(Failure::new(66, line));
                }
                series => series?.entries().to_vec(),
            };
            return Ok(Source::Run { path: index.with_file_name(""), entries });
        }
        Ok(match by_ending(path).and_then(|format| format.read) {
            Some(read) => Source::One(Box::new(read(path)?)),
            None => match Temporal::open(path)? {
                Some(temporal) => Source::Temporal(Box::new(temporal)),
                None if checkpoint::is(path)? => Source::One(Box::new(from_checkpoint(path)?)),
                None => Source::One(Box::new(from_snapshot(path)?)),
            },
        })
    }

    /// Number of snapshots.
    pub fn len(&self) -> usize {
        match self {
            Source::One(_) => 1,
            Source::Run { entries, .. } => entries.len(),
            Source::Temporal(t) => t.times().len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Times of all.
    pub fn times(&self) -> Vec<f64> {
        match self {
            Source::One(loaded) => vec![loaded.snapshot.time],
            Source::Run { entries, .. } => entries.iter().map(|e| e.time).collect(),
            Source::Temporal(t) => t.times().to_vec(),
        }
    }

    /// Reads snapshot number `i`.
    ///
    /// # Errors
    /// Those of reading its file.
    pub fn load(&self, i: usize) -> Result<Loaded, FileError> {
        match self {
            Source::One(loaded) => Ok(loaded.as_ref().clone()),
            Source::Run { path, entries } => from_snapshot(&path.join(&entries[i].name)),
            Source::Temporal(t) => t.load(i),
        }
    }
}

fn from_snapshot(path: &Path) -> Result<Loaded, FileError> {
    Ok(Loaded { snapshot: snapshot::read(path)?, precision: snapshot::precision(path)?, dropped: vec![] })
}

/// The state of a checkpoint; its units are those that its scenario names.
fn from_checkpoint(path: &Path) -> Result<Loaded, FileError> {
    let c = checkpoint::read(path)?;
    let State::Particles(p) = c.state else {
        return Err(FileError::data(path, "a checkpoint of a flow on a grid, not of particles"));
    };
    let snapshot = Snapshot {
        time: c.time,
        step: c.step,
        units: units_of(&c.scenario).map_or_else(Units::default, System::snapshot),
        id: p.id,
        position: p.position,
        velocity: p.velocity,
        mass: p.mass,
        charge: p.charge,
        acceleration: Some(p.acceleration),
        vorticity: p.vorticity,
        run: c.run,
        ..Snapshot::default()
    };
    Ok(Loaded { snapshot, precision: Float::F64, dropped: vec![] })
}

/// The system of units that a scenario names.
pub fn units_of(scenario: &str) -> Option<System> {
    let table: Table = scenario.parse().ok()?;
    system(table.get("units")?.get("system")?.as_str()?)
}

/// The system of that name.
pub fn system(name: &str) -> Option<System> {
    System::NAMES.iter().find(|(n, _)| *n == name).map(|(_, s)| *s)
}

/// The system whose sizes these are; none for sizes of another program.
pub fn system_with(units: &Units) -> Option<System> {
    System::NAMES.iter().map(|(_, s)| *s).find(|s| s.snapshot() == *units)
}
