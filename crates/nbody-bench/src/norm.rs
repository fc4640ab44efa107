//! The error that a tolerance bounds in a benchmark.

use super::record::Record;
use fmm::{Errors, Kernel};

/// The error of a sum that must be at most the tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// The norms that the program itself keeps: rms and L2, in the plane L2.
    Rms,
    /// The largest relative error of the compared targets: TOL of Goude & Engblom, section 5.3.
    Max,
}

impl Norm {
    /// Both.
    pub const ALL: [Norm; 2] = [Norm::Rms, Norm::Max];

    /// Its name in presets and records.
    pub fn name(self) -> &'static str {
        match self {
            Norm::Rms => "rms",
            Norm::Max => "max",
        }
    }

    /// The norm of this name.
    pub fn named(name: &str) -> Option<Norm> {
        Norm::ALL.into_iter().find(|n| n.name() == name)
    }

    /// The norm of a record; records of rms and L2 do not name it.
    pub fn of(record: &Record) -> Norm {
        Norm::named(record.text("norm")).unwrap_or(Norm::Rms)
    }

    /// The errors that it bounds, for the subtitle of a figure.
    pub fn errors(self) -> &'static str {
        match self {
            Norm::Rms => "rms and L2 force errors",
            Norm::Max => "largest relative force error",
        }
    }

    /// Whether `errors` of sums of a kernel are at most the tolerance.
    pub fn keeps(self, kernel: Kernel, errors: &Errors, tolerance: f64) -> bool {
        match self {
            Norm::Rms => kernel.keeps(errors, tolerance),
            Norm::Max => errors.max <= tolerance,
        }
    }

    /// The tolerance to ask for after a sum with `asked` has missed `tolerance`: half of it. The program does
    /// not bound the largest error, which can be far larger: half of it is then divided by the excess.
    pub fn stricter(self, asked: f64, errors: &Errors, tolerance: f64) -> f64 {
        let excess = match self {
            Norm::Rms => 1.0,
            Norm::Max => (errors.max / tolerance).max(1.0),
        };
        0.5 * asked / excess
    }
}
