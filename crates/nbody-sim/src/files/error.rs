//! What can go wrong with a file.

use std::io;
use std::path::{Path, PathBuf};

/// An error of reading or writing a file; its text is one line that names the file and the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file or folder does not exist.
    #[error("{}: no such file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A folder stands where a file is read.
    #[error("{}: is a folder; a file is expected", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as a verb ("write", "rename").
        action: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// HDF5 refused to write.
    #[error("{}: cannot {action}: {source}", path.display())]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Its reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The contents are not what they should be.
    #[error("{}: {what}", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Where in the file and what is wrong, with the way out.
        what: String,
    },
    /// What was to be written cannot be expressed in the file.
    #[error("{}: not written: {what}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Which quantity, and the way out.
        what: String,
    },
}

impl FileError {
    /// The exit code of a program that ends with this error: 66 no input, 65 bad data, 74 input/output,
    /// 70 for data that should never have reached the writer, 71 where memory lacks for the file.
    pub fn exit_code(&self) -> u8 {
        match self {
            FileError::Missing { .. } | FileError::Folder { .. } => 66,
            FileError::Data { .. } => 65,
            // What is assembled in memory fails for want of it.
            FileError::Hdf5 { action: ASSEMBLE, .. } => 71,
            FileError::Io { .. } | FileError::Hdf5 { .. } => 74,
            FileError::Unwritable { .. } => 70,
        }
    }

    /// What a refusal of the operating system means.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> FileError {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::NotFound if action == READ => FileError::Missing { path },
            io::ErrorKind::IsADirectory if action == READ => FileError::Folder { path },
            _ => FileError::Io { path, action, source },
        }
    }

    /// The error of contents that are not what they should be.
    pub fn data(path: &Path, what: impl Into<String>) -> FileError {
        FileError::Data { path: path.to_owned(), what: what.into() }
    }

    /// The error of what cannot be expressed in the file.
    pub fn unwritable(path: &Path, what: impl Into<String>) -> FileError {
        FileError::Unwritable { path: path.to_owned(), what: what.into() }
    }
}

/// Making a file in memory.
pub const ASSEMBLE: &str = "assemble";

/// The action under which a missing file is [`FileError::Missing`] rather than a failure of the system.
pub const READ: &str = "read";
