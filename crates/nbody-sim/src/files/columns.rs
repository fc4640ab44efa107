//! Columns of a file like `diagnostics.csv`, with any names.

use std::path::Path;

use super::{FileError, regular};

/// Names and values.
pub type Columns = Vec<(String, Vec<f64>)>;

/// All columns, in their order. An empty cell is NaN: not every quantity is measured at every line.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] with line and column for anything else that is not a
/// finite number, and for a line of another length than the header.
pub fn read_columns(path: &Path) -> Result<Columns, FileError> {
    let text = regular::read(path, regular::TABLE)?;
    let text = String::from_utf8(text).map_err(|_| FileError::data(path, "not text in UTF-8"))?;
    let mut lines = text.lines().enumerate();
    let header = lines.next().map_or("", |(_, l)| l);
    let mut columns: Columns = header.split(',').map(|n| (n.trim().to_string(), vec![])).collect();
    for (i, line) in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != columns.len() {
            let what = format!("line {} has {} values for {} columns", i + 1, cells.len(), columns.len());
            return Err(FileError::data(path, what));
        }
        for ((name, values), cell) in columns.iter_mut().zip(cells) {
            values.push(match cell.parse::<f64>() {
                Ok(v) if v.is_finite() => v,
                Err(_) if cell.is_empty() => f64::NAN,
                _ => {
                    let what = format!("line {}, column {name}: {cell:?} is not a finite number", i + 1);
                    return Err(FileError::data(path, what));
                }
            });
        }
    }
    Ok(columns)
}
