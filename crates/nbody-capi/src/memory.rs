//! Arrays, texts and structures in the memory of the caller.
//!
//! What can be checked is checked: null pointers, alignment, counts and sizes. The caller promises
//! the rest: an array is as long as documented, and nobody writes to it during the call.

use std::ffi::{CStr, c_char};
use std::{ptr, slice};

use crate::answer::{Refusal, request};

/// A count that a caller gave.
pub(crate) fn count(name: &str, value: i64) -> Result<usize, Refusal> {
    usize::try_from(value).map_err(|_| request(format!("{name} = {value} is negative; allowed: 0 or more")))
}

/// The number of bytes of `rows` rows of `width` numbers of 8 bytes, which an address space holds.
fn bytes(name: &str, rows: usize, width: usize) -> Result<usize, Refusal> {
    let bytes = rows.checked_mul(width).and_then(|n| n.checked_mul(8)).filter(|&n| isize::try_from(n).is_ok());
    bytes.ok_or_else(|| {
        let most = isize::MAX as usize / 8 / width;
        request(format!("{name}: {rows} rows of {width} numbers are more than memory holds; allowed: up to {most}"))
    })
}

/// Refuses an address that no number of 8 bytes has.
pub(crate) fn aligned(name: &str, address: usize) -> Result<(), Refusal> {
    if address.is_multiple_of(8) {
        return Ok(());
    }
    Err(request(format!("{name}: the address {address:#x} is not a multiple of 8")))
}

/// Checks an array of `rows` rows of `width` numbers of 8 bytes. Returns how many numbers it has;
/// without any it may be NULL.
fn checked<T>(name: &str, array: *const T, rows: usize, width: usize) -> Result<usize, Refusal> {
    const { assert!(size_of::<T>() == 8 && align_of::<T>() == 8) };
    let bytes = bytes(name, rows, width)?;
    if bytes > 0 && array.is_null() {
        return Err(request(format!("{name} is NULL; {rows} rows of {width} are needed")));
    }
    aligned(name, array as usize)?;
    Ok(bytes / 8)
}

/// The array of `rows` rows of `width` numbers of 8 bytes that starts at `array`. An empty one may
/// be NULL.
///
/// # Safety
/// The array is as long as that, and nobody writes to it during 'a.
pub(crate) unsafe fn input<'a, T>(name: &str, array: *const T, rows: usize, width: usize) -> Result<&'a [T], Refusal> {
    let length = checked(name, array, rows, width)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, aligned, of a size that an address space holds; the caller promises the rest.
    Ok(unsafe { slice::from_raw_parts(array, length) })
}

/// An array of the caller that results are written to.
pub(crate) struct Output(*mut f64);

impl Output {
    /// The array of `rows` rows of `width` numbers. `None` if it is NULL: the caller does not want it.
    pub fn new(name: &str, array: *mut f64, rows: usize, width: usize) -> Result<Option<Self>, Refusal> {
        if array.is_null() {
            return Ok(None);
        }
        checked(name, array, rows, width)?;
        Ok(Some(Output(array)))
    }

    /// Writes the results.
    ///
    /// # Safety
    /// The array is as long as `values`, and no reference to it exists.
    pub unsafe fn write(self, values: &[f64]) {
        // SAFETY: `values` is memory of ours, which no array of the caller overlaps; the caller
        // promises the rest.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.0, values.len()) }
    }
}

/// The longest text that is read.
const LONGEST: usize = 255;

/// The C string at `text`; `default` if it is NULL.
///
/// # Safety
/// A text that ends with 0, or 256 readable bytes, and nobody writes to it during 'a.
pub(crate) unsafe fn text<'a>(name: &str, text: *const c_char, default: &'a str) -> Result<&'a str, Refusal> {
    if text.is_null() {
        return Ok(default);
    }
    // SAFETY: reads up to the end of the text or 256 bytes.
    if unsafe { libc::strnlen(text, LONGEST + 1) } > LONGEST {
        return Err(request(format!("{name}: a text of more than {LONGEST} bytes, or without a 0 at its end")));
    }
    // SAFETY: it has an end, as was just seen.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| request(format!("{name}: {text:?} is not UTF-8")))
}

/// The largest size of a structure that is believed.
const LARGEST: usize = 4096;

/// A structure of C whose first member is its size, of type size_t, and whose other members are
/// numbers of 8 bytes and pointers. Later versions add members at the end.
///
/// # Safety
/// Any bytes are a value of it, and it has no padding.
pub(crate) unsafe trait Sized8: Copy {
    /// Its name in messages.
    const NAME: &'static str;
}

/// Refuses sizes that no version of a structure has.
pub(crate) fn check_size<T: Sized8>(size: usize) -> Result<(), Refusal> {
    if size.is_multiple_of(8) && (8..=LARGEST).contains(&size) {
        return Ok(());
    }
    let (name, ours) = (T::NAME, size_of::<T>());
    Err(request(format!(
        "{name}.size = {size} is no size of this structure, which has {ours} bytes in this version; allowed: \
         sizeof({name}), a multiple of 8 from 8 to {LARGEST}"
    )))
}

/// The size that the structure at `address` states.
///
/// # Safety
/// The structure is readable.
pub(crate) unsafe fn stated_size<T: Sized8>(address: *const T) -> Result<usize, Refusal> {
    aligned(T::NAME, address as usize)?;
    // SAFETY: aligned; every structure begins with its size.
    let size = unsafe { ptr::read(address.cast::<usize>()) };
    check_size::<T>(size)?;
    Ok(size)
}

/// Reads a structure of an older or a newer version. Missing members are those of `default`;
/// members that this version does not know must be 0.
///
/// # Safety
/// The structure at `address` is as long as it states.
pub(crate) unsafe fn read<T: Sized8>(address: *const T, mut default: T) -> Result<T, Refusal> {
    // SAFETY: as promised.
    let size = unsafe { stated_size(address) }?;
    let known = size.min(size_of::<T>());
    // SAFETY: both are at least `known` bytes long, and any bytes are a T.
    unsafe { ptr::copy_nonoverlapping(address.cast::<u8>(), (&raw mut default).cast(), known) };
    // SAFETY: the rest of what the caller states.
    let rest = unsafe { slice::from_raw_parts(address.cast::<u8>().add(known), size - known) };
    if rest.iter().any(|&byte| byte != 0) {
        let (name, ours) = (T::NAME, size_of::<T>());
        return Err(request(format!(
            "{name}: a member beyond the first {ours} bytes is set, which this version ({}) does not know",
            env!("CARGO_PKG_VERSION")
        )));
    }
    Ok(default)
}

/// Writes the first `size` bytes of `value` to `address`, and zeros beyond its end. The size that
/// the caller stated stays.
///
/// # Safety
/// `size` was checked by [`check_size`], and as many bytes can be written.
pub(crate) unsafe fn write<T: Sized8>(address: *mut T, size: usize, value: &T) {
    let known = size.min(size_of::<T>());
    // SAFETY: `value` is ours, and both are at least `known` bytes long.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), address.cast(), known) };
    // SAFETY: up to the size that the caller states.
    unsafe { ptr::write_bytes(address.cast::<u8>().add(known), 0, size - known) };
    // SAFETY: aligned; every structure begins with its size, and a caller's may have no more.
    unsafe { ptr::write(address.cast::<usize>(), size) };
}
