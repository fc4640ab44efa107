//! Numbers in the precision of a sum, on the device.

use fmm_core::Error;

use crate::buffer::Buffer;

/// Bytes of a number in single or in double precision.
pub fn real_width(single: bool) -> usize {
    if single { 4 } else { 8 }
}

/// `values` on the device.
///
/// # Errors
/// [`Error::Device`] without the memory.
pub fn place_real(values: &[f64], single: bool) -> Result<Buffer<u8>, Error> {
    let bytes: Vec<u8> = match single {
        true => values.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect(),
        false => values.iter().flat_map(|x| x.to_ne_bytes()).collect(),
    };
    let mut buffer = Buffer::new();
    buffer.upload(&bytes)?;
    Ok(buffer)
}

/// What [`place_real`] placed, or kernels wrote.
///
/// # Errors
/// [`Error::Device`] if the copy fails.
pub fn read_real(buffer: &Buffer<u8>, single: bool) -> Result<Vec<f64>, Error> {
    let bytes = buffer.download()?;
    Ok(match single {
        true => bytes.as_chunks().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect(),
        false => bytes.as_chunks().0.iter().map(|b| f64::from_ne_bytes(*b)).collect(),
    })
}
