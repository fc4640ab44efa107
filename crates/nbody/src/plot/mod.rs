//! `nbody plot`: the figures of a run, as SVG and PNG, without Python and without fonts of the system.

mod run;
pub mod slice;
pub mod snapshots;
pub mod space;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use crate::{bench, console, figure};

/// The folder of the figures in a run directory.
pub const FOLDER: &str = "plots";
/// The figures.
pub const NAMES: [&str; 7] =
    ["particles", "energy_error", "temperature", "pressure", "lagrangian_radii", "forces", "stage_times"];
const EXAMPLES: &str = "\
Examples:
  nbody plot out/plummer
  nbody plot out/plummer --out figures
  nbody plot out/bench/crossover.jsonl

Figures: particles (projected density at up to four times; on a grid a slice of the vorticity), energy_error (|dE/E0|
against time), temperature and pressure of ions in a box, lagrangian_radii of masses and vortices in open space,
forces on the bodies in a flow, stage_times: those for which the run has the data. Of a .jsonl file of nbody bench: those of the suites whose records it
holds.

Exit codes: 0 done, 2 wrong option, 65 wrong data, 66 no run there or nothing to plot, 74 files cannot be written";

/// Options of `nbody plot`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Plot {
    /// The run directory, or the records of a benchmark (.jsonl)
    run: PathBuf,
    /// Folder for the figures; made if need be [default: the folder plots in the run directory, or that of the records]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Draws what the run, or the file of records, has the data for.
///
/// # Errors
/// 65 and 66 for the files, 70 where drawing fails, 74 where figures cannot be written.
pub fn plot(options: &Plot) -> Result<(), Failure> {
    let records = options.run.extension().is_some_and(|e| e == "jsonl");
    let written = if records {
        let folder = options.out.as_deref().or(options.run.parent()).unwrap_or(Path::new(""));
        bench::draw(&bench::record::read(&options.run)?, folder)?
    } else {
        let own = options.run.join(FOLDER);
        if options.out.is_none() && std::fs::symlink_metadata(&own).is_ok_and(|m| m.is_symlink()) {
            let line = format!("{}: is a link; name the folder for the figures with --out DIR", own.display());
            return Err(Failure::new(74, line));
        }
        let folder = options.out.clone().unwrap_or(own);
        figure::write(&run::Run::read(&options.run)?.figures()?, &folder)?
    };
    if written.is_empty() {
        let why = if records {
            "it has no records of a suite with figures"
        } else {
            "it has no snapshots, no timings.json, and no diagnostics.csv with a column that is drawn"
        };
        return Err(Failure::new(66, format!("{}: nothing to plot: {why}", options.run.display())));
    }
    let mut text = String::new();
    for path in written {
        let _ = writeln!(text, "wrote {}", path.display());
    }
    console::print(&text)
}
