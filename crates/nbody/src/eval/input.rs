//! Sources and targets, from CSV, NumPy or a snapshot.

use std::path::Path;

use super::Kernel;
use crate::fault::Fault;
use crate::files::npy::{self, Npy};
use crate::files::{Table, csv, ids, snapshot};

/// Positions, and what else of a file was asked for.
#[derive(Debug, Default)]
pub struct Points {
    /// Axes in the file: 1, 2 or 3.
    pub dimension: usize,
    /// 0 beyond the dimension. [N]
    pub position: Vec<[f64; 3]>,
    /// One array of N for each of the kernel's strengths; none for targets.
    pub strengths: Vec<Vec<f64>>,
    /// If the file has them. [N]
    pub id: Option<Vec<u64>>,
}

/// What kind of file a name stands for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Csv,
    Npy,
    Hdf,
}

fn kind(path: &Path) -> Kind {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => Kind::Npy,
        Some("hdf" | "hdf5" | "h5") => Kind::Hdf,
        _ => Kind::Csv,
    }
}

const AXES: [&str; 3] = ["x", "y", "z"];

impl Points {
    /// Reads sources; `strengths` is a file that holds them where that of the sources does not. Ids are read only
    /// if the sources are the targets too (`own`).
    pub fn sources(path: &Path, strengths: Option<&Path>, kernel: Kernel, own: bool) -> Result<Points, Fault> {
        let names = kernel.strengths();
        let mut points = Points::read(path, if strengths.is_some() { &[] } else { names }, own)?;
        if let Some(file) = strengths {
            points.strengths = read_strengths(file, names, points.position.len())?;
        }
        Ok(points)
    }

    /// Reads targets.
    pub fn targets(path: &Path) -> Result<Points, Fault> {
        Points::read(path, &[], true)
    }

    fn read(path: &Path, strengths: &[&str], ids: bool) -> Result<Points, Fault> {
        let mut wanted = [&AXES, strengths].concat();
        if ids {
            wanted.push("id");
        }
        match kind(path) {
            Kind::Csv => of_table(&csv::read(path, &wanted)?, strengths),
            Kind::Hdf => of_snapshot(path, strengths),
            Kind::Npy => match npy::read(path, &wanted)? {
                Npy::Table(table) => of_table(&table, strengths),
                Npy::Array { rows, width, values } => of_array(path, rows, width, &values, strengths),
            },
        }
    }
}

fn of_table(table: &Table, strengths: &[&str]) -> Result<Points, Fault> {
    let id = table.id().map(<[u64]>::to_vec);
    if let Some(twice) = id.as_deref().and_then(ids::repeated) {
        return Err(table.error(format!("two rows have the id {twice}; give each its own")).into());
    }
    let position = table.positions()?;
    let strengths = strengths.iter().map(|n| table.need(&[n]).map(<[f64]>::to_vec)).collect::<Result<_, _>>()?;
    Ok(Points { dimension: table.dimension()?, position, strengths, id })
}

fn of_array(path: &Path, rows: usize, width: usize, values: &[f64], strengths: &[&str]) -> Result<Points, Fault> {
    let error = |what: String| Err(Fault::new(65, format!("{}: {what}", path.display())));
    if !(1..=3).contains(&width) {
        return error(format!("an array of {rows} rows of {width} numbers; positions have 1, 2 or 3 (x, y, z)"));
    }
    if let Some(name) = strengths.first() {
        return error(format!("an array of positions has no {name}; give it with --strengths, or a structured array"));
    }
    let position = values.chunks_exact(width).map(|row| std::array::from_fn(|d| row.get(d).copied().unwrap_or(0.0)));
    Ok(Points { dimension: width, position: position.collect(), ..Points::default() })
}

fn of_snapshot(path: &Path, strengths: &[&str]) -> Result<Points, Fault> {
    let s = snapshot::read(path)?;
    let strengths = match strengths {
        [] => vec![],
        ["q"] => vec![s.charge.unwrap_or(s.mass)],
        _ => {
            let names = strengths.join(", ");
            let line = format!("{}: a snapshot has no {names}; give them with --strengths", path.display());
            return Err(Fault::new(65, line));
        }
    };
    Ok(Points { dimension: 3, position: s.position, strengths, id: Some(s.id) })
}

/// The columns `names`, in this order if the file is a plain array.
fn read_strengths(path: &Path, names: &[&str], n: usize) -> Result<Vec<Vec<f64>>, Fault> {
    let error = |what: String| Err(Fault::new(65, format!("{}: {what}", path.display())));
    let of_table = |t: Table| names.iter().map(|n| t.need(&[n]).map(<[f64]>::to_vec)).collect::<Result<Vec<_>, _>>();
    let columns = match kind(path) {
        Kind::Csv => of_table(csv::read(path, names)?)?,
        Kind::Hdf => return error("strengths are read from .npy and .csv".into()),
        Kind::Npy => match npy::read(path, names)? {
            Npy::Table(table) => of_table(table)?,
            Npy::Array { width, values, .. } if width == names.len() => {
                (0..width).map(|k| values.iter().copied().skip(k).step_by(width).collect()).collect()
            }
            Npy::Array { rows, width, .. } => {
                let wanted = names.join(", ");
                return error(format!(
                    "an array of {rows} rows of {width} numbers; strengths are {wanted} in each row"
                ));
            }
        },
    };
    match columns.first().map_or(0, Vec::len) {
        rows if rows == n => Ok(columns),
        rows => error(format!("{rows} strengths for {n} sources")),
    }
}
