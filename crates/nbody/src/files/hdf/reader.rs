//! Reading a file that someone else may have made: nothing outside it is followed, what it declares is compared with
//! what it holds, and numbers are finite.

use std::path::{Path, PathBuf};

use hdf5::dataset::Layout;
use hdf5::filters::Filter;
use hdf5::plist::DatasetCreate;
use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5::{Container, Dataset, File, Group, H5Type, LinkType};

use super::read_rows;
use crate::files::error::READ;
use crate::files::{FileError, regular};

/// deflate cannot shrink more than 1032 times.
const DEFLATE_RATIO: u64 = 1032;

/// A member of a group.
pub(crate) struct Member {
    /// Its name.
    pub name: String,
    /// Why it is not followed, where its link leads out of the file.
    pub inside: Result<(), FileError>,
}

/// The path of a member of a group.
fn place(group: &Group, name: &str) -> String {
    format!("{}/{name}", group.name().trim_end_matches('/'))
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
        // HDF5's errors do not separate "not HDF5" from "cannot open" well, so the system's own
        // error comes first.
        let meta = regular::open(path, u64::MAX)?.metadata().map_err(FileError::io(path, READ))?;
        #[cfg(unix)]
        crate::files::probe::first(path, &meta)?;
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
        let link = group
            .find_link(Default::default(), Default::default(), |n, info| Ok((n == name).then_some(info.link_type)))
            .map_err(|e| self.error(format!("{} cannot be read ({e})", place(group, name))))?;
        link.map_or(Ok(false), |link| self.inside(group, name, link).map(|()| true))
    }

    /// Refuses a link of any kind but hard.
    fn inside(&self, group: &Group, name: &str, link: LinkType) -> Result<(), FileError> {
        let kind = match link {
            LinkType::Hard => return Ok(()),
            LinkType::Soft => "a soft",
            _ => "an external",
        };
        let place = place(group, name);
        Err(self.error(format!("{place} is {kind} link, which is not followed; copy the data into the file")))
    }

    /// The members of a group.
    pub fn members(&self, group: &Group) -> Result<Vec<Member>, FileError> {
        let links = group.links(Default::default(), Default::default());
        let links = links.map_err(|e| self.error(format!("{} cannot be listed ({e})", place(group, ""))))?;
        let judged = |(name, info): (String, hdf5::LinkInfo)| {
            let inside = self.inside(group, &name, info.link_type);
            Member { name, inside }
        };
        Ok(links.into_iter().map(judged).collect())
    }

    /// Finite numbers, one for each of `n` rows; `None` where the array is missing.
    pub fn scalars(&self, group: &Group, name: &str, n: usize) -> Result<Option<Vec<f64>>, FileError> {
        let Some(dataset) = self.dataset(group, name, &[n], is_float)? else { return Ok(None) };
        let mut values = vec![0.0; n];
        self.fill(&dataset, &mut values)?;
        self.finite(&dataset, &values, 1)?;
        Ok(Some(values))
    }

    /// Finite vectors, one for each of `n` rows; `None` where the array is missing.
    pub fn vectors(&self, group: &Group, name: &str, n: usize) -> Result<Option<Vec<[f64; 3]>>, FileError> {
        let Some(dataset) = self.dataset(group, name, &[n, 3], is_float)? else { return Ok(None) };
        let mut values = vec![[0.0; 3]; n];
        self.fill(&dataset, values.as_flattened_mut())?;
        self.finite(&dataset, values.as_flattened(), 3)?;
        Ok(Some(values))
    }

    /// Whole numbers of 0 or more, one for each of `n` rows; `None` where the array is missing.
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

    /// The rows `range` of an array of `total` rows of `width` finite numbers each (1: a list), row
    /// by row; `None` where the array is missing.
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

    /// Refuses an array whose storage is not what it declares, before memory is taken; `item` is the size of a number.
    pub fn verify_storage(&self, dataset: &Dataset, item: u64) -> Result<(), FileError> {
        self.check_storage(dataset, item)
    }

    /// Refuses arrays that unpack to more, in total, than those of particles can. Arrays that
    /// compress well (ids, masses, cells) come with coordinates that do not.
    pub fn verify_sizes<'a>(&self, datasets: impl Iterator<Item = &'a Dataset>) -> Result<(), FileError> {
        const RATIO: u64 = 64;
        let size = |d: &Dataset| (d.size() as u64).saturating_mul(d.dtype().map_or(8, |t| t.size() as u64));
        let declared = datasets.map(size).fold(0, u64::saturating_add);
        if declared <= self.size.saturating_mul(RATIO).saturating_add(1 << 24) {
            return Ok(());
        }
        let what = format!("its arrays declare {declared} bytes of data in a file of {}", self.size);
        Err(self.error(format!("{what}; it is damaged, or made to take memory and time")))
    }

    /// Whether an array is there and of type f32.
    pub fn is_single(&self, group: &Group, name: &str) -> Result<bool, FileError> {
        if !self.has(group, name)? {
            return Ok(false);
        }
        let dataset = self.open_dataset(group, name)?;
        self.verify_inside(&dataset)?;
        Ok(matches!(self.descriptor(&dataset)?, TypeDescriptor::Float(FloatSize::U4)))
    }

    /// Number of rows of an array inside this file; `None` where the array is missing.
    pub fn length(&self, group: &Group, name: &str) -> Result<Option<usize>, FileError> {
        if !self.has(group, name)? {
            return Ok(None);
        }
        let dataset = self.open_dataset(group, name)?;
        self.verify_inside(&dataset)?;
        Ok(Some(dataset.shape().first().copied().unwrap_or(0)))
    }

    /// Bytes, any number of them up to `limit`; `None` where the array is missing.
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

    /// The numbers of an attribute (at most 64); `None` where the attribute is missing.
    pub fn attr(&self, group: &Group, name: &str) -> Result<Option<Vec<f64>>, FileError> {
        let place = || format!("attribute {name} of {}", group.name());
        let fail = |e: hdf5::Error| self.error(format!("{} cannot be read ({e})", place()));
        let attr = match group.attr(name) {
            Ok(attr) => attr,
            // To list all names takes as long as there are attributes: only where this one may be
            // absent.
            Err(_) if !self.attr_names(group)?.iter().any(|n| n == name) => return Ok(None),
            Err(e) => return Err(fail(e)),
        };
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
        self.verify_inside(&dataset)?;
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
    pub fn verify_inside(&self, dataset: &Dataset) -> Result<(), FileError> {
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
                    let name = match other {
                        Filter::User(number, _) => format!("number {number}"),
                        known => format!("{known:?}"),
                    };
                    let what = format!("{place} uses the filter {name}; repack it with deflate, or without filters");
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
