//! `nbody convert`: snapshots from one format to another, without the loss of a bit.

pub mod source;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::console;
use crate::fault::Fault;
use crate::files::particles::{Loaded, write_csv, write_npy};
use crate::files::snapshot::{self, Field, Float, Layout};
use crate::files::temporal::{self, Plan};
use crate::files::{FileError, plain};
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
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Which snapshot of a run, counted from 0, or "last"; .vtkhdf takes all
    #[arg(long, value_name = "K", value_parser = parse_which)]
    snapshot: Option<Which>,
    /// Precision of floating-point numbers [default: that of the input]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// What the numbers are in, for inputs that do not say it (they are not changed): nbody, si, astro, solar, md
    #[arg(long, value_name = "SYSTEM", value_parser = parse_system)]
    units: Option<crate::units::System>,
    /// The time, for inputs that do not say it
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    time: Option<f64>,
    /// Overwrite OUTPUT
    #[arg(long)]
    force: bool,
}

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Our snapshot: ParaView, yt and h5py
    Hdf,
    /// GADGET's HDF5 and nothing else: pynbody, GADGET, yt
    Gadget,
    /// Comma-separated values with a header
    Csv,
    /// NumPy's structured array
    Npy,
    /// All snapshots in one temporal VTKHDF file: ParaView 5.12 or newer
    Vtkhdf,
}

impl Format {
    fn of(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "hdf" => Format::Hdf,
            "hdf5" | "h5" => Format::Gadget,
            "csv" => Format::Csv,
            "npy" => Format::Npy,
            "vtkhdf" => Format::Vtkhdf,
            _ => return None,
        })
    }
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

fn parse_system(text: &str) -> Result<crate::units::System, String> {
    source::system(text).ok_or_else(|| "allowed: nbody, si, astro, solar, md".to_string())
}

/// Converts.
///
/// # Errors
/// 2 for options that contradict each other, 65 and 66 for the input, 74 for the output.
pub fn convert(options: &Convert) -> Result<(), Fault> {
    let output = &options.output;
    let Some(format) = options.format.or_else(|| Format::of(output)) else {
        let line = format!(
            "convert: {}: the ending names no format; use .hdf, .hdf5 (GADGET), .csv, .npy or .vtkhdf, or --format",
            output.display()
        );
        return Err(Fault::new(2, line));
    };
    if options.time.is_some_and(|t| !t.is_finite()) {
        return Err(Fault::new(2, "convert: --time must be finite"));
    }
    let source = Source::open(&options.input)?;
    if !options.force && output.symlink_metadata().is_ok() {
        let line = format!("{}: is there already; choose another name, or --force", output.display());
        return Err(Fault::new(74, line));
    }
    if source.is_empty() {
        return Err(Fault::new(65, format!("{}: there are no snapshots", options.input.display())));
    }
    let (bytes, what) = if format == Format::Vtkhdf && options.snapshot.is_none() {
        let bytes = write_all(options, &source)?;
        (bytes, format!("{} snapshots", source.len()))
    } else {
        let i = options.chosen(&source)?;
        let loaded = options.amend(source.load(i)?);
        warn(&options.input, &loaded.dropped);
        let what = format!("{} particles at time {}", loaded.snapshot.id.len(), loaded.snapshot.time);
        (write_one(output, format, loaded)?, what)
    };
    console::print(&format!("wrote {}: {what}, {bytes} bytes\n", output.display()))
}

impl Convert {
    fn chosen(&self, source: &Source) -> Result<usize, Fault> {
        let (n, input) = (source.len(), self.input.display());
        match self.snapshot {
            Some(Which::Last) => Ok(n - 1),
            Some(Which::Number(i)) if i < n => Ok(i),
            Some(Which::Number(i)) => {
                Err(Fault::new(2, format!("convert: --snapshot {i}: {input} has {n}, numbered 0 to {}", n - 1)))
            }
            None if n == 1 => Ok(0),
            None => {
                let line = format!(
                    "convert: {input} has {n} snapshots: choose one with --snapshot 0 to {} or last, or write .vtkhdf, \
                     which takes all",
                    n - 1
                );
                Err(Fault::new(2, line))
            }
        }
    }

    /// Puts in what the options say.
    fn amend(&self, mut loaded: Loaded) -> Loaded {
        match self.precision {
            Some(Precision::F32) => loaded.precision = Float::F32,
            Some(Precision::F64) => loaded.precision = Float::F64,
            None => {}
        }
        if let Some(system) = self.units {
            loaded.snapshot.units = system.snapshot();
        }
        if let Some(time) = self.time {
            loaded.snapshot.time = time;
        }
        loaded
    }
}

/// Tells which columns of the input are not in the output.
fn warn(input: &Path, dropped: &[String]) {
    if !dropped.is_empty() {
        let names = dropped.join(", ");
        crate::console::tell(format_args!(
            "nbody: warning: {}: left out the columns {names}, which no snapshot has",
            input.display()
        ));
    }
}

fn write_one(path: &Path, format: Format, loaded: Loaded) -> Result<u64, Fault> {
    let Loaded { snapshot: s, precision, .. } = loaded;
    let written = match format {
        Format::Hdf => snapshot::write(path, &s, &Layout { fields: s.fields(), precision }),
        Format::Gadget => plain::write(path, &s, precision),
        Format::Csv => write_csv(path, &s, precision),
        Format::Npy => write_npy(path, &s, precision),
        Format::Vtkhdf => {
            let plan = Plan { counts: vec![s.id.len()], times: vec![s.time], fields: s.fields(), precision };
            temporal::write(path, &plan, |_| Ok(s.clone()))
        }
    };
    written.map_err(refused)
}

/// All snapshots into one file, one at a time in memory.
fn write_all(options: &Convert, source: &Source) -> Result<u64, Fault> {
    if options.time.is_some() && source.len() > 1 {
        return Err(Fault::new(2, "convert: --time is for one snapshot; choose it with --snapshot"));
    }
    let mut plan = Plan { counts: vec![], times: vec![], fields: Field::ALL.to_vec(), precision: Float::F32 };
    for i in 0..source.len() {
        let Loaded { snapshot: s, precision, dropped } = options.amend(source.load(i)?);
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
    let written = temporal::write(&options.output, &plan, |i| Ok(options.amend(source.load(i)?).snapshot));
    written.map_err(refused)
}

/// What a user gave and a format cannot take is the user's data, not a fault of the program.
fn refused(e: FileError) -> Fault {
    let code = if matches!(e, FileError::Unwritable { .. }) { 65 } else { e.exit_code() };
    Fault::new(code, e.to_string())
}
