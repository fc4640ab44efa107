//! `nbody convert`: snapshots from one format to another, without the loss of a bit.

pub mod source;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

use crate::console;
use crate::failure::Failure;
use crate::files::FileError;
use crate::files::formats::temporal::Plan;
use crate::files::formats::{self, FORMATS, WriteAll};
use crate::files::particles::Loaded;
use crate::files::snapshot::{Field, Float, Units};
use crate::units::System;
use source::Source;

const EXAMPLES: &str = "\
Examples:
  nbody convert out/plummer plummer.vtkhdf              the whole run in one file, for ParaView 5.12 or newer
  nbody convert out/plummer/snap_000003.hdf stars.csv
  nbody convert out/plummer last.npy --snapshot last
  nbody convert out/plummer/snap_000003.hdf stars.hdf5  for GADGET, pynbody and yt
  nbody convert stars.csv start.hdf --units astro

docs/files.md describes every format. Numbers keep all their bits. Columns of a table that a snapshot does not have are
left out with a warning, and positions in one or two dimensions get zeros for the others.

Exit codes: 0 done, 2 wrong option, 65 wrong data, 66 no such file, 74 files cannot be written";

/// Options of `nbody convert`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Convert {
    /// A snapshot (.hdf, GADGET's .hdf5), a checkpoint, .csv, structured .npy, .vtkhdf with steps, or a run directory
    input: PathBuf,
    /// The file to write; its ending chooses the format, unless --format does
    output: PathBuf,
    /// Format of OUTPUT [default: by its ending, .hdf hdf, .hdf5 gadget, .csv, .npy, .vtkhdf]
    #[arg(long, value_parser = format_names())]
    format: Option<String>,
    /// Which snapshot of a run, counted from 0, or "last"; .vtkhdf takes all
    #[arg(long, value_name = "K", value_parser = parse_which)]
    snapshot: Option<Which>,
    /// Precision of floating-point numbers [default: that of the input]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// What the numbers are in, for inputs that do not say it (they are not changed): nbody, si, astro, solar, md, galactic
    #[arg(long, value_name = "SYSTEM", value_parser = parse_system)]
    units: Option<System>,
    /// The time, for inputs that do not say it
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    time: Option<f64>,
    /// Overwrite OUTPUT
    #[arg(long)]
    force: bool,
}

fn format_names() -> PossibleValuesParser {
    FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about)).collect::<Vec<_>>().into()
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Precision {
    F32,
    F64,
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Number(usize),
    Last,
}

fn parse_which(text: &str) -> Result<Which, String> {
    match text {
        "last" => Ok(Which::Last),
        _ => text.parse().map(Which::Number).map_err(|_| "allowed: a whole number of 0 or more, or last".to_string()),
    }
}

fn parse_system(text: &str) -> Result<System, String> {
    source::system(text).ok_or_else(|| format!("allowed: {}", System::NAMES.map(|(name, _)| name).join(", ")))
}

/// Converts.
///
/// # Errors
/// 2 for options that contradict each other, 65 and 66 for the input, 74 for the output.
pub fn convert(options: &Convert) -> Result<(), Failure> {
    let output = &options.output;
    let named = options.format.as_ref().and_then(|name| FORMATS.iter().find(|format| format.name == name));
    let Some(format) = named.or_else(|| formats::by_ending(output)) else {
        let line = format!(
            "convert: {}: the ending names no format; use {}, or --format",
            output.display(),
            formats::endings()
        );
        return Err(Failure::new(2, line));
    };
    if options.time.is_some_and(|t| !t.is_finite()) {
        return Err(Failure::new(2, "convert: --time must be finite"));
    }
    let source = Source::open(&options.input)?;
    if !options.force && output.symlink_metadata().is_ok() {
        let line = format!("{}: is there already; choose another name, or --force", output.display());
        return Err(Failure::new(74, line));
    }
    if source.is_empty() {
        return Err(Failure::new(65, format!("{}: there are no snapshots", options.input.display())));
    }
    let (bytes, what) = match format.write_all {
        Some(write) if options.snapshot.is_none() => {
            (write_all(options, &source, write)?, format!("{} snapshots", source.len()))
        }
        _ => {
            let Loaded { snapshot: s, precision, dropped } = options.amend(source.load(options.chosen(&source)?)?)?;
            warn(&options.input, &dropped);
            let bytes = (format.write)(output, &s, precision).map_err(refused)?;
            (bytes, format!("{} particles at time {}", s.id.len(), s.time))
        }
    };
    console::print(&format!("wrote {}: {what}, {bytes} bytes\n", output.display()))
}

