//! A folder for the files of another code.

use std::fs;
use std::path::PathBuf;

use nbody_sim::failure::Failure;

/// A folder among the temporary ones; removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one for a suite.
    ///
    /// # Errors
    /// 74 where it cannot be made.
    pub fn new(suite: &str) -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("nbody-{suite}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|e| Failure::new(74, format!("{}: cannot create: {e}", path.display())))?;
        Ok(Scratch(path))
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(|e| Failure::new(74, format!("{}: cannot write: {e}", path.display())))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the folder for temporary files hurts nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
