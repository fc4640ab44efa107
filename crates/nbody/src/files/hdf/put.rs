//! Groups, arrays and attributes as our files have them: no times, a checksum on every array.

use hdf5::dataset::Layout;
use hdf5::types::OwnedDynValue;
use hdf5::{Dataset, Group, H5Type};
use ndarray::{ArrayView, Dimension};

use super::CHUNK;

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

impl Number for i32 {
    const LOST: Self = i32::MIN;
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
