//! What a sum is measured by.

use cust::memory::{DeviceCopy, DevicePointer};

use super::{Body, CsrView, F32OrF64, Float4, ReadOnly, Sum, TreeView};

/// The error field of a sum by expansions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ErrorView {
    /// Tree of the targets.
    pub targets: TreeView,
    /// Tree of the sources.
    pub sources: TreeView,
    /// Well-separated cells.
    pub m2l: CsrView,
    /// Multipoles at leaves.
    pub m2p: CsrView,
    /// Direct sums.
    pub p2p: CsrView,
    /// The sources from the centers of their leaves, and strengths; null where no pair is in single precision.
    /// `[sources]`
    pub near_bodies: ReadOnly<Float4>,
    /// Σ|q| of leaves; null where the rounding of pairs counts nothing. `[source cells]`
    pub sizes: ReadOnly<f32>,
    /// The targets of a task of [`NearView`](super::NearView) whose pairs were in double precision all the same, a bit
    /// each; null where no pair is. `[tasks][2]`
    pub again: ReadOnly<u64>,
    /// Of the targets. `[leaf_count]`
    pub leaves: ReadOnly<u32>,
    /// In the order of their tree.
    pub target_bodies: ReadOnly<Body>,
    /// The same.
    pub source_bodies: ReadOnly<Body>,
    /// In the order of the targets' tree.
    pub sums: ReadOnly<Sum>,
    /// `[source cells][coefficients]`
    pub multipoles: ReadOnly<F32OrF64>,
    /// `[target cells][coefficients]`; null where no local expansion is used.
    pub locals: ReadOnly<F32OrF64>,
    /// Σq² of scaled strengths; null where all have one sign. `[source cells]`
    pub strength_squares: ReadOnly<f32>,
    /// Of the coefficients of the last degree, in multipoles and in local expansions, or of those of charges.
    /// `[2][width]`
    pub weights: ReadOnly<f64>,
    /// What multipoles lose at the octants of targets, in units of `class_unit`: the upper halves of two floats a number.
    /// `[classes][4]`
    pub by_class: ReadOnly<u32>,
    /// The fourth power of 1/distance in half sides. `[classes]`
    pub far_by_class: ReadOnly<f32>,
    /// What the products of a source cell were multiplied by where M2L had halves; null elsewhere. `[source cells]`
    pub cell_scale: ReadOnly<f32>,
    /// The square of the charge of each source cell with what its dipole counts; null unless 1/r is in place of a
    /// kernel that is softened at every distance. `[source cells]`
    pub charges: ReadOnly<f32>,
    /// Of the last degree. `[source cells + target cells]`
    pub norms: DevicePointer<f32>,
    /// What comes from pairs of cells. `[target cells][8]`
    pub octants: DevicePointer<f64>,
    /// The same with what comes from cells above, of cells that have children. `[target cells][8]`
    pub handed: DevicePointer<f64>,
    /// Of the predicted error over the field, and of the error in units of half the side of the root. `[targets][2]`
    pub squares: DevicePointer<f32>,
    /// Of the periodic box, or 0.
    pub sides: [f64; 3],
    /// The sides of a cell over the longest.
    pub aspect: [f64; 3],
    /// Half the side of the root.
    pub root: f64,
    /// Unit of `by_class`.
    pub class_unit: f64,
    /// What a local expansion counts.
    pub local: f64,
    /// The least that the last degree of a multipole counts for each unit of Σq².
    pub least_of_random: f64,
    /// Half sides of a leaf within which multipoles are looked at from each target.
    pub near: f64,
    /// The part of the largest octant that each counts at least.
    pub least: f64,
    /// The square of the softening length of kernels that differ from 1/r at every distance; 0 of others.
    pub core2: f64,
    /// The same of all kernels whose terms it bounds.
    pub core2_of_terms: f64,
    /// From this square of it on, in half sides of a cell, it counts.
    pub core: f64,
    /// The square of the spacing of numbers next to 1.
    pub rounding: f64,
    /// What is to be added to it where pairs were in single precision.
    pub of_mixed: f64,
    /// What the square of a potential is multiplied by to be the least sum of the sizes of all terms of the
    /// field; 0 if unknown.
    pub per_potential: f64,
    /// What the rounding of a pair counts, squared.
    pub of_pairs: f64,
    /// What that of a multipole counts for each unit of Σq², squared; 0 if nothing.
    pub of_rounding: f64,
    /// What M2L with halves loses of a multipole, squared, over the square of `cell_scale`.
    pub of_halves: f64,
    /// b² of [`Softening::beside_newton`](fmm_core::Softening::beside_newton).
    pub replaced: f64,
    /// The part of the square of the largest term that a square counts at least.
    pub floor: f64,
    /// From this square of a relative error on the largest term of the leaf is looked for.
    pub doubted: f64,
    /// How many bodies before and after a target are looked at for it.
    pub looked_at: u32,
    /// Beyond this distance terms are those of point charges; squared.
    pub reach2: f64,
    /// The middle of the box.
    pub middle: [f64; 3],
    /// What fields in a box get at last, in the middle.
    pub uniform: [f64; 3],
    /// What they get in addition for each unit of length from there.
    pub slope: f64,
    /// The largest square of a relative error.
    pub largest: f64,
    /// Number of leaves.
    pub leaf_count: u32,
    /// Order of the expansions.
    pub order: u32,
    /// Numbers in an expansion.
    pub coefficients: u32,
    /// The first coefficient of the last degree.
    pub first: u32,
    /// How many it has.
    pub width: u32,
    /// 1: targets and sources are the same bodies.
    pub same: u32,
    /// 1: there are pairs of well-separated cells.
    pub has_m2l: u32,
    /// 1: there are multipoles at leaves.
    pub has_m2p: u32,
    /// k of the same, 2 or 4.
    pub replaced_power: u32,
}

