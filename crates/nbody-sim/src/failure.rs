//! The end of a command that did not do what was asked: a report and an exit code.

use fmm_core::Error;

use crate::files::FileError;
use crate::messages;
use crate::mistake::Mistakes;
use crate::terminal::printable;

/// Why a command ends early.
#[derive(Debug)]
pub struct Failure {
    /// Exit code of the process: 1 accuracy, 65 data, 66 no input, 69 no device, 70 internal or NaN, 71 memory,
    /// 74 input/output, 75 stopped, and resumable.
    pub code: u8,
    /// The message.
    pub report: Report,
}

/// The message of a failure.
#[derive(Debug)]
pub enum Report {
    /// One line, printed after `nbody: `.
    Line(String),
    /// The mistakes of a scenario.
    Scenario(Box<Mistakes>),
}

impl Failure {
    /// A failure with a message of one line.
    pub fn new(code: u8, line: impl Into<String>) -> Self {
        Failure { code, report: Report::Line(line.into()) }
    }

    /// The report as text.
    pub fn render(&self, color: bool) -> String {
        match &self.report {
            Report::Line(line) => format!("nbody: {}\n", printable(line)),
            Report::Scenario(mistakes) => mistakes.render(color),
        }
    }
}

impl From<FileError> for Failure {
    fn from(e: FileError) -> Self {
        Failure::new(e.exit_code(), e.to_string())
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        Failure { code: mistakes.code(), report: Report::Scenario(Box::new(mistakes)) }
    }
}

impl From<fmm::Error> for Failure {
    fn from(e: fmm::Error) -> Self {
        let code = match &e {
            fmm::Error::Request { .. } => 2,
            fmm::Error::Sum(e) => return Failure::new(code(e), messages::error(e)),
            fmm::Error::Unavailable { .. } => 69,
            _ => 70,
        };
        Failure::new(code, e.to_string())
    }
}

/// The exit code of an error of a sum: 71 if the device lacks memory, 70 if it failed, 65 for what was asked.
pub fn code(error: &Error) -> u8 {
    match error {
        // In the words of the driver, and of `fmm_cuda`, which asks for free memory first.
        Error::Device(why) if why.contains("OutOfMemory") || why.contains("of GPU memory, and") => 71,
        Error::Device(_) => 70,
        _ => 65,
    }
}
