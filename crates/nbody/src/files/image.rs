//! The bytes of an HDF5 file that lives in memory.
//!
//! The `hdf5` crate does not wrap this call: this and `hdf/chunks.rs` are the only `unsafe` of the file module.

use hdf5::File;
use hdf5_sys::h5f::H5Fget_file_image;

/// The bytes that `file`, opened with the "core" driver, would have on a disk.
///
/// # Errors
/// What flushing or copying reports.
pub(crate) fn image(file: &File) -> hdf5::Result<Vec<u8>> {
    file.flush()?;
    // HDF5 is not reentrant: the lock of the `hdf5` crate guards the pair of calls.
    let mut bytes = hdf5::sync::sync(|| {
        // SAFETY: the handle is open for as long as `file` is borrowed; a null buffer of length 0 asks for the size.
        let size = unsafe { H5Fget_file_image(file.id(), std::ptr::null_mut(), 0) };
        let size = usize::try_from(size).map_err(|_| hdf5::Error::from("no size of the file image"))?;
        let mut bytes = vec![0u8; size];
        // SAFETY: the buffer has the `size` bytes that it is said to have, and no other thread changes the file
        // between the two calls (the lock).
        let copied = unsafe { H5Fget_file_image(file.id(), bytes.as_mut_ptr().cast(), size) };
        if usize::try_from(copied) == Ok(size) { Ok(bytes) } else { Err(hdf5::Error::from("no file image")) }
    })?;
    mend_superblock(&mut bytes);
    Ok(bytes)
}

/// Renews the checksum of the superblock: H5Fget_file_image clears the mark "open for writing" in byte 11 of the copy
/// but leaves the checksum that was made with it (seen with 1.10.8), so that nothing could open the file.
fn mend_superblock(bytes: &mut [u8]) {
    // Signature (8), version, size of offsets, size of lengths, flags, four offsets of 8 bytes, checksum.
    const LENGTH: usize = 12 + 4 * 8;
    // Older superblocks have no checksum.
    if bytes.len() >= LENGTH + 4 && matches!(bytes[8], 2 | 3) && bytes[9] == 8 {
        let sum = lookup3(&bytes[..LENGTH]);
        bytes[LENGTH..LENGTH + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Bob Jenkins' lookup3 with initial value 0, HDF5's checksum of metadata.
fn lookup3(key: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    let mut blocks = key.chunks(12).peekable();
    while let Some(block) = blocks.next() {
        let mut padded = [0; 12];
        padded[..block.len()].copy_from_slice(block);
        let word = |i: usize| u32::from_le_bytes([padded[i], padded[i + 1], padded[i + 2], padded[i + 3]]);
        (a, b, c) = (a.wrapping_add(word(0)), b.wrapping_add(word(4)), c.wrapping_add(word(8)));
        if blocks.peek().is_some() {
            for [r, s, t] in [[4, 6, 8], [16, 19, 4]] {
                a = a.wrapping_sub(c) ^ c.rotate_left(r);
                c = c.wrapping_add(b);
                b = b.wrapping_sub(a) ^ a.rotate_left(s);
                a = a.wrapping_add(c);
                c = c.wrapping_sub(b) ^ b.rotate_left(t);
                b = b.wrapping_add(a);
            }
        } else {
            c = (c ^ b).wrapping_sub(b.rotate_left(14));
            a = (a ^ c).wrapping_sub(c.rotate_left(11));
            b = (b ^ a).wrapping_sub(a.rotate_left(25));
            c = (c ^ b).wrapping_sub(b.rotate_left(16));
            a = (a ^ c).wrapping_sub(c.rotate_left(4));
            b = (b ^ a).wrapping_sub(a.rotate_left(14));
            c = (c ^ b).wrapping_sub(b.rotate_left(24));
        }
    }
    c
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    #[test]
    fn lookup3_has_the_published_values() {
        // From driver5() of lookup3.c.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
