//! Injectors of faults: a disk that fails on demand, limits of the process, memory and time that a command takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::Folder;

/// The folder that faulty disks watch: run directories of this name.
pub const WATCHED: &str = "watched";

/// Whether the long versions of the tests are asked for, by NBODY_FAULTS=full as in `scripts/acceptance`.
pub fn full() -> bool {
    std::env::var("NBODY_FAULTS").is_ok_and(|v| v == "full")
}

/// Says aloud that an injector is missing; fails where NBODY_REQUIRE_FAULTS is 1.
pub fn missing(what: &str) {
    let required = std::env::var("NBODY_REQUIRE_FAULTS").is_ok_and(|v| v == "1");
    assert!(!required, "NBODY_REQUIRE_FAULTS = 1, and there is no {what}");
    eprintln!("skipped: no {what}");
}

/// A shared library from a source in `tests/faults`, compiled by cc as the program's own is linked.
pub fn library(source: &str, name: &str, options: &[&str]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults").join(source);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
    fs::create_dir_all(&folder).unwrap();
    // Other tests may be making the same.
    let made = folder.join(format!("{name}.{}", std::process::id()));
    let status = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&made).arg(here).args(options).status();
    assert!(status.unwrap().success(), "cc cannot compile {source}");
    fs::rename(&made, folder.join(name)).unwrap();
    folder.join(name)
}

/// What the disk does at a call, as `tests/faults/disk.c` explains.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// Number of the call, from 1.
    pub at: usize,
    /// For example `kill`, or the number of an error.
    pub action: &'a str,
    /// Letters of the calls that count; all if empty.
    pub only: &'a str,
}

/// A call of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Which.
    pub letter: char,
    /// Its path and further words.
    pub words: Vec<String>,
    /// What was written.
    pub data: Vec<u8>,
}

/// What the paths that count have in common: the name of the watched folder, unless `command` has another.
fn watch(command: &mut Command) {
    command.env("LD_PRELOAD", disk());
    if !command.get_envs().any(|(name, _)| name == "FAULTY_ROOT") {
        command.env("FAULTY_ROOT", WATCHED);
    }
}

/// `command` on a disk that fails so.
pub fn on_faulty_disk(mut command: Command, fault: Failure) -> Output {
    watch(&mut command);
    command.env("FAULTY_AT", fault.at.to_string()).env("FAULTY_DO", fault.action);
    if !fault.only.is_empty() {
        command.env("FAULTY_ONLY", fault.only);
    }
    command.output().unwrap()
}

/// What `command` does to the watched folder; it must succeed.
pub fn calls(mut command: Command, only: &str) -> Vec<Call> {
    let log = tempfile::NamedTempFile::new().unwrap();
    watch(&mut command);
    command.env("FAULTY_LOG", log.path());
    if !only.is_empty() {
        command.env("FAULTY_ONLY", only);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", super::outputs(&output));
    let (bytes, mut calls, mut at) = (fs::read(log.path()).unwrap(), vec![], 0);
    while at < bytes.len() {
        let end = at + bytes[at..].iter().position(|&b| b == b'\n').unwrap();
        let line = std::str::from_utf8(&bytes[at..end]).unwrap();
        let words: Vec<String> = line[2..].split('\t').map(str::to_string).collect();
        let size = if line.starts_with('W') { words[2].parse().unwrap() } else { 0 };
        let data = bytes[end + 1..end + 1 + size].to_vec();
        calls.push(Call { letter: line.chars().next().unwrap(), words, data });
        at = end + 1 + size;
    }
    assert!(!calls.is_empty(), "the disk has seen no call");
    calls
}

fn disk() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| library("disk.c", "disk.so", &["-ldl"]))
}

/// Copies a folder of files.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Every byte of what a run computed, by file.
pub fn data(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let ours = names.filter(|n| n.starts_with("snap_") || n == "diagnostics.csv" || n == "run.hdf.series");
    ours.map(|n| (n.clone(), fs::read(folder.join(&n)).unwrap())).collect()
}

/// The names of the files that differ; empty where all are the same.
pub fn differing(a: &Path, b: &Path) -> Vec<String> {
    let (a, b) = (data(a), data(b));
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names.into_iter().filter(|n| a.get(*n) != b.get(*n)).cloned().collect()
}

/// What is left of files that were being written.
pub fn temporaries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|n| n.contains(".tmp-")).collect()
}

impl Folder {
    /// `nbody` under limits that the shell sets, such as `ulimit -f 8`.
    pub fn limited(&self, limits: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.current_dir(self.path("")).args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_nbody")).args(arguments);
        command
    }
}
