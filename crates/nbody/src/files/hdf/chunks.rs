//! Chunks of arrays as they are stored in a file.
//!
//! HDF5 filters one chunk after the other. Here all threads filter, and HDF5 gets the bytes that it
//! would have made: those of its filters shuffle, deflate (if the array has it) and Fletcher's
//! checksum, in this order. What it has written is compared with the checksums in the same way.
//! This and `image.rs` are the only `unsafe` of the file module.

use std::borrow::Cow;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use flate2::{Compression, write::ZlibEncoder};
use hdf5::types::OwnedDynValue;
use hdf5::{Dataset, Group, H5Type};
use hdf5_sys::h5d::H5Dwrite_chunk;
use hdf5_sys::h5p::H5P_DEFAULT;
use rayon::prelude::*;

/// How hard deflate tries, of 1 to 9.
pub(super) const LEVEL: u8 = 4;

/// Chunks for each thread between two calls of HDF5.
const PER_THREAD: usize = 4;

/// Bytes of Fletcher's checksum, which follows the data of a chunk.
const CHECKSUM: usize = 4;

/// Numbers that are stored in arrays.
pub(crate) trait Number: H5Type + Copy + Sync + Into<OwnedDynValue> {
    /// What a reader gets where a chunk has been lost: a value that cannot be taken for data.
    const LOST: Self;
    /// As many bytes as a number has.
    type Bytes: AsRef<[u8]>;

    /// The number as it is in memory.
    fn bytes(self) -> Self::Bytes;
}

macro_rules! numbers {
    ($($number:ty: $lost:expr),*) => {
        $(impl Number for $number {
            const LOST: Self = $lost;
            type Bytes = [u8; size_of::<$number>()];

            fn bytes(self) -> Self::Bytes {
                self.to_ne_bytes()
            }
        })*
    };
}

numbers!(f32: f32::NAN, f64: f64::NAN, u64: u64::MAX, i64: i64::MIN, i32: i32::MIN, u8: u8::MAX);

/// Writes all of an array that has been created with chunks of `rows` whole rows; `values` gives those of some rows, which
/// begin and end with chunks.
///
/// # Errors
/// What HDF5 reports.
pub(super) fn write<'a, T: Number>(
    dataset: &Dataset,
    values: impl Fn(Range<usize>) -> Cow<'a, [T]>,
    rows: usize,
    compress: bool,
) -> hdf5::Result<()> {
    let shape = dataset.shape();
    let width = shape[1..].iter().product::<usize>();
    let rows = rows.max(1);
    let wave = PER_THREAD * rayon::current_num_threads() * rows;
    for start in (0..shape[0]).step_by(wave) {
        let some = values(start..shape[0].min(start + wave));
        let chunks: Vec<&[T]> = some.chunks((rows * width).max(1)).collect();
        let encode = |chunk: &&[T]| encoded(chunk, rows * width, compress);
        let encoded: Vec<hdf5::Result<Vec<u8>>> = chunks.par_iter().map(encode).collect();
        for (i, bytes) in encoded.into_iter().enumerate() {
            let mut first = vec![0; shape.len()];
            first[0] = (start + i * rows) as u64;
            put(dataset, &first, &bytes?)?;
        }
    }
    Ok(())
}

/// Hands HDF5 the chunk whose first element is at `first`.
fn put(dataset: &Dataset, first: &[u64], bytes: &[u8]) -> hdf5::Result<()> {
    let written = hdf5::sync::sync(|| {
        // SAFETY: the handle is open for as long as `dataset` is borrowed, `first` has a number for
        // each of its dimensions, the length is that of `bytes`, and HDF5's lock is held.
        unsafe { H5Dwrite_chunk(dataset.id(), H5P_DEFAULT, 0, first.as_ptr(), bytes.len(), bytes.as_ptr().cast()) }
    });
    if written >= 0 { Ok(()) } else { Err(format!("a chunk of {} cannot be written", dataset.name()).into()) }
}

/// The bytes of a chunk of `full` numbers; where `values` are fewer, at the end of an array, the
/// others are the value of lost ones.
fn encoded<T: Number>(values: &[T], full: usize, compress: bool) -> hdf5::Result<Vec<u8>> {
    let mut padded = vec![];
    let values = if values.len() < full {
        padded.extend_from_slice(values);
        padded.resize(full, T::LOST);
        &padded
    } else {
        values
    };
    let shuffled = shuffled(values);
    let mut bytes = if compress {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(u32::from(LEVEL)));
        encoder.write_all(&shuffled).and_then(|()| encoder.finish()).map_err(|e| e.to_string())?
    } else {
        shuffled
    };
    bytes.extend(fletcher32(&bytes).to_le_bytes());
    Ok(bytes)
}

