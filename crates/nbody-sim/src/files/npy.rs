//! NumPy's `.npy`: plain arrays of floats, and structured arrays whose fields are the columns of a [`Table`].

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use npyz::{DType, NpyHeader, Order, WriterBuilder};

use super::csv::{Column, check_names};
use super::error::READ;
use super::{FileError, Table, regular};

/// A header longer than this is no header of numbers.
const LONGEST_HEADER: usize = 1 << 16;

/// What an `.npy` file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Npy {
    /// A plain array of one or two dimensions.
    Array {
        /// Number of rows.
        rows: usize,
        /// Numbers in a row; 1 for an array of one dimension.
        width: usize,
        /// rows × width finite numbers, row by row.
        values: Vec<f64>,
    },
    /// A structured array.
    Table(Table),
}

/// Reads an array of `f4`, `f8` or whole numbers, or the fields `wanted` of a structured array (numbers; `id` whole numbers).
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] if it is no such file, is shorter or longer than its
/// header says, or has a value that is not finite (with row and column).
pub fn read(path: &Path, wanted: &[&str]) -> Result<Npy, FileError> {
    let error = |what: String| FileError::data(path, what);
    let file = regular::open(path, u64::MAX)?;
    let length = file.metadata().map_err(FileError::io(path, READ))?.len();
    let mut source = BufReader::new(file);
    let (header, start) = read_header(path, &mut source)?;
    let dtype = header.dtype();
    let not_numbers = || error(format!("{} is not a type of numbers that is read", dtype.descr()));
    let item = dtype.num_bytes().filter(|&b| b > 0 && !dtype.uses_pickled_array()).ok_or_else(not_numbers)?;
    let shape: Vec<usize> = header.shape().iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect();
    let (rows, width) = match shape[..] {
        [n] => (n, 1),
        [n, d] => (n, d),
        _ => return Err(error(format!("an array of the shape {shape:?}; one or two dimensions are read"))),
    };
    // The declared size against the true one, before any memory is taken.
    let bytes = rows.checked_mul(width).and_then(|n| n.checked_mul(item));
    if bytes.map(|b| b as u64) != Some(length.saturating_sub(start)) {
        let holds = length.saturating_sub(start);
        return Err(error(format!("{holds} bytes of data for the shape {shape:?} of {item} bytes each")));
    }
    let mut data = vec![];
    source.read_to_end(&mut data).map_err(FileError::io(path, READ))?;
    if data.len() as u64 != length - start {
        return Err(error("changed while it was read".into()));
    }
    match &dtype {
        DType::Plain(kind) => {
            let decode = real(&kind.to_string()).ok_or_else(not_numbers)?;
            let at = |i: usize, k: usize| match header.order() {
                Order::C => i * width + k,
                Order::Fortran => k * rows + i,
            };
            let mut values = Vec::with_capacity(rows * width);
            for i in 0..rows {
                for k in 0..width {
                    let value = decode(&data[at(i, k) * item..]);
                    if !value.is_finite() {
                        return Err(error(format!("row {i}, column {k}: {value} is not finite")));
                    }
                    values.push(value);
                }
            }
            Ok(Npy::Array { rows, width, values })
        }
        DType::Record(_) if shape.len() == 1 => table(path, &dtype, rows, item, &data, wanted).map(Npy::Table),
        _ => Err(not_numbers()),
    }
}

/// Parses the header with limits on its length and nesting; returns it with the offset of the data.
fn read_header(path: &Path, source: &mut impl Read) -> Result<(NpyHeader, u64), FileError> {
    let not_npy = |why: &dyn std::fmt::Display| FileError::data(path, format!("not an .npy file ({why})"));
    let mut head = vec![];
    let mut take = |head: &mut Vec<u8>, n: usize| -> Result<(), FileError> {
        let got = source.take(n as u64).read_to_end(head).map_err(FileError::io(path, READ))?;
        if got == n { Ok(()) } else { Err(not_npy(&"it ends within the header")) }
    };
    take(&mut head, 10)?;
    if !head.starts_with(b"\x93NUMPY") {
        return Err(not_npy(&"it does not begin with \\x93NUMPY"));
    }
    let text_length = if head[6] == 1 {
        usize::from(u16::from_le_bytes([head[8], head[9]]))
    } else {
        take(&mut head, 2)?;
        u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize
    };
    if text_length > LONGEST_HEADER {
        return Err(not_npy(&format!("a header of {text_length} bytes")));
    }
    let start = head.len();
    take(&mut head, text_length)?;
    // The parser of the header recurses.
    let mut depth = 0i32;
    for byte in &head[start..] {
        depth += i32::from(b"([{".contains(byte)) - i32::from(b")]}".contains(byte));
        if depth > 16 {
            return Err(not_npy(&"a header nested too deeply"));
        }
    }
    if !shapes_are_numbers(&String::from_utf8_lossy(&head[start..])) {
        return Err(not_npy(&"a shape of more numbers than can be counted"));
    }
    let header = NpyHeader::from_reader(&head[..]).map_err(|e| not_npy(&e))?;
    Ok((header, head.len() as u64))
}

