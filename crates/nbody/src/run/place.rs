//! Where a scenario may have a run write: inside the folder in which the run is started.
//!
//! A scenario may come from anyone. Paths that lead out of that folder, by `..`, from the root or through a link, are for
//! the user to name on the command line.

use std::path::{Component, Path};

use super::{Options, resume};
use crate::failure::Failure;

/// Refuses a run directory elsewhere that the scenario alone names.
///
/// # Errors
/// 65 with the way to allow it, 74 if the present folder has been removed.
pub fn check(directory: &Path, options: &Options) -> Result<(), Failure> {
    let set = |s: &String| s.split_once('=').is_some_and(|(key, _)| key.trim() == "output.directory");
    if resume::folder(options).is_some() || options.sets.iter().any(set) {
        return Ok(());
    }
    let gone = |e| Failure::new(74, format!("the folder in which the run is started cannot be used: {e}"));
    let here = std::env::current_dir().and_then(|d| d.canonicalize()).map_err(gone)?;
    if is_inside(&here, directory) {
        return Ok(());
    }
    let scenario = options.scenario.as_deref().unwrap_or(Path::new("scenario")).display().to_string();
    let name = directory.display();
    let line = format!(
        "{scenario}: output.directory = \"{name}\" leads out of the folder in which the run is started; allowed in a \
         scenario: a folder inside it. To write there all the same, say so with --out {name}"
    );
    Err(Failure::new(65, line))
}

/// Whether `path`, seen from `here`, is in `here` after every link has been followed.
fn is_inside(here: &Path, path: &Path) -> bool {
    if path.components().any(|c| c == Component::ParentDir) {
        return false;
    }
    let whole = here.join(path);
    // What is not there yet will be made inside of what is.
    let there = whole.ancestors().find(|p| p.symlink_metadata().is_ok());
    there.and_then(|p| p.canonicalize().ok()).is_some_and(|p| p.starts_with(here))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::is_inside;

    #[test]
    fn ways_out_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let here = root.join("here");
        fs::create_dir_all(here.join("out")).unwrap();
        symlink("out", here.join("in")).unwrap();
        symlink("..", here.join("up")).unwrap();
        symlink("nowhere", here.join("dangling")).unwrap();
        for inside in ["out", "out/a/b", "new", ".", "in/a"] {
            assert!(is_inside(&here, inside.as_ref()), "{inside}");
        }
        assert!(is_inside(&here, &here.join("out/x")));
        for outside in ["..", "../here/out", "out/../../x", "/tmp", "up/x", "up", "dangling/a", "dangling"] {
            assert!(!is_inside(&here, outside.as_ref()), "{outside}");
        }
        // A folder whose name begins alike.
        fs::create_dir(root.join("here2")).unwrap();
        assert!(!is_inside(&here, &root.join("here2")));
    }
}