/// The squares of errors that are alike at all targets.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct AlikeView {
    /// In the caller's order. `[count][3]`
    pub field: ReadOnly<f64>,
    /// The place of each target in the caller's order. `[count]`
    pub order: ReadOnly<u32>,
    /// In the order of cells. `[count]`
    pub targets: ReadOnly<Body>,
    /// The same, with scaled strengths. `[sources]`
    pub bodies: ReadOnly<Body>,
    /// The cell of each target. `[count]`
    pub cell: ReadOnly<u32>,
    /// The first source of each cell, and one past the last.
    pub start: ReadOnly<u32>,
    /// Over the field, and alone, both in arbitrary units. `[count][2]`
    pub squares: DevicePointer<f32>,
    /// The least square of a field.
    pub least_square: f64,
    /// Below this square the largest term is looked for.
    pub doubted_square: f64,
    /// What the square of that term, of scaled strengths, is multiplied by to be the least that |e|² counts.
    pub floor: f64,
    /// Beyond this distance terms are those of point charges; squared.
    pub reach2: f64,
    /// Number of targets.
    pub count: u32,
    /// Number of sources.
    pub sources: u32,
    /// How many sources before and after those of its cell are looked at for the largest term of a target.
    pub margin: u32,
    /// How many before and after the target at most.
    pub most: u32,
    /// 1: targets and sources are the same bodies.
    pub same: u32,
    /// Makes the size a whole number of eights.
    pub unused: u32,
}

