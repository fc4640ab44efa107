//! Opens files that are read whole: regular ones, of a size that the reader names.
//!
//! A device has no end, and a pipe without a writer lets the reader wait for ever; both stand behind links in folders that
//! others have made. So the kind and the size of a file are looked at before it is opened.

use std::fs::{self, File, FileType};
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use super::FileError;
use super::error::READ;

/// Most bytes of a scenario: people write it, and what is larger is another file given by mistake.
pub const SCENARIO: u64 = 1 << 20;
/// Most bytes of what a run reports once: `run.json`, `timings.json`, `scenario.resolved.toml`.
pub const REPORT: u64 = 1 << 26;
/// Most bytes of what grows with a run: its diagnostics and the index of its snapshots.
pub const TABLE: u64 = 1 << 30;

/// Opens a file that is to be read whole.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Folder`] and [`FileError::Io`]; [`FileError::Data`] for a device, a pipe or a socket,
/// and for more than `most` bytes.
pub fn open(path: &Path, most: u64) -> Result<File, FileError> {
    let found = fs::metadata(path).map_err(FileError::io(path, READ))?;
    if found.is_dir() {
        return Err(FileError::Folder { path: path.to_owned() });
    }
    if let Some(kind) = special(found.file_type()) {
        return Err(FileError::data(path, format!("is {kind}, not a regular file")));
    }
    if found.len() > most {
        return Err(FileError::data(path, format!("{} bytes; at most {most} are read", found.len())));
    }
    File::open(path).map_err(FileError::io(path, READ))
}

/// What a path names, behind links, that is neither a file nor a folder: "a pipe". `None` for
/// files, folders and nothing.
pub fn special_at(path: &Path) -> Option<&'static str> {
    fs::metadata(path).ok().and_then(|found| special(found.file_type()))
}

fn special(kind: FileType) -> Option<&'static str> {
    match () {
        () if kind.is_file() || kind.is_dir() => None,
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}

/// Opens a table, of any size. The pipe of a shell's `<(…)` or `|` is opened too: it has a writer,
/// so that nobody waits for one.
///
/// # Errors
/// As [`open`].
pub fn table(path: &Path) -> Result<File, FileError> {
    let of_shell = path.starts_with("/dev/fd") || path == Path::new("/dev/stdin");
    if of_shell && special_at(path) == Some("a pipe") {
        return File::open(path).map_err(FileError::io(path, READ));
    }
    open(path, u64::MAX)
}

/// The bytes of a file.
///
/// # Errors
/// As [`open`].
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = vec![];
    // It may grow while it is read.
    open(path, most)?.take(most).read_to_end(&mut bytes).map_err(FileError::io(path, READ))?;
    Ok(bytes)
}

/// The text of a file.
///
/// # Errors
/// As [`open`]; [`FileError::Data`] for what is not UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String, FileError> {
    String::from_utf8(read(path, most)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        FileError::data(path, format!("byte {at} is not text in UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_the_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "four").unwrap();
        assert_eq!(text(&path, 4).unwrap(), "four");
        let code_and_words = |e: FileError| (e.exit_code(), e.to_string());
        let (code, words) = code_and_words(read(&path, 3).unwrap_err());
        assert!(code == 65 && words.contains("4 bytes; at most 3"), "{words}");
        assert_eq!(read(&folder.path().join("b"), 9).unwrap_err().exit_code(), 66);
        assert!(matches!(read(folder.path(), 9), Err(FileError::Folder { .. })));
        fs::write(&path, b"ab\xff").unwrap();
        assert!(text(&path, 9).unwrap_err().to_string().contains("byte 2 is not text"));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for refused in [read(&link, 9).map(drop), table(&link).map(drop)] {
            let (code, words) = code_and_words(refused.unwrap_err());
            assert!(code == 65 && words.contains("is a device, not a regular file"), "{words}");
        }
    }
}