/// Whether the numbers of every shape in the text of a header have a product: the parser takes it without a look.
fn shapes_are_numbers(text: &str) -> bool {
    text.split("shape").skip(1).all(|rest| {
        let mut numbers =
            rest.split(')').next().unwrap_or(rest).split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
        numbers.try_fold(1u64, |product, n| product.checked_mul(n.parse().ok()?)).is_some()
    })
}

/// The wanted fields of a structured array.
fn table(
    path: &Path,
    dtype: &DType,
    rows: usize,
    item: usize,
    data: &[u8],
    wanted: &[&str],
) -> Result<Table, FileError> {
    let DType::Record(fields) = dtype else { return Err(FileError::data(path, "not a structured array")) };
    let error = |what: String| FileError::data(path, what);
    let header: Vec<String> = fields.iter().map(|f| f.name.clone()).collect();
    check_names(&header, wanted).map_err(error)?;
    let (mut columns, mut id, mut offset) = (vec![], None, 0);
    for field in fields {
        let name = &field.name;
        let kind = field.dtype.descr();
        let kind = kind.trim_matches('\'');
        let at = |i: usize| &data[i * item + offset..];
        if wanted.contains(&name.as_str()) {
            if name == "id" {
                let decode = integer(kind)
                    .ok_or_else(|| error(format!("the field id has the type {kind}; a whole number is needed")))?;
                let value = |i| decode(at(i)).ok_or_else(|| error(format!("row {i}, field id: below 0")));
                id = Some((0..rows).map(value).collect::<Result<Vec<u64>, _>>()?);
            } else {
                let decode = real(kind).ok_or_else(|| {
                    error(format!("the field {name} has the type {kind}; a real or a whole number is needed"))
                })?;
                let values: Vec<f64> = (0..rows).map(|i| decode(at(i))).collect();
                if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                    return Err(error(format!("row {i}, field {name}: {} is not finite", values[i])));
                }
                columns.push((name.clone(), values));
            }
        }
        // Known to fit, since the sum of all fields does.
        offset += field.dtype.num_bytes().unwrap_or(0);
    }
    Ok(Table::new(path, header, columns, id, rows))
}

/// Reads the first number of a slice that is long enough.
type Decode<T> = fn(&[u8]) -> T;

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes[i])
}

fn real(kind: &str) -> Option<Decode<f64>> {
    Some(match kind {
        "<f8" => |b| f64::from_le_bytes(first(b)),
        "<f4" => |b| f64::from(f32::from_le_bytes(first(b))),
        ">f8" => |b| f64::from_be_bytes(first(b)),
        ">f4" => |b| f64::from(f32::from_be_bytes(first(b))),
        // Counts, or charges in units of e. Beyond 2⁵³ they are rounded, as in a table of text.
        "|i1" => |b| f64::from(i8::from_le_bytes(first(b))),
        "|u1" => |b| f64::from(u8::from_le_bytes(first(b))),
        "<i2" => |b| f64::from(i16::from_le_bytes(first(b))),
        "<u2" => |b| f64::from(u16::from_le_bytes(first(b))),
        "<i4" => |b| f64::from(i32::from_le_bytes(first(b))),
        "<u4" => |b| f64::from(u32::from_le_bytes(first(b))),
        "<i8" => |b| i64::from_le_bytes(first(b)) as f64,
        "<u8" => |b| u64::from_le_bytes(first(b)) as f64,
        _ => return None,
    })
}

fn integer(kind: &str) -> Option<Decode<Option<u64>>> {
    Some(match kind {
        "<u8" => |b| Some(u64::from_le_bytes(first(b))),
        "<u4" => |b| Some(u64::from(u32::from_le_bytes(first(b)))),
        "<i8" => |b| u64::try_from(i64::from_le_bytes(first(b))).ok(),
        "<i4" => |b| u64::try_from(i32::from_le_bytes(first(b))).ok(),
        _ => return None,
    })
}

