//! GADGET's HDF5 layout and nothing else: attributes, and `/PartType1` in plain contiguous arrays,
//! for programs that stumble over filters or groups that they do not know.
//! [`snapshot::read`](crate::files::snapshot::read) reads it back.

use std::path::Path;

use hdf5::{File, Group};
use ndarray::{ArrayView1, ArrayView2};

use crate::files::hdf::{Number, put_attr, put_group};
use crate::files::snapshot::{Field, Float, Layout, Snapshot};
use crate::files::{FileError, hdf, header};

/// Writes every field that the snapshot has, rows in the order of the ids; returns the size in bytes.
///
/// # Errors
/// As [`snapshot::write`](crate::files::snapshot::write).
pub fn write(path: &Path, snapshot: &Snapshot, precision: Float) -> Result<u64, FileError> {
    let layout = Layout { fields: snapshot.fields(), precision };
    snapshot.check(&layout).map_err(|what| FileError::unwritable(path, what))?;
    let snapshot = snapshot.in_id_order();
    let estimate = (snapshot.id.len() * (8 + 12 * 8)) as u64 + (1 << 20);
    hdf::write_file(path, estimate, |file| {
        header::put(file, &snapshot, &*snapshot, &layout)?;
        put_flags(file, &snapshot)?;
        let group = put_group(file, "PartType1")?;
        layout.fields.iter().try_for_each(|&field| put_field(&group, &snapshot, field, precision))
    })
}

/// What GADGET itself asks for, and the step.
fn put_flags(file: &File, s: &Snapshot) -> hdf5::Result<()> {
    let header = file.group("Header")?;
    for name in ["Sfr", "Feedback", "Cooling", "StellarAge", "Metals", "Entropy_ICs"] {
        put_attr(&header, &format!("Flag_{name}"), 0i32)?;
    }
    put_attr(&header, "Step", s.step)
}

fn put_field(group: &Group, s: &Snapshot, field: Field, precision: Float) -> hdf5::Result<()> {
    let (_, name, _) = field.names();
    match (s.floats(field), precision) {
        (None, _) => {
            group.new_dataset_builder().with_dcpl(|p| p.obj_track_times(false)).with_data(&s.id[..]).create(name)?;
            Ok(())
        }
        (Some((values, width)), Float::F64) => put_plain(group, name, values, width),
        (Some((values, width)), Float::F32) => {
            let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            put_plain(group, name, &single, width)
        }
    }
}

fn put_plain<T: Number>(group: &Group, name: &str, values: &[T], width: usize) -> hdf5::Result<()> {
    let builder = group.new_dataset_builder().with_dcpl(|p| p.obj_track_times(false));
    if width == 1 {
        builder.with_data(ArrayView1::from(values)).create(name)?;
    } else {
        let rows = ArrayView2::from_shape((values.len() / width, width), values).map_err(|e| e.to_string())?;
        builder.with_data(rows).create(name)?;
    }
    Ok(())
}
