//! `nbody init`: writes one of the commented scenarios that the program carries.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use strsim::damerau_levenshtein;

use crate::carried::all;
use crate::console;
use crate::failure::Failure;
use crate::files::atomic;

const EXAMPLES: &str = "\
Examples:
  nbody init --list
  nbody init plummer && nbody run plummer.toml
  nbody init planets --to solar-system

Exit codes: 0 done, 2 wrong option or no such scenario, 74 a file is there already or cannot be written";

/// Options of `nbody init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Init {
    /// Name of the scenario; --list shows them all
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the scenarios, one a line
    #[arg(short, long, conflicts_with_all = ["name", "to", "force"])]
    list: bool,
    /// Folder to write to; made if need be
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Overwrite files of the same name
    #[arg(long)]
    force: bool,
}

/// Writes a scenario, or lists them all.
///
/// # Errors
/// 2 for a name that there is not, 74 for files that are there already or cannot be written.
pub fn init(options: &Init) -> Result<(), Failure> {
    let Some(name) = &options.name else { return console::print(&list()) };
    let name = name.strip_suffix(".toml").unwrap_or(name);
    let Some(scenario) = all().find(|s| s.name == name) else { return Err(unknown(name)) };
    let main = (format!("{name}.toml"), scenario.text.as_bytes());
    let files: Vec<(PathBuf, &[u8])> = std::iter::once(main)
        .chain(scenario.companions().map(|(n, b)| (n.to_string(), b)))
        .map(|(n, b)| (options.to.join(n), b))
        .collect();
    // All are looked for before any is written.
    if let Some((path, _)) = files.iter().find(|(path, _)| !options.force && path.symlink_metadata().is_ok()) {
        let line = format!("{}: is there already; choose another folder with --to, or --force", path.display());
        return Err(Failure::new(74, line));
    }
    std::fs::create_dir_all(&options.to)
        .map_err(|e| Failure::new(74, format!("{}: cannot create the folder: {e}", options.to.display())))?;
    let mut text = String::new();
    for (path, bytes) in &files {
        atomic::replace(path, bytes)?;
        let _ = writeln!(text, "wrote {}", shown(path).display());
    }
    let _ = writeln!(text, "{}\nrun it: nbody run {}", scenario.description(), shown(&files[0].0).display());
    console::print(&text)
}

/// Without the `./` of the default folder.
fn shown(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}

fn list() -> String {
    let width = all().map(|s| s.name.len()).max().unwrap_or(0);
    all().fold(String::new(), |mut text, s| {
        let _ = writeln!(text, "{:width$}  {}", s.name, s.description());
        text
    })
}

fn unknown(name: &str) -> Failure {
    let near = all().map(|s| (damerau_levenshtein(s.name, name), s.name)).min().filter(|(d, _)| *d <= 3);
    let hint = near.map_or(String::new(), |(_, n)| format!("; did you mean \"{n}\"?"));
    let names: Vec<&str> = all().map(|s| s.name).collect();
    Failure::new(2, format!("init: no scenario \"{name}\"{hint} (there are: {})", names.join(", ")))
}
