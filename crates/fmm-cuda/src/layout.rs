//! The layout of the arguments of kernels as Rust has it. `tests/layout.rs` compares it with that of the kernels.

use std::mem::offset_of;

include!(concat!(env!("OUT_DIR"), "/layouts.rs"));
