//! ∇²Ψ = −ω in free space on block-structured grids of many resolutions (van Rees et al. 2014).
//!
//! Ψ(x) = Σ_j ω_j h_j³ K(|x − x_j|) over all cells that have vorticity, u = ∇ × Ψ by the derivatives of the same sums, so that no
//! stencil crosses a change of resolution. K = 1/(4πr), or the high-order algebraic (r² + 3/2 ε²)/(4π (r² + ε²)^(3/2)) with ε = h.
//! Both are of second order where ω is, with an error that is a multiple of h² ω; [`correction`] takes it away, which leaves
//! h⁴ on uniform grids, with a factor log h for the second kernel.
//!
//! - [`blocks`]: an octree of blocks of 16³ cells that do not overlap; neighbors differ by one level at most ([`forest`]).
//! - [`wavelet`]: which blocks there are, from the details of average-interpolating wavelets.
//! - [`levels`]: a field level by level ([`hierarchy`]), with cells around the blocks of each
//!   ([`padded`]) that come from other levels ([`transfer`]).
//! - [`vorticity`], [`ring`]: what is solved for.
//! - [`green`]: Green's functions.
//! - [`sources`]: cells with vorticity and their octree, on which expansions are made by the operators of all other sums.
//! - [`plan`]: targets are bricks of 8³ cells, and lists say which nodes act on a brick by expansion and which directly: integers alone.
//! - [`near`], [`far`]: direct sums and expansions at the points of a brick; both make use of its regularity.
//! - `direct`: direct sums in some cells, to compare with.
//! - [`remesh`], [`flow`]: flow by particles that become cells again at each step; [`bodies`]: what stands or moves in it.
//! - [`poisson`]: the stages, one after the other; [`workload`]: the least that they can take.

pub mod blocks;
pub mod bodies;
pub mod correction;
pub mod differences;
mod direct;
pub mod far;
pub mod flow;
pub mod forest;
pub mod green;
pub mod hierarchy;
pub mod levels;
pub mod near;
pub mod padded;
pub mod plan;
pub mod poisson;
pub mod remesh;
pub mod ring;
pub mod sources;
pub mod transfer;
pub mod vorticity;
pub mod wavelet;
pub mod workload;

pub use blocks::{BLOCK, Block, CELLS, Grid};
pub use flow::{Flow, Scheme};
pub use green::Green;
pub use poisson::{Solution, Solve, Solver, Work};
pub use ring::Ring;
pub use vorticity::{Component, GaussianRing, Parts, Rings, Sampled, Vorticity, only};
pub use wavelet::Thresholds;
