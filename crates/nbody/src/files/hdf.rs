//! HDF5 as all files of the program use it: pinned format version, checksums on every array, safe replacement,
//! and reading that follows nothing outside the file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hdf5::dataset::Layout;
use hdf5::file::{FileAccessBuilder, LibraryVersion};
use hdf5::filters::Filter;
use hdf5::plist::DatasetCreate;
use hdf5::types::{FloatSize, IntSize, OwnedDynValue, TypeDescriptor};
use hdf5::{Container, Dataset, File, Group, H5Type, LinkType};
use ndarray::{ArrayView, Dimension, SliceInfoElem};

use super::FileError;
use super::atomic::{self, Temporary};
use super::error::READ;
use super::image::image;

/// Rows of a chunk: 512 KiB of f64, the size that compresses and reads well.
const CHUNK: usize = 65536;
/// Above this size a file is written to the disk by HDF5 itself, not assembled in memory.
const IMAGE_LIMIT: u64 = 1 << 30;
/// deflate cannot shrink more than 1032 times.
const DEFLATE_RATIO: u64 = 1032;

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
    if estimate <= IMAGE_LIMIT { write_image(path, fill) } else { write_direct(path, estimate, fill) }
}

/// Assembles the file in memory: HDF5 then never meets a full disk, after which it leaves wrong rows behind.
fn write_image(path: &Path, fill: impl FnOnce(&File) -> hdf5::Result<()>) -> Result<u64, FileError> {
    let bytes = assemble(fill).map_err(hdf5_error(path, "assemble"))?;
    atomic::replace(path, &bytes)?;
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
    move |source| FileError::Hdf5 { path, action, source }
}

/// Lets HDF5 write to the disk, into a temporary whose space is reserved, and checks every checksum afterwards.
fn write_direct(path: &Path, estimate: u64, fill: impl FnOnce(&File) -> hdf5::Result<()>) -> Result<u64, FileError> {
    let temporary = Temporary::new(path)?;
    // HDF5 truncates what it creates, and would give the reserved space back: it opens an empty file of ours instead.
    let empty = assemble(|_| Ok(())).map_err(hdf5_error(path, "assemble"))?;
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
    File::open(&temporary.path).and_then(|f| check_group(&f)).map_err(hdf5_error(path, "verify"))?;
    let length = reserved.metadata().map_err(FileError::io(path, "verify"))?.len();
    temporary.commit()?;
    Ok(length)
}

/// Reads every array of a group and of its groups, so that HDF5 compares the checksums.
fn check_group(group: &Group) -> hdf5::Result<()> {
    for dataset in group.datasets()? {
        let rows = dataset.shape().first().copied().unwrap_or(0);
        for start in (0..rows).step_by(CHUNK) {
            read_rows::<f64>(&dataset, start, (start + CHUNK).min(rows))?;
        }
    }
    group.groups()?.iter().try_for_each(check_group)
}

/// The rows from `start` to before `end`, at least one, of an array of any number of dimensions.
pub(super) fn read_rows<T: H5Type>(dataset: &Dataset, start: usize, end: usize) -> hdf5::Result<ndarray::ArrayD<T>> {
    dataset.read_slice::<T, _, ndarray::IxDyn>(rows_selection(&dataset.shape(), start, end)?)
}

/// Writes rows of an array from `start` on.
pub(super) fn write_rows<T: H5Type>(dataset: &Dataset, start: usize, values: &[T]) -> hdf5::Result<()> {
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

/// Numbers that are stored in arrays.
pub(crate) trait Number: H5Type + Into<OwnedDynValue> {
    /// What a reader gets where a chunk has been lost: a value that cannot be taken for data.
    const LOST: Self;
}

impl Number for f32 {
    const LOST: Self = f32::NAN;
}

impl Number for f64 {
    const LOST: Self = f64::NAN;
}

impl Number for u64 {
    const LOST: Self = u64::MAX;
}

impl Number for i64 {
    const LOST: Self = i64::MIN;
}

impl Number for u8 {
    const LOST: Self = u8::MAX;
}

/// Creates a group. Like every object of our files it carries no times: equal contents give equal files.
pub(crate) fn put_group(parent: &Group, name: &str) -> hdf5::Result<Group> {
    parent.create_group_builder().with_gcpl(|p| p.obj_track_times(false)).create(name)
}

/// Writes an array with checksum; `compress` only where it pays (whole numbers and constants).
pub(crate) fn put<'a, T: Number, D: Dimension>(
    group: &Group,
    name: &str,
    data: impl Into<ArrayView<'a, T, D>>,
    compress: bool,
) -> hdf5::Result<()> {
    let data = data.into();
    let mut chunk = data.shape().to_vec();
    let mut builder = group.new_dataset_builder().with_dcpl(|p| p.obj_track_times(false));
    // An empty array has no chunks, and so no filters.
    if data.shape()[0] > 0 {
        chunk[0] = chunk[0].min(CHUNK);
        builder = builder.chunk(chunk).fill_value(T::LOST).shuffle();
        if compress {
            builder = builder.deflate(4);
        }
        builder = builder.fletcher32();
    }
    builder.with_data(data).create(name)?;
    Ok(())
}

