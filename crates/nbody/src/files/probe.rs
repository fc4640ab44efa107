//! HDF5 files are opened in another process first, under limits: the library has had mistakes that a made-up file turns into a crash,
//! a loop or all of the memory, and what it does to that process it will do to nobody else.
//!
//! The other process is this program again. It goes through the structure of the file as a reader will (groups, attributes, types,
//! filters, the index of the chunks, the first row of each array) and says nothing; how it ends is the answer.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use hdf5::{Dataset, Group};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::FileError;
use super::error::READ;
use super::hdf::{Member, Reader, read_rows};

/// The first argument of the program as the other process.
const ASKED: &str = "--probe-hdf5";
/// Seconds of a processor, and bytes of data, that the structure of a file may take.
const SECONDS: u64 = 20;
const BYTES: u64 = 1 << 30;
/// Groups in groups, and objects and attributes in all; more are no file of particles.
const DEEPEST: usize = 32;
const MOST: usize = 10_000;

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

/// Looks at a file for another process, which hears how this one ends.
pub fn look(path: &Path) {
    let data = BYTES + data_at_start();
    for (what, most) in [(Resource::Cpu, SECONDS), (Resource::Data, data), (Resource::Core, 0), (Resource::Fsize, 0)] {
        // A lower limit may be in force already.
        let _ = setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) });
    }
    // Errors that a reader finds itself are left to the reader, which reports them.
    if let Ok(reader) = Reader::open(path)
        && let Ok(root) = reader.need_group("/")
    {
        walk(&reader, &root, 0, &mut 0);
    }
}

/// Bytes of data that this process has reserved before it looks at anything; 0 where the system does not say.
fn data_at_start() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| 1024 * kib)
}

fn walk(reader: &Reader, group: &Group, depth: usize, seen: &mut usize) {
    let Ok(members) = reader.members(group) else { return };
    for name in reader.attr_names(group).unwrap_or_default() {
        *seen += 1;
        if *seen > MOST {
            return;
        }
        let _ = reader.attr(group, &name);
    }
    for Member { name, inside } in members {
        *seen += 1;
        if depth > DEEPEST || *seen > MOST {
            return;
        }
        if inside.is_err() {
            continue;
        }
        if let Ok(inner) = group.group(&name) {
            walk(reader, &inner, depth + 1, seen);
        } else if let Ok(dataset) = group.dataset(&name)
            && reader.verify_inside(&dataset).is_ok()
        {
            touch(reader, &dataset);
        }
    }
}

fn touch(reader: &Reader, dataset: &Dataset) {
    let Ok(kind) = dataset.dtype().and_then(|t| t.to_descriptor()) else { return };
    if reader.verify_storage(dataset, kind.size() as u64).is_err() {
        return;
    }
    let _ = match dataset.shape().first() {
        None => dataset.read_raw::<f64>().map(drop),
        Some(0) => Ok(()),
        Some(_) => read_rows::<f64>(dataset, 0, 1).map(drop),
    };
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
