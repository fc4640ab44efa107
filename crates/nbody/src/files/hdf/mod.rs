//! HDF5 as all files of the program use it: pinned format version and safe replacement; `put` writes what is in them,
//! `chunks` filters it, `reader` reads with distrust.

#[allow(unsafe_code, reason = "a call that the crate `hdf5` does not wrap")]
mod chunks;
mod put;
mod reader;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use chunks::Number;
use hdf5::file::{FileAccessBuilder, LibraryVersion};
use hdf5::{Dataset, File, H5Type};
use ndarray::SliceInfoElem;
pub(crate) use put::{put, put_attr, put_attrs, put_group, put_one, put_rows, reserve};
pub(crate) use reader::{Member, Reader};

use super::FileError;
use super::atomic::{self, Temporary};
use super::error::ASSEMBLE;
use super::image::image;

/// Rows of a chunk: 512 KiB of f64, the size that compresses and reads well.
const CHUNK: usize = 65536;
/// Above this size a file is written to the disk by HDF5 itself, not assembled in memory.
const IMAGE_LIMIT: u64 = 1 << 30;

/// "Latest" of HDF5 2.x is a layout that ParaView up to 5.13 and VTK up to 9.7.2 cannot read.
fn pin_version(fapl: &mut FileAccessBuilder) -> &mut FileAccessBuilder {
    fapl.libver_bounds(LibraryVersion::V18, LibraryVersion::V110)
}

/// Writes an HDF5 file safely: `fill` puts the objects in, `estimate` is an upper bound of the size in bytes.
/// Returns the size.
pub(crate) fn write_file(
    path: &Path,
    estimate: u64,
    fill: impl FnOnce(&File) -> hdf5::Result<()>,
) -> Result<u64, FileError> {
    write_file_by(Temporary::new(path)?, path, estimate, fill)
}

/// As [`write_file`], through this temporary of `path`.
pub(crate) fn write_file_by(
    temporary: Temporary,
    path: &Path,
    estimate: u64,
    fill: impl FnOnce(&File) -> hdf5::Result<()>,
) -> Result<u64, FileError> {
    match estimate <= IMAGE_LIMIT {
        true => write_image(temporary, path, fill),
        false => write_direct(temporary, path, estimate, fill),
    }
}

/// Assembles the file in memory: HDF5 then never meets a full disk, after which it leaves wrong rows behind.
fn write_image(
    temporary: Temporary,
    path: &Path,
    fill: impl FnOnce(&File) -> hdf5::Result<()>,
) -> Result<u64, FileError> {
    let bytes = assemble(fill).map_err(hdf5_error(path, ASSEMBLE))?;
    atomic::replace_by(temporary, &bytes)?;
    Ok(bytes.len() as u64)
}

/// The bytes of an HDF5 file with what `fill` puts in.
fn assemble(fill: impl FnOnce(&File) -> hdf5::Result<()>) -> hdf5::Result<Vec<u8>> {
    // HDF5 takes two files in memory of the same name for one.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("image {}", COUNT.fetch_add(1, Ordering::Relaxed));
    let mut options = File::with_options();
    options.with_fcpl(|p| p.obj_track_times(false)).with_fapl(|p| pin_version(p).core_filebacked(false));
    let file = options.create(name)?;
    fill(&file)?;
    let bytes = image(&file)?;
    file.close()?;
    Ok(bytes)
}

fn hdf5_error(path: &Path, action: &'static str) -> impl FnOnce(hdf5::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError::Hdf5 { path, action, source: source.into() }
}