/// Writes an array of one number, inside the header of the object: that has a checksum, while the index of a chunk has
/// none, and led astray to a run of zeros it would find them valid.
pub(crate) fn put_one<T: Number>(group: &Group, name: &str, value: T) -> hdf5::Result<()> {
    let builder = group.new_dataset_builder().with_dcpl(|p| p.obj_track_times(false));
    builder.layout(Layout::Compact).with_data(&[value][..]).create(name)?;
    Ok(())
}

/// Makes an array whose rows are to be written later: `rows` of `width` numbers (1: a list), in chunks of `chunk`.
pub(crate) fn reserve<T: Number>(
    group: &Group,
    name: &str,
    (rows, width): (usize, usize),
    chunk: usize,
    compress: bool,
) -> hdf5::Result<Dataset> {
    let shape = |rows: usize| if width == 1 { vec![rows] } else { vec![rows, width] };
    let mut builder = group.new_dataset_builder().with_dcpl(|p| p.obj_track_times(false));
    if rows > 0 {
        builder = builder.chunk(shape(chunk.clamp(1, rows))).fill_value(T::LOST).shuffle();
        if compress {
            builder = builder.deflate(4);
        }
        builder = builder.fletcher32();
    }
    builder.empty::<T>().shape(shape(rows)).create(name)
}

/// Writes a scalar attribute.
pub(crate) fn put_attr<T: H5Type>(group: &Group, name: &str, value: T) -> hdf5::Result<()> {
    group.new_attr::<T>().create(name)?.write_scalar(&value)
}

/// Writes an attribute of several values.
pub(crate) fn put_attrs<T: H5Type>(group: &Group, name: &str, values: &[T]) -> hdf5::Result<()> {
    group.new_attr_builder().with_data(values).create(name)?;
    Ok(())
}

/// An HDF5 file that someone else may have made.
pub(crate) struct Reader {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Reader {
    /// Opens `path`.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let meta = fs::metadata(path).map_err(FileError::io(path, READ))?;
        if !meta.is_file() {
            return Err(FileError::data(path, "not a regular file"));
        }
        // HDF5 tells "not HDF5" and "cannot open" apart poorly: the system's own error comes first.
        drop(fs::File::open(path).map_err(FileError::io(path, READ))?);
        let file = File::open(path).map_err(|e| {
            FileError::data(path, format!("not an HDF5 file, damaged, or of a version that cannot be read ({e})"))
        })?;
        Ok(Reader { path: path.to_owned(), file, size: meta.len() })
    }

    /// An error that names this file.
    pub fn error(&self, what: impl Into<String>) -> FileError {
        FileError::data(&self.path, what)
    }

    /// The group at `path` ("/Header"), if there is one.
    pub fn group(&self, path: &str) -> Result<Option<Group>, FileError> {
        let mut group = self.file.as_group().map_err(|e| self.error(format!("{path} cannot be read ({e})")))?;
        for name in path.split('/').filter(|s| !s.is_empty()) {
            if !self.has(&group, name)? {
                return Ok(None);
            }
            group = group.group(name).map_err(|e| self.error(format!("{path} is not a group ({e})")))?;
        }
        Ok(Some(group))
    }

    /// As [`group`](Self::group), but it must be there.
    pub fn need_group(&self, path: &str) -> Result<Group, FileError> {
        self.group(path)?.ok_or_else(|| self.error(format!("{path} is missing")))
    }

