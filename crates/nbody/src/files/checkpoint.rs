//! Checkpoints: the whole state of a run, from which it goes on bit for bit.
//!
//! Two files take turns, `checkpoint.0.hdf` and `checkpoint.1.hdf`: the last good one is never
//! touched until the next one is complete, checked and synced. A SHA-256 over all contents of the
//! file finds the damage that HDF5's own checksums do not cover.

mod state;

use std::path::{Path, PathBuf};

use hdf5::File;
use sha2::{Digest, Sha256};

use super::FileError;
use super::atomic::Temporary;
use super::hdf::{self, Reader, put, put_attr, put_group, put_one};
use super::run_id::{self, RunId};
pub use state::{Contents, Flow, Particles, State, Stored};

/// The names of the two files.
pub const NAMES: [&str; 2] = ["checkpoint.0.hdf", "checkpoint.1.hdf"];

/// A scenario is a text written by hand; more than this is not one.
const LONGEST_SCENARIO: usize = 1 << 24;

/// The state of a run between two steps; `S` is what moves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkpoint<S = State> {
    /// Number of steps done.
    pub step: u64,
    /// Time reached.
    pub time: f64,
    /// The scenario with every value (`scenario.resolved.toml`).
    pub scenario: String,
    /// What moves.
    pub state: S,
    /// What the run remembers of its past in addition to the state, such as the energy at its
    /// start.
    pub numbers: Vec<(String, f64)>,
    /// The run; `None` where a version without run ids began it.
    pub run: Option<RunId>,
}

/// A checkpoint that was read and found whole.
#[derive(Debug)]
pub struct Latest {
    /// The state.
    pub checkpoint: Checkpoint,
    /// The file that it came from.
    pub path: PathBuf,
    /// What is wrong with the other file, if it is damaged: its state may have been the newer one.
    pub damaged: Option<FileError>,
}

/// The checkpoints of one run, written in turns.
pub struct Checkpoints {
    folder: PathBuf,
    next: usize,
    /// Bytes that the next one may take; known once there is one.
    size: Option<u64>,
    /// The space for the next one, which no other file can take.
    reserved: Option<Temporary>,
}

/// Bytes by which a checkpoint may exceed the one before: compression and what is remembered differ.
const SLACK: u64 = 1 << 16;

impl Checkpoints {
    /// For a run that begins in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Checkpoints { folder: folder.into(), next: 0, size: None, reserved: None }
    }

    /// For a run that goes on from `latest`, which the next checkpoint will not overwrite.
    pub fn after(latest: &Latest) -> Self {
        let next = usize::from(latest.path.ends_with(NAMES[0]));
        let size = std::fs::metadata(&latest.path).ok().map(|m| m.len() + SLACK);
        Checkpoints { folder: latest.path.with_file_name(""), next, size, reserved: None }
    }

    /// Writes a checkpoint over the older of the two files; returns its path and size in bytes.
    ///
    /// # Errors
    /// [`FileError::Unwritable`] if the state is not finite or its arrays differ in length; [`FileError::Io`],
    /// [`FileError::Hdf5`]. The files are then as before.
    pub fn write<S: Stored>(&mut self, checkpoint: &Checkpoint<S>) -> Result<(PathBuf, u64), FileError> {
        let path = self.folder.join(NAMES[self.next]);
        checkpoint.check().map_err(|what| FileError::unwritable(&path, what))?;
        let temporary = self.reserved.take().map_or_else(|| Temporary::new(&path), Ok)?;
        let bytes = hdf::write_file_by(temporary, &path, checkpoint.estimate(), |file| fill(file, checkpoint))?;
        (self.next, self.size) = (1 - self.next, Some(bytes + SLACK));
        Ok((path, bytes))
    }

    /// Reserves the space of the next checkpoint on the disk, if one has been written and it is not reserved yet.
    ///
    /// # Errors
    /// [`FileError::Io`] where the disk has no room for it.
    pub fn reserve(&mut self) -> Result<(), FileError> {
        if let (Some(size), None) = (self.size, &self.reserved) {
            self.reserved = Some(Temporary::new(&self.folder.join(NAMES[self.next]))?.reserve(size)?);
        }
        Ok(())
    }
}

/// The newest checkpoint of a folder that is whole; `None` where there is none at all.
///
/// # Errors
/// The damage of the newer file, if there is no whole one.
pub fn latest(folder: &Path) -> Result<Option<Latest>, FileError> {
    let mut found: Vec<(Checkpoint, PathBuf)> = vec![];
    let mut damaged = None;
    for path in NAMES.map(|n| folder.join(n)) {
        match read(&path) {
            Ok(checkpoint) => found.push((checkpoint, path)),
            Err(FileError::Missing { .. }) => {}
            Err(e) => damaged = Some(e),
        }
    }
    // By time: with a longer step, which --force allows, a later state has a smaller number.
    // Of one step, the one after more outputs is the later: a run that was stopped, and then ended there, has another end.
    let place = |c: &Checkpoint| (c.step, c.number("output_calls").map_or(0, |n| n as u64));
    let newest = found.into_iter().max_by(|(a, _), (b, _)| a.time.total_cmp(&b.time).then(place(a).cmp(&place(b))));
    match (newest, damaged) {
        (Some((checkpoint, path)), damaged) => Ok(Some(Latest { checkpoint, path, damaged })),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(None),
    }
}

