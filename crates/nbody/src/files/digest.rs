//! Every array of an HDF5 file read through its checksums, and the SHA-256 of all their numbers.
//!
//! The hash depends on names, types, shapes and values of the arrays and on nothing else: not on attributes, the time of
//! writing, chunks, compression, or where in the file things lie. For each array, in the order of the bytes of their
//! paths, the hash takes in
//! 1. the path ("/PartType1/Coordinates") and a zero byte,
//! 2. the type as NumPy names it, little-endian ("<f8", "<u8", "|u1"), and a zero byte,
//! 3. the number of dimensions and each of them, as 64-bit little-endian integers,
//! 4. the values, row by row, little-endian.
//!
//! An array with several names (hard links) counts once, under the first of them.

use std::path::Path;

use hdf5::filters::Filter;
use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5::{Dataset, Group, H5Type};
use sha2::{Digest as _, Sha256};

use super::FileError;
use super::hdf::{Member, Reader, read_rows};

/// Bytes that are read at once.
const BLOCK: usize = 1 << 22;
/// Groups in groups; deeper ones are no file of particles.
const DEEPEST: usize = 32;

/// What reading every array found.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    /// SHA-256 in hexadecimal; of no use where there is damage.
    pub sha256: String,
    /// Number of arrays.
    pub arrays: usize,
    /// How many of them have checksums (those in the header of an object have that one's).
    pub with_checksum: usize,
    /// Bytes of all numbers.
    pub bytes: u64,
    /// What is damaged, one line for each array.
    pub damage: Vec<String>,
}

/// Reads every array of a file.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] where the file cannot be opened or its groups cannot be
/// listed. Damage within arrays is listed instead.
pub fn digest(path: &Path) -> Result<Digest, FileError> {
    let reader = Reader::open(path)?;
    let mut found = Found::default();
    found.collect(&reader, &reader.need_group("/")?, 0)?;
    found.arrays.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut hash, mut result) = (Sha256::new(), Digest::default());
    let (mut seen, mut once) = (vec![], vec![]);
    for (name, dataset) in &found.arrays {
        let token = dataset.loc_info().map_err(|e| reader.error(format!("{name} cannot be read ({e})")))?.token;
        if !seen.contains(&token) {
            seen.push(token);
            once.push((name, dataset));
        }
    }
    reader.verify_sizes(once.iter().map(|(_, dataset)| *dataset))?;
    for (name, dataset) in once {
        result.arrays += 1;
        match take(&reader, name, dataset, &mut hash) {
            Ok((bytes, checksum)) => {
                result.bytes += bytes;
                result.with_checksum += usize::from(checksum);
            }
            Err(what) => result.damage.push(what),
        }
    }
    result.sha256 = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    Ok(result)
}

#[derive(Default)]
struct Found {
    arrays: Vec<(String, Dataset)>,
}

impl Found {
    fn collect(&mut self, reader: &Reader, group: &Group, depth: usize) -> Result<(), FileError> {
        let place = group.name();
        let place = place.trim_end_matches('/');
        if depth > DEEPEST {
            return Err(reader.error(format!("{place}: groups are nested too deeply")));
        }
        for Member { name, inside } in reader.members(group)? {
            inside?;
            let path = format!("{place}/{name}");
            match group.group(&name) {
                Ok(inner) => self.collect(reader, &inner, depth + 1)?,
                Err(_) => {
                    let dataset = group.dataset(&name);
                    let dataset = dataset.map_err(|e| reader.error(format!("{path} cannot be opened ({e})")))?;
                    reader.verify_inside(&dataset)?;
                    self.arrays.push((path, dataset));
                }
            }
        }
        Ok(())
    }
}

/// Adds one array to the hash. Returns its bytes and whether a checksum guards it.
fn take(reader: &Reader, name: &str, dataset: &Dataset, hash: &mut Sha256) -> Result<(u64, bool), String> {
    let wrong = |what: String| format!("{name}: {what}");
    let kind =
        dataset.dtype().and_then(|t| t.to_descriptor()).map_err(|e| wrong(format!("its type cannot be read ({e})")))?;
    let descr = descr(&kind).ok_or_else(|| wrong(format!("arrays of the type {kind} are not checked")))?;
    reader.verify_storage(dataset, kind.size() as u64).map_err(|e| e.to_string())?;
    let shape = dataset.shape();
    hash.update(name.as_bytes());
    hash.update([0]);
    hash.update(descr.as_bytes());
    hash.update([0]);
    hash.update((shape.len() as u64).to_le_bytes());
    shape.iter().for_each(|&n| hash.update((n as u64).to_le_bytes()));
    type Take = fn(&Dataset, &mut Sha256) -> hdf5::Result<()>;
    let take: Take = match descr {
        "<f4" => |d, h| values::<f32>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "<f8" => |d, h| values::<f64>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "|i1" => |d, h| values::<i8>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "<i2" => |d, h| values::<i16>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "<i4" => |d, h| values::<i32>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "<i8" => |d, h| values::<i64>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "|u1" => |d, h| values::<u8>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "<u2" => |d, h| values::<u16>(d, h, |v, out| out.extend(v.to_le_bytes())),
        "<u4" => |d, h| values::<u32>(d, h, |v, out| out.extend(v.to_le_bytes())),
        _ => |d, h| values::<u64>(d, h, |v, out| out.extend(v.to_le_bytes())),
    };
    take(dataset, hash).map_err(|e| wrong(format!("damaged ({e})")))?;
    let guarded = dataset
        .create_plist()
        .is_ok_and(|p| p.filters().contains(&Filter::Fletcher32) || p.layout() == hdf5::dataset::Layout::Compact);
    Ok((dataset.size() as u64 * kind.size() as u64, guarded))
}

/// NumPy's name of a type of numbers.
fn descr(kind: &TypeDescriptor) -> Option<&'static str> {
    Some(match kind {
        TypeDescriptor::Float(FloatSize::U4) => "<f4",
        TypeDescriptor::Float(FloatSize::U8) => "<f8",
        TypeDescriptor::Integer(IntSize::U1) => "|i1",
        TypeDescriptor::Integer(IntSize::U2) => "<i2",
        TypeDescriptor::Integer(IntSize::U4) => "<i4",
        TypeDescriptor::Integer(IntSize::U8) => "<i8",
        TypeDescriptor::Unsigned(IntSize::U1) => "|u1",
        TypeDescriptor::Unsigned(IntSize::U2) => "<u2",
        TypeDescriptor::Unsigned(IntSize::U4) => "<u4",
        TypeDescriptor::Unsigned(IntSize::U8) => "<u8",
        _ => return None,
    })
}

fn values<T: H5Type + Copy>(dataset: &Dataset, hash: &mut Sha256, put: fn(T, &mut Vec<u8>)) -> hdf5::Result<()> {
    let shape = dataset.shape();
    let Some((&rows, rest)) = shape.split_first() else {
        let mut bytes = vec![];
        put(dataset.read_scalar::<T>()?, &mut bytes);
        hash.update(bytes);
        return Ok(());
    };
    let width: usize = rest.iter().product();
    if width == 0 {
        return Ok(());
    }
    // Whole chunks, so that none is unpacked twice.
    let chunk = dataset.chunk().map_or(1, |c| c[0].max(1));
    let step = (BLOCK / (width * size_of::<T>())).max(1).next_multiple_of(chunk);
    let mut bytes = vec![];
    for start in (0..rows).step_by(step) {
        bytes.clear();
        read_rows::<T>(dataset, start, (start + step).min(rows))?.iter().for_each(|&v| put(v, &mut bytes));
        hash.update(&bytes);
    }
    Ok(())
}
