//! Sources and targets, from CSV, NumPy or a snapshot.

use std::path::Path;

use fmm::Kernel;

use crate::failure::Failure;
use crate::files::npy::{self, Npy};
use crate::files::{Table, csv, ids, snapshot};

/// Positions, and what else of a file was asked for.
#[derive(Debug, Default)]
pub struct Points {
    /// Axes in the file that the kernel reads: 1, 2 or 3.
    pub dimension: usize,
    /// 0 beyond the dimension. [N]
    pub position: Vec<[f64; 3]>,
    /// One array of N for each of the kernel's strengths, and for imaginary parts if there are any; none for targets.
    pub strengths: Vec<Vec<f64>>,
    /// If the file has them. [N]
    pub id: Option<Vec<u64>>,
    /// Side of the periodic box that the file says they are in, the longest; 0 for none.
    pub side: f64,
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
    pub fn sources(path: &Path, strengths: Option<&Path>, kernel: Kernel, own: bool) -> Result<Points, Failure> {
        let names = Names { needed: kernel.strengths(), imaginary: kernel.imaginary() };
        let mut points = Points::read(path, kernel, if strengths.is_some() { Names::NONE } else { names }, own)?;
        if let Some(file) = strengths {
            points.strengths = read_strengths(file, names, points.position.len())?;
        }
        if kernel == Kernel::Log && points.strengths.len() > 1 {
            let file = strengths.unwrap_or(path).display();
            return Err(Failure::new(
                65,
                format!("{file}: strengths of the kernel log are real; there is a column qi"),
            ));
        }
        Ok(points)
    }

    /// Reads targets.
    pub fn targets(path: &Path, kernel: Kernel) -> Result<Points, Failure> {
        Points::read(path, kernel, Names::NONE, true)
    }

    fn read(path: &Path, kernel: Kernel, strengths: Names, ids: bool) -> Result<Points, Failure> {
        let axes = if kernel.plane().is_some() { &AXES[..2] } else { &AXES };
        let mut wanted = [axes, &strengths.all()].concat();
        if ids {
            wanted.push("id");
        }
        let points = match kind(path) {
            Kind::Csv => of_table(&csv::read(path, &wanted)?, strengths),
            Kind::Hdf => of_snapshot(path, axes.len(), strengths),
            Kind::Npy => match npy::read(path, &wanted)? {
                Npy::Table(table) => of_table(&table, strengths),
                Npy::Array { rows, width, values } => of_array(path, axes, (rows, width), &values, strengths),
            },
        }?;
        if kernel.plane().is_some() && points.dimension < 2 {
            let line = format!("{}: no column y, which the kernel {} needs", path.display(), kernel.name());
            return Err(Failure::new(65, line));
        }
        Ok(points)
    }
}

/// Columns of strengths.
#[derive(Clone, Copy)]
struct Names {
    needed: &'static [&'static str],
    /// One that may be there.
    imaginary: Option<&'static str>,
}

impl Names {
    const NONE: Names = Names { needed: &[], imaginary: None };

    fn all(self) -> Vec<&'static str> {
        self.needed.iter().copied().chain(self.imaginary).collect()
    }

    fn of_table(self, table: &Table) -> Result<Vec<Vec<f64>>, Failure> {
        let needed = self.needed.iter().map(|n| table.need(&[n]).map(<[f64]>::to_vec));
        let imaginary = self.imaginary.and_then(|n| table.column(n)).map(|v| Ok(v.to_vec()));
        Ok(needed.chain(imaginary).collect::<Result<_, _>>()?)
    }
}

fn of_table(table: &Table, strengths: Names) -> Result<Points, Failure> {
    let id = table.id().map(<[u64]>::to_vec);
    if let Some(twice) = id.as_deref().and_then(ids::repeated) {
        return Err(table.error(format!("two rows have the id {twice}; give each its own")).into());
    }
    let position = table.positions()?;
    let strengths = strengths.of_table(table)?;
    Ok(Points { dimension: table.dimension()?, position, strengths, id, side: 0.0 })
}

fn of_array(
    path: &Path,
    axes: &[&str],
    (rows, width): (usize, usize),
    values: &[f64],
    strengths: Names,
) -> Result<Points, Failure> {
    let error = |what: String| Err(Failure::new(65, format!("{}: {what}", path.display())));
    let flat = axes.len() == 2;
    if width > axes.len() || width < if flat { 2 } else { 1 } {
        let (numbers, names) = (if flat { "2" } else { "1, 2 or 3" }, axes.join(", "));
        return error(format!("an array of {rows} rows of {width} numbers; positions have {numbers} ({names})"));
    }
    if let Some(name) = strengths.needed.first() {
        return error(format!("an array of positions has no {name}; give it with --strengths, or a structured array"));
    }
    let position = values.chunks_exact(width).map(|row| std::array::from_fn(|d| row.get(d).copied().unwrap_or(0.0)));
    Ok(Points { dimension: width, position: position.collect(), ..Points::default() })
}

fn of_snapshot(path: &Path, axes: usize, strengths: Names) -> Result<Points, Failure> {
    let error = |what: String| Err(Failure::new(65, format!("{}: {what}", path.display())));
    let s = snapshot::read(path)?;
    if let Some(i) = s.position.iter().position(|x| axes == 2 && x[2] != 0.0) {
        return error(format!("particle {i} lies at z = {}, out of the plane of the kernel", s.position[i][2]));
    }
    let strengths = match strengths.needed {
        [] => vec![],
        ["q"] => vec![s.charge.unwrap_or(s.mass)],
        ["wx", "wy", "wz"] => {
            let Some(vorticity) = s.vorticity else {
                let what = "a snapshot without vorticity, which those of vortices in space have; give wx, wy and wz with \
                            --strengths";
                return error(what.into());
            };
            (0..3).map(|k| vorticity.iter().map(|w| w[k]).collect()).collect()
        }
        names => return error(format!("a snapshot has no {}; give them with --strengths", names.join(", "))),
    };
    Ok(Points { dimension: axes, position: s.position, strengths, id: Some(s.id), side: s.box_size })
}

/// The columns `names`, in this order if the file is a plain array.
fn read_strengths(path: &Path, names: Names, n: usize) -> Result<Vec<Vec<f64>>, Failure> {
    let error = |what: String| Err(Failure::new(65, format!("{}: {what}", path.display())));
    let all = names.all();
    let columns = match kind(path) {
        Kind::Csv => names.of_table(&csv::read(path, &all)?)?,
        Kind::Hdf => return error("strengths are read from .npy and .csv".into()),
        Kind::Npy => match npy::read(path, &all)? {
            Npy::Table(table) => names.of_table(&table)?,
            Npy::Array { width, values, .. } if width == names.needed.len() || width == all.len() => {
                (0..width).map(|k| values.iter().copied().skip(k).step_by(width).collect()).collect()
            }
            Npy::Array { rows, width, .. } => {
                let wanted = names.needed.join(", ");
                let more = names.imaginary.map_or(String::new(), |n| format!(" (or {wanted}, {n})"));
                return error(format!(
                    "an array of {rows} rows of {width} numbers; strengths are {wanted}{more} in each row"
                ));
            }
        },
    };
    match columns.first().map_or(0, Vec::len) {
        rows if rows == n => Ok(columns),
        rows => error(format!("{rows} strengths for {n} sources")),
    }
}
