//! Facts on fields on a grid.

use std::path::Path;

use serde_json::json;

use super::facts::Facts;
use crate::fault::Fault;
use crate::files::blocks::{self, About};

/// What the file at `path` says of its grid; `None` for all other files.
///
/// # Errors
/// 65 for a damaged file.
pub fn about(path: &Path) -> Result<Option<About>, Fault> {
    if !path.is_file() || path.extension().is_none_or(|e| e != "hdf") {
        return Ok(None);
    }
    Ok(blocks::about(path)?)
}

/// Facts on such a file alone.
pub fn facts(path: &Path, about: &About) -> Facts {
    let mut facts = Facts::new(path.display().to_string());
    facts.add("kind", json!("fields on a grid"));
    facts.add("step", json!(about.step));
    facts.add("time", json!(about.time));
    add(&mut facts, about);
    facts
}

/// Adds what there is to say of the grid.
pub fn add(facts: &mut Facts, about: &About) {
    facts.add_as("blocks", json!(about.blocks), format!("{} of 16³ cells", about.blocks));
}
