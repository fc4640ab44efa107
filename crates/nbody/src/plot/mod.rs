//! `nbody plot`: the figures of a run, as SVG and PNG, without Python and without fonts of the system.

pub mod axis;
pub mod data;
mod draw;
pub mod figure;
mod image;
mod run;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use crate::console;
use crate::fault::Fault;
use crate::files::atomic;

/// The folder of the figures in a run directory.
pub const FOLDER: &str = "plots";
/// The figures.
pub const NAMES: [&str; 3] = ["energy_error", "lagrangian_radii", "stage_times"];
/// Endings of the two files of a figure.
pub const ENDINGS: [&str; 2] = ["svg", "png"];

const EXAMPLES: &str = "\
Examples:
  nbody plot out/plummer
  nbody plot out/plummer --out figures

Figures: energy_error (|dE/E0| against time), lagrangian_radii, stage_times; those for which the run has the data.

Exit codes: 0 done, 2 wrong option, 65 wrong data, 66 no run there or nothing to plot, 74 files cannot be written";

/// Options of `nbody plot`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Plot {
    /// The run directory
    run: PathBuf,
    /// Folder for the figures; made if need be [default: the folder plots in the run directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Draws what the run has the data for.
///
/// # Errors
/// 65 and 66 for the run's files, 70 where drawing fails, 74 where figures cannot be written.
pub fn plot(options: &Plot) -> Result<(), Fault> {
    let run = run::Run::read(&options.run)?;
    let folder = options.out.clone().unwrap_or_else(|| options.run.join(FOLDER));
    let figures = run.figures();
    if figures.is_empty() {
        let line = format!(
            "{}: nothing to plot: diagnostics.csv has no column that is drawn, and there is no timings.json",
            options.run.display()
        );
        return Err(Fault::new(66, line));
    }
    std::fs::create_dir_all(&folder)
        .map_err(|e| Fault::new(74, format!("{}: cannot create the folder: {e}", folder.display())))?;
    let mut text = String::new();
    for (name, figure) in &figures {
        let failed = |e: String| Fault::new(70, format!("{name}: cannot be drawn: {e}"));
        let svg = draw::svg(figure).map_err(failed)?;
        let png = image::png(&svg).map_err(failed)?;
        for (ending, bytes) in ENDINGS.into_iter().zip([svg.as_bytes(), &png[..]]) {
            let path = folder.join(format!("{name}.{ending}"));
            atomic::replace(&path, bytes)?;
            let _ = writeln!(text, "wrote {}", path.display());
        }
    }
    console::print(&text)
}
