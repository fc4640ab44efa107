//! What a sum is measured by.

use cust::memory::{DeviceCopy, DevicePointer};

use super::{Body, CsrView, F32OrF64, ReadOnly, Sum, TreeView};

/// Where the last degree of the expansions is large, at the bodies of a sample of leaves.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ShareView {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources.
    pub sources: TreeView,
    /// Multipoles at leaves.
    pub m2p: CsrView,
    /// Every `step`th is in the sample.
    pub leaves: ReadOnly<u32>,
    /// In the order of their tree.
    pub target_bodies: ReadOnly<Body>,
    /// In the order of the targets' tree.
    pub sums: ReadOnly<Sum>,
    /// `[cells][(order + 1)²]`; null where there is no M2P.
    pub multipoles: ReadOnly<F32OrF64>,
    /// The same; null where there is no M2L.
    pub locals: ReadOnly<F32OrF64>,
    /// Of the recurrences.
    pub m2p_factors: ReadOnly<F32OrF64>,
    /// Of the recurrences.
    pub l2p_factors: ReadOnly<F32OrF64>,
    /// First body of each leaf of the sample. `[count]`
    pub start: DevicePointer<u32>,
    /// Number of bodies. `[1]`
    pub found: DevicePointer<f64>,
    /// Of the sample. `[capacity]`
    pub target: DevicePointer<u32>,
    /// `[capacity]`
    pub share: DevicePointer<f64>,
    /// Of the periodic box, or 0.
    pub sides: [f64; 3],
    /// The largest share.
    pub largest: f64,
    /// Leaves of the sample.
    pub count: u32,
    /// Of the sample in the leaves.
    pub step: u32,
    /// Bodies beyond which a leaf holds one place only.
    pub leaf_size: u32,
    /// Order of the expansions.
    pub order: u32,
    /// Bodies that there is room for.
    pub capacity: u32,
    /// Whether the root's local expansion counts: 0: no; 1: with all below it; 2: it alone.
    pub root: u32,
}

/// Direct sums at a sample of targets, for the guard.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GuardView {
    /// `[n]`
    pub sources: ReadOnly<Body>,
    /// Three numbers from every `stride`th on. `[all][stride]`
    pub position: ReadOnly<f64>,
    /// What is to be measured, the same.
    pub field: ReadOnly<f64>,
    /// Number of targets that have shares, `[1]`; or null.
    pub shared: ReadOnly<f64>,
    /// `[capacity]`
    pub share_target: ReadOnly<u32>,
    /// `[capacity]`
    pub share: ReadOnly<f64>,
    /// The sample. `[targets]`
    pub picked: DevicePointer<u32>,
    /// The number of targets, in any unit, that each stands for; 0: none. `[targets]`
    pub weight: DevicePointer<f64>,
    /// Field and square of the largest term. `[targets][parts][4]`
    pub partial: DevicePointer<f64>,
    /// The same, the field that was found, weight, `[targets][8]`; and what `shared` holds.
    pub out: DevicePointer<f64>,
    /// ε, or h of the spline, in the scaled unit.
    pub softening: f64,
    /// What lengths are multiplied by in the sources.
    pub unit: f64,
    /// What they are multiplied by besides, so that squares of forces are numbers.
    pub scale: f64,
    /// Number of sources.
    pub n: u32,
    /// Number of all targets.
    pub all: u32,
    /// Number of targets of the sample.
    pub targets: u32,
    /// Shares of the sources.
    pub parts: u32,
    /// Targets with shares that there is room for.
    pub capacity: u32,
    /// Numbers from one target to the next.
    pub stride: u32,
}

impl Default for GuardView {
    /// Nothing of nothing.
    fn default() -> Self {
        GuardView {
            sources: DevicePointer::null(),
            position: DevicePointer::null(),
            field: DevicePointer::null(),
            shared: DevicePointer::null(),
            share_target: DevicePointer::null(),
            share: DevicePointer::null(),
            picked: DevicePointer::null(),
            weight: DevicePointer::null(),
            partial: DevicePointer::null(),
            out: DevicePointer::null(),
            softening: 0.0,
            unit: 1.0,
            scale: 1.0,
            n: 0,
            all: 0,
            targets: 0,
            parts: 1,
            capacity: 0,
            stride: 3,
        }
    }
}