/// Writes `values`, rows of `width` numbers, as a `<f8` array of the shape `[rows, width]`.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::InvalidInput`] if `values` are not whole rows.
pub fn write(out: impl Write, values: &[f64], width: usize) -> io::Result<()> {
    if width == 0 || !values.len().is_multiple_of(width) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} values in rows of {width}", values.len())));
    }
    let shape = [(values.len() / width) as u64, width as u64];
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(out).begin_nd()?;
    writer.extend(values.iter().copied())?;
    writer.finish()
}

/// The names of the fields of a structured array; none of a plain one.
///
/// # Errors
/// As [`read`], for the header.
pub fn names(path: &Path) -> Result<Vec<String>, FileError> {
    let (header, _) = read_header(path, &mut BufReader::new(regular::open(path, u64::MAX)?))?;
    Ok(match header.dtype() {
        DType::Record(fields) => fields.into_iter().map(|field| field.name).collect(),
        _ => vec![],
    })
}

/// Whether a structured array has fields of `f4` and none of `f8`.
///
/// # Errors
/// As [`read`], for the header.
pub fn is_single(path: &Path) -> Result<bool, FileError> {
    let file = regular::open(path, u64::MAX)?;
    let (header, _) = read_header(path, &mut BufReader::new(file))?;
    let DType::Record(fields) = header.dtype() else { return Ok(false) };
    let kinds: Vec<String> = fields.iter().map(|f| f.dtype.descr()).collect();
    Ok(kinds.iter().any(|k| k.contains("f4")) && !kinds.iter().any(|k| k.contains("f8")))
}

/// Writes columns of one length as a structured array: fields of `<f8`, ids of `<u8`.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::InvalidInput`] for columns of different lengths.
pub fn write_table(out: impl Write, columns: &[(&str, Column)]) -> io::Result<()> {
    write_table_as(out, columns, false)
}