    /// Whether the group has a hard link of that name; other links lead to places that nobody vouches for.
    fn has(&self, group: &Group, name: &str) -> Result<bool, FileError> {
        let place = || format!("{}/{name}", group.name().trim_end_matches('/'));
        let link = group
            .find_link(Default::default(), Default::default(), |n, info| Ok((n == name).then_some(info.link_type)))
            .map_err(|e| self.error(format!("{} cannot be read ({e})", place())))?;
        match link {
            None => Ok(false),
            Some(LinkType::Hard) => Ok(true),
            Some(other) => {
                let kind = if other == LinkType::Soft { "a soft" } else { "an external" };
                Err(self
                    .error(format!("{} is {kind} link, which is not followed; copy the data into the file", place())))
            }
        }
    }

    /// Finite numbers, one for each of `n` rows; `None` where there is no such array.
    pub fn scalars(&self, group: &Group, name: &str, n: usize) -> Result<Option<Vec<f64>>, FileError> {
        let Some(dataset) = self.dataset(group, name, &[n], is_float)? else { return Ok(None) };
        let mut values = vec![0.0; n];
        self.fill(&dataset, &mut values)?;
        self.finite(&dataset, &values, 1)?;
        Ok(Some(values))
    }

    /// Finite vectors, one for each of `n` rows; `None` where there is no such array.
    pub fn vectors(&self, group: &Group, name: &str, n: usize) -> Result<Option<Vec<[f64; 3]>>, FileError> {
        let Some(dataset) = self.dataset(group, name, &[n, 3], is_float)? else { return Ok(None) };
        let mut values = vec![[0.0; 3]; n];
        self.fill(&dataset, values.as_flattened_mut())?;
        self.finite(&dataset, values.as_flattened(), 3)?;
        Ok(Some(values))
    }

    /// Whole numbers of 0 or more, one for each of `n` rows; `None` where there is no such array.
    pub fn integers(&self, group: &Group, name: &str, n: usize) -> Result<Option<Vec<u64>>, FileError> {
        let Some(dataset) = self.dataset(group, name, &[n], is_integer)? else { return Ok(None) };
        if matches!(self.descriptor(&dataset)?, TypeDescriptor::Integer(_)) {
            let mut values = vec![0i64; n];
            self.fill(&dataset, &mut values)?;
            let wrong = |i| self.error(format!("{}[{i}] = {} is below 0", dataset.name(), values[i]));
            let list = values.iter().enumerate().map(|(i, &v)| u64::try_from(v).map_err(|_| wrong(i)));
            return list.collect::<Result<_, _>>().map(Some);
        }
        let mut values = vec![0u64; n];
        self.fill(&dataset, &mut values)?;
        Ok(Some(values))
    }

    /// The rows `range` of an array of `total` rows of `width` finite numbers each (1: a list), row by row; `None` where
    /// there is no such array.
    pub fn rows(
        &self,
        group: &Group,
        name: &str,
        (total, width): (usize, usize),
        range: std::ops::Range<usize>,
    ) -> Result<Option<Vec<f64>>, FileError> {
        let shape = if width == 1 { vec![total] } else { vec![total, width] };
        let number = |t: &TypeDescriptor| is_float(t) || is_integer(t);
        let Some(dataset) = self.dataset(group, name, &shape, number)? else { return Ok(None) };
        if range.is_empty() {
            return Ok(Some(vec![]));
        }
        let values = read_rows::<f64>(&dataset, range.start, range.end)
            .map_err(|e| self.error(format!("{} is damaged ({e})", dataset.name())))?;
        let values = values.into_raw_vec_and_offset().0;
        self.finite(&dataset, &values, width)?;
        Ok(Some(values))
    }

    /// Refuses a link that leads out of the file, and an array whose data lie in another file.
    pub fn guard_member(&self, group: &Group, name: &str) -> Result<(), FileError> {
        self.has(group, name)?;
        match group.dataset(name) {
            Ok(dataset) => self.check_inside(&dataset),
            Err(_) => Ok(()),
        }
    }

    /// Refuses an array whose storage is not what it declares, before memory is taken; `item` is the size of a number.
    pub fn verify_storage(&self, dataset: &Dataset, item: u64) -> Result<(), FileError> {
        self.check_storage(dataset, item)
    }

    /// Whether an array is there and of type f32.
    pub fn is_single(&self, group: &Group, name: &str) -> Result<bool, FileError> {
        if !self.has(group, name)? {
            return Ok(false);
        }
        let dataset = self.open_dataset(group, name)?;
        self.check_inside(&dataset)?;
        Ok(matches!(self.descriptor(&dataset)?, TypeDescriptor::Float(FloatSize::U4)))
    }

