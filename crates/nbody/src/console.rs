//! Standard output: results only, and no panic where the reader has gone away. Standard error: everything else.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::fault::Fault;

/// Prints results; a reader that has gone away (`| head -1`) is no error.
///
/// # Errors
/// 74 where standard output cannot take them, as on a full disk.
pub fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    outcome(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What a failure to write to standard output means.
pub fn outcome(result: io::Result<()>) -> Result<(), Fault> {
    match result {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Fault::new(74, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line on standard error. `eprintln!` would panic where that cannot be written, as on a full disk: a run does not
/// end because nobody can hear it.
pub fn tell(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
