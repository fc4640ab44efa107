//! Files that the program reads and writes: those of HDF5, and JSON. All others are in
//! [`nbody_sim::files`], whose three rules hold here too.

pub mod blocks;
pub mod cells;
pub mod checkpoint;
pub mod digest;
pub mod formats;
pub mod gadget;
pub(crate) mod hdf;
mod header;
#[allow(unsafe_code, reason = "a call that the crate `hdf5` does not wrap")]
mod image;
#[cfg(unix)]
pub mod look;
#[cfg(unix)]
pub mod probe;
pub mod run_id;
pub mod series;
pub mod snapshot;

use std::path::Path;

pub use nbody_sim::files::{
    FileError, Kind, Table, atomic, columns, csv, error, ids, npy, particles, regular, tipsy, unit_comments,
};
use snapshot::{Snapshot, Units};

/// Reads particles and their units from a snapshot of ours (`.hdf`) or of GADGET's format.
///
/// # Errors
/// Those of [`snapshot::read`] and [`gadget::read`].
pub fn read_hdf5(path: &Path) -> Result<(Snapshot, Option<Units>), FileError> {
    if path.extension().is_some_and(|e| e == "hdf") {
        let s = snapshot::read(path)?;
        let units = s.units;
        return Ok((s, Some(units)));
    }
    gadget::read(path)
}
