//! Snapshots that are written while the run goes on.
//!
//! One at a time: its thread does to the file what the run itself would do, and the run asks for the outcome before it writes the
//! next snapshot, a checkpoint or its last files.

use std::fmt::Display;
use std::path::Path;
use std::thread::{self, JoinHandle};

use rayon::ThreadPoolBuilder;

use crate::failure::Failure;
use crate::files::snapshot::{self, Layout, Snapshot};

/// Makes a snapshot where it is written.
pub type Taking = Box<dyn FnOnce() -> Result<Snapshot, Failure> + Send>;

/// A snapshot that is on the disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Name of the file.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Of the snapshot.
    pub step: u64,
    /// Of the snapshot.
    pub time: f64,
}

/// Writes snapshots in a thread while the run goes on.
#[derive(Default)]
pub struct Writer {
    busy: Option<(Written, JoinHandle<Result<u64, Failure>>)>,
}

impl Writer {
    /// Begins to write what `taking` makes of `step` and `time` as `name` in `folder`. The one before must be
    /// [settled](Writer::settle).
    ///
    /// # Errors
    /// 71 if there can be no threads.
    ///
    /// # Panics
    /// If another is being written.
    pub fn begin(
        &mut self,
        folder: &Path,
        name: String,
        (step, time): (u64, f64),
        taking: Taking,
        layout: &Layout,
    ) -> Result<(), Failure> {
        assert!(self.busy.is_none(), "one snapshot at a time");
        let (path, layout) = (folder.join(&name), layout.clone());
        let written = Written { name, bytes: 0, step, time };
        let failed = |e: &dyn Display| Failure::new(71, format!("cannot start the threads that write snapshots: {e}"));
        // As many as the run has: a thread outside of a pool would take one of all cores.
        let pool = ThreadPoolBuilder::new().num_threads(rayon::current_num_threads()).build();
        let pool = pool.map_err(|e| failed(&e))?;
        let work = move || pool.install(|| Ok(snapshot::write(&path, &taking()?, &layout)?));
        let thread = thread::Builder::new().name("snapshot".into()).spawn(work).map_err(|e| failed(&e))?;
        self.busy = Some((written, thread));
        Ok(())
    }

    /// The snapshot that has been written since the last call, if any. Unless `wait`, one that is not done yet is left alone.
    ///
    /// # Errors
    /// What has kept it from being written.
    pub fn settle(&mut self, wait: bool) -> Result<Option<Written>, Failure> {
        let Some((written, thread)) = self.busy.take_if(|(_, thread)| wait || thread.is_finished()) else {
            return Ok(None);
        };
        match thread.join() {
            Ok(bytes) => Ok(Some(Written { bytes: bytes?, ..written })),
            Err(_) => Err(Failure::new(70, format!("{}: the thread that wrote it has failed", written.name))),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A run that fails elsewhere leaves whole files.
        let _ = self.settle(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::snapshot::{Float, Units};

    fn begin(writer: &mut Writer, folder: &Path, name: &str, step: u64, layout: &Layout) {
        let taking = Box::new(move || Ok(snapshot(step)));
        writer.begin(folder, name.into(), (step, step as f64 * 0.5), taking, layout).unwrap();
    }

    fn snapshot(step: u64) -> Snapshot {
        Snapshot {
            time: step as f64 * 0.5,
            step,
            id: vec![0, 1],
            position: vec![[0.0; 3], [1.0, 2.0, 3.0]],
            velocity: vec![[0.0; 3]; 2],
            mass: vec![1.0; 2],
            charge: None,
            potential: None,
            acceleration: None,
            force_error: None,
            vorticity: None,
            units: Units::default(),
            box_size: 0.0,
            diagnostics: vec![],
            run: None,
        }
    }

    #[test]
    fn a_snapshot_is_told_once_and_is_the_one_that_the_run_would_write() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout { fields: vec![], precision: Float::F64 };
        let mut writer = Writer::default();
        assert_eq!(writer.settle(true).unwrap(), None);
        begin(&mut writer, folder.path(), "a.hdf", 3, &layout);
        let written = writer.settle(true).unwrap().unwrap();
        assert_eq!((written.name.as_str(), written.step, written.time), ("a.hdf", 3, 1.5));
        assert_eq!(writer.settle(true).unwrap(), None);
        let own = folder.path().join("b.hdf");
        assert_eq!(snapshot::write(&own, &snapshot(3), &layout).unwrap(), written.bytes);
        assert!(std::fs::read(own).unwrap() == std::fs::read(folder.path().join("a.hdf")).unwrap());
    }

    #[test]
    fn what_cannot_be_written_is_told_when_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout { fields: vec![], precision: Float::F64 };
        let mut writer = Writer::default();
        begin(&mut writer, &folder.path().join("missing"), "a.hdf", 0, &layout);
        assert_eq!(writer.settle(true).unwrap_err().code, 74);
        // Nor can what was never made.
        let taking: Taking = Box::new(|| Err(Failure::new(71, "no snapshot")));
        writer.begin(folder.path(), "a.hdf".into(), (0, 0.0), taking, &layout).unwrap();
        assert_eq!(writer.settle(true).unwrap_err().code, 71);
        // And then the next can be written.
        begin(&mut writer, folder.path(), "a.hdf", 1, &layout);
        drop(writer);
        assert!(folder.path().join("a.hdf").is_file());
    }
}
