//! The fast Gauss transform: G(y) = Σ q_j exp(−|y − x_j|²/(2σ²)) in one, two and three dimensions (Greengard & Strain 1991).
//!
//! One level of boxes of side about σ. With z = (y − c)/σ, a = (x − s)/σ, φ_n(z) = z^n/√n! and ψ_n(z) = He_n(z) e^(−z²/2)/√n! (He_n the
//! probabilists' Hermite polynomials), along each axis
//!
//! | | coefficients | value at y |
//! |---|---|---|
//! | Hermite series about the center s of a box of sources | A_n = Σ q φ_n((x − s)/σ) | Σ A_n ψ_n((y − s)/σ) |
//! | Taylor series about the center c of a box of targets | B_m = Σ q ψ_m((x − c)/σ) | Σ B_m φ_m((y − c)/σ) |
//! | the one to the other (M2L) | B_m = (−1)^m Σ √((n + m)!/(n! m!)) ψ_(n + m)((c − s)/σ) A_n | |
//!
//! and in D dimensions products of these, p^D terms. In this scaling no coefficient is far from 1. A source reaches a target on one of four
//! [routes](Route): directly (P2P), by a Hermite series (P2M, M2P), by a Taylor series (P2L, L2P), or by both (P2M, M2L, L2P). Boxes with many
//! sources, and boxes with many targets, have a series; where one of the two has none, the cheaper of its series and the direct sum
//! is taken. Which boxes are large enough, and how large boxes are, is what [`cost`] expects to be cheapest; never a timing.
//!
//! M2L of all pairs is one [sweep] along each axis. [`bound`] has the errors, which hold for every set of points.

pub mod bound;
pub mod boxes;
pub mod cost;
mod evaluate;
mod execute;
mod near;
pub mod plan;
mod points;
mod products;
pub mod series;
pub mod single;
pub mod sweep;
pub mod translate;
pub mod workload;

pub use evaluate::{Axes, Dimension, Evaluation, Routes, check, evaluate};
pub use plan::{Choice, Plan};

/// How a source reaches a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Every pair, with no cut-off.
    All,
    /// Pairs within the cut-off.
    Direct,
    /// Hermite series of the sources, evaluated at the targets.
    Hermite,
    /// Taylor series about the targets, from the sources.
    Taylor,
    /// Hermite series, translated to Taylor series.
    HermiteTaylor,
}

/// A sum of Gaussians as asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The width σ of exp(−r²/(2σ²)), 1e-150 to 1e150.
    pub sigma: f64,
    /// The largest error of G, and with `gradient` of σ ∇G, as a part of Σ|q|: 1e-14 to 0.1.
    pub tolerance: f64,
    /// Whether −∇G is wanted.
    pub gradient: bool,
    /// One route for all, instead of the cheapest for each pair of boxes.
    pub route: Option<Route>,
    /// Side of the boxes, instead of the cheapest: 0.01 σ to 1000 σ.
    pub side: Option<f64>,
}

impl Settings {
    /// Values to 1e-6 for this σ.
    pub fn new(sigma: f64) -> Self {
        Settings { sigma, tolerance: 1e-6, gradient: false, route: None, side: None }
    }
}
