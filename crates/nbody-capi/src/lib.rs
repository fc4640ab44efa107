//! `libnbody`: the sums of [`fmm`] for C and Fortran.
//!
//! include/nbody.h is made from this text by cbindgen and is the documentation for C; docs/c.md is
//! the guide. Every function answers with a code, and a panic is one of them. Memory comes from the
//! system's allocator.
//!
//! All unsafe code reads and writes memory of the caller, or registers functions with the system.
#![deny(missing_docs)]
// The contracts of the functions are those of C, and are written in the words of C.
#![allow(clippy::missing_safety_doc)]
// Shapes like [n] are not links.
#![allow(rustdoc::broken_intra_doc_links)]

mod answer;
mod forks;
mod memory;
mod options;
mod result;
mod sums;

use std::ffi::c_char;

pub use answer::*;
pub use options::*;
pub use result::*;
pub use sums::*;

/// Returns the version of the library, such as "0.1.0". The text lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn nbody_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
