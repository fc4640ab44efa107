//! HDF5 files are opened in another process first, under limits: the library has had mistakes that a made-up file turns into a crash,
//! a loop or all of the memory, and what it does to that process it will do to nobody else.
//!
//! The other process is this program again, which [looks](super::look) at the file; how it ends is the answer.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use super::FileError;
use super::error::READ;

/// The first argument of the program as the other process.
const ASKED: &str = "--probe-hdf5";

/// The program that looks at files first.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// From now on files are looked at first. For the program: a library does not know what its process is.
pub fn enable() {
    // Where the program's own file is not known, it does without.
    if let Ok(program) = std::env::current_exe() {
        let _ = PROGRAM.set(program);
    }
}

/// The file that this process is to look at for another one.
pub fn asked() -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next().as_deref() == Some(OsStr::new(ASKED))).then(|| arguments.next().unwrap_or_default().into())
}

/// Has another process look at `path`, once for each state of the file.
///
/// # Errors
/// [`FileError::Data`] if that process does not survive it.
pub(super) fn first(path: &Path, meta: &std::fs::Metadata) -> Result<(), FileError> {
    static SURVIVED: Mutex<Vec<[i64; 5]>> = Mutex::new(vec![]);
    let Some(program) = PROGRAM.get() else { return Ok(()) };
    let state = [meta.dev() as i64, meta.ino() as i64, meta.size() as i64, meta.mtime(), meta.mtime_nsec()];
    let mut survived = SURVIVED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if survived.contains(&state) {
        return Ok(());
    }
    let mut command = Command::new(program);
    command.arg(ASKED).arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Where the libraries are is all that it has to know.
    let libraries = std::env::var_os("LD_LIBRARY_PATH");
    command.env_clear().envs(libraries.map(|l| ("LD_LIBRARY_PATH", l)));
    let status = command.status().map_err(FileError::io(path, READ))?;
    if status.success() {
        survived.push(state);
        return Ok(());
    }
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (_, Some(71)) => "out of memory".into(),
        (_, code) => format!("exit code {}", code.unwrap_or(-1)),
    };
    Err(FileError::data(
        path,
        format!("the HDF5 library does not survive it ({how}); it is damaged, or made to do harm"),
    ))
}
