//! Green's function, and the length over which that of a cell is smoothed.

/// Green's function of −∇² in free space, as it is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Green {
    /// 1/(4πr); a cell does not act on itself.
    Singular,
    /// (r² + 3/2 ε²)/(4π (r² + ε²)^(3/2)) with ε = h of the acting cell.
    #[default]
    Regularised,
}

impl Green {
    /// ε of a cell with side `h`.
    pub fn core(self, h: f64) -> f64 {
        if self == Green::Singular { 0.0 } else { h }
    }
}