    /// Number of rows of an array inside this file; `None` where there is no such array.
    pub fn length(&self, group: &Group, name: &str) -> Result<Option<usize>, FileError> {
        if !self.has(group, name)? {
            return Ok(None);
        }
        let dataset = self.open_dataset(group, name)?;
        self.check_inside(&dataset)?;
        Ok(Some(dataset.shape().first().copied().unwrap_or(0)))
    }

    /// Bytes, any number of them up to `limit`; `None` where there is no such array.
    pub fn bytes(&self, group: &Group, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FileError> {
        let Some(n) = self.length(group, name)? else { return Ok(None) };
        if n > limit {
            return Err(self.error(format!("{}/{name} holds {n} bytes, more than the {limit} allowed", group.name())));
        }
        let byte = |t: &TypeDescriptor| matches!(t, TypeDescriptor::Unsigned(IntSize::U1));
        let Some(dataset) = self.dataset(group, name, &[n], byte)? else { return Ok(None) };
        let mut values = vec![0u8; n];
        self.fill(&dataset, &mut values)?;
        Ok(Some(values))
    }

    /// The names of the attributes of a group.
    pub fn attr_names(&self, group: &Group) -> Result<Vec<String>, FileError> {
        group.attr_names().map_err(|e| self.error(format!("the attributes of {} cannot be read ({e})", group.name())))
    }

    /// The numbers of an attribute (at most 64); `None` where there is no such attribute.
    pub fn attr(&self, group: &Group, name: &str) -> Result<Option<Vec<f64>>, FileError> {
        let place = || format!("attribute {name} of {}", group.name());
        let fail = |e: hdf5::Error| self.error(format!("{} cannot be read ({e})", place()));
        if !self.attr_names(group)?.iter().any(|n| n == name) {
            return Ok(None);
        }
        let attr = group.attr(name).map_err(fail)?;
        let kind = self.descriptor(&attr)?;
        if !(is_float(&kind) || is_integer(&kind)) || attr.size() > 64 {
            return Err(self.error(format!("{} is not a number or a short list of numbers", place())));
        }
        let values = attr.read_raw::<f64>().map_err(fail)?;
        match values.iter().find(|v| !v.is_finite()) {
            Some(v) => Err(self.error(format!("{} is {v}", place()))),
            None => Ok(Some(values)),
        }
    }

    /// The first number of an attribute that must be there.
    pub fn need_attr(&self, group: &Group, name: &str) -> Result<f64, FileError> {
        let values = self.attr(group, name)?.unwrap_or_default();
        values.first().copied().ok_or_else(|| self.error(format!("attribute {name} of {} is missing", group.name())))
    }

    fn open_dataset(&self, group: &Group, name: &str) -> Result<Dataset, FileError> {
        group.dataset(name).map_err(|e| self.error(format!("{}/{name} is not an array ({e})", group.name())))
    }

    fn descriptor(&self, container: &Container) -> Result<TypeDescriptor, FileError> {
        let kind = container.dtype().and_then(|t| t.to_descriptor());
        kind.map_err(|e| self.error(format!("{} has a type that cannot be read ({e})", container.name())))
    }

    /// Opens an array of the expected shape and kind whose data lie inside this file and are as many as declared.
    fn dataset(
        &self,
        group: &Group,
        name: &str,
        shape: &[usize],
        kind: impl Fn(&TypeDescriptor) -> bool,
    ) -> Result<Option<Dataset>, FileError> {
        if !self.has(group, name)? {
            return Ok(None);
        }
        let dataset = self.open_dataset(group, name)?;
        self.check_inside(&dataset)?;
        let place = dataset.name();
        let found = self.descriptor(&dataset)?;
        if !kind(&found) {
            return Err(self.error(format!("{place} has the wrong type, {found}")));
        }
        if dataset.shape() != shape {
            return Err(self.error(format!("{place} has the shape {:?} instead of {shape:?}", dataset.shape())));
        }
        self.check_storage(&dataset, found.size() as u64)?;
        Ok(Some(dataset))
    }

    fn storage(&self, dataset: &Dataset) -> Result<DatasetCreate, FileError> {
        dataset
            .create_plist()
            .map_err(|e| self.error(format!("the storage of {} cannot be read ({e})", dataset.name())))
    }

    /// Refuses storage in other files; asked first, since even the shape of a virtual array may open them.
    fn check_inside(&self, dataset: &Dataset) -> Result<(), FileError> {
        let plist = self.storage(dataset)?;
        if plist.external().is_empty() && plist.layout() != Layout::Virtual {
            return Ok(());
        }
        Err(self.error(format!("the data of {} lie in another file; copy them into this one", dataset.name())))
    }

    /// Refuses filters that need a plugin, and sizes that the file cannot hold.
    fn check_storage(&self, dataset: &Dataset, item: u64) -> Result<(), FileError> {
        let place = dataset.name();
        let (mut ratio, mut may_skip) = (1, 0);
        for (i, filter) in self.storage(dataset)?.filters().into_iter().enumerate() {
            match filter {
                // It may be left out where it would not pay.
                Filter::Deflate(_) => (ratio, may_skip) = (DEFLATE_RATIO, 1 << i),
                Filter::Shuffle | Filter::Fletcher32 => {}
                other => {
                    let what = format!("{place} uses the filter {other:?}; repack it with deflate, or without filters");
                    return Err(self.error(what));
                }
            }
        }
        let declared = (dataset.size() as u64).saturating_mul(item);
        let stored = dataset.storage_size();
        if stored > self.size || declared > stored.saturating_mul(ratio) {
            let what = format!("{place} declares {declared} bytes of data but the file holds {stored}");
            return Err(self.error(format!("{what}; it is damaged or was never filled")));
        }
        let Some(chunk) = dataset.chunk() else { return Ok(()) };
        let bytes = chunk.iter().fold(item, |a, &b| a.saturating_mul(b as u64));
        if bytes > declared.max(1 << 24) {
            return Err(self.error(format!("{place} has chunks of {bytes} bytes for {declared} bytes of data")));
        }
        self.check_chunks(dataset, &chunk, may_skip)
    }

    /// Looks for what the checksum of a chunk cannot find, since the index of the chunks has none: a chunk that is not
    /// there reads as zeros, and one marked "filter skipped" is read without its checksum.
    fn check_chunks(&self, dataset: &Dataset, chunk: &[usize], may_skip: u32) -> Result<(), FileError> {
        /// Finding a chunk by number is linear; files of ours have 65536 rows a chunk and stay far below.
        const MOST: usize = 20_000;
        let expected: usize = dataset.shape().iter().zip(chunk).map(|(n, c)| n.div_ceil(*c)).product();
        let found = dataset.num_chunks().unwrap_or(0);
        let skipped = |i: &usize| dataset.chunk_info(*i).is_none_or(|c| c.filter_mask & !may_skip != 0);
        if found != expected || (found <= MOST && (0..found).any(|i| skipped(&i))) {
            return Err(self.error(format!("{} is damaged (its index of {expected} chunks is wrong)", dataset.name())));
        }
        Ok(())
    }

    fn fill<T: H5Type + Copy>(&self, dataset: &Dataset, values: &mut [T]) -> Result<(), FileError> {
        match dataset.read_into_raw(values) {
            Ok(_) => Ok(()),
            Err(e) => Err(self.error(format!("{} is damaged ({e})", dataset.name()))),
        }
    }

    fn finite(&self, dataset: &Dataset, values: &[f64], width: usize) -> Result<(), FileError> {
        let mut bad = values.iter().enumerate().filter(|(_, v)| !v.is_finite());
        match bad.next() {
            None => Ok(()),
            Some((i, v)) => {
                let what =
                    format!("{} of row {} is {v} ({} such values in all)", dataset.name(), i / width, 1 + bad.count());
                Err(self.error(what))
            }
        }
    }
}

fn is_float(t: &TypeDescriptor) -> bool {
    matches!(t, TypeDescriptor::Float(FloatSize::U4 | FloatSize::U8))
}

fn is_integer(t: &TypeDescriptor) -> bool {
    matches!(t, TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_))
}

#[cfg(test)]
mod tests {
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
            let length = if direct { write_direct(&path, 1 << 22, fill) } else { write_image(&path, fill) };
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
        write_direct(&path, 1 << 22, fill).unwrap();
        let check = || File::open(&path).and_then(|f| check_group(&f));
        check().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
        check().unwrap_err();
    }
}
