//! `nbody check`: whether files are whole, and the hash of what they hold.

mod directory;
mod file;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::console;
use crate::failure::Failure;
use crate::messages::counted;

const EXAMPLES: &str = "\
Examples:
  nbody check out/plummer
  nbody check out/plummer --hash
  nbody check out/plummer/snap_000003.hdf --json

The hash is the SHA-256 of all arrays (docs/files.md says in which order). It is the same for the same data, whenever and
however they were written. That of a run directory covers its snapshots, and not its checkpoints.

Files of another run in a run directory are named, with their run id.

Exit codes: 0 whole, 2 wrong option, 65 damaged or of another run, 66 no such file, 74 cannot be read";

/// Options of `nbody check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// A run directory, a snapshot, a checkpoint or another HDF5 file
    path: PathBuf,
    /// Print the SHA-256 of the data of every snapshot, and of the run
    #[arg(long)]
    hash: bool,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Findings {
    /// What is in order, one line each.
    notes: Vec<String>,
    /// What is not.
    problems: Vec<Problem>,
    /// SHA-256 and name of each file, then of the whole run.
    hashes: Vec<(String, String)>,
    /// What can be resumed, for a run directory or a checkpoint.
    resume: Option<String>,
    /// Exit code of the gravest problem.
    code: u8,
}

/// Something that is not in order.
#[derive(Debug)]
struct Problem {
    /// What it is called: damage, or a whole file in the wrong place.
    word: &'static str,
    text: String,
}

const DAMAGED: &str = "DAMAGED";
const OTHER_RUN: &str = "OTHER RUN";

impl Findings {
    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn problem(&mut self, code: u8, text: impl Into<String>) {
        self.problems.push(Problem { word: DAMAGED, text: text.into() });
        self.code = self.code.max(code);
    }

    /// Files of another run, which may be whole.
    fn stranger(&mut self, text: impl Into<String>) {
        self.problems.push(Problem { word: OTHER_RUN, text: text.into() });
        self.code = self.code.max(65);
    }

    fn text(&self, hash: bool) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "{:<9}  {note}", "ok");
        }
        for Problem { word, text: problem } in &self.problems {
            let _ = writeln!(text, "{word:<9}  {problem}");
        }
        if let Some(resume) = &self.resume {
            let _ = writeln!(text, "{:<9}  {resume}", "resume");
        }
        if hash {
            for (sha, name) in &self.hashes {
                let _ = writeln!(text, "{sha}  {name}");
            }
        }
        text
    }

    fn json(&self, path: &std::path::Path, hash: bool) -> Value {
        let mut object = json!({
            "path": path.display().to_string(),
            "whole": self.problems.is_empty(),
            "notes": self.notes,
            "problems": self.problems.iter().map(|problem| &problem.text).collect::<Vec<_>>(),
            "resume": self.resume,
        });
        if hash {
            let list = self.hashes.iter().map(|(sha, name)| json!({ "file": name, "sha256": sha }));
            object["hashes"] = list.collect();
        }
        object
    }
}

/// Checks a file or a run directory.
///
/// # Errors
/// 65 for damage, after all of it was reported; 66 and 74 for what cannot be read.
pub fn check(options: &Check) -> Result<(), Failure> {
    let path = &options.path;
    let mut findings = Findings::default();
    if path.is_dir() {
        directory::check(path, &mut findings)?;
    } else {
        file::check(path, &mut findings)?;
    }
    // Damage makes a hash meaningless, but that of the other files stays.
    let text =
        if options.json { format!("{}\n", findings.json(path, options.hash)) } else { findings.text(options.hash) };
    console::print(&text)?;
    match findings.problems.len() {
        0 => Ok(()),
        n => Err(Failure::new(findings.code, format!("{}: {} found", path.display(), counted(n, "problem")))),
    }
}
