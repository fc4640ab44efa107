//! Tables of particles as CSV: a header with names in any order, then one row for each particle.
//!
//! Blank lines and lines that begin with `#` are skipped, and columns that nobody asked for are not looked at.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::ops::Range;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};
use fmm_core::math::CollectVec;
use rayon::prelude::*;

use super::error::READ;
use super::{FileError, Table, regular};
use crate::messages::clipped;

/// No row of numbers is as long as this, in bytes: what never ends has no lines.
const LONGEST: u64 = 1 << 20;

/// Reads the columns `wanted`, as many of them as the file has; the name `id` stands for whole numbers.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] with line and column for anything that is not a
/// finite number, for a row of another length than the header, and for a name that appears twice.
pub fn read(path: &Path, wanted: &[&str]) -> Result<Table, FileError> {
    parse(path, regular::table(path)?, wanted)
}

/// The names of the columns.
///
/// # Errors
/// As [`read`], as far as the header goes.
pub fn names(path: &Path) -> Result<Vec<String>, FileError> {
    let mut rows = Rows::new(path, regular::table(path)?);
    let (_, header) = rows.next()?;
    Ok(header.unwrap_or_default().into_iter().map(Cow::into_owned).collect())
}

/// As [`read`], from any source; `path` is only for messages.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, source: impl io::Read, wanted: &[&str]) -> Result<Table, FileError> {
    let mut text = Rows::new(path, source);
    let (_, Some(header)) = text.next()? else {
        let names = wanted.iter().take(3).copied().collect::<Vec<_>>().join(",");
        return Err(FileError::data(path, format!("empty: the first line must name the columns ({names},…)")));
    };
    let header: Vec<String> = header.into_iter().map(Cow::into_owned).collect();
    check_names(&header, wanted).map_err(|what| FileError::data(path, what))?;
    // For each column of the file: where its values go.
    let mut columns: Vec<(String, Vec<f64>)> = vec![];
    let mut id = None;
    let places: Vec<Place> = header
        .iter()
        .map(|name| {
            if !wanted.contains(&name.as_str()) {
                Place::Nowhere
            } else if name == "id" {
                id = Some(vec![]);
                Place::Id
            } else {
                columns.push((name.clone(), vec![]));
                Place::Column(columns.len() - 1)
            }
        })
        .collect();
    let mut rows = 0;
    while let (line, Some(record)) = text.next()? {
        if record.len() != header.len() {
            let what = format!("line {line} has {} values for {} columns", record.len(), header.len());
            return Err(FileError::data(path, what));
        }
        for ((place, field), name) in places.iter().zip(&record).zip(&header) {
            let bad = |why: &str| {
                let (name, field) = (clipped(name), clipped(field));
                FileError::data(path, format!("line {line}, column {name}: {field:?} is not {why}"))
            };
            match *place {
                Place::Nowhere => {}
                Place::Id => {
                    let value = field.parse().map_err(|_| bad("a whole number of 0 or more"))?;
                    id.get_or_insert_default().push(value);
                }
                Place::Column(k) => match field.parse::<f64>() {
                    Ok(value) if value.is_finite() => columns[k].1.push(value),
                    Ok(_) => return Err(bad("finite")),
                    Err(_) => return Err(bad("a number")),
                },
            }
        }
        rows += 1;
    }
    Ok(Table::new(path, header, columns, id, rows))
}

/// Names of one quantity.
const SAME: [&[&str]; 2] = [&["mass", "m"], &["charge", "q", "circulation"]];

/// Ways to write the name of a column, in lower case and without separators: `velx`, `xvelocity`
/// for vx.
fn spellings(name: &str) -> Vec<String> {
    let (words, axis): (&[&str], &str) = match name {
        "x" | "y" | "z" => (&["pos", "position", "coord", "coordinate", "coordinates"], name),
        "vx" | "vy" | "vz" => (&["v", "vel", "velocity", "velocities"], &name[1..]),
        "mass" => return vec![name.into(), "masses".into()],
        _ => return vec![name.to_lowercase()],
    };
    let both = words.iter().flat_map(|word| [format!("{word}{axis}"), format!("{axis}{word}")]);
    std::iter::once(name.to_string()).chain(both).collect()
}

/// The wanted column that a name most likely stands for: one that differs in case, by separators,
/// by the words of [`spellings`] or by a unit in brackets; for velocities and masses also after an
/// underscore (`mass_msun`).
fn meant<'w>(name: &str, known: &HashMap<String, &'w str>) -> Option<&'w str> {
    let plain = name.split(['[', '(']).next().unwrap_or_default().trim().to_lowercase();
    let mut parts = plain.split(['_', '-', '.', ' ']).filter(|part| !part.is_empty());
    let whole: String = parts.clone().collect();
    let first = parts.next().filter(|first| ["vx", "vy", "vz", "mass"].contains(first));
    [Some(whole.as_str()), first].into_iter().flatten().find_map(|spelling| known.get(spelling).copied())
}

