//! The names of the files that a run leaves in its directory.

use std::fs;
use std::path::Path;

use crate::failure::Failure;

/// The names in a folder.
pub fn names(path: &Path) -> Result<Vec<String>, Failure> {
    let list = fs::read_dir(path).and_then(|entries| {
        entries.map(|e| Ok(e?.file_name().to_string_lossy().into_owned())).collect::<std::io::Result<Vec<_>>>()
    });
    list.map_err(|e| Failure::new(74, format!("{}: cannot list the run directory: {e}", path.display())))
}

/// Whether this is what a process that was killed while it wrote a file has left.
pub fn is_temporary(name: &str) -> bool {
    name.strip_prefix('.').and_then(|n| n.split_once(".tmp-")).is_some_and(|(n, _)| is_ours(n))
}

/// Whether a run writes files of this name.
pub fn is_ours(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "scenario.toml",
        "scenario.resolved.toml",
        "run.hdf.series",
        "diagnostics.csv",
        "timings.json",
        crate::paraview::NAME,
        "run.json",
        "checkpoint.0.hdf",
        "checkpoint.1.hdf",
    ];
    NAMES.contains(&name) || is_listed(name) || number(name, "grid_", "csv").is_some()
}

/// Whether this is the name of a file that the index lists: `snap_NNNNNN.hdf` or `grid_NNNNNN.hdf`, with more digits
/// from a million on.
pub fn is_listed(name: &str) -> bool {
    ["snap_", "grid_"].iter().any(|begin| number(name, begin, "hdf").is_some())
}

/// The number in the name of such a numbered file, of six digits or more.
pub fn number(name: &str, begin: &str, end: &str) -> Option<u64> {
    let number = name.strip_prefix(begin).and_then(|n| n.strip_suffix(end)?.strip_suffix('.'))?;
    let all = number.len() >= 6 && number.bytes().all(|b| b.is_ascii_digit());
    all.then(|| number.parse().unwrap_or(u64::MAX))
}

/// Refuses to write over an earlier run in `directory` one of whose files is among the `inputs` of the next.
///
/// # Errors
/// 74 with the file.
pub fn spare(directory: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let folder = |path: &Path| path.canonicalize().ok();
    let written = |path: &Path| {
        let is_ours = path.file_name().and_then(|n| n.to_str()).is_some_and(is_ours);
        is_ours && path.parent().and_then(folder) == folder(directory)
    };
    // A link in the directory would be removed, what it leads to elsewhere would not, and the other way round.
    let lost = inputs.iter().find(|path| written(path) || path.canonicalize().is_ok_and(|p| written(&p)));
    lost.map_or(Ok(()), |path| {
        let line = format!(
            "{}: the scenario reads this file, and --force would remove it with the earlier run; move it out of {}, or \
             name another directory with --out DIR",
            path.display(),
            directory.display()
        );
        Err(Failure::new(74, line))
    })
}
