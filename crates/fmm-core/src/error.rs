//! What can go wrong in a summation.

/// Errors of the library. Each names the quantity and the way out; the program adds file, line and key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A position or strength is NaN or infinite.
    #[error("{what} of particle {index} is {value} ({count} such values in all)")]
    NotFinite {
        /// Which quantity.
        what: &'static str,
        /// The first bad particle, in input order.
        index: usize,
        /// Its value.
        value: f64,
        /// How many values are bad.
        count: usize,
    },
    /// A setting lies outside its range.
    #[error("{what} = {value} is outside {range}")]
    Range {
        /// Which setting.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// Arrays that belong together have different lengths.
    #[error("{found} {what}, but {expected} are needed")]
    Shape {
        /// Which array.
        what: &'static str,
        /// The length that it should have.
        expected: usize,
        /// The length that it has.
        found: usize,
    },
    /// No order keeps the tolerance, and the direct sum in double precision was excluded or would take too long.
    #[error(
        "tolerance {tolerance:e} is not reached on these particles by {method} in {precision}; {}",
        match (*precision, *method) {
            ("f32", _) => "use precision f64",
            (_, "direct") => "no sum is more exact: pairs nearly cancel",
            _ => "use method direct",
        }
    )]
    Tolerance {
        /// What was asked for.
        tolerance: f64,
        /// Name of the method that was asked for.
        method: &'static str,
        /// Name of the last precision that was tried.
        precision: &'static str,
    },
    /// The request cannot be met, with the reason.
    #[error("{0}")]
    Unsupported(String),
    /// Points so close that they are one place in any unit that holds the whole set.
    #[error(
        "there are points less than 1e-300 of the extent {extent:e} of the set apart, which nothing tells from one place; leave out what lies far away"
    )]
    TooClose {
        /// The longer side of the rectangle around all points.
        extent: f64,
    },
    /// A coordinate, or a distance between two points in space, whose cube a 64-bit number cannot hold.
    #[error(
        "{what} of {value:e} is outside what 64-bit numbers hold of sums in space: coordinates up to 1e100, \
         distances from 1e-100 and from 1e-98 of the largest coordinate on; choose other units"
    )]
    Magnitude {
        /// "a coordinate" or "a distance".
        what: &'static str,
        /// Its size.
        value: f64,
    },
    /// The strengths in a periodic box do not add up to 0, and its surroundings are no conductor.
    #[error("the strengths add up to {0:e}: a charged box has a potential in surroundings of tin foil alone")]
    Charged(f64),
    /// More particles than 32-bit indices can number.
    #[error("{0} particles are more than the 4294967295 that an index can number")]
    TooMany(usize),
    /// A step of a flow that is so long that its implicit equations cannot be solved: its length.
    #[error("the midpoint rule does not converge with steps of {0}")]
    NoConvergence(f64),
    /// The caller ended the sum by its [`Cancel`](crate::Cancel).
    #[error("the sum was cancelled")]
    Cancelled,
    /// The device failed or is too small, with the reason.
    #[error("{0}")]
    Device(String),
}

/// What an error is about. Interfaces in other languages have a code or an exception for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A parameter, or parameters that do not go together.
    Request,
    /// The numbers in the arrays.
    Data,
    /// The tolerance is not reached by what was asked for.
    Tolerance,
    /// The device.
    Device,
    /// The caller ended the sum.
    Cancelled,
}

impl Error {
    /// What the error is about.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Range { .. } | Error::Shape { .. } | Error::Unsupported(_) => ErrorKind::Request,
            Error::NotFinite { .. }
            | Error::TooClose { .. }
            | Error::Magnitude { .. }
            | Error::Charged(_)
            | Error::NoConvergence(_)
            | Error::TooMany(_) => ErrorKind::Data,
            Error::Tolerance { .. } => ErrorKind::Tolerance,
            Error::Device(_) => ErrorKind::Device,
            Error::Cancelled => ErrorKind::Cancelled,
        }
    }
}
