//! Comments of a CSV file that name units but are not read: an error, because the numbers would be
//! taken in other units.
//!
//! Units are read from the three comments that `nbody convert` writes above the header. All other
//! comments with the word "unit" and a `=` or `:` are near misses of them.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::error::READ;
use super::{FileError, regular};
use crate::messages::clipped;

/// Keys of the comments that are read.
const STATED: [&str; 3] = ["unit_length_cm", "unit_mass_g", "unit_velocity_cm_per_s"];

const WAY: &str = "state them above the header as # unit_length_cm = 3.0856775814913674e18, \
                   # unit_mass_g = 1.988409870698051e33 and # unit_velocity_cm_per_s = 1e5, or name them in \
                   the scenario (particles.units); delete the comment where it means something else";

/// Refuses comments that name units but are not read. Where the units are known anyway, because all
/// three comments are there or because the scenario names them (`named`), only those that stand
/// below the header are refused.
///
/// # Errors
/// [`FileError::Data`] with the line and the right spelling; those of reading the file.
pub fn check(path: &Path, named: bool) -> Result<(), FileError> {
    let mut source = BufReader::new(regular::table(path)?);
    let (mut text, mut number, mut below, mut stated, mut unread) = (String::new(), 0, false, 0, None);
    loop {
        text.clear();
        number += 1;
        if source.read_line(&mut text).map_err(FileError::io(path, READ))? == 0 {
            break;
        }
        let line = text.trim_start_matches('\u{feff}').trim();
        let Some(comment) = line.strip_prefix('#') else {
            below |= !line.is_empty();
            continue;
        };
        let (line, key) = (clipped(line), comment.split_once('=').map_or("", |(key, _)| key.trim()));
        if !STATED.contains(&key) {
            if unread.is_none() && names_units(comment) {
                unread = Some(format!("line {number}: the units of the comment \"{line}\" are not read; {WAY}"));
            }
        } else if below {
            let what = format!("line {number}: the comment \"{line}\" is below the header, where no units are read");
            return Err(FileError::data(path, format!("{what}; move it above the header")));
        } else {
            stated += 1;
        }
    }
    match unread {
        Some(what) if !named && stated < STATED.len() => Err(FileError::data(path, what)),
        _ => Ok(()),
    }
}

/// Whether a comment gives units: `units: pc`, `Unit_Length_in_cm = 3e18`, `LengthUnit = kpc`.
fn names_units(comment: &str) -> bool {
    let lower = comment.to_ascii_lowercase();
    let word = |(start, _): (usize, &str)| {
        let begins =
            !comment[..start].ends_with(|c: char| c.is_ascii_alphabetic()) || comment[start..].starts_with('U');
        let rest = &lower[start + "unit".len()..];
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        let quantity = ["length", "mass", "velocity", "time"].iter().any(|name| rest.starts_with(name));
        begins && (quantity || !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    comment.contains(['=', ':']) && lower.match_indices("unit").any(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: &str = "# unit_length_cm = 3e21\n# unit_mass_g = 2e33\n# unit_velocity_cm_per_s = 1e5\n";

    fn checked(text: &str, named: bool) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.csv");
        std::fs::write(&path, text).unwrap();
        check(&path, named).map_err(|e| e.to_string())
    }

    #[test]
    fn comments_that_give_units_are_told_from_others() {
        for yes in [
            "# Unit_Length_in_cm = 3.08e18",
            "#units: pc, km/s, Msun",
            "# UNITS = pc",
            "# UnitLength_in_cm=3e21",
            "# LengthUnit = kpc",
            "# unit_length_cm : 3",
            "# length unit: pc",
            "# unit_length = 1 kpc",
        ] {
            let refused = checked(&format!("{yes}\nx,mass\n1,2\n"), false).unwrap_err();
            assert!(
                refused.contains("line 1: the units of the comment") && refused.contains("# unit_mass_g = "),
                "{refused}"
            );
            assert!(checked(&format!("x,mass\n1,2\n\n{yes}\n"), false).unwrap_err().contains("line 4: "), "{yes}");
            // The units are known.
            assert_eq!(checked(&format!("{yes}\nx,mass\n1,2\n"), true), Ok(()), "{yes}");
            assert_eq!(checked(&format!("\u{feff}{UNITS}{yes}\nx,mass\n1,2\n"), false), Ok(()), "{yes}");
        }
        for no in
            ["# in units of pc", "# community: b", "# time = 3", "# united = 2", "# opportunity: mass", UNITS.trim()]
        {
            assert_eq!(checked(&format!("{no}\nx,mass\n1,2\n"), false), Ok(()), "{no}");
        }
    }

    #[test]
    fn units_below_the_header_are_refused_in_any_case() {
        for named in [false, true] {
            let refused = checked(&format!("x,mass\n1,2\n{UNITS}"), named).unwrap_err();
            assert!(refused.contains("line 3") && refused.contains("below the header"), "{refused}");
        }
    }
}
