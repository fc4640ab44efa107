//! Standard output: results only; a closed reader causes no panic. Standard error: everything else.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

use fmm::Note;
use indicatif::{HumanDuration, ProgressState, ProgressStyle};

use nbody_sim::failure::Failure;
use nbody_sim::terminal::{columns, printable, width, wrapped};

/// Prints results, wrapped to the width of a terminal. A closed reader (`| head -1`) is no error.
///
/// # Errors
/// 74 where standard output cannot take them, as on a full disk.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = printable(text);
    let shown = wrapped(&text, columns(&out));
    outcome(out.write_all(shown.as_bytes()).and_then(|()| out.flush()))
}

/// What a failure to write to standard output means.
pub fn outcome(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(74, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line on standard error, wrapped to the width of a terminal. `eprintln!` would panic where that cannot be written, as on a full
/// disk: a run does not end because nobody can hear it.
pub fn tell(line: impl Display) {
    let text = line.to_string();
    let _ = writeln!(io::stderr().lock(), "{}", wrapped(&printable(&text), width()));
}

static LAST_WORDS: Mutex<String> = Mutex::new(String::new());

/// Notes what is to be said if the process ends in the middle of its work.
pub fn remember(text: String) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = text;
}

/// What was [remembered](remember) last; empty where nothing was.
pub fn last_words() -> String {
    LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Prints notes on the choice of a device on standard error, unless `quiet`.
pub fn notes(quiet: bool) -> impl FnMut(Note) {
    move |note| match &note {
        _ if quiet => {}
        Note::NoGpu(why) => tell(format_args!("nbody: running on the CPU ({}; `nbody info` says more)", why.brief())),
        note => tell(format_args!("nbody: {note}")),
    }
}

/// The style of a progress bar with a key `left`: two blanks and the time to go, or nothing until
/// there is an estimate. `first` is the position at which the bar began.
pub fn bar_style(template: &str, first: u64) -> ProgressStyle {
    let left = move |state: &ProgressState, out: &mut dyn fmt::Write| {
        if state.pos() > first && !state.eta().is_zero() {
            let _ = write!(out, "  {:#} left", HumanDuration(state.eta()));
        }
    };
    // A template that cannot be read is a mistake of ours, and no reason to end a run.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}
