//! Standard output: results only, and no panic where the reader has gone away.

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
