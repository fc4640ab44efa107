//! A table of particles: named columns of numbers, from CSV or NumPy.

use std::path::{Path, PathBuf};

use super::FileError;
use crate::messages::clipped;

/// Named columns of finite numbers, and perhaps whole-number ids, one row for each particle.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    path: PathBuf,
    /// All names of the file, also of columns that were not read.
    header: Vec<String>,
    columns: Vec<(String, Vec<f64>)>,
    id: Option<Vec<u64>>,
    rows: usize,
}

impl Table {
    pub(crate) fn new(
        path: &Path,
        header: Vec<String>,
        columns: Vec<(String, Vec<f64>)>,
        id: Option<Vec<u64>>,
        rows: usize,
    ) -> Self {
        Table { path: path.to_owned(), header, columns, id, rows }
    }

    /// Number of particles.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Names of the columns of the file that are none of `known`.
    pub fn others(&self, known: &[&str]) -> Vec<String> {
        self.header.iter().filter(|n| !known.contains(&n.as_str())).cloned().collect()
    }

    /// The ids, if the table has a column `id`.
    pub fn id(&self) -> Option<&[u64]> {
        self.id.as_deref()
    }

    /// A column, if the table has it.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
    }

    /// The one column among several names of the same quantity (`m` or `mass`); `None` where there is none.
    ///
    /// # Errors
    /// [`FileError::Data`] if there is more than one.
    pub fn one_of(&self, names: &[&str]) -> Result<Option<&[f64]>, FileError> {
        let mut found = names.iter().filter_map(|n| Some((n, self.column(n)?)));
        match (found.next(), found.next()) {
            (Some((a, _)), Some((b, _))) => {
                Err(self.error(format!("the columns {a} and {b} mean the same; keep one of them")))
            }
            (first, _) => Ok(first.map(|(_, values)| values)),
        }
    }

    /// As [`one_of`](Self::one_of), but the column must be there.
    ///
    /// # Errors
    /// [`FileError::Data`] that names the missing column and the columns that there are.
    pub fn need(&self, names: &[&str]) -> Result<&[f64], FileError> {
        self.one_of(names)?.ok_or_else(|| self.missing(&names.join(" or ")))
    }

    /// How many of x, y, z there are: 1, 2 or 3.
    ///
    /// # Errors
    /// [`FileError::Data`] if x is missing, or y where there is z.
    pub fn dimension(&self) -> Result<usize, FileError> {
        match ["x", "y", "z"].map(|n| self.column(n).is_some()) {
            [true, true, true] => Ok(3),
            [true, true, false] => Ok(2),
            [true, false, false] => Ok(1),
            [false, ..] => Err(self.missing("x")),
            [true, false, true] => Err(self.missing("y")),
        }
    }

    /// Positions; coordinates beyond the dimension are 0.
    ///
    /// # Errors
    /// As [`dimension`](Self::dimension).
    pub fn positions(&self) -> Result<Vec<[f64; 3]>, FileError> {
        self.dimension()?;
        let columns = ["x", "y", "z"].map(|n| self.column(n));
        Ok(self.gather(columns))
    }

    /// Vectors from three columns (`vx`, `vy`, `vz`), as many of them as the table has dimensions; further ones are
    /// read if they are there, and 0 if not. `None` where the table has none of them.
    ///
    /// # Errors
    /// [`FileError::Data`] if only some of the needed columns are there.
    pub fn vectors(&self, names: [&str; 3]) -> Result<Option<Vec<[f64; 3]>>, FileError> {
        let columns = names.map(|n| self.column(n));
        if columns.iter().all(Option::is_none) {
            return Ok(None);
        }
        match (0..self.dimension()?).find(|&k| columns[k].is_none()) {
            Some(k) => Err(self.missing(names[k])),
            None => Ok(Some(self.gather(columns))),
        }
    }

    fn gather(&self, columns: [Option<&[f64]>; 3]) -> Vec<[f64; 3]> {
        (0..self.rows).map(|i| columns.map(|c| c.map_or(0.0, |v| v[i]))).collect()
    }

    /// An error that names the file.
    pub fn error(&self, what: impl Into<String>) -> FileError {
        FileError::data(&self.path, what)
    }

    fn missing(&self, name: &str) -> FileError {
        const MOST: usize = 30;
        let mut columns: Vec<_> = self.header.iter().take(MOST).map(|name| clipped(name)).collect();
        if let more @ 1.. = self.header.len().saturating_sub(MOST) {
            columns.push(format!("and {more} more").into());
        }
        self.error(format!("there is no column {name}; the columns are: {}", columns.join(", ")))
    }
}
