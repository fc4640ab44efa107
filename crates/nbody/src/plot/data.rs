//! Columns of a file like `diagnostics.csv`, whatever they are called.

use std::path::Path;

use crate::files::{FileError, regular};

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

/// Fewer points that look the same: of each of `most / 2` stretches the lowest and the highest.
pub fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most || most < 4 {
        return points.to_vec();
    }
    let mut kept = vec![];
    for stretch in points.chunks(points.len().div_ceil(most / 2)) {
        let of = |better: fn(f64, f64) -> bool| {
            (1..stretch.len()).fold(0, |best, i| if better(stretch[i].1, stretch[best].1) { i } else { best })
        };
        let (low, high) = (of(|a, b| a < b), of(|a, b| a > b));
        kept.push(stretch[low.min(high)]);
        if low != high {
            kept.push(stretch[low.max(high)]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::thin;

    #[test]
    fn thinning_keeps_the_extremes() {
        let points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), (f64::from(i) * 0.37).sin())).collect();
        let kept = thin(&points, 200);
        assert!(kept.len() <= 200 && kept.windows(2).all(|w| w[0].0 < w[1].0));
        let top = |p: &[(f64, f64)]| p.iter().fold(f64::MIN, |a, b| a.max(b.1));
        assert_eq!(top(&kept), top(&points));
        assert_eq!(thin(&points[..5], 200), points[..5]);
    }
}
