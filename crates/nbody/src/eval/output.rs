//! The sums as CSV, NumPy or HDF5.

use std::io;
use std::path::Path;

use fmm::{Evaluation, Kernel};
use hdf5::types::FixedAscii;
use ndarray::ArrayView2;

use super::Options;
use super::input::Points;
use crate::failure::Failure;
use crate::files::csv::{self, Column};
use crate::files::{FileError, atomic, hdf, npy};

/// Where the sums go, and how they are written.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// CSV on stdout.
    Stdout,
    /// CSV to something that is no file and cannot be replaced: a pipe, a device.
    Stream(&'a Path),
    /// A file.
    File(&'a Path, Format),
}

/// A kind of file.
#[derive(Debug, Clone, Copy)]
pub enum Format {
    /// A header, then one row for each target.
    Csv,
    /// A structured array.
    Npy,
    /// An array for each column, and the points for ParaView.
    Hdf,
}

/// Takes the columns out of a sum, with their names, in the order of the targets.
pub fn columns(kernel: Kernel, dimension: usize, sum: &mut Evaluation) -> Vec<(&'static str, Vec<f64>)> {
    let outputs = kernel.outputs(dimension);
    let (potential, field) = (std::mem::take(&mut sum.potential), std::mem::take(&mut sum.field));
    let potential = outputs.potential.map(|name| (name, potential));
    let component = |(d, &name): (usize, &&'static str)| (name, field.iter().map(|e| e[d]).collect());
    let error = (!sum.error.is_empty()).then(|| ("error", std::mem::take(&mut sum.error)));
    potential.into_iter().chain(outputs.field.iter().enumerate().map(component)).chain(error).collect()
}

impl<'a> Output<'a> {
    /// The place that the options name.
    ///
    /// # Errors
    /// 2 for an unknown ending and for a file that is read as well, 74 for a folder that is not there.
    pub fn of(options: &'a Options) -> Result<Self, Failure> {
        let Some(path) = options.output.as_deref() else { return Ok(Output::Stdout) };
        let name = path.display();
        if path.is_dir() {
            return Err(Failure::new(74, format!("{name}: is a folder; --output needs the name of a file")));
        }
        if path.exists() && !path.is_file() {
            return Ok(Output::Stream(path));
        }
        let format = match path.extension().and_then(|e| e.to_str()) {
            Some("csv") => Format::Csv,
            Some("npy") => Format::Npy,
            Some("hdf") => Format::Hdf,
            _ => return Err(Failure::new(2, format!("--output {name}: the name must end in .csv, .npy or .hdf"))),
        };
        if let Some((read, _)) = options.inputs().find(|(_, input)| is_same_file(input, path)) {
            return Err(Failure::new(2, format!("--output {name}: --{read} is this file, which would be lost")));
        }
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
                Err(Failure::new(74, format!("{name}: there is no folder {}", folder.display())))
            }
            _ => Ok(Output::File(path, format)),
        }
    }

    /// Writes one row for each target, in their order: `id` if they have one, then the columns of the sum. A
    /// file is replaced as a whole or left as it was.
    ///
    /// # Errors
    /// 74; a closed reader of stdout is no error.
    pub fn write(self, at: &Points, columns: &[(&str, Vec<f64>)]) -> Result<(), Failure> {
        let id = at.id.iter().map(|id| ("id", Column::Id(id)));
        let columns: Vec<_> = id.chain(columns.iter().map(|(n, v)| (*n, Column::Float(v)))).collect();
        let failed = |name: &str, e: io::Error| Failure::new(74, format!("{name}: cannot write: {e}"));
        match self {
            Output::Stdout => match csv::write(io::stdout().lock(), &columns) {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(failed("standard output", e)),
                _ => Ok(()),
            },
            Output::Stream(path) => {
                let name = path.display().to_string();
                let stream = std::fs::OpenOptions::new().write(true).open(path);
                match stream.and_then(|s| csv::write(s, &columns)) {
                    Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(failed(&name, e)),
                    _ => Ok(()),
                }
            }
            Output::File(path, Format::Hdf) => Ok(write_hdf(path, &at.position, &columns)?),
            Output::File(path, format) => {
                let mut bytes = vec![];
                let filled = match format {
                    Format::Npy => npy::write_table(&mut bytes, &columns),
                    _ => csv::write(&mut bytes, &columns),
                };
                filled.map_err(|e| failed(&path.display().to_string(), e))?;
                Ok(atomic::replace(path, &bytes)?)
            }
        }
    }
}

/// Whether both names are of one file that is there.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

/// A data set for each column at the root, and `/VTKHDF` with the points and hard links to the columns, which ParaView
/// 5.11 and later open (see `files::snapshot` for what its readers want).
fn write_hdf(path: &Path, position: &[[f64; 3]], columns: &[(&str, Column)]) -> Result<(), FileError> {
    let n = position.len();
    let estimate = (n * (3 * 8 + 17 + columns.len() * 8)) as u64 + (1 << 20);
    let fill = |file: &hdf5::File| -> hdf5::Result<()> {
        for (name, column) in columns {
            match column {
                Column::Float(v) => hdf::put(file, name, *v, false)?,
                Column::Id(v) => hdf::put(file, name, *v, true)?,
            }
        }
        let vtk = hdf::put_group(file, "VTKHDF")?;
        hdf::put_attrs(&vtk, "Version", &[1i64, 0])?;
        let kind = FixedAscii::<16>::from_ascii("UnstructuredGrid").map_err(|e| e.to_string())?;
        hdf::put_attr(&vtk, "Type", kind)?;
        for name in ["NumberOfPoints", "NumberOfCells", "NumberOfConnectivityIds"] {
            hdf::put_one(&vtk, name, n as i64)?;
        }
        let counting: Vec<i64> = (0..=n as i64).collect();
        hdf::put(&vtk, "Points", ArrayView2::from(position), false)?;
        hdf::put(&vtk, "Connectivity", &counting[..n], true)?;
        hdf::put(&vtk, "Offsets", &counting[..], true)?;
        hdf::put(&vtk, "Types", &vec![1u8; n][..], true)?;
        let points = hdf::put_group(&vtk, "PointData")?;
        columns.iter().try_for_each(|(name, _)| points.link_hard(&format!("/{name}"), name))
    };
    hdf::write_file(path, estimate, fill).map(|_| ())
}
