//! How the GPUs of a team divide a tree, and what they send each other.

use cust::memory::{DeviceCopy, DevicePointer};

use super::{BOUNDS, Body, ReadOnly, Sum, TreeView};

/// The cells whose multipoles each of several GPUs knows alone.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CellPartsView {
    /// The tree that they share.
    pub tree: TreeView,
    /// First cell, and one past the last, of each level and GPU. `[levels][members][2]`
    pub parts: DevicePointer<u32>,
    /// As [`TranslateView::bounds`](super::TranslateView::bounds).
    pub bounds: [u32; BOUNDS],
    /// GPUs that share the tree.
    pub members: u32,
}

/// The bodies that one of several GPUs needs of a tree that they share.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct NeededView {
    /// The tree.
    pub tree: TreeView,
    /// Its leaves, in the order of their bodies. `[leaf_count]`
    pub leaves: ReadOnly<u32>,
    /// Pairs whose first cell's bodies are needed. `[pairs_len][2]`
    pub pairs: ReadOnly<u32>,
    /// 1 for leaves whose bodies are needed. `[cells]`
    pub needed: DevicePointer<u8>,
    /// In the caller's order. `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n]`
    pub strength: ReadOnly<f64>,
    /// Sorted place → caller's index. `[n]`
    pub order: ReadOnly<u32>,
    /// `[n]`
    pub bodies: DevicePointer<Body>,
    /// What strengths are multiplied by.
    pub strength_scale: f64,
    /// Number of pairs.
    pub pairs_len: u64,
    /// Number of leaves.
    pub leaf_count: u32,
    /// First body that is also needed, and one past the last, as sorted places.
    pub more: [u32; 2],
}

/// Sums that GPUs give each other.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ParcelView {
    /// In the order of the targets' tree.
    pub sums: ReadOnly<Sum>,
    /// More of the potential, or null: the same.
    pub more: ReadOnly<Sum>,
    /// Sorted place → caller's index.
    pub order: ReadOnly<u32>,
    /// By the slices of the caller's order that they belong to. `[count]`
    pub parcels: DevicePointer<Sum>,
    /// Their places in the caller's order. `[count]`
    pub index: DevicePointer<u32>,
    /// How many there are of each slice. `[members]`
    pub counts: DevicePointer<u32>,
    /// In the caller's order, or null. `[n][3]`
    pub field: DevicePointer<f64>,
    /// In the caller's order, or null. `[n]`
    pub potential: DevicePointer<f64>,
    /// What strengths are multiplied by.
    pub strength_scale: f64,
    /// Where the slices begin in the caller's order. `[members + 1]`
    pub slices: [u32; BOUNDS],
    /// The first parcel of each slice. `[members]`
    pub starts: [u32; BOUNDS],
    /// Sorted place of the first of `sums` that is given away.
    pub first: u32,
    /// How many of them, or of the parcels.
    pub count: u32,
    /// Number of GPUs.
    pub members: u32,
}

/// Targets of a sample of which one of several GPUs knows each.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct RecordView {
    /// Three numbers from every `stride`th on.
    pub position: ReadOnly<f64>,
    /// What was found, the same.
    pub field: ReadOnly<f64>,
    /// Sorted places, or [`NONE`](super::NONE) of those that are not known here. `[count]`
    pub picked: ReadOnly<u32>,
    /// What each stands for, where it is known. `[count]`
    pub weight: ReadOnly<f64>,
    /// Place, weight, position and field; 0 of those that are not known here. `[count][8]`
    pub records: DevicePointer<f64>,
    /// The sorted places that are known here: the first, and one past the last.
    pub share: [u32; 2],
    /// Numbers from one target to the next.
    pub stride: u32,
    /// Targets of the sample.
    pub count: u32,
}
