//! Replacing a file so that every crash leaves either the old one or the new one.
//!
//! The new contents go to `.<name>.tmp-<pid>` in the same folder (a rename across file systems is a copy), with
//! their space reserved first so that a full disk is found before anything is written. They are synced, read back
//! and compared, renamed over the old file, and the folder is synced so that the name survives a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::FileError;

/// A file in the folder of its final place; removed on drop unless it was
/// [committed](Temporary::commit).
pub struct Temporary {
    /// Where the contents go.
    pub path: PathBuf,
    target: PathBuf,
    renamed: bool,
    /// Open, with the bytes of space that it was created with.
    file: Option<(File, u64)>,
}

impl Temporary {
    /// Names the temporary of `target`, and removes what an earlier process with this id may have left. Refuses to take the place
    /// of a device or a pipe.
    pub fn new(target: &Path) -> Result<Self, FileError> {
        let name =
            target.file_name().ok_or_else(|| FileError::unwritable(target, "the path does not end in a file name"))?;
        if fs::symlink_metadata(target).is_ok_and(|m| !m.is_file() && !m.is_symlink() && !m.is_dir()) {
            return Err(FileError::unwritable(target, "a device or a pipe is there, and stays"));
        }
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".tmp-{}", std::process::id()));
        let path = target.with_file_name(hidden);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(FileError::io(&path, "remove")(e)),
            _ => Ok(Temporary { path, target: target.to_owned(), renamed: false, file: None }),
        }
    }

    /// Creates the file, empty, with space for `bytes`, to be filled later.
    pub fn reserve(mut self, bytes: u64) -> Result<Self, FileError> {
        self.file = Some((self.create(bytes)?, bytes));
        Ok(self)
    }

    /// The file, empty, with space for `bytes`: the reserved one, or a new one.
    pub fn create(&mut self, bytes: u64) -> Result<File, FileError> {
        check_limit(&self.target, bytes)?;
        let file = match self.file.take() {
            Some((file, reserved)) if reserved >= bytes => return Ok(file),
            Some((file, _)) => file,
            None => {
                let file = OpenOptions::new().write(true).create_new(true).open(&self.path);
                file.map_err(FileError::io(&self.target, "write"))?
            }
        };
        match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes.max(1)) {
            // Some file systems cannot reserve; there the write itself finds a full disk.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(file),
            Err(e) => Err(FileError::io(&self.target, "reserve its space")(e.into())),
        }
    }

    /// Renames the synced and verified temporary over its target, and syncs the folder.
    pub fn commit(mut self) -> Result<(), FileError> {
        fs::rename(&self.path, &self.target).map_err(FileError::io(&self.target, "rename the new version of"))?;
        self.renamed = true;
        let folder = match self.target.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        File::open(folder).and_then(|d| d.sync_all()).map_err(FileError::io(folder, "sync the folder"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing more can be done about an error here; the first error is the one to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Refuses a size past `ulimit -f`: writing there would send SIGXFSZ, which kills by default.
fn check_limit(path: &Path, bytes: u64) -> Result<(), FileError> {
    if getrlimit(Resource::Fsize).current.is_none_or(|limit| bytes <= limit) {
        return Ok(());
    }
    Err(FileError::io(path, "write past the limit of `ulimit -f`")(io::ErrorKind::FileTooLarge.into()))
}

/// Replaces the contents of `path` by `bytes`, durably.
///
/// # Errors
/// [`FileError::Io`], with the old file untouched (unless only the last sync of the folder failed) and no temporary
/// left.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace_by(Temporary::new(path)?, bytes)
}

/// As [`replace`], through this temporary.
pub fn replace_by(mut temporary: Temporary, bytes: &[u8]) -> Result<(), FileError> {
    let target = temporary.target.clone();
    let error = |action| FileError::io(&target, action);
    let mut file = temporary.create(bytes.len() as u64)?;
    file.write_all(bytes).map_err(error("write"))?;
    // What was reserved and not needed is given back.
    file.set_len(bytes.len() as u64).map_err(error("write"))?;
    sync(&file, &target)?;
    drop(file);
    let written = File::open(&temporary.path).map_err(error("verify"))?;
    if !same(written, bytes).map_err(error("verify"))? {
        return Err(error("verify")(io::Error::other("what the disk gives back differs from what was written")));
    }
    temporary.commit()
}

/// Syncs a file and drops its pages from the cache, so that reading it back asks the disk.
pub fn sync(file: &File, path: &Path) -> Result<(), FileError> {
    file.sync_all().map_err(FileError::io(path, "sync"))?;
    // Advice only: where it is not taken, the check reads the cache.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Whether `file` gives exactly `bytes`.
fn same(mut file: impl Read, bytes: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; 1 << 20];
    let mut rest = bytes;
    loop {
        let n = file.read(&mut buffer)?;
        match rest.split_at_checked(n) {
            _ if n == 0 => return Ok(rest.is_empty()),
            Some((head, tail)) if head == &buffer[..n] => rest = tail,
            _ => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_sees_every_difference() {
        let differ = |a: &[u8], b: &[u8]| !same(a, b).unwrap();
        assert!(!differ(b"", b"") && !differ(b"abc", b"abc"));
        assert!(differ(b"abc", b"abd") && differ(b"abc", b"ab") && differ(b"ab", b"abc") && differ(b"", b"a"));
    }

    #[test]
    fn what_is_no_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = replace(&path, b"a").unwrap_err().to_string();
        assert!(error.contains("a device or a pipe is there") && !path.is_file() && path.exists(), "{error}");
    }

    #[test]
    fn a_temporary_that_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut temporary = Temporary::new(&folder.path().join("a")).unwrap();
        temporary.create(100).unwrap();
        assert!(temporary.path.exists());
        drop(temporary);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_reserved_file_takes_more_or_less_than_was_reserved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for (reserved, written) in [(100_000, 10), (10, 100_000)] {
            let temporary = Temporary::new(&path).unwrap().reserve(reserved).unwrap();
            assert_eq!(fs::metadata(&temporary.path).unwrap().len(), 0);
            replace_by(temporary, &vec![7; written]).unwrap();
            assert_eq!(fs::read(&path).unwrap(), vec![7; written]);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_disk_that_is_too_small_is_found_before_writing() {
        let folder = tempfile::tempdir().unwrap();
        let mut temporary = Temporary::new(&folder.path().join("a")).unwrap();
        let error = temporary.create(1 << 60).unwrap_err();
        assert_eq!(error.exit_code(), 74);
        drop(temporary);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_limit_of_file_sizes_is_an_error_not_a_signal() {
        // The limit holds for a whole process: this test runs itself in another one.
        const FILE: &str = "NBODY_TEST_LIMITED_FILE";
        if let Some(path) = std::env::var_os(FILE) {
            let error = replace(Path::new(&path), &[1; 1 << 20]).unwrap_err();
            assert!(error.to_string().contains("ulimit -f"), "{error}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        replace(&path, b"old").unwrap();
        let status = std::process::Command::new("sh")
            .args(["-c", "ulimit -f 8; exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg("files::atomic::tests::the_limit_of_file_sizes_is_an_error_not_a_signal")
            .env(FILE, &path)
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
        assert!(String::from_utf8_lossy(&status.stdout).contains("1 passed"), "{status:?}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