/// Refuses headers from which a column would be missed in silence: names that appear twice, that
/// are a near miss of a wanted name, and columns that something else than a comma separates.
pub(super) fn check_names(header: &[String], wanted: &[&str]) -> Result<(), String> {
    let mut seen = HashSet::new();
    if let Some(name) = header.iter().find(|n| wanted.contains(&n.as_str()) && !seen.insert(n.as_str())) {
        return Err(format!("the column {name} appears twice in the header"));
    }
    if let [all] = header {
        let names: Vec<&str> = all.split([';', '\t', ' ', '|']).map(str::trim).filter(|n| !n.is_empty()).collect();
        if names.iter().filter(|n| wanted.contains(n)).count() > 1 {
            let names = names.join(",");
            return Err(format!(
                "the header has one column, {:?}; separate columns by commas: {}",
                clipped(all),
                clipped(&names)
            ));
        }
    }
    // Nothing is missed where the column is there, perhaps by its other name.
    let there = |name: &str| {
        let same = SAME.into_iter().find(|same| same.contains(&name)).unwrap_or_default();
        seen.contains(name) || same.iter().any(|other| seen.contains(other))
    };
    let missing = wanted.iter().copied().filter(|name| !there(name));
    let known = missing.flat_map(|name| spellings(name).into_iter().map(move |spelling| (spelling, name))).collect();
    for name in header.iter().filter(|n| !wanted.contains(&n.as_str())) {
        if let Some(meant) = meant(name, &known) {
            let name = clipped(name);
            return Err(format!(
                "the column {name:?} is not read; did you mean {meant}? Write it so, or rename the column"
            ));
        }
    }
    Ok(())
}

enum Place {
    Nowhere,
    Id,
    Column(usize),
}

/// The values of a row, without the space around them.
type Fields<'a> = Vec<Cow<'a, str>>;

/// The rows of a file that are neither blank nor a comment. The `csv` crate would skip blank lines
/// without counting them. So this type reads the lines, and the crate only splits lines with quotes
/// into fields.
struct Rows<'a, R> {
    path: &'a Path,
    source: R,
    /// Number of the line in `text`, from 1.
    line: u64,
    text: String,
}

impl<'a, R: io::Read> Rows<'a, BufReader<R>> {
    fn new(path: &'a Path, source: R) -> Self {
        Rows { path, source: BufReader::new(source), line: 0, text: String::new() }
    }
}

impl<R: BufRead> Rows<'_, R> {
    /// The line number and the values of the next row; none at the end.
    fn next(&mut self) -> Result<(u64, Option<Fields<'_>>), FileError> {
        loop {
            self.text.clear();
            self.line += 1;
            let length = (&mut self.source).take(LONGEST).read_line(&mut self.text).map_err(|e| match e.kind() {
                io::ErrorKind::InvalidData => {
                    FileError::data(self.path, format!("line {}: not text in UTF-8", self.line))
                }
                _ => FileError::io(self.path, READ)(e),
            })?;
            if length == 0 {
                return Ok((self.line, None));
            }
            if self.text.trim_end_matches(['\n', '\r']).contains('\r') {
                let way = "end lines with a line feed (tr '\\r' '\\n' <OLD >NEW)";
                let what = format!("line {}: carriage returns alone do not end a line; {way}", self.line);
                return Err(FileError::data(self.path, what));
            }
            if length as u64 == LONGEST {
                return Err(FileError::data(self.path, format!("line {} is longer than {LONGEST} bytes", self.line)));
            }
            // Spreadsheets begin a file with a mark of the byte order.
            let row = self.text.trim_start_matches('\u{feff}').trim();
            if !row.is_empty() && !row.starts_with('#') {
                break;
            }
        }
        let row = self.text.trim_start_matches('\u{feff}').trim();
        if !row.contains('"') {
            return Ok((self.line, Some(row.split(',').map(|f| Cow::Borrowed(f.trim())).collect())));
        }
        // Quotes within a quoted text are doubled: their number is even, and `"mass` would be read
        // as `mass`.
        if row.matches('"').count() % 2 == 1 {
            return Err(FileError::data(self.path, format!("line {}: a quote is not closed", self.line)));
        }
        let mut reader = ReaderBuilder::new().has_headers(false).trim(Trim::All).from_reader(row.as_bytes());
        let record = reader.records().next().unwrap_or_else(|| Ok(StringRecord::new()));
        let record = record.map_err(|e| FileError::data(self.path, format!("line {}: not CSV ({e})", self.line)))?;
        Ok((self.line, Some(record.iter().map(|f| Cow::Owned(f.to_owned())).collect())))
    }
}

