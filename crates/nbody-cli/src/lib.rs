//! What the commands of `nbody` share: the console, signals, values of options, figures.
// `console` prints: these macros panic where nobody listens.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod console;
pub mod figure;
pub mod grid_errors;
pub mod machine;
pub mod options;
pub mod signals;
