//! The run directory: which files a run leaves, and who may write there.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nbody_sim::files::rows::Rows;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde_json::Value;

use super::identity::Identity;
use super::names::{is_listed, is_ours, is_temporary, names, number, spare};
use super::table;
use super::writer::{Taking, Writer, Written};
use crate::console;
use crate::failure::Failure;
use crate::figure::ENDINGS;
use crate::files::checkpoint::{self, Checkpoint, Checkpoints, Latest, Stored};
use crate::files::run_id::{self, RunId};
use crate::files::series::Series;
use crate::files::snapshot::{self, Layout, Snapshot};
use crate::files::{FileError, atomic, regular};
use crate::plot;

/// The directory of a run under way.
pub struct RunDirectory {
    path: PathBuf,
    /// In every file that the run writes; none where a version without ids began the run.
    id: Option<RunId>,
    series: Series,
    checkpoints: Checkpoints,
    /// Opened with the first line, which is its header.
    diagnostics: Option<File>,
    /// The time of its last line.
    last_line: Option<f64>,
    writer: Writer,
    /// The scenario of a run that has written nothing; the files of an earlier one may still be here.
    given: Option<String>,
    /// Open for as long as the run may write here.
    _lock: File,
}

/// Where a directory is brought back to.
pub struct Rewind<'a> {
    /// The time of the checkpoint.
    pub time: f64,
    /// The step of the run until then.
    pub dt: f64,
    /// Columns of its `diagnostics.csv`, as [`RunDirectory::diagnostics`] takes them.
    pub columns: &'a str,
    /// Whether the last snapshot and the last line were written only because the run ended.
    pub surplus: [bool; 2],
    /// Number of the files of fields that stay.
    pub files: Option<u64>,
}

/// The file whose lock says that a process is at work in the directory.
const LOCK: &str = ".lock";
const INDEX: &str = "run.hdf.series";
const DIAGNOSTICS: &str = "diagnostics.csv";

/// Removes the figures of an earlier run, and their folder if nothing else is in it.
fn remove_figures(folder: &Path) -> Result<(), Failure> {
    // Behind a link are files of somebody else.
    if !fs::symlink_metadata(folder).is_ok_and(|m| m.is_dir()) {
        return Ok(());
    }
    for name in plot::NAMES {
        for ending in ENDINGS {
            let file = folder.join(format!("{name}.{ending}"));
            match fs::remove_file(&file) {
                Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return Err(cannot("remove", &file)(e));
                }
                _ => {}
            }
        }
    }
    match fs::remove_dir(folder) {
        Err(e)
            if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::DirectoryNotEmpty) =>
        {
            Err(cannot("remove", folder)(e))
        }
        _ => Ok(()),
    }
}

fn cannot(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let line = format!("{}: cannot {what}", path.display());
    move |e| Failure::new(74, format!("{line}: {e}"))
}

/// Whether the resolved scenario of a folder has a section; `None` where it is unknown.
pub fn has_section(folder: &Path, section: &str) -> Option<bool> {
    let scenario = regular::text(&folder.join("scenario.resolved.toml"), regular::REPORT).ok()?;
    scenario.parse::<toml::Table>().ok().map(|t| t.contains_key(section))
}

/// Makes the directory. If it is new, syncs its parents, so that it survives a power cut.
fn make(path: &Path) -> Result<(), Failure> {
    let fresh: Vec<&Path> = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists()).collect();
    fs::create_dir_all(path).map_err(cannot("create the run directory", path))?;
    for made in fresh {
        let parent = made.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|d| d.sync_all()).map_err(cannot("sync the folder", parent))?;
    }
    Ok(())
}

/// Opens the lock of a run directory and takes it, for as long as the file is open.
///
/// The file stays behind: removing it would let a third process lock another file of the same name. The lock belongs to this process alone:
/// a child that begins as its parent is killed does not hold it on.
fn lock(path: &Path) -> Result<File, Failure> {
    let name = path.join(LOCK);
    // A link would make or lock a file elsewhere, and a pipe would wait for a reader.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = fs::OpenOptions::new();
    let open = options.create(true).truncate(false).write(true).custom_flags(flags.cast_signed()).open(&name);
    let file = open.map_err(|e| match fs::symlink_metadata(&name) {
        Ok(found) if !found.is_file() => Failure::from(FileError::data(&name, "not a regular file; remove it")),
        _ => cannot("create", &name)(e),
    })?;
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return Err(FileError::data(&name, "not a regular file; remove it").into());
    }
    match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        // Some network file systems have no locks; a run there is not refused for it.
        Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => Ok(file),
        Err(Errno::AGAIN | Errno::ACCESS) => {
            let line = format!(
                "{}: another nbody run is at work in this directory; wait for it, or name another with --out DIR",
                path.display()
            );
            Err(Failure::new(74, line))
        }
        Err(e) => Err(cannot("lock", &name)(e.into())),
    }
}

