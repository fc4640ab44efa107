//! The run directory: which files a run leaves, and under which names.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fault::Fault;
use crate::files::atomic;
use crate::files::checkpoint::{Checkpoint, Checkpoints};
use crate::files::series::Series;
use crate::files::snapshot::{self, Layout, Snapshot};
use crate::scenario::Scenario;

/// The directory of a run under way.
pub struct RunDirectory {
    path: PathBuf,
    series: Series,
    checkpoints: Checkpoints,
    /// Opened with the first line, which is its header.
    diagnostics: Option<File>,
}

fn cannot(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Fault {
    let line = format!("{}: cannot {what}", path.display());
    move |e| Fault::new(74, format!("{line}: {e}"))
}

/// Whether a run writes files of this name.
fn is_ours(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "scenario.toml",
        "scenario.resolved.toml",
        "run.hdf.series",
        "diagnostics.csv",
        "timings.json",
        "run.json",
        "checkpoint.0.hdf",
        "checkpoint.1.hdf",
    ];
    NAMES.contains(&name) || (name.starts_with("snap_") && name.ends_with(".hdf"))
}

impl RunDirectory {
    /// Creates the directory. One with files in it is refused unless `force`; then an earlier run's files are removed,
    /// because its later snapshots would mix with the new ones.
    pub fn create(scenario: &Scenario, force: bool) -> Result<Self, Fault> {
        let path = scenario.directory.clone();
        fs::create_dir_all(&path).map_err(cannot("create the run directory", &path))?;
        let mut names = vec![];
        for entry in fs::read_dir(&path).map_err(cannot("list the run directory", &path))? {
            let entry = entry.map_err(cannot("list the run directory", &path))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        if !names.is_empty() && !force {
            let line = format!(
                "{}: the run directory holds {} files already; name another with --out DIR, or overwrite with --force",
                path.display(),
                names.len()
            );
            return Err(Fault::new(74, line));
        }
        for name in names.iter().filter(|n| is_ours(n)) {
            let file = path.join(name);
            fs::remove_file(&file).map_err(cannot("remove", &file))?;
        }
        // Created and not replaced: of two runs that start at once in one directory, one fails here.
        let copy = path.join("scenario.toml");
        let mut file = File::create_new(&copy).map_err(cannot("create", &copy))?;
        file.write_all(scenario.text.as_bytes()).map_err(cannot("write", &copy))?;
        let (series, checkpoints) = (Series::new(path.join("run.hdf.series")), Checkpoints::new(&path));
        Ok(RunDirectory { path, series, checkpoints, diagnostics: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `scenario.resolved.toml`.
    pub fn write_resolved(&self, text: &str) -> Result<(), Fault> {
        Ok(atomic::replace(&self.path.join("scenario.resolved.toml"), text.as_bytes())?)
    }

    /// Writes the next snapshot and the index of all.
    pub fn snapshot(&mut self, snapshot: &Snapshot, layout: &Layout) -> Result<(), Fault> {
        let name = format!("snap_{:06}.hdf", self.series.entries().len());
        snapshot::write(&self.path.join(&name), snapshot, layout)?;
        Ok(self.series.add(&name, snapshot.time)?)
    }

    /// Writes the state, from which a run can go on, over the older of two checkpoints; tells where.
    pub fn checkpoint(&mut self, state: &Checkpoint) -> Result<PathBuf, Fault> {
        Ok(self.checkpoints.write(state)?.0)
    }

    /// Adds a line to `diagnostics.csv`; numbers read back to the same bits.
    pub fn diagnostics(&mut self, step: u64, time: f64, values: &[(&str, f64)]) -> Result<(), Fault> {
        let path = self.path.join("diagnostics.csv");
        let (file, header) = match &mut self.diagnostics {
            Some(file) => (file, String::new()),
            none => {
                let names: Vec<&str> = values.iter().map(|(n, _)| *n).collect();
                let file = File::create(&path).map_err(cannot("create", &path))?;
                (none.insert(file), format!("step,time,{}\n", names.join(",")))
            }
        };
        let numbers: Vec<String> = values.iter().map(|(_, v)| format!("{v:?}")).collect();
        let line = format!("{header}{step},{time:?},{}\n", numbers.join(","));
        file.write_all(line.as_bytes()).map_err(cannot("write", &path))
    }

    /// Writes `run.json` and `timings.json`.
    pub fn finish(&mut self, run: &Value, timings: &Value) -> Result<(), Fault> {
        for (name, value) in [("run.json", run), ("timings.json", timings)] {
            let text = format!("{value:#}\n");
            atomic::replace(&self.path.join(name), text.as_bytes())?;
        }
        Ok(())
    }
}
