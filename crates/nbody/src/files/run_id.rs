//! The id of a run, which every file that the run writes carries: a file of another run in its directory is found by it.

use std::path::Path;

use hdf5::Group;
use hdf5::types::FixedAscii;
use sha2::{Digest, Sha256};

use super::hdf::Reader;
use super::{FileError, regular};
pub use nbody_sim::files::run_id::RunId;
use nbody_sim::files::run_id::{COLUMN, COMMENT, DIGITS};

/// Its name in HDF5 files, as an attribute of `/Header`, `/Checkpoint` or `/Grid`.
const ATTRIBUTE: &str = "RunID";
/// Its key in JSON files.
pub const KEY: &str = "run_id";

/// The id of a run with these keys and values of its scenario, in order, and these numbers at its start.
pub fn of<'a>(physics: impl Iterator<Item = (&'a str, &'a str)>, state: &[&[f64]]) -> RunId {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for (key, value) in physics {
        part(key.as_bytes());
        part(value.as_bytes());
    }
    for numbers in state {
        part(&(numbers.len() as u64).to_le_bytes());
        for block in numbers.chunks(1 << 13) {
            part(&block.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
        }
    }
    let hash = hash.finalize();
    RunId::of_hash(std::array::from_fn(|i| hash[i]))
}

pub(super) fn put(id: RunId, group: &Group) -> hdf5::Result<()> {
    let text = FixedAscii::<DIGITS>::from_ascii(id.as_str()).map_err(|e| e.to_string())?;
    super::hdf::put_attr(group, ATTRIBUTE, text)
}

/// The id in an HDF5 group; `None` where it has none.
pub(super) fn get(group: &Group) -> Option<RunId> {
    let names = group.attr_names().ok()?;
    let attribute = names.iter().any(|n| n == ATTRIBUTE).then(|| group.attr(ATTRIBUTE).ok())??;
    RunId::parse(attribute.read_scalar::<FixedAscii<DIGITS>>().ok()?.as_str())
}

/// The id in a file of a run directory; `None` where it has none, as files of older versions.
///
/// # Errors
/// [`FileError`] for a file that cannot be read or is damaged.
pub fn of_file(path: &Path) -> Result<Option<RunId>, FileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".hdf") {
        let reader = Reader::open(path)?;
        for group in ["/Header", "/Checkpoint", "/Grid"] {
            if let Some(group) = reader.group(group)? {
                return Ok(get(&group));
            }
        }
        return Ok(None);
    }
    let text = regular::text(path, regular::TABLE)?;
    if name.ends_with(".csv") {
        let last = text.lines().next().and_then(|header| header.rsplit(',').next());
        return Ok(last.and_then(|column| RunId::parse(column.strip_prefix(COLUMN)?)));
    }
    if name.ends_with(".toml") {
        return Ok(text.lines().find_map(|line| RunId::parse(line.strip_prefix(COMMENT)?)));
    }
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| FileError::data(path, format!("not JSON ({e})")))?;
    Ok(value[KEY].as_str().and_then(RunId::parse))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_depends_on_each_key_and_number() {
        let of = |keys: &[(&str, &str)], state: &[&[f64]]| super::of(keys.iter().copied(), state);
        let id = of(&[("run.seed", "1")], &[&[1.0, 2.0], &[3.0]]);
        assert_eq!(RunId::parse(id.as_str()), Some(id));
        assert_eq!(id, of(&[("run.seed", "1")], &[&[1.0, 2.0], &[3.0]]));
        for other in [
            of(&[("run.seed", "2")], &[&[1.0, 2.0], &[3.0]]),
            of(&[("run.see", "d1")], &[&[1.0, 2.0], &[3.0]]),
            of(&[("run.seed", "1")], &[&[1.0, 2.5], &[3.0]]),
            of(&[("run.seed", "1")], &[&[1.0], &[2.0, 3.0]]),
        ] {
            assert_ne!(id, other);
        }
        assert!(RunId::parse("0123").is_none() && RunId::parse("0123456789abcdeg").is_none());
    }
}
