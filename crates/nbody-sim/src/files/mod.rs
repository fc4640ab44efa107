//! Files without HDF5: tables, tipsy's snapshots and texts, and what all files share.
//!
//! Three rules hold for all of them:
//! - **Written whole or not at all.** A file is assembled next to its place, checked, synced and renamed
//!   ([`atomic`]); an error leaves the old file as it was and no temporary.
//! - **Read with distrust.** What a file declares is compared with what it holds before memory is taken,
//!   and nothing outside the file is followed.
//! - **Errors name the file, the field and the way out** ([`FileError`]).

pub mod atomic;
pub mod columns;
pub mod csv;
pub mod error;
pub mod ids;
mod kind;
pub mod npy;
pub mod particles;
pub mod regular;
pub mod rows;
pub mod run_id;
pub mod snapshot;
pub mod stl;
mod table;
pub mod tipsy;
pub mod unit_comments;

pub use error::FileError;
pub use kind::Kind;
pub use table::Table;
