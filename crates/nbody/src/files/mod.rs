//! Files that the program reads and writes.
//!
//! Three rules hold for all of them:
//! - **Written whole or not at all.** A file is assembled beside its place, checked, synced and renamed
//!   ([`atomic`]); an error leaves the old file as it was and no temporary.
//! - **Read with distrust.** What a file declares is compared with what it holds before memory is taken,
//!   and nothing outside the file is followed.
//! - **Errors name the file, the field and the way out** ([`FileError`]).

pub mod atomic;
pub mod blocks;
pub mod cells;
pub mod checkpoint;
pub mod columns;
pub mod csv;
pub mod digest;
mod error;
pub mod formats;
pub mod gadget;
pub(crate) mod hdf;
mod header;
pub mod ids;
#[allow(unsafe_code, reason = "a call that the crate `hdf5` does not wrap")]
mod image;
pub mod npy;
pub mod particles;
#[cfg(unix)]
pub mod probe;
pub mod regular;
pub mod run_id;
pub mod series;
pub mod snapshot;
mod table;
pub mod tipsy;
pub mod unit_comments;

pub use error::FileError;
pub use table::Table;
