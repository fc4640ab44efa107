//! Whether the HDF5 library survives a file. It does not survive every one; the program has another process look at each file first
//! (`files::probe`), and here a child, with the very memory of this process, reads it first. Where the child dies in the library, the file
//! counts as refused; where it dies anywhere else, this process reads the file too, and is found dead by the fuzzer.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

unsafe extern "C" {
    fn __sanitizer_set_death_callback(callback: Option<extern "C" fn()>);
}

/// Whether `read` may be called here.
pub fn library_survives(read: impl Fn()) -> bool {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two; the child has a copy of all memory, calls nothing that waits for a thread that it lacks, and ends
    // without running what this process has left to do.
    let (status, told) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let child = libc::fork();
        assert!(child >= 0, "no child");
        if child == 0 {
            libc::dup2(ends[1], 2);
            libc::close(ends[0]);
            // The fuzzer keeps no file of a child's death, and hears of a panic by the signal alone.
            __sanitizer_set_death_callback(None);
            libc::signal(libc::SIGABRT, libc::SIG_DFL);
            read();
            libc::_exit(0);
        }
        libc::close(ends[1]);
        let (mut told, mut status) = (vec![], 0);
        File::from_raw_fd(ends[0]).read_to_end(&mut told).expect("a pipe");
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        (status, String::from_utf8_lossy(&told).into_owned())
    };
    if status == 0 {
        return true;
    }
    // The first call on the stack that is the library's or the program's.
    let mut frames = told.lines().filter(|line| line.trim_start().starts_with('#'));
    match frames.find(|f| f.contains("libhdf5") || f.contains(" in H5") || f.contains("nbody")) {
        Some(place) if !place.contains("nbody") => {
            eprintln!("refused: the HDF5 library does not survive it:{place}");
            false
        }
        _ => true,
    }
}