/// A column to be written.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Numbers, written so that reading gives the same bits.
    Float(&'a [f64]),
    /// Whole numbers.
    Id(&'a [u64]),
}

impl Column<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Column::Float(v) => v.len(),
            Column::Id(v) => v.len(),
        }
    }
}

/// Writes a header and one row for each element of the columns, which must be of one length.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::InvalidInput`] for columns of different lengths.
pub fn write(mut out: impl Write, columns: &[(&str, Column)]) -> io::Result<()> {
    let rows = columns.first().map_or(0, |(_, c)| c.len());
    if columns.iter().any(|(_, c)| c.len() != rows) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "columns of different lengths"));
    }
    let mut header = csv::Writer::from_writer(vec![]);
    header.write_record(columns.iter().map(|(name, _)| name))?;
    out.write_all(&header.into_inner().map_err(csv::IntoInnerError::into_error)?)?;
    // Numbers are turned into text in parallel, a bounded part of the rows at a time.
    let starts: Vec<usize> = (0..rows).step_by(BLOCK).collect();
    for part in starts.chunks(4 * rayon::current_num_threads()) {
        let texts: Vec<Vec<u8>> =
            part.par_iter().map(|&from| text_of(columns, from..(from + BLOCK).min(rows))).collect_vec();
        texts.iter().try_for_each(|text| out.write_all(text))?;
    }
    out.flush()
}

/// Rows that one thread turns into text at a time.
const BLOCK: usize = 4096;

