//! The end of a command that did not do what was asked: a report and an exit code.

use crate::console::printable;
use crate::files::FileError;
use crate::scenario::problem::Problems;

/// Why a command ends early.
#[derive(Debug)]
pub struct Fault {
    /// Exit code of the process: 1 accuracy, 65 data, 66 no input, 69 no device, 70 internal or NaN, 71 memory,
    /// 74 input/output, 75 stopped, and resumable.
    pub code: u8,
    /// What to tell.
    pub report: Report,
}

/// What a fault tells.
#[derive(Debug)]
pub enum Report {
    /// One line, printed after `nbody: `.
    Line(String),
    /// The mistakes of a scenario.
    Scenario(Box<Problems>),
}

impl Fault {
    /// A fault told in one line.
    pub fn new(code: u8, line: impl Into<String>) -> Self {
        Fault { code, report: Report::Line(line.into()) }
    }

    /// The report as text.
    pub fn render(&self, color: bool) -> String {
        match &self.report {
            Report::Line(line) => format!("nbody: {}\n", printable(line)),
            Report::Scenario(problems) => problems.render(color),
        }
    }
}

impl From<FileError> for Fault {
    fn from(e: FileError) -> Self {
        Fault::new(e.exit_code(), e.to_string())
    }
}

impl From<Problems> for Fault {
    fn from(problems: Problems) -> Self {
        Fault { code: problems.code(), report: Report::Scenario(Box::new(problems)) }
    }
}