/// Lets HDF5 write to the disk, into a temporary whose space is reserved, and checks every checksum afterwards.
fn write_direct(
    mut temporary: Temporary,
    path: &Path,
    estimate: u64,
    fill: impl FnOnce(&File) -> hdf5::Result<()>,
) -> Result<u64, FileError> {
    // HDF5 truncates what it creates, and would give the reserved space back: it opens an empty file of ours instead.
    let empty = assemble(|_| Ok(())).map_err(hdf5_error(path, ASSEMBLE))?;
    let mut reserved = temporary.create(estimate)?;
    reserved.write_all(&empty).map_err(FileError::io(path, "write"))?;
    let write = || {
        let file = File::with_options().with_fapl(pin_version).open_rw(&temporary.path)?;
        fill(&file)?;
        file.flush()?;
        file.close()
    };
    write().map_err(hdf5_error(path, "write"))?;
    atomic::sync(&reserved, path)?;
    let verify = |file: File| chunks::verify(&file, &temporary.path);
    File::open(&temporary.path).and_then(verify).map_err(hdf5_error(path, "verify"))?;
    let length = reserved.metadata().map_err(FileError::io(path, "verify"))?.len();
    temporary.commit()?;
    Ok(length)
}

/// The rows from `start` to before `end`, at least one, of an array of any number of dimensions.
pub(in crate::files) fn read_rows<T: H5Type>(
    dataset: &Dataset,
    start: usize,
    end: usize,
) -> hdf5::Result<ndarray::ArrayD<T>> {
    dataset.read_slice::<T, _, ndarray::IxDyn>(rows_selection(&dataset.shape(), start, end)?)
}

/// Writes rows of an array from `start` on.
pub(in crate::files) fn write_rows<T: H5Type>(dataset: &Dataset, start: usize, values: &[T]) -> hdf5::Result<()> {
    let mut shape = dataset.shape();
    let width: usize = shape[1..].iter().product();
    if values.is_empty() || width == 0 {
        return Ok(());
    }
    let end = start + values.len() / width;
    let selection = rows_selection(&shape, start, end)?;
    shape[0] = end - start;
    let view = ndarray::ArrayViewD::from_shape(shape, values).map_err(|e| hdf5::Error::from(e.to_string()))?;
    dataset.write_slice(view, selection)
}

type Rows = ndarray::SliceInfo<Vec<SliceInfoElem>, ndarray::IxDyn, ndarray::IxDyn>;

fn rows_selection(shape: &[usize], start: usize, end: usize) -> hdf5::Result<Rows> {
    let slice = |from: usize, to: usize| SliceInfoElem::Slice { start: from as isize, end: Some(to as isize), step: 1 };
    let window: Vec<SliceInfoElem> =
        std::iter::once(slice(start, end)).chain(shape[1..].iter().map(|&n| slice(0, n))).collect();
    Rows::try_from(window).map_err(|e| hdf5::Error::from(e.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ndarray::ArrayView2;

    use super::*;

    fn fill(file: &File) -> hdf5::Result<()> {
        let group = put_group(file, "g")?;
        put(&group, "v", ArrayView2::from(&vec![[1.5, 2.0, 3.0]; 70_000][..]), false)?;
        put(&group, "n", &vec![7u64; 70_000][..], true)?;
        put_attr(&group, "a", 0.5)
    }

    #[test]
    fn both_ways_of_writing_give_the_same_contents() {
        let folder = tempfile::tempdir().unwrap();
        for (name, direct) in [("image", false), ("direct", true)] {
            let path = folder.path().join(name);
            let temporary = Temporary::new(&path).unwrap();
            let length = match direct {
                true => write_direct(temporary, &path, 1 << 22, fill),
                false => write_image(temporary, &path, fill),
            };
            assert_eq!(length.unwrap(), fs::metadata(&path).unwrap().len());
            let reader = Reader::open(&path).unwrap();
            let group = reader.need_group("/g").unwrap();
            assert_eq!(reader.vectors(&group, "v", 70_000).unwrap().unwrap(), vec![[1.5, 2.0, 3.0]; 70_000]);
            assert_eq!(reader.integers(&group, "n", 70_000).unwrap().unwrap(), vec![7; 70_000]);
            assert_eq!(reader.need_attr(&group, "a").unwrap(), 0.5);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_check_after_a_direct_write_reads_every_chunk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_direct(Temporary::new(&path).unwrap(), &path, 1 << 22, fill).unwrap();
        let check = || File::open(&path).and_then(|f| chunks::verify(&f, &path));
        check().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
        check().unwrap_err();
    }
}