/// A sample of targets, drawn by their predicted errors.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct DrawView {
    /// Of the relative error, and of the error. `[count][2]`
    pub squares: ReadOnly<f32>,
    /// In the order of the targets; null if it is not added up. `[count]`
    pub field: ReadOnly<Sum>,
    /// The squares, and that of the field, summed over each chunk of the targets, and the largest
    /// squares; again the squares and the number of the targets that are not in the sample for
    /// certain, and the number of the others. `[chunks][5]`
    pub sums: DevicePointer<f64>,
    /// The squares, and that of the field, over all targets, and the squares over those that are
    /// not there for certain. `[5]`
    pub totals: DevicePointer<f64>,
    /// How often targets were expected to be drawn, `[2][3]`; the number of those that are there
    /// for certain, and whether there may be more.
    pub plan: DevicePointer<f64>,
    /// The draws before each chunk. `[chunks + 1]`
    pub starts: DevicePointer<f64>,
    /// The targets before each chunk that are there for certain. `[chunks + 1]`
    pub sure: DevicePointer<f64>,
    /// The sample. `[size]`
    pub picked: DevicePointer<u32>,
    /// The number of targets, as a part of their mean, that each stands for; less than zero for one
    /// that is there for certain. `[size]`
    pub weight: DevicePointer<f64>,
    /// What fields are multiplied by, so that their squares are numbers.
    pub unit: f64,
    /// The part of the sample that is drawn evenly.
    pub even: f64,
    /// Number of targets.
    pub count: u32,
    /// Number of chunks.
    pub chunks: u32,
    /// The first chunk of this GPU.
    pub first: u32,
    /// Targets of the sample.
    pub size: u32,
    /// Whether those that are there for certain have been counted.
    pub again: u32,
}

/// The targets whose predicted errors are the largest.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct WorstView {
    /// See [`ErrorView`]. `[count][2]`
    pub squares: ReadOnly<f32>,
    /// By bins of both squares; then the number of targets that are chosen, first of all. `[2][bins]`
    pub counts: DevicePointer<u32>,
    /// Those that are chosen, in the order of the tree.
    pub chosen: DevicePointer<u32>,
    /// The squares from which on targets are chosen.
    pub from: [f64; 2],
    /// The first target that is looked at, and one past the last.
    pub share: [u32; 2],
}

/// The estimated error of each target.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ColumnView {
    /// See [`ErrorView`]. `[count][2]`
    pub squares: ReadOnly<f32>,
    /// In the order of the tree. `[count]`
    pub sums: ReadOnly<Sum>,
    /// Sorted place → caller's index. `[count]`
    pub order: ReadOnly<u32>,
    /// In the caller's order. `[count]`
    pub error: DevicePointer<f64>,
    /// What predicted errors but for the rounding of the field are multiplied by.
    pub factor: f64,
    /// What `sums` are multiplied by to be their error by rounding, in the units of the roots of `squares`.
    pub rounding: f64,
    /// What both are multiplied by to be errors of the field.
    pub unscale: f64,
    /// Number of targets.
    pub count: u32,
}

/// Targets that were summed again: their fields go to where the sum has left those of the expansions.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct RepairView {
    /// In the order of the tree. `[count]`
    pub picked: ReadOnly<u32>,
    /// As [`GuardView::out`].
    pub rows: ReadOnly<f64>,
    /// Sorted place → caller's index.
    pub order: ReadOnly<u32>,
    /// In the order of the tree.
    pub sums: DevicePointer<Sum>,
    /// In the caller's order. `[][3]`
    pub field: DevicePointer<f64>,
    /// See [`ErrorView`]: no error is left.
    pub squares: DevicePointer<f32>,
    /// What the rows are multiplied by to be `sums`.
    pub unit: f64,
    /// What `sums` are multiplied by to be `field`.
    pub unscale: f64,
    /// Number of targets.
    pub count: u32,
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
    /// The sample. `[targets]`
    pub picked: DevicePointer<u32>,
    /// The number of targets, in any unit, that each stands for; 0: none. `[targets]`
    pub weight: DevicePointer<f64>,
    /// Field and square of the largest term. `[parts][targets][split][4]`
    pub partial: DevicePointer<f64>,
    /// The same, the field that was found, weight. `[targets][8]`
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
    /// The first part that is summed here.
    pub first_part: u32,
    /// Parts of a share that threads of a block have each.
    pub split: u32,
    /// Numbers from one target to the next.
    pub stride: u32,
    /// 1: pairs that are far from each other are in single precision.
    pub single: u32,
}

impl Default for GuardView {
    /// Nothing of nothing.
    fn default() -> Self {
        GuardView {
            sources: DevicePointer::null(),
            position: DevicePointer::null(),
            field: DevicePointer::null(),
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
            first_part: 0,
            split: 1,
            stride: 3,
            single: 0,
        }
    }
}