/// The names of what a run has written.
fn written(path: &Path) -> Result<Vec<String>, Failure> {
    let mut names = names(path)?;
    names.retain(|n| is_ours(n) || is_temporary(n));
    Ok(names)
}

impl RunDirectory {
    /// Creates the directory. One with files in it is refused unless `force`; then an earlier run's files are removed, because its
    /// later snapshots would mix with the new ones, but not before there is something to write, and the text of the scenario
    /// then: a run that cannot begin leaves what it found. `inputs` are the files that the scenario reads.
    ///
    /// # Errors
    /// 74 for a directory that is in use, whose files cannot be written, or are inputs.
    pub fn create(path: &Path, (scenario, inputs): (&str, &[&Path]), force: bool, id: RunId) -> Result<Self, Failure> {
        let path = path.to_owned();
        make(&path)?;
        let names = names(&path)?;
        if names.iter().any(|n| n != LOCK) && !force {
            let held = names.iter().filter(|n| *n != LOCK).count();
            let resumable = names.iter().any(|n| checkpoint::NAMES.contains(&n.as_str()));
            let resume = if resumable { "go on with --resume, " } else { "" };
            let line = format!(
                "{}: the run directory holds {held} files already; name another with --out DIR, {resume}or overwrite with --force",
                path.display(),
            );
            return Err(Failure::new(74, line));
        }
        let lock = lock(&path)?;
        // The process that held the lock until now may have changed them.
        let fresh = written(&path)?.is_empty();
        if !fresh && !force {
            return Err(Failure::new(74, format!("{}: another nbody run has begun in this directory", path.display())));
        }
        if !fresh {
            spare(&path, inputs)?;
        }
        Ok(RunDirectory { given: Some(scenario.into()), ..RunDirectory::of(path, Some(id), lock) })
    }

    /// Removes the files of an earlier run and writes the scenario as given, if it was not done.
    fn begin(&mut self) -> Result<(), Failure> {
        let Some(scenario) = self.given.take() else { return Ok(()) };
        let mut names = written(&self.path)?;
        // Checkpoints first: an end in the middle leaves none that a run could go on from without its snapshots.
        names.sort_by_key(|n| !n.starts_with("checkpoint."));
        for name in names {
            let file = self.path.join(name);
            fs::remove_file(&file).map_err(cannot("remove", &file))?;
        }
        remove_figures(&self.path.join(plot::FOLDER))?;
        self.write_given(&scenario)
    }

