//! Files of pairs that do not interact, such as bonded atoms.

use std::path::Path;

use crate::failure::Failure;
use crate::files::csv;

/// Reads pairs of numbers below `count`: the smaller number first, in ascending order. `what` names
/// the numbers in messages: rows of the sources, counted from 0, or ids.
///
/// # Errors
/// 65 and 66: no such file, numbers that are not there, one that is paired with itself, a pair that is given twice.
pub fn read(path: &Path, count: usize, what: &str) -> Result<Vec<[usize; 2]>, Failure> {
    let table = csv::read(path, &["i", "j"])?;
    let (i, j) = (table.need(&["i"])?, table.need(&["j"])?);
    let error = |row: usize, why: String| Failure::new(65, format!("{}: pair {}: {why}", path.display(), row + 1));
    let mut pairs = vec![];
    for (row, both) in i.iter().zip(j).enumerate() {
        let index = |value: f64| {
            if value.fract() == 0.0 && (0.0..count as f64).contains(&value) {
                return Ok(value as usize);
            }
            let allowed = match count {
                0 => "there are none".to_string(),
                _ => format!("allowed: 0 to {}", count - 1),
            };
            Err(error(row, format!("{value} is no {what}; {allowed}")))
        };
        let (a, b) = (index(*both.0)?, index(*both.1)?);
        if a == b {
            return Err(error(row, format!("{a} is paired with itself")));
        }
        pairs.push([a.min(b), a.max(b)]);
    }
    fmm::in_order(pairs)
        .map_err(|[a, b]| Failure::new(65, format!("{}: the pair {a}, {b} is given twice", path.display())))
}
