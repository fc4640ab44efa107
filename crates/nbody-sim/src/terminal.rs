//! What a terminal shows: its width, wrapped lines, texts without control characters.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// Columns of the terminal that standard error is; `None` for a file or a pipe.
pub fn width() -> Option<usize> {
    columns(&io::stderr())
}

/// Columns of the terminal that a stream is.
pub fn columns(stream: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let size = stream.is_terminal().then(|| tcgetwinsize(stream).ok()).flatten();
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The text with lines of at most `width` columns, broken between words. Words that are longer stay
/// whole, and so do commands to copy: lines that begin with `nbody` and a blank.
pub fn wrapped(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width else { return text.into() };
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let (mut column, mut rest) = (0, line);
        while let Some(end) = rest.trim_end().len().checked_sub(1).map(|_| word_end(rest)) {
            let (word, after) = rest.split_at(end);
            let length = word.chars().count();
            if column > 0 && column + length > width && !line.starts_with("nbody ") {
                let kept = out.trim_end_matches(' ').len();
                out.truncate(kept);
                out.push('\n');
                out.push_str(word.trim_start());
                column = word.trim_start().chars().count();
            } else {
                out.push_str(word);
                column += length;
            }
            rest = after;
        }
        out.push_str(rest);
    }
    out.into()
}

/// Where the first word of a text ends, the blanks before it included.
fn word_end(text: &str) -> usize {
    let blanks = text.len() - text.trim_start().len();
    text[blanks..].find(char::is_whitespace).map_or(text.len(), |length| blanks + length)
}

/// The text without what steers a terminal, which names and titles of someone else's files may
/// hold: a `?` for each byte of a control character, so that all else stays where it was, and a
/// blank for the returns of lines that end as elsewhere.
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
    fn lines_break_between_words() {
        let text = "nbody: one two three\nnbody run --resume a/long/name\nfour\n";
        assert_eq!(wrapped(text, None), text);
        assert_eq!(wrapped(text, Some(80)), text);
        let narrow = "nbody: one\ntwo three\nnbody run --resume a/long/name\nfour\n";
        assert_eq!(wrapped(text, Some(12)), narrow);
        assert_eq!(wrapped("a/very/long/name is here", Some(8)), "a/very/long/name\nis here");
        assert_eq!(wrapped("", Some(8)), "");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert!(matches!(printable("a\tb\nµ"), Cow::Borrowed(_)));
        let text = "a\x1b[2Jb\r\n\u{9b}\x7fµ";
        let shown = printable(text);
        assert_eq!(shown, "a?[2Jb \n???µ");
        assert_eq!(shown.len(), text.len());
    }
}