    /// Takes the directory of an earlier run, before its checkpoint is read: nobody else then changes it.
    ///
    /// # Errors
    /// 74 if another process is at work in it, or it cannot be written; 65 if files of another run lie in it.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let lock = lock(path)?;
        let id = Identity::of_folder(path)?.agreed(path)?;
        Ok(RunDirectory::of(path.to_owned(), id, lock))
    }

    fn of(path: PathBuf, id: Option<RunId>, lock: File) -> Self {
        let (series, checkpoints) = (Series::new(path.join(INDEX)).of_run(id), Checkpoints::new(&path));
        let writer = Writer::default();
        RunDirectory {
            path,
            id,
            series,
            checkpoints,
            diagnostics: None,
            last_line: None,
            writer,
            given: None,
            _lock: lock,
        }
    }

    /// Brings the directory back to the state at `latest`. Later files are written again, and files
    /// that were written only because the run ended there have no place in a run that goes on.
    ///
    /// # Errors
    /// 65 for files that are not those of this kind of run, 74 for those that cannot be written.
    pub fn rewind(&mut self, latest: &Latest, back: &Rewind) -> Result<(), Failure> {
        self.checkpoints = Checkpoints::after(latest);
        // Times are those of whole steps: nearer than a part of one is equal.
        let Rewind { time, dt, surplus, .. } = *back;
        let kept = |t: f64, surplus: bool| if surplus { t < time - 1e-6 * dt } else { t <= time + 1e-6 * dt };
        let index = self.path.join(INDEX);
        self.series = match Series::read(&index) {
            Ok(series) => series.of_run(self.id),
            Err(damage @ (FileError::Missing { .. } | FileError::Data { .. })) => {
                let mut listed = names(&self.path)?;
                listed.retain(|name| is_listed(name));
                let series = Series::found(&index, &listed, self.id)?;
                let count = series.entries().len();
                console::tell(format_args!("nbody: warning: {damage}; it is made anew of {count} snapshots"));
                series
            }
            Err(e) => return Err(e.into()),
        };
        self.series.retain(|e| kept(e.time, surplus[0]));
        // The index first: it never names a file that is already removed.
        self.series.write()?;
        for name in names(&self.path)? {
            let unlisted = is_listed(&name) && self.series.entries().iter().all(|e| e.name != name);
            let later = number(&name, "grid_", "csv").is_some_and(|n| back.files.is_some_and(|files| n >= files));
            if unlisted || later || is_temporary(&name) {
                let file = self.path.join(&name);
                fs::remove_file(&file).map_err(cannot("remove", &file))?;
            }
        }
        let path = self.path.join(DIAGNOSTICS);
        let text = match regular::text(&path, regular::TABLE) {
            // A link that leads nowhere would make a file there.
            Err(FileError::Missing { .. }) if fs::symlink_metadata(&path).is_ok() => {
                return Err(FileError::data(&path, "not a regular file; remove it").into());
            }
            Err(FileError::Missing { .. }) => return Ok(()),
            text => text?,
        };
        let Some(table) = table::rewound(&text, back.columns, self.id, |time| kept(time, surplus[1])) else {
            let line =
                format!("{}: has other columns than this version writes; it cannot be continued", path.display());
            return Err(Failure::new(65, line));
        };
        self.last_line = table.last;
        atomic::replace(&path, table.text.as_bytes())?;
        let append = fs::OpenOptions::new().append(true).open(&path).map_err(cannot("open", &path))?;
        self.diagnostics = Some(append);
        Ok(())
    }

    /// The time of the last snapshot.
    pub fn last_snapshot(&self) -> Option<f64> {
        self.series.entries().last().map(|e| e.time)
    }

    /// The time of the last line of `diagnostics.csv`.
    pub fn last_line(&self) -> Option<f64> {
        self.last_line
    }

    /// Writes `scenario.toml`, the scenario as given.
    pub fn write_given(&self, text: &str) -> Result<(), Failure> {
        Ok(atomic::replace(&self.path.join("scenario.toml"), text.as_bytes())?)
    }

    /// Writes the index. It is empty if the run writes none of the files that belong there.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn write_index(&mut self) -> Result<(), Failure> {
        self.begin()?;
        Ok(self.series.write()?)
    }

    /// Names a file of fields in the index.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn list(&mut self, name: &str, time: f64) -> Result<(), Failure> {
        self.begin()?;
        Ok(self.series.add(name, time)?)
    }

    /// The id of the run.
    pub fn id(&self) -> Option<RunId> {
        self.id
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `scenario.resolved.toml`.
    pub fn write_resolved(&mut self, text: &str) -> Result<(), Failure> {
        self.begin()?;
        let id = self.id.map_or(String::new(), RunId::comment);
        Ok(atomic::replace(&self.path.join("scenario.resolved.toml"), format!("{id}{text}").as_bytes())?)
    }

    /// Begins to write the next snapshot, of a step and its time, while the run goes on. The one before must be [settled](Self::settle).
    ///
    /// # Errors
    /// Those of [`Writer::begin`].
    pub fn snapshot(&mut self, of: (u64, f64), taking: Taking, layout: &Layout) -> Result<(), Failure> {
        self.begin()?;
        let (name, run) = (self.next_snapshot(), self.id);
        let taking: Taking = Box::new(move || Ok(Snapshot { run, ..taking()? }));
        self.writer.begin(&self.path, name, of, taking, layout)
    }

    /// Writes the next snapshot, which `about` describes, of particles whose `rows` may be anywhere. The one before must be
    /// [settled](Self::settle).
    ///
    /// # Errors
    /// 74 where it cannot be written, 70 for values that are not finite.
    pub fn snapshot_of(&mut self, about: Snapshot, rows: &dyn Rows, layout: &Layout) -> Result<Written, Failure> {
        self.begin()?;
        let (name, about) = (self.next_snapshot(), Snapshot { run: self.id, ..about });
        let bytes = snapshot::write_rows(&self.path.join(&name), &about, rows, layout)?;
        self.series.add(&name, about.time)?;
        Ok(Written { name, bytes, step: about.step, time: about.time })
    }

    fn next_snapshot(&self) -> String {
        format!("snap_{:06}.hdf", self.series.entries().len())
    }

    /// Adds a snapshot that has been written since the last call to the index, and returns it. With
    /// `wait` false a snapshot that is still being written is left alone.
    ///
    /// # Errors
    /// What has kept it from being written.
    pub fn settle(&mut self, wait: bool) -> Result<Option<Written>, Failure> {
        let written = self.writer.settle(wait)?;
        if let Some(Written { name, time, .. }) = &written {
            self.series.add(name, *time)?;
        }
        Ok(written)
    }

    /// Writes the state, from which a run can go on, over the older of two checkpoints. Returns the
    /// path. Snapshots must be settled, since the checkpoint counts them as written.
    pub fn checkpoint<S: Stored>(&mut self, mut state: Checkpoint<S>) -> Result<PathBuf, Failure> {
        self.begin()?;
        state.run = self.id;
        // What the checkpoint takes for written must be on the disk before it.
        if let Some(file) = &self.diagnostics {
            file.sync_data().map_err(cannot("sync", &self.path.join(DIAGNOSTICS)))?;
        }
        Ok(self.checkpoints.write(&state)?.0)
    }

    /// Keeps space on the disk for the next checkpoint.
    ///
    /// # Errors
    /// 74 where there is none.
    pub fn reserve_checkpoint(&mut self) -> Result<(), Failure> {
        Ok(self.checkpoints.reserve()?)
    }

    /// Adds a line to `diagnostics.csv`, which has these columns, step and time first. Numbers read back to the same bits, what is unknown is
    /// empty.
    ///
    /// # Errors
    /// 74 where it cannot be written.
    pub fn diagnostics(&mut self, columns: &str, (step, time): (u64, f64), cells: &[String]) -> Result<(), Failure> {
        self.begin()?;
        let path = self.path.join(DIAGNOSTICS);
        let (file, header) = match &mut self.diagnostics {
            Some(file) => (file, String::new()),
            none => {
                let file = File::create(&path).map_err(cannot("create", &path))?;
                (none.insert(file), format!("{}\n", table::header(columns, self.id)))
            }
        };
        // The cells below the run's id are empty.
        let id = if self.id.is_some() { "," } else { "" };
        let line = format!("{header}{step},{time:?},{}{id}\n", cells.join(","));
        file.write_all(line.as_bytes()).map_err(cannot("write", &path))?;
        self.last_line = Some(time);
        Ok(())
    }

    /// Whether `run.json` and `timings.json` are there, of this run, complete at `step`.
    pub fn is_reported(&self, step: u64) -> bool {
        let read = |name: &str| {
            let text = regular::read(&self.path.join(name), regular::REPORT).ok()?;
            let value: Value = serde_json::from_slice(&text).ok()?;
            (value[run_id::KEY].as_str().and_then(RunId::parse) == self.id).then_some(value)
        };
        let complete = |run: Value| run["complete"] == true && run["steps"] == step;
        read("run.json").is_some_and(complete) && read("timings.json").is_some_and(|t| t["to_step"] == step)
    }

    /// Writes `run.json` and `timings.json`.
    pub fn finish(&mut self, run: &Value, timings: &Value) -> Result<(), Failure> {
        self.begin()?;
        for (name, value) in [("run.json", run), ("timings.json", timings)] {
            let mut value = value.clone();
            if let Some(id) = self.id {
                value[run_id::KEY] = id.as_str().into();
            }
            let text = format!("{value:#}\n");
            atomic::replace(&self.path.join(name), text.as_bytes())?;
        }
        Ok(())
    }
}