/// The first bytes of all numbers, then the second ones, and so on.
fn shuffled<T: Number>(values: &[T]) -> Vec<u8> {
    /// Numbers that are taken apart at once, so that what is written is in whole lines of the cache.
    const BLOCK: usize = 64;
    let n = values.len();
    let mut out = vec![0; size_of_val(values)];
    for (k, block) in values.chunks(BLOCK).enumerate() {
        for (byte, out) in out.chunks_mut(n).enumerate() {
            let place = &mut out[k * BLOCK..][..block.len()];
            for (place, &value) in place.iter_mut().zip(block) {
                *place = value.bytes().as_ref()[byte];
            }
        }
    }
    out
}

/// Fletcher's checksum of 32 bits over words of two bytes, the first byte the higher one, as HDF5
/// has it.
fn fletcher32(bytes: &[u8]) -> u32 {
    /// So many words do not overflow the sums.
    const WORDS: usize = 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (pairs, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map(|&byte| [byte, 0]);
    let [mut first, mut second] = [0u32; 2];
    for words in pairs.chunks(WORDS).chain(last.as_ref().map(std::slice::from_ref)) {
        for &word in words {
            first += u32::from(u16::from_be_bytes(word));
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
}

/// Compares every chunk of the arrays of `group` and of its groups with its checksum, in the file
/// `path` that they are in.
///
/// # Errors
/// A chunk that is missing or damaged; what the system reports.
pub(super) fn verify(group: &Group, path: &Path) -> hdf5::Result<()> {
    for dataset in group.datasets()? {
        let Some(chunk) = dataset.chunk() else { continue };
        let expected: usize = dataset.shape().iter().zip(&chunk).map(|(n, c)| n.div_ceil(*c)).product();
        let checksum = 1 << (dataset.create_plist()?.filters().len() - 1);
        let chunks = (0..dataset.num_chunks().unwrap_or(0)).map(|i| dataset.chunk_info(i));
        let chunks: Vec<(u64, u64)> =
            chunks.map_while(|c| c.filter(|c| c.filter_mask & checksum == 0)).map(|c| (c.addr, c.size)).collect();
        let damaged = || format!("{} is damaged", dataset.name());
        if chunks.len() != expected {
            return Err(damaged().into());
        }
        let open = || fs::File::open(path);
        let all = chunks.par_iter().map_init(open, |file, &(place, size)| {
            let Ok(file) = file else { return false };
            let mut bytes = vec![0; size as usize];
            let read = file.seek(SeekFrom::Start(place)).and_then(|_| file.read_exact(&mut bytes));
            let Some((data, sum)) = bytes.split_last_chunk::<CHECKSUM>() else { return false };
            read.is_ok() && fletcher32(data) == u32::from_le_bytes(*sum)
        });
        if !all.reduce(|| true, |a, b| a && b) {
            return Err(damaged().into());
        }
    }
    group.groups()?.iter().try_for_each(|group| verify(group, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fletchers_checksum_has_known_values() {
        // Of "abcde" and "abcdef" with the first byte of a word the higher one.
        let slow = |bytes: &[u8]| {
            let (mut a, mut b) = (0u64, 0u64);
            for pair in bytes.chunks(2) {
                a += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
                b += a;
            }
            let residue = |x: u64| if x == 0 { 0 } else { ((x - 1) % 0xffff + 1) as u32 };
            residue(b) << 16 | residue(a)
        };
        let long: Vec<u8> = (0..5001u32).map(|i| ((i * i) >> 3) as u8).collect();
        for bytes in [&b"abcde"[..], b"abcdef", b"", b"\0\0", &long, &[0xff; 3000]] {
            assert_eq!(fletcher32(bytes), slow(bytes), "{} bytes", bytes.len());
        }
        assert_ne!(fletcher32(b"abcdef"), fletcher32(b"abdcef"));
    }

    #[test]
    fn bytes_of_one_place_follow_each_other() {
        let values: Vec<f64> = (0..150).map(|i| f64::from(i) * 0.37).collect();
        let found = shuffled(&values);
        for (i, value) in values.iter().enumerate() {
            for (byte, expected) in value.to_ne_bytes().into_iter().enumerate() {
                assert_eq!(found[byte * values.len() + i], expected);
            }
        }
    }
}