impl Convert {
    fn chosen(&self, source: &Source) -> Result<usize, Failure> {
        let (n, input) = (source.len(), self.input.display());
        match self.snapshot {
            Some(Which::Last) => Ok(n - 1),
            Some(Which::Number(i)) if i < n => Ok(i),
            Some(Which::Number(i)) => {
                Err(Failure::new(2, format!("convert: --snapshot {i}: {input} has {n}, numbered 0 to {}", n - 1)))
            }
            None if n == 1 => Ok(0),
            None => {
                let line = format!(
                    "convert: {input} has {n} snapshots: choose one with --snapshot 0 to {} or last, or write .vtkhdf, \
                     which takes all",
                    n - 1
                );
                Err(Failure::new(2, line))
            }
        }
    }

    /// Puts in what the options say, where the file does not say something else.
    fn amend(&self, mut loaded: Loaded) -> Result<Loaded, FileError> {
        let s = &mut loaded.snapshot;
        let said = |option: &str, what: String| {
            Err(FileError::data(&self.input, format!("says {what}; {option} is for files that do not say it")))
        };
        match self.precision {
            Some(Precision::F32) => loaded.precision = Float::F32,
            Some(Precision::F64) => loaded.precision = Float::F64,
            None => {}
        }
        if let Some(units) = self.units.map(System::snapshot) {
            if s.units != units && s.units != Units::default() {
                return said("--units", format!("that its units are {}", s.units));
            }
            s.units = units;
        }
        if let Some(time) = self.time {
            if s.time != time && s.time != 0.0 {
                return said("--time", format!("that its time is {}", s.time));
            }
            s.time = time;
        }
        Ok(loaded)
    }
}

/// Warns of columns of the input that are not in the output.
fn warn(input: &Path, dropped: &[String]) {
    if !dropped.is_empty() {
        let names = dropped.join(", ");
        crate::console::tell(format_args!(
            "nbody: warning: {}: left out the columns {names}, which no snapshot has",
            input.display()
        ));
    }
}

/// All snapshots into one file, one at a time in memory.
fn write_all(options: &Convert, source: &Source, write: WriteAll) -> Result<u64, Failure> {
    if options.time.is_some() && source.len() > 1 {
        return Err(Failure::new(2, "convert: --time is for one snapshot; choose it with --snapshot"));
    }
    let mut plan = Plan { counts: vec![], times: vec![], fields: Field::ALL.to_vec(), precision: Float::F32 };
    for i in 0..source.len() {
        let Loaded { snapshot: s, precision, dropped } = options.amend(source.load(i)?)?;
        warn(&options.input, &dropped);
        plan.counts.push(s.id.len());
        plan.times.push(s.time);
        // What some steps lack cannot be shown as a series.
        let there = s.fields();
        plan.fields.retain(|f| there.contains(f));
        if precision == Float::F64 {
            plan.precision = Float::F64;
        }
    }
    let load = |i| Ok(options.amend(source.load(i)?)?.snapshot);
    write(&options.output, &plan, &load).map_err(refused)
}

/// What a user gave and a format cannot take is the user's data, not a failure of the program.
fn refused(e: FileError) -> Failure {
    let code = if matches!(e, FileError::Unwritable { .. }) { 65 } else { e.exit_code() };
    Failure::new(code, e.to_string())
}