/// Writes one checkpoint file and returns its size in bytes.
///
/// # Errors
/// As [`Checkpoints::write`].
pub fn write<S: Stored>(path: &Path, checkpoint: &Checkpoint<S>) -> Result<u64, FileError> {
    checkpoint.check().map_err(|what| FileError::unwritable(path, what))?;
    hdf::write_file(path, checkpoint.estimate(), |file| fill(file, checkpoint))
}

fn fill<S: Stored>(file: &File, c: &Checkpoint<S>) -> hdf5::Result<()> {
    let (group, contents) = (put_group(file, "Checkpoint")?, c.state.contents());
    put_attr(&group, "Format", contents.format(c.run.is_some()))?;
    c.run.map_or(Ok(()), |run| run_id::put(run, &group))?;
    put_attr(&group, "Time", c.time)?;
    put_one(&group, "Step", c.step)?;
    put(&group, "Scenario", c.scenario.as_bytes(), true)?;
    put(&group, "ScenarioSHA256", &Sha256::digest(&c.scenario)[..], false)?;
    put(&group, "StateSHA256", &c.digest()[..], false)?;
    contents.fill(&group)?;
    let numbers = put_group(&group, "Numbers")?;
    c.numbers.iter().try_for_each(|(name, value)| put_attr(&numbers, name, *value))?;
    contents.fill_last(&group)
}

/// Whether an HDF5 file is a checkpoint, whole or not.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] for what is not HDF5.
pub fn is(path: &Path) -> Result<bool, FileError> {
    Ok(Reader::open(path)?.group("/Checkpoint")?.is_some())
}

/// Reads one checkpoint file and checks that it is whole.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] for any damage.
pub fn read(path: &Path) -> Result<Checkpoint, FileError> {
    let reader = Reader::open(path)?;
    let group = reader.need_group("/Checkpoint")?;
    let format = reader.need_attr(&group, "Format")?;
    if !(1..=state::LATEST).any(|f| f as f64 == format) {
        let what = format!("a checkpoint of format {format}; this program reads formats 1 to {}", state::LATEST);
        return Err(reader.error(what));
    }
    let missing = |name: &str| reader.error(format!("/Checkpoint/{name} is missing"));
    let bytes = |name, limit| reader.bytes(&group, name, limit)?.ok_or_else(|| missing(name));
    let scenario = bytes("Scenario", LONGEST_SCENARIO)?;
    if bytes("ScenarioSHA256", 32)? != Sha256::digest(&scenario)[..] {
        return Err(reader.error("/Checkpoint/Scenario differs from its SHA-256; the file is damaged"));
    }
    let mut numbers = vec![];
    let remembered = reader.need_group("/Checkpoint/Numbers")?;
    for name in reader.attr_names(&remembered)? {
        numbers.push((name.clone(), reader.need_attr(&remembered, &name)?));
    }
    let checkpoint = Checkpoint {
        numbers,
        step: reader.integers(&group, "Step", 1)?.ok_or_else(|| missing("Step"))?[0],
        time: reader.need_attr(&group, "Time")?,
        scenario: String::from_utf8(scenario).map_err(|_| reader.error("/Checkpoint/Scenario is not text in UTF-8"))?,
        state: State::read(&reader, &group, format)?,
        run: run_id::get(&group),
    };
    if bytes("StateSHA256", 32)? != checkpoint.digest() {
        return Err(reader.error("the state differs from its SHA-256; the file is damaged"));
    }
    Ok(checkpoint)
}

impl<S> Checkpoint<S> {
    /// SHA-256 of the scenario's text, in hexadecimal.
    pub fn scenario_hash(&self) -> String {
        Sha256::digest(&self.scenario).iter().map(|b| format!("{b:02x}")).collect()
    }

    /// A number that the run remembers.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers.iter().find(|(n, _)| n == name).map(|&(_, v)| v)
    }
}

impl<S: Stored> Checkpoint<S> {
    /// An upper bound of its size in a file, in bytes.
    fn estimate(&self) -> u64 {
        (self.state.contents().estimate() + self.scenario.len()) as u64 + (1 << 20)
    }

    fn check(&self) -> Result<(), String> {
        if !self.time.is_finite() {
            return Err(format!("the time is {}", self.time));
        }
        if let Some((name, value)) = self.numbers.iter().find(|(_, v)| !v.is_finite()) {
            return Err(format!("{name} is {value}"));
        }
        if self.scenario.len() > LONGEST_SCENARIO {
            return Err(format!("a scenario of {} bytes", self.scenario.len()));
        }
        self.state.contents().check()
    }

    /// SHA-256 over everything, each part preceded by its length.
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.step.to_le_bytes());
        hash.update(self.time.to_le_bytes());
        hash.update((self.scenario.len() as u64).to_le_bytes());
        hash.update(&self.scenario);
        hash.update([self.state.contents().tag()]);
        // Attributes have no order of their own.
        let mut numbers: Vec<_> = self.numbers.iter().collect();
        numbers.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, value) in numbers {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(value.to_le_bytes());
        }
        // Files of format 1 have none.
        if let Some(run) = self.run {
            hash.update(run.as_str());
        }
        self.state.contents().hash(&mut hash);
        hash.finalize().into()
    }
}
