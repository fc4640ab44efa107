//! A fixed field in addition to that of the particles.
//!
//! Potentials φ per unit of mass (gravity) or of charge (Coulomb), r from `position`:
//! - point: φ = C s/√(r² + ε²) with the constant C = −G, which attracts masses, or k_e, which repels like charges;
//! - logarithmic halo: φ = v²/2 ln((x² + y² + z²/q² + r_c²)/r_c²), whose circular velocity is v far outside (Binney &
//!   Tremaine 2008, eq. 2.71);
//! - uniform field g: φ = −g·x, an acceleration for masses, an electric field for charges.

/// A fixed external field, which does not depend on the particles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct External {
    /// Its potential.
    pub shape: Shape,
    /// Its center.
    pub position: [f64; 3],
}

/// A potential with its parameters, in the units of the particles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// A point of mass or charge.
    Point {
        /// Mass (gravity) or charge (Coulomb).
        source: f64,
        /// ε of its softening.
        core_radius: f64,
    },
    /// A halo with a flat rotation curve.
    Logarithmic {
        /// Circular velocity far outside.
        velocity: f64,
        /// r_c, within which the rotation curve rises.
        core_radius: f64,
        /// q, axis ratio z : x of the potential.
        flattening: f64,
    },
    /// The same force everywhere.
    Uniform {
        /// Force per unit of mass or charge.
        field: [f64; 3],
    },
}

impl External {
    /// Potential and force at `x` per unit of mass or charge; `constant` is −G or k_e.
    pub fn at(&self, x: [f64; 3], constant: f64) -> (f64, [f64; 3]) {
        let d: [f64; 3] = std::array::from_fn(|k| x[k] - self.position[k]);
        match self.shape {
            Shape::Point { source, core_radius } => {
                let r2 = d.iter().map(|d| d * d).sum::<f64>() + core_radius * core_radius;
                // As between particles: nothing acts at the place of an unsoftened point.
                let inverse = if r2 > 0.0 { 1.0 / r2.sqrt() } else { 0.0 };
                let strength = constant * source;
                (strength * inverse, d.map(|d| strength * d * inverse.powi(3)))
            }
            Shape::Logarithmic { velocity, core_radius, flattening } => {
                let (v2, c2, q2) = (velocity * velocity, core_radius * core_radius, flattening * flattening);
                let s = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] / q2;
                let pull = -v2 / (s + c2);
                (0.5 * v2 * (s / c2).ln_1p(), [pull * d[0], pull * d[1], pull * d[2] / q2])
            }
            Shape::Uniform { field } => (-(0..3).map(|k| field[k] * x[k]).sum::<f64>(), field),
        }
    }
}
