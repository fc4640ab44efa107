//! Second derivatives of the potential: xx, yy, zz, xy, xz, yz.

use cust::memory::{DeviceCopy, DevicePointer};

use super::{Body, CsrView, F32OrF64, ReadOnly, Sum, TreeView};

/// Second derivatives of pairs, by lists of leaves. Bodies are in the order of their tree.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct HessianPairView {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources.
    pub sources: TreeView,
    /// Of P2P.
    pub list: CsrView,
    /// Of the targets; a block has one.
    pub leaves: ReadOnly<u32>,
    /// `[targets]`
    pub target_bodies: ReadOnly<Body>,
    /// `[sources]`
    pub source_bodies: ReadOnly<Body>,
    /// `[targets][6]`
    pub hessian: DevicePointer<f64>,
    /// ε, or h of the spline.
    pub softening: f64,
    /// Below this length the kernel is smooth.
    pub smooth_below: f64,
    /// Of the periodic box, or 0.
    pub sides: [f64; 3],
    /// 1: targets are the sources, of which none sees itself.
    pub same: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// Second derivatives of pairs of all sources and chosen targets.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct HessianSumView {
    /// `[n]`
    pub sources: ReadOnly<Body>,
    /// Three numbers from every `stride`th on.
    pub position: ReadOnly<f64>,
    /// The chosen targets; null: the first ones. `[targets]`
    pub picked: ReadOnly<u32>,
    /// What is to be measured, at all targets; or null. `[][6]`
    pub found: ReadOnly<f64>,
    /// `[targets][parts][8]`
    pub partial: DevicePointer<f64>,
    /// `[targets][6]`
    pub sum: DevicePointer<f64>,
    /// Squares of the largest terms; as `found_there` only with `found`. `[targets]`
    pub largest: DevicePointer<f64>,
    /// What was found at the chosen targets. `[targets][6]`
    pub found_there: DevicePointer<f64>,
    /// ε, or h of the spline, in the scaled unit.
    pub softening: f64,
    /// What lengths are multiplied by.
    pub scale: f64,
    /// What the sums are multiplied by.
    pub sum_scale: f64,
    /// Number of sources.
    pub n: u32,
    /// Number of chosen targets.
    pub targets: u32,
    /// Shares of the sources.
    pub parts: u32,
    /// Numbers from one target to the next.
    pub stride: u32,
    /// 1: targets are the sources, of which none sees itself.
    pub same: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// Derivatives of expansions, as expansions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct DerivativeView {
    /// Of the cells.
    pub tree: TreeView,
    /// Multi-indices of Cartesian expansions, to the order of the derivatives.
    pub exponents: ReadOnly<u32>,
    /// `[cells][n]`
    pub coefficients: ReadOnly<F32OrF64>,
    /// For local expansions of the same order, for multipoles of the next. `[cells][]`
    pub out: DevicePointer<F32OrF64>,
    /// The length for which derivatives are taken, instead of half the side of each cell.
    pub unit: f64,
    /// Order of the coefficients.
    pub order: u32,
    /// Of the derivative.
    pub axis: u32,
}

/// The parts of second derivatives together, and to the caller's order.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct HessianView {
    /// Fields of the derivative along `axis`. `[n]`
    pub sums: ReadOnly<Sum>,
    /// Place of each of the caller's targets in the order of the tree. `[n]`
    pub inverse: ReadOnly<u32>,
    /// In the order of the tree. `[n][6]`
    pub hessian: DevicePointer<f64>,
    /// In the caller's order. `[n][6]`
    pub out: DevicePointer<f64>,
    /// What is multiplied: the fields, or what is returned.
    pub scale: f64,
    /// Number of targets.
    pub n: u32,
    /// Of the derivative.
    pub axis: u32,
}
