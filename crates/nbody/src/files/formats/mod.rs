//! The formats of snapshots: what `nbody convert` writes, and which function reads a file by its ending.
//!
//! A new format is a file of this folder with its functions, and an entry of [`FORMATS`].

pub mod plain;
pub mod temporal;

use std::path::Path;

use super::FileError;
use super::particles::{Loaded, read_csv, read_npy, write_csv, write_npy};
use super::snapshot::{self, Float, Layout, Snapshot};
use temporal::Plan;

/// Writes one snapshot; returns the size of the file in bytes.
pub type Write = fn(&Path, &Snapshot, Float) -> Result<u64, FileError>;
/// Writes all snapshots of a run, which the function loads one at a time; returns the size of the file in bytes.
pub type WriteAll = fn(&Path, &Plan, &dyn Fn(usize) -> Result<Snapshot, FileError>) -> Result<u64, FileError>;
/// Reads the one snapshot of a file.
pub type Read = fn(&Path) -> Result<Loaded, FileError>;

/// A format of snapshots.
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// Endings of its files.
    pub endings: &'static [&'static str],
    /// What it is for.
    pub about: &'static str,
    /// Writes one snapshot.
    pub write: Write,
    /// Writes a whole run into one file, if the format has room for it.
    pub write_all: Option<WriteAll>,
    /// Reads a file with one of the endings; `None` where the content decides, as of all HDF5 files.
    pub read: Option<Read>,
}

/// All formats.
pub static FORMATS: [Format; 5] = [
    Format {
        name: "hdf",
        endings: &["hdf"],
        about: "Our snapshot: ParaView, yt and h5py",
        write: |path, s, precision| snapshot::write(path, s, &Layout { fields: s.fields(), precision }),
        write_all: None,
        read: None,
    },
    Format {
        name: "gadget",
        endings: &["hdf5", "h5"],
        about: "GADGET's HDF5 and nothing else: pynbody, GADGET, yt",
        write: plain::write,
        write_all: None,
        read: None,
    },
    Format {
        name: "csv",
        endings: &["csv"],
        about: "Comma-separated values with a header",
        write: write_csv,
        write_all: None,
        read: Some(read_csv),
    },
    Format {
        name: "npy",
        endings: &["npy"],
        about: "NumPy's structured array",
        write: write_npy,
        write_all: None,
        read: Some(read_npy),
    },
    Format {
        name: "vtkhdf",
        endings: &["vtkhdf"],
        about: "All snapshots in one temporal VTKHDF file: ParaView 5.12 or newer",
        write: |path, s, precision| {
            let plan = Plan { counts: vec![s.id.len()], times: vec![s.time], fields: s.fields(), precision };
            temporal::write(path, &plan, |_| Ok(s.clone()))
        },
        write_all: Some(|path, plan, load| temporal::write(path, plan, load)),
        read: None,
    },
];

/// The format that the ending of a name stands for.
pub fn by_ending(path: &Path) -> Option<&'static Format> {
    let ending = path.extension()?.to_str()?;
    FORMATS.iter().find(|format| format.endings.contains(&ending))
}

/// Whether the ending of a name says which function reads the file. Such a file is no HDF5 and has no checksums.
pub fn is_read_by_ending(path: &Path) -> bool {
    by_ending(path).is_some_and(|format| format.read.is_some())
}

/// Whether a file is a scenario, by its ending.
pub fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "toml") && path.is_file()
}

/// The first ending of each format, as in `.hdf, .csv or .npy`.
pub fn endings() -> String {
    let all: Vec<String> = FORMATS.iter().map(|format| format!(".{}", format.endings[0])).collect();
    match all.split_last() {
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