/// As [`write_table`], with fields of `<f4` if `single`.
///
/// # Errors
/// As [`write_table`].
pub fn write_table_as(mut out: impl Write, columns: &[(&str, Column)], single: bool) -> io::Result<()> {
    let float = if single { "<f4" } else { "<f8" };
    let rows = columns.first().map_or(0, |(_, c)| c.len());
    if columns.iter().any(|(_, c)| c.len() != rows) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "columns of different lengths"));
    }
    let fields = columns.iter().map(|(name, column)| {
        let kind = if matches!(column, Column::Id(_)) { "<u8" } else { float };
        npyz::Field { name: name.to_string(), dtype: DType::Plain(kind.parse().expect("a type of NumPy's")) }
    });
    let dtype = DType::Record(fields.collect());
    // As NumPy lays it out: magic, version 1.0, a dictionary padded so that the data begin at a multiple of 64.
    let mut header =
        format!("{{'descr': {}, 'fortran_order': False, 'shape': ({rows},), }}", dtype.descr()).into_bytes();
    header.resize((header.len() + 11).next_multiple_of(64) - 11, b' ');
    header.push(b'\n');
    let length = u16::try_from(header.len()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "long names"))?;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&header)?;
    let mut row = Vec::with_capacity(8 * columns.len());
    for i in 0..rows {
        row.clear();
        for (_, column) in columns {
            match column {
                Column::Float(v) if single => row.extend((v[i] as f32).to_le_bytes()),
                Column::Float(v) => row.extend(v[i].to_le_bytes()),
                Column::Id(v) => row.extend(v[i].to_le_bytes()),
            }
        }
        out.write_all(&row)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Npy, FileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, bytes).unwrap();
        read(&path, &["x", "q", "id"])
    }

    fn le(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn arrays_come_back() {
        let values = [1.5, -2.0, 3.25, 4.0, 5.0, 1e-310];
        let mut bytes = vec![];
        write(&mut bytes, &values, 3).unwrap();
        assert_eq!(parse(&bytes).unwrap(), Npy::Array { rows: 2, width: 3, values: values.to_vec() });
        assert!(write(io::sink(), &values, 4).is_err());
    }

    #[test]
    fn tables_come_back() {
        for rows in [0, 3] {
            let (x, id) = (&[0.1, -2.0, 5e-324][..rows], &[3, u64::MAX, 0][..rows]);
            let mut bytes = vec![];
            write_table(&mut bytes, &[("id", Column::Id(id)), ("x", Column::Float(x))]).unwrap();
            assert_eq!((bytes.len() - 16 * rows) % 64, 0);
            let Npy::Table(t) = parse(&bytes).unwrap() else { panic!("not a table") };
            assert_eq!((t.rows(), t.column("x").unwrap(), t.id().unwrap()), (rows, x, id));
        }
        assert!(write_table(io::sink(), &[("x", Column::Float(&[1.0])), ("id", Column::Id(&[]))]).is_err());
    }

    #[test]
    fn order_type_and_shape() {
        let array = |rows, width, values: &[f64]| Npy::Array { rows, width, values: values.to_vec() };
        let fortran = file(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", &le(&[1.0, 3.0, 2.0, 4.0]));
        assert_eq!(parse(&fortran).unwrap(), array(2, 2, &[1.0, 2.0, 3.0, 4.0]));
        let single: Vec<u8> = [0.5f32, 2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let big = file(2, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", &single);
        assert_eq!(parse(&big).unwrap(), array(2, 1, &[0.5, 2.0]));
        for (kind, bytes) in [("|i1", 1), ("<i2", 2), ("<i4", 4), ("<i8", 8)] {
            let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (2,), }}");
            let whole: Vec<u8> = [-3i64, 100].iter().flat_map(|v| v.to_le_bytes()[..bytes].to_vec()).collect();
            assert_eq!(parse(&file(1, &header, &whole)).unwrap(), array(2, 1, &[-3.0, 100.0]), "{kind}");
            let header = header.replace(kind, &kind.replace('i', "u"));
            let largest = 2f64.powi(8 * bytes as i32) - if bytes < 8 { 1.0 } else { 0.0 };
            assert_eq!(
                parse(&file(1, &header, &vec![255; 2 * bytes])).unwrap(),
                array(2, 1, &[largest; 2]),
                "u{bytes}"
            );
        }
    }

    #[test]
    fn fields_become_columns() {
        let header = "{'descr': [('name', '|S2'), ('q', '<f4'), ('id', '<i8'), ('x', '<f8')], \
                      'fortran_order': False, 'shape': (2,), }";
        let row = |q: f32, id: i64, x: f64| {
            [b"ab".to_vec(), q.to_le_bytes().to_vec(), id.to_le_bytes().to_vec(), x.to_le_bytes().to_vec()].concat()
        };
        let Npy::Table(t) = parse(&file(1, header, &[row(0.5, 7, 1.0), row(1.5, 9, 2.0)].concat())).unwrap() else {
            panic!("not a table")
        };
        assert_eq!((t.column("q").unwrap(), t.column("x").unwrap()), (&[0.5, 1.5][..], &[1.0, 2.0][..]));
        assert_eq!((t.id().unwrap(), t.dimension().unwrap()), (&[7, 9][..], 1));
        let error = parse(&file(1, header, &[row(0.5, 7, 1.0), row(1.5, -9, 2.0)].concat())).unwrap_err();
        assert!(error.to_string().contains("row 1, field id: below 0"), "{error}");
        let error = parse(&file(1, header, &[row(f32::NAN, 7, 1.0), row(1.5, 9, 2.0)].concat())).unwrap_err();
        assert!(error.to_string().contains("row 0, field q: NaN"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let plain =
            |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        for (bytes, words) in [
            (b"x,y\n1,2\n3,4\n".to_vec(), "not an .npy file"),
            (b"\x93NUM".to_vec(), "ends within the header"),
            (file(1, &plain("'<f8'", "(3,)"), &le(&[1.0, 2.0])), "16 bytes of data for the shape [3]"),
            (file(1, &plain("'<f8'", "(9223372036854775807, 1)"), &[]), "0 bytes of data"),
            (file(1, &plain("'<f8'", "(9223372036854775807, 9)"), &[]), "a shape of more numbers than can be counted"),
            (file(1, &plain("'<f8'", "(1,)"), &le(&[f64::INFINITY])), "row 0, column 0: inf"),
            (file(1, &plain("'|O'", "(1,)"), &[0; 8]), "not a type of numbers"),
            (file(1, &plain("'<c16'", "(1,)"), &[0; 16]), "not a type of numbers"),
            (file(1, &plain("'<f8'", "(1, 1, 1)"), &[0; 8]), "one or two dimensions"),
            (file(1, &"[".repeat(60_000), &[]), "nested too deeply"),
            (file(2, &" ".repeat(70_000), &[]), "a header of 70000 bytes"),
        ] {
            let error = parse(&bytes).unwrap_err();
            assert!(error.to_string().contains(words), "{words}: {error}");
            assert_eq!(error.exit_code(), 65);
        }
    }
}