fn text_of(columns: &[(&str, Column)], rows: Range<usize>) -> Vec<u8> {
    let mut text = Vec::with_capacity(rows.len() * columns.len() * 22);
    let mut float = ryu::Buffer::new();
    for i in rows {
        for (k, (_, column)) in columns.iter().enumerate() {
            if k > 0 {
                text.push(b',');
            }
            match column {
                Column::Float(v) => text.extend_from_slice(float.format(v[i]).as_bytes()),
                // Writing to memory does not fail.
                Column::Id(v) => drop(write!(text, "{}", v[i])),
            }
        }
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 8] = ["x", "y", "z", "vx", "vy", "m", "mass", "id"];

    fn table(text: &str) -> Result<Table, FileError> {
        parse(Path::new("p.csv"), text.as_bytes(), &ALL)
    }

    #[test]
    fn names_in_any_order_and_what_is_skipped() {
        let text = "\u{feff}# made by hand\n\nname, m ,y,x,id\n  # more\n\"Sun, the\",1e0, -2.5,3,18446744073709551615\n \nb,2,4,5,7\n";
        let t = table(text).unwrap();
        assert_eq!((t.rows(), t.dimension().unwrap()), (2, 2));
        assert_eq!(t.positions().unwrap(), [[3.0, -2.5, 0.0], [5.0, 4.0, 0.0]]);
        assert_eq!(t.need(&["m", "mass"]).unwrap(), [1.0, 2.0]);
        assert_eq!(t.id().unwrap(), [u64::MAX, 7]);
        assert!(t.column("name").is_none() && t.vectors(["vx", "vy", "vz"]).unwrap().is_none());
    }

    #[test]
    fn what_never_ends_is_refused() {
        let e = parse(Path::new("p.csv"), io::repeat(b'1'), &ALL).unwrap_err();
        assert!(e.exit_code() == 65 && e.to_string().contains("line 1 is longer than 1048576 bytes"), "{e}");
    }

    #[test]
    fn other_columns_do_not_matter() {
        // Both are there, nothing is missed; lines may end as on other systems.
        assert_eq!(table("x,y,Z,z,name\r\n1,2,3,4,a\r\n").unwrap().dimension().unwrap(), 3);
        assert_eq!(table("x,vx,v_x,velocity,mass_of_what,m\n1,2,3,4,5,6\n").unwrap().column("vx").unwrap(), [2.0]);
        assert_eq!(table("x,y,mass,M\n1,2,3,4\n").unwrap().need(&["mass", "m"]).unwrap(), [3.0]);
        // In linear time: to compare each with each takes a minute.
        let names: Vec<String> = (0..90_000).map(|i| format!("c{i}")).collect();
        assert_eq!(table(&format!("x,y,{}\n", names.join(","))).unwrap().rows(), 0);
    }

    #[test]
    fn header_only_is_an_empty_table() {
        let t = table("x,y,z\n").unwrap();
        assert_eq!((t.rows(), t.positions().unwrap().len()), (0, 0));
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, words) in [
            ("x,y\n1,2\n# c\n\n3,nan\n", "p.csv: line 5, column y: \"nan\" is not finite"),
            ("x,y\n1,2\n3,-inf\n", "line 3, column y: \"-inf\" is not finite"),
            ("x,y\n1,two\n", "line 2, column y: \"two\" is not a number"),
            ("x,y\n1,\n", "line 2, column y: \"\" is not a number"),
            ("x,id\n1,-1\n", "line 2, column id: \"-1\" is not a whole number"),
            ("x,y\n1,2,3\n", "line 2 has 3 values for 2 columns"),
            ("x,y,x\n1,2,3\n", "column x appears twice"),
            ("x,y,Z\n1,2,3\n", "the column \"Z\" is not read; did you mean z?"),
            ("x,y,v_x\n1,2,3\n", "the column \"v_x\" is not read; did you mean vx?"),
            ("x,y,velx\n1,2,3\n", "did you mean vx?"),
            ("x,y,vel_y\n1,2,3\n", "did you mean vy?"),
            ("x,y,Vel-Y\n1,2,3\n", "did you mean vy?"),
            ("x,y,velocity_x [km/s]\n1,2,3\n", "did you mean vx?"),
            ("x,y,x_vel\n1,2,3\n", "did you mean vx?"),
            ("x,y,vx_kms\n1,2,3\n", "did you mean vx?"),
            ("pos_x,y\n1,2\n", "did you mean x?"),
            ("x_pos,y\n1,2\n", "did you mean x?"),
            ("x,y,Mass_Msun\n1,2,3\n", "did you mean mass?"),
            ("x,y,masses\n1,2,3\n", "did you mean mass?"),
            ("x,y,\"mass\n1,2,3\n", "line 1: a quote is not closed"),
            ("x,y\n1,\"2\n", "line 2: a quote is not closed"),
            ("x,y [kpc],m\n1,2,3\n", "the column \"y [kpc]\" is not read; did you mean y?"),
            ("x;y;m\n1;2;3\n", "separate columns by commas: x,y,m"),
            ("x y m\n1 2 3\n", "separate columns by commas: x,y,m"),
            ("x\ty\tname\n1\t2\ta\n", "separate columns by commas: x,y,name"),
            ("x,y\r1,2\r3,4\r", "line 1: carriage returns alone do not end a line"),
            ("", "empty"),
            ("# only\n\n", "empty"),
        ] {
            let error = table(text).unwrap_err();
            assert!(error.to_string().contains(words), "{text:?}: {error}");
            assert_eq!(error.exit_code(), 65);
        }
        let error = parse(Path::new("p.csv"), &b"x,y\n1,\xff\n"[..], &ALL).unwrap_err();
        assert!(error.to_string().contains("line 2: not text"), "{error}");
        assert_eq!(read(Path::new("/nonexistent/p.csv"), &ALL).unwrap_err().exit_code(), 66);
    }

    #[test]
    fn missing_columns_are_named() {
        let words = |e: FileError| e.to_string();
        assert!(words(table("y,m\n").unwrap().dimension().unwrap_err()).contains("no column x; the columns are: y, m"));
        assert!(words(table("x,z\n").unwrap().positions().unwrap_err()).contains("no column y"));
        assert!(words(table("x,y\n").unwrap().need(&["m", "mass"]).unwrap_err()).contains("no column m or mass"));
        assert!(words(table("x,m,mass\n").unwrap().need(&["m", "mass"]).unwrap_err()).contains("m and mass mean"));
        let error = table("x,y,vx\n").unwrap().vectors(["vx", "vy", "vz"]).unwrap_err();
        assert!(words(error).contains("no column vy"));
    }

    #[test]
    fn numbers_come_back_bit_for_bit() {
        let values = [0.1, -0.0, 1e300, 5e-324, f64::MAX, 1.0 / 3.0, 123456789.0];
        let ids: Vec<u64> = (0..7).collect();
        let mut text = vec![];
        write(&mut text, &[("id", Column::Id(&ids)), ("x", Column::Float(&values))]).unwrap();
        let t = parse(Path::new("p.csv"), &text[..], &ALL).unwrap();
        assert_eq!(t.id().unwrap(), ids);
        assert!(t.column("x").unwrap().iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert!(write(io::sink(), &[("a", Column::Id(&ids)), ("b", Column::Id(&[]))]).is_err());
    }
}
