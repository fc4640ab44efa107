//! The one call that the `hdf5` crate does not wrap; the only `unsafe` of the file module.

use hdf5::File;
use hdf5_sys::h5f::H5Fget_file_image;

/// The bytes that `file` would have on a disk.
///
/// # Errors
/// What flushing or copying reports.
pub(crate) fn image(file: &File) -> hdf5::Result<Vec<u8>> {
    file.flush()?;
    // HDF5 is not reentrant: the lock of the `hdf5` crate guards the pair of calls.
    hdf5::sync::sync(|| {
        // SAFETY: the handle is open for as long as `file` is borrowed; a null buffer of length 0 asks for the size.
        let size = unsafe { H5Fget_file_image(file.id(), std::ptr::null_mut(), 0) };
        let size = usize::try_from(size).map_err(|_| hdf5::Error::from("no size of the file image"))?;
        let mut bytes = vec![0u8; size];
        // SAFETY: the buffer has the `size` bytes that it is said to have, and no other thread changes the file
        // between the two calls (the lock).
        let copied = unsafe { H5Fget_file_image(file.id(), bytes.as_mut_ptr().cast(), size) };
        if usize::try_from(copied) == Ok(size) { Ok(bytes) } else { Err(hdf5::Error::from("no file image")) }
    })
}
