//! The id of a run.

use std::fmt;

/// Digits of an id.
pub const DIGITS: usize = 16;
/// What precedes it in the comment at the top of `scenario.resolved.toml`.
pub const COMMENT: &str = "# run id ";
/// What precedes it in the name of the last column of `diagnostics.csv`, whose cells are empty.
pub const COLUMN: &str = "run_";

/// The first 16 hexadecimal digits of the SHA-256 of a run's physics and initial state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; DIGITS]);

impl RunId {
    /// The id that a hash with these first bytes stands for.
    pub fn of_hash(first: [u8; DIGITS / 2]) -> Self {
        let digit = |i: usize| b"0123456789abcdef"[usize::from(first[i / 2] >> (4 * (1 - i % 2)) & 15)];
        RunId(std::array::from_fn(digit))
    }

    /// An id from its digits; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: [u8; DIGITS] = text.as_bytes().try_into().ok()?;
        digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).then_some(RunId(digits))
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The comment line for the top of a TOML file, with its end.
    pub fn comment(self) -> String {
        format!("{COMMENT}{self}\n")
    }

    /// The name of the last column of `diagnostics.csv`.
    pub fn column(self) -> String {
        format!("{COLUMN}{self}")
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
