//! The kernels that replace 1/r at short distance.

/// The softened kernel that replaces 1/r at short distance; lengths in the user's unit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Softening {
    /// 1/r.
    #[default]
    None,
    /// (r² + ε²)^(−1/2).
    Plummer(f64),
    /// GADGET's cubic spline with h = 2.8 ε: exactly 1/r beyond h.
    Spline(f64),
    /// (r² + 3/2 ε²)(r² + ε²)^(−3/2), falcON's P1.
    P1(f64),
}

impl Softening {
    /// The same kernel in a unit of length in which lengths are `scale` times as large.
    pub fn scaled(self, scale: f64) -> Self {
        match self {
            Softening::None => Softening::None,
            Softening::Plummer(e) => Softening::Plummer(e * scale),
            Softening::Spline(e) => Softening::Spline(e * scale),
            Softening::P1(e) => Softening::P1(e * scale),
        }
    }

    /// The same kernel, with a length of zero taken for none.
    pub fn simplified(self) -> Self {
        match self {
            Softening::Plummer(0.0) | Softening::Spline(0.0) | Softening::P1(0.0) => Softening::None,
            other => other,
        }
    }
}
