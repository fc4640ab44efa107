//! The check of one HDF5 file: checksums of all arrays, then what its kind asks for.

use std::path::Path;

use super::Findings;
use crate::failure::Failure;
use crate::files::formats::{self, temporal::Temporal};
use crate::files::snapshot::Snapshot;
use crate::files::{FileError, blocks, checkpoint, digest, snapshot};

/// What kind of file was checked, and what it held if it is whole.
pub enum Kind {
    /// A snapshot.
    Snapshot(Box<Snapshot>),
    /// A checkpoint: step, time and scenario.
    Checkpoint(u64, f64, String),
    /// A VTKHDF file with steps.
    Temporal,
    /// Fields on a grid.
    Grid(blocks::About),
    /// Damaged.
    Damaged,
}

/// Checks a file on its own.
///
/// # Errors
/// 66 and 74 where it cannot be read at all.
pub fn check(path: &Path, findings: &mut Findings) -> Result<(), Failure> {
    if formats::is_read_by_ending(path) {
        let line = format!("{}: only HDF5 files have checksums; nbody info reads this one through", path.display());
        return Err(Failure::new(65, line));
    }
    if formats::is_scenario(path) {
        let line = format!("{0}: a scenario has no checksums; nbody run {0} --dry-run checks it", path.display());
        return Err(Failure::new(65, line));
    }
    // Where even this is unknown, the file is damaged.
    if snapshot::foreign(path).unwrap_or(false) && !blocks::about(path).is_ok_and(|about| about.is_some()) {
        return Err(Failure::new(65, format!("{}: {}", path.display(), snapshot::FOREIGN)));
    }
    if let Kind::Checkpoint(step, time, _) = examine(path, findings)? {
        let folder = match path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        let how = format!("from step {step}, time {time}: nbody run --resume {}", folder.display());
        findings.resume = Some(how);
    }
    Ok(())
}

/// Checks a file and notes its hash.
///
/// # Errors
/// As [`check`].
pub fn examine(path: &Path, findings: &mut Findings) -> Result<Kind, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let found = match digest::digest(path) {
        Err(e @ FileError::Data { .. }) => {
            findings.problem(65, e.to_string());
            return Ok(Kind::Damaged);
        }
        found => found?,
    };
    for damage in &found.damage {
        findings.problem(65, format!("{name}: {damage}"));
    }
    let kind = if found.damage.is_empty() { known(path) } else { Ok(Kind::Damaged) };
    match kind {
        Err(e) => {
            findings.problem(e.exit_code(), e.to_string());
            Ok(Kind::Damaged)
        }
        Ok(Kind::Damaged) => Ok(Kind::Damaged),
        Ok(kind) => {
            let what = match &kind {
                Kind::Snapshot(s) => format!("snapshot of {} particles at time {}", s.id.len(), s.time),
                Kind::Checkpoint(step, time, _) => format!("checkpoint at step {step}, time {time}"),
                Kind::Grid(about) => format!("fields on {} blocks at time {}", about.blocks, about.time),
                _ => "temporal VTKHDF".to_string(),
            };
            let without = found.arrays - found.with_checksum;
            let guard = match without {
                0 => "all with checksums".to_string(),
                _ => format!("{without} of them without checksums, as their writer left them"),
            };
            findings.note(format!("{name}: {what}; {} arrays, {} bytes, {guard}", found.arrays, found.bytes));
            findings.hashes.push((found.sha256, name));
            Ok(kind)
        }
    }
}

/// Reads the file as what it is, with all the checks of that.
fn known(path: &Path) -> Result<Kind, FileError> {
    if let Some(temporal) = Temporal::open(path)? {
        for step in 0..temporal.times().len() {
            temporal.load(step)?;
        }
        return Ok(Kind::Temporal);
    }
    if let Some(about) = blocks::about(path)? {
        return Ok(Kind::Grid(about));
    }
    if checkpoint::is(path)? {
        let c = checkpoint::read(path)?;
        return Ok(Kind::Checkpoint(c.step, c.time, c.scenario));
    }
    let s = snapshot::read(path)?;
    snapshot::check_vtkhdf(path, &s)?;
    Ok(Kind::Snapshot(Box::new(s)))
}
