//! Standard output: results only, and no panic where the reader has gone away. Standard error: everything else.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::fault::Fault;

/// Prints results; a reader that has gone away (`| head -1`) is no error.
///
/// # Errors
/// 74 where standard output cannot take them, as on a full disk.
pub fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    outcome(out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()))
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
    let _ = writeln!(io::stderr().lock(), "{}", printable(&line.to_string()));
}

/// The text without what steers a terminal, which names and titles of someone else's files may hold: a `?` for each byte of a control character, so
/// that all else stays where it was, and a blank for the returns of lines that end as elsewhere.
pub fn printable(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(steers) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' => shown.push(' '),
            c if steers(c) => (0..c.len_utf8()).for_each(|_| shown.push('?')),
            c => shown.push(c),
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert!(matches!(printable("a\tb\nµ"), Cow::Borrowed(_)));
        let text = "a\x1b[2Jb\r\n\u{9b}\x7fµ";
        let shown = printable(text);
        assert_eq!(shown, "a?[2Jb \n???µ");
        assert_eq!(shown.len(), text.len());
    }
}
