//! Facts on fields on a grid.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::json;

use super::facts::Facts;
use crate::failure::Failure;
use crate::files::blocks::{self, About};
use crate::files::checkpoint::{self, State};

/// What HDF5 files begin with.
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// What the file at `path` says of its grid; `None` for all other files.
///
/// # Errors
/// 65 for a damaged file.
pub fn about(path: &Path) -> Result<Option<About>, Failure> {
    if is_hdf5(path) { Ok(blocks::about(path)?) } else { Ok(None) }
}

fn is_hdf5(path: &Path) -> bool {
    let mut begin = [0; SIGNATURE.len()];
    let read = path.is_file() && File::open(path).and_then(|mut f| f.read_exact(&mut begin)).is_ok();
    read && begin == *SIGNATURE
}

/// Facts on the checkpoint of a flow at `path`; `None` for all other files.
///
/// # Errors
/// 65 for a damaged file.
pub fn of_checkpoint(path: &Path) -> Result<Option<Facts>, Failure> {
    if !is_hdf5(path) || !checkpoint::is(path)? {
        return Ok(None);
    }
    let c = checkpoint::read(path)?;
    let State::Flow(flow) = c.state else { return Ok(None) };
    let about = About { step: c.step, time: c.time, blocks: flow.blocks.len() as u64 };
    Ok(Some(described("checkpoint of a flow on a grid", path, &about)))
}

/// Facts on a single file of fields on a grid.
pub fn facts(path: &Path, about: &About) -> Facts {
    described("fields on a grid", path, about)
}

fn described(kind: &str, path: &Path, about: &About) -> Facts {
    let mut facts = Facts::new(path.display().to_string());
    facts.add("kind", json!(kind));
    facts.add("step", json!(about.step));
    facts.add("time", json!(about.time));
    add(&mut facts, about);
    facts
}

/// Adds what there is to say of the grid.
pub fn add(facts: &mut Facts, about: &About) {
    facts.add_as("blocks", json!(about.blocks), format!("{} of 16³ cells", about.blocks));
}
