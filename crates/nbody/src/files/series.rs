//! `run.hdf.series`: the index of a run's snapshots, from which ParaView takes their times.
//!
//! Without it ParaView would number the files 0, 1, 2 … The index lists files in its own folder and
//! their times:
//! `{"file-series-version":"1.0","files":[{"name":"snap_000000.hdf","time":0.0}, …]}`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run_id::{self, RunId};
use super::{FileError, atomic, regular, snapshot};

/// The index of a run's snapshots, in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    path: PathBuf,
    run: Option<RunId>,
    entries: Vec<Entry>,
}

/// A snapshot and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the file, which is in the folder of the index.
    pub name: String,
    /// Its time.
    pub time: f64,
}

#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(rename = "file-series-version")]
    version: String,
    /// ParaView does not look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    files: Vec<Entry>,
}

impl Series {
    /// An index without entries, to be written at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Series { path: path.into(), run: None, entries: vec![] }
    }

    /// The same as the index of the run with this id.
    pub fn of_run(self, run: Option<RunId>) -> Self {
        Series { run, ..self }
    }

    /// Reads an index.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] if it is not an index of this
    /// kind, or names a file outside its folder.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = regular::read(path, regular::TABLE)?;
        let document: Document = serde_json::from_slice(&text)
            .map_err(|e| FileError::data(path, format!("not an index of snapshots ({e})")))?;
        if document.version != "1.0" {
            return Err(FileError::data(path, format!("version {:?} instead of \"1.0\"", document.version)));
        }
        let mut series = Series::new(path).of_run(document.run_id.as_deref().and_then(RunId::parse));
        for Entry { name, time } in document.files {
            if Path::new(&name).file_name().is_none_or(|n| n != name.as_str()) {
                return Err(FileError::data(path, format!("{name:?} is not the plain name of a file")));
            }
            series.insert(&name, time);
        }
        Ok(series)
    }

    /// The index at `path` of those of the files `names` next to it that are of the run with this id, by the times in them.
    ///
    /// # Errors
    /// [`FileError`] for a file that cannot be read or is damaged.
    pub fn found(path: &Path, names: &[String], run: Option<RunId>) -> Result<Self, FileError> {
        let mut series = Series::new(path).of_run(run);
        for name in names {
            let file = path.with_file_name(name);
            if run_id::of_file(&file)? == run {
                series.insert(name, snapshot::time(&file)?);
            }
        }
        Ok(series)
    }

    /// The snapshots, in order of time.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Leaves out the snapshots that `keep` does not want; the index on the disk is as it was until the next
    /// [`add`](Series::add) or [`write`](Series::write).
    pub fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
    }

    /// Adds a snapshot, or changes the time of one that is there, and rewrites the index.
    ///
    /// # Errors
    /// [`FileError::Unwritable`] for a time that is not finite; [`FileError::Io`].
    pub fn add(&mut self, name: &str, time: f64) -> Result<(), FileError> {
        if !time.is_finite() {
            return Err(FileError::unwritable(&self.path, format!("the time of {name} is {time}")));
        }
        self.insert(name, time);
        self.write()
    }

    /// Writes the index.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn write(&self) -> Result<(), FileError> {
        let run_id = self.run.map(|id| id.to_string());
        let document = Document { version: "1.0".into(), run_id, files: self.entries.clone() };
        let mut text =
            serde_json::to_vec_pretty(&document).map_err(|e| FileError::io(&self.path, "write")(e.into()))?;
        text.push(b'\n');
        atomic::replace(&self.path, &text)
    }

    fn insert(&mut self, name: &str, time: f64) {
        self.entries.retain(|e| e.name != name);
        let place = self.entries.partition_point(|e| e.time <= time);
        self.entries.insert(place, Entry { name: name.to_owned(), time });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_index_comes_back_and_keeps_its_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.hdf.series");
        let mut series = Series::new(&path);
        for (name, time) in [("b.hdf", 0.1), ("a.hdf", 0.0), ("c.hdf", 0.1 + 0.2), ("b.hdf", 0.15)] {
            series.add(name, time).unwrap();
        }
        let back = Series::read(&path).unwrap();
        assert_eq!(back, series);
        let list: Vec<_> = back.entries().iter().map(|e| (e.name.as_str(), e.time)).collect();
        assert_eq!(list, [("a.hdf", 0.0), ("b.hdf", 0.15), ("c.hdf", 0.1 + 0.2)]);
    }

    #[test]
    fn what_is_no_index_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.hdf.series");
        assert_eq!(Series::read(&path).unwrap_err().exit_code(), 66);
        for (text, words) in [
            ("", "not an index"),
            (r#"{"file-series-version":"2.0","files":[]}"#, "version \"2.0\""),
            (r#"{"file-series-version":"1.0","files":[{"name":"../a.hdf","time":0}]}"#, "plain name"),
            (r#"{"file-series-version":"1.0","files":[{"name":"a.hdf"}]}"#, "missing field `time`"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Series::read(&path).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.exit_code(), 65);
        }
        assert!(Series::new(&path).add("a.hdf", f64::NAN).is_err());
    }
}
