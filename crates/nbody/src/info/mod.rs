//! `nbody info`: what a file or a run directory holds, or what the program is.

pub mod facts;
mod grid;
mod particles;
pub mod program;
mod run;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::console;
use crate::convert::source::Source;
use crate::failure::Failure;
use crate::files::{checkpoint, formats};
use facts::Facts;

const EXAMPLES: &str = "\
Examples:
  nbody info
  nbody info out/plummer
  nbody info out/plummer/snap_000000.hdf --json | jq .energy

Exit codes: 0 done, 2 wrong option, 65 wrong data, 66 no such file";

/// Options of `nbody info`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Info {
    /// A run directory, a snapshot, a checkpoint or any file that `nbody convert` reads [default: the program itself]
    path: Option<PathBuf>,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// Prints the facts.
///
/// # Errors
/// 65 and 66 for the file, 74 for standard output.
pub fn info(options: &Info) -> Result<(), Failure> {
    let facts = match &options.path {
        None => program::facts(),
        Some(path) if formats::is_scenario(path) => {
            let line = format!("{0}: a scenario; nbody run {0} --dry-run shows what it is", path.display());
            return Err(Failure::new(65, line));
        }
        Some(path) => match grid::about(path)? {
            Some(about) => grid::facts(path, &about),
            None => match grid::of_checkpoint(path)? {
                Some(facts) => facts,
                None => of_particles(path)?,
            },
        },
    };
    console::print(&if options.json { facts.json() } else { facts.text() })
}

/// What there is to say of a run directory or a file of particles.
fn of_particles(path: &Path) -> Result<Facts, Failure> {
    match Source::open(path)? {
        source @ Source::Run { .. } => run::facts(&source, path),
        Source::One(loaded) => {
            let kind = match () {
                () if formats::is_read_by_ending(path) => "table of particles",
                () if checkpoint::is(path)? => "checkpoint",
                () => "snapshot",
            };
            let mut facts = Facts::new(path.display().to_string());
            facts.add("kind", json!(kind));
            particles::add(&mut facts, &loaded);
            Ok(facts)
        }
        source @ Source::Temporal(_) => {
            let mut facts = Facts::new(path.display().to_string());
            facts.add("kind", json!("temporal VTKHDF"));
            run::add_times(&mut facts, &source);
            if !source.is_empty() {
                particles::add(&mut facts, &source.load(source.len() - 1)?);
            }
            Ok(facts)
        }
    }
}
