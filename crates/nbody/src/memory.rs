//! The program's memory: that of mimalloc, which keeps what is freed (each sum needs again what the last one gave back), and an
//! end with a message and exit code 71 where there is no more.
//!
//! The standard library would abort there, which looks like a failure of the program and leaves no exit code.

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{mi_option_large_os_pages, mi_option_set, mi_option_t};
use mimalloc::MiMalloc;
use nbody::signals::exit;
use rustix::process::{Resource, getrlimit};
use rustix::stdio::stderr;

/// Milliseconds until freed memory goes back to the system, by its number in mimalloc.h: the crate has no name for it.
const PURGE_DELAY: mi_option_t = 15;
/// KiB of addresses that are reserved at a time, likewise. Usually a GiB.
const ARENA_RESERVE: mi_option_t = 23;

/// Runs before `main` and the first allocation.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static INITIALIZER: extern "C" fn() = set_options;

/// Freed memory is kept, and lies in huge pages where the system has them on request. Where the user limits addresses or data,
/// which count what is reserved too, less is reserved.
extern "C" fn set_options() {
    let limited = [Resource::As, Resource::Data].into_iter().any(|resource| getrlimit(resource).current.is_some());
    // SAFETY: options are whole numbers, which may be set at any time.
    unsafe {
        mi_option_set(PURGE_DELAY, -1);
        mi_option_set(mi_option_large_os_pages, 1);
        if limited {
            mi_option_set(ARENA_RESERVE, 64 * 1024);
        }
    }
}

/// mimalloc, or the end.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: every call is handed on to an allocator that keeps the contract, and what it gives is given on.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        there(unsafe { MiMalloc.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        there(unsafe { MiMalloc.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        there(unsafe { MiMalloc.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(old, layout) }
    }
}

/// The memory, or the end of the process where there is none. Files are renamed into place when complete: none is left half
/// written.
fn there(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        tell(size);
        exit(71);
    }
    memory
}

/// Reports that `size` bytes are missing. Formatting would allocate memory.
fn tell(mut size: usize) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    while first == digits.len() || size > 0 {
        first -= 1;
        digits[first] = b'0' + (size % 10) as u8;
        size /= 10;
    }
    let parts: [&[u8]; 3] = [
        b"nbody: out of memory: there are no ",
        &digits[first..],
        b" bytes more; take fewer particles, a larger limit (ulimit -v), or a machine with more memory. A run that wrote \
          checkpoints goes on from the last one with --resume\n",
    ];
    for part in parts {
        // Nobody is left to tell where even this fails.
        let _ = rustix::io::write(stderr(), part);
    }
}
