//! Groups, arrays and attributes as our files have them: no times, a checksum on every array.

use std::borrow::Cow;
use std::ops::Range;

use hdf5::dataset::Layout;
use hdf5::{Dataset, Group, H5Type};
use ndarray::{ArrayView, Dimension};

use super::chunks::Number;
use super::{CHUNK, chunks};

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
    let values = data.as_slice().ok_or_else(|| format!("the values of {name} do not follow each other"))?;
    let width = data.shape()[1..].iter().product::<usize>();
    let dataset = create::<T>(group, name, data.shape(), CHUNK, compress)?;
    let some = |rows: Range<usize>| Cow::Borrowed(&values[rows.start * width..rows.end * width]);
    chunks::write(&dataset, some, CHUNK.min(data.shape()[0]), compress)
}

/// The same with `rows` of `width` numbers (1: a list), of which `values` gives some at a time.
pub(crate) fn put_rows<'a, T: Number>(
    group: &Group,
    name: &str,
    (rows, width): (usize, usize),
    compress: bool,
    values: impl Fn(Range<usize>) -> Cow<'a, [T]>,
) -> hdf5::Result<()> {
    let dataset = reserve::<T>(group, name, (rows, width), CHUNK, compress)?;
    chunks::write(&dataset, values, CHUNK.min(rows), compress)
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
    let shape = if width == 1 { vec![rows] } else { vec![rows, width] };
    create::<T>(group, name, &shape, chunk, compress)
}

/// Makes an array in chunks of up to `chunk` rows, with the filters that [`chunks`] knows.
fn create<T: Number>(
    group: &Group,
    name: &str,
    shape: &[usize],
    chunk: usize,
    compress: bool,
) -> hdf5::Result<Dataset> {
    let mut builder = group.new_dataset_builder().with_dcpl(|p| p.obj_track_times(false));
    // An empty array has no chunks, and so no filters.
    if shape[0] > 0 {
        let mut rows = shape.to_vec();
        rows[0] = chunk.clamp(1, shape[0]);
        builder = builder.chunk(rows).fill_value(T::LOST).shuffle();
        if compress {
            builder = builder.deflate(chunks::LEVEL);
        }
        builder = builder.fletcher32();
    }
    builder.empty::<T>().shape(shape).create(name)
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
