//! What is summed, and the blobs that take the place of point sources.

use crate::Error;

/// The kernel of a sum in the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// q log|z − z_j| with real strengths.
    Log,
    /// Γ/(z_j − z) with complex strengths.
    Harmonic,
}

impl Kernel {
    /// The name used in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::Log => "log",
            Kernel::Harmonic => "harmonic",
        }
    }
}

/// A source that is spread over a core, as vortex methods want it. Lengths are in the user's unit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Blob {
    /// A point: 1/z.
    #[default]
    Point,
    /// 1/z → (r² + 2 ε²) r²/(r² + ε²)² /z (Winckelmans & Leonard 1993, high-order algebraic);
    /// log r → log(r² + ε²)/2 − ε²/(2 (r² + ε²)). The point's field to (ε/r)⁴.
    Algebraic(f64),
    /// 1/z → (1 − exp(−r²/(2 σ²)))/z: vorticity exp(−r²/(2 σ²))/(2πσ²); log r → log r + E₁(r²/(2 σ²))/2.
    Gaussian(f64),
}

impl Blob {
    /// All of them, with a length of 1 where they have one.
    pub const ALL: [Blob; 3] = [Blob::Point, Blob::Algebraic(1.0), Blob::Gaussian(1.0)];

    /// The name used in scenarios, options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Blob::Point => "none",
            Blob::Algebraic(_) => "algebraic",
            Blob::Gaussian(_) => "gaussian",
        }
    }

    /// Checks the length.
    ///
    /// # Errors
    /// [`Error::Range`] for a length that is negative or not finite.
    pub fn check(self) -> Result<(), Error> {
        match self {
            Blob::Algebraic(value) | Blob::Gaussian(value) if !(value.is_finite() && value >= 0.0) => {
                Err(Error::Range { what: "length of the blobs", value, range: "0 or more" })
            }
            _ => Ok(()),
        }
    }

    /// The same with another length; points stay points.
    pub fn with_length(self, length: f64) -> Self {
        match self {
            Blob::Point => Blob::Point,
            Blob::Algebraic(_) => Blob::Algebraic(length),
            Blob::Gaussian(_) => Blob::Gaussian(length),
        }
    }

    /// The same in a unit of length in which lengths are `scale` times as large; a length of zero is a point.
    pub fn scaled(self, scale: f64) -> Self {
        match self {
            Blob::Algebraic(e) if e > 0.0 => Blob::Algebraic(e * scale),
            Blob::Gaussian(s) if s > 0.0 => Blob::Gaussian(s * scale),
            _ => Blob::Point,
        }
    }

    /// The distance beyond which potential and field are those of a point but for a part `tolerance` of the field.
    pub fn point_beyond(self, tolerance: f64) -> f64 {
        match self {
            Blob::Point => 0.0,
            Blob::Algebraic(e) => e * tolerance.powf(-0.25),
            Blob::Gaussian(s) => s * (2.0 * (1.0 / tolerance).ln()).sqrt(),
        }
    }

    /// The length of the core, 0 for points.
    pub fn length(self) -> f64 {
        match self {
            Blob::Point => 0.0,
            Blob::Algebraic(e) => e,
            Blob::Gaussian(s) => s,
        }
    }

    /// What stands for log 0 at the center of a blob whose length is in units of 2^`unit`; 0 for a point, which is skipped.
    pub fn at_center_in(self, unit: i32) -> f64 {
        /// Euler's constant.
        const GAMMA: f64 = 0.577_215_664_901_532_9;
        let unit = f64::from(unit) * std::f64::consts::LN_2;
        match self {
            Blob::Point => 0.0,
            Blob::Algebraic(e) => e.ln() - 0.5 + unit,
            Blob::Gaussian(s) => 0.5 * ((2.0 * s * s).ln() - GAMMA) + unit,
        }
    }
}
