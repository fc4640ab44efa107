//! Periodic boxes. The header of the kernels is `arguments/periodic.cuh`.

use cust::memory::{DeviceCopy, DevicePointer};

use super::{Body, F32OrF64, ReadOnly, Uint4};

/// Numbers of a share of the moments: charge, dipole and second moment of wrapped bodies about the
/// middle of the box, the sum of the magnitudes, and dipole and second moment of bodies as they are
/// about the origin; the sum of the squares of the strengths.
pub const MOMENTS: usize = 11;
/// Numbers of a share of what errors are compared with: the sums of 1/|e|², |e|² and the squares of potentials.
pub const WEIGHTS: usize = 3;
/// Waves along z of a column.
pub const DEEP: usize = 4;
/// Places of a target in a row of what the guard hears.
pub const BOX_ROW: usize = 16;
/// Sources of a chunk in real space.
pub const SOURCES: usize = 256;

/// Bodies to their places in the box, and what is not harmonic of its potential.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct BoxView {
    /// As they are. `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n]`, or null: no moments.
    pub strength: ReadOnly<f64>,
    /// In the box. `[n][3]`
    pub wrapped: DevicePointer<f64>,
    /// In the cube that the box is stretched to, or null. `[n][3]`
    pub stretched: DevicePointer<f64>,
    /// `[blocks][MOMENTS]` or `[blocks][WEIGHTS]`
    pub partial: DevicePointer<f64>,
    /// `[cells][3]`
    pub center: DevicePointer<f64>,
    /// `[n][3]`, or null.
    pub field: DevicePointer<f64>,
    /// `[n]`, or null.
    pub potential: DevicePointer<f64>,
    /// Sides.
    pub side: [f64; 3],
    /// The longest side over each.
    pub stretch: [f64; 3],
    /// Of the box.
    pub middle: [f64; 3],
    /// Of wrapped bodies about the middle, times 2π/3V.
    pub charge: f64,
    /// The same.
    pub dipole: [f64; 3],
    /// The same.
    pub second: f64,
    /// Of bodies as they are, times what the surroundings do to them; or 0.
    pub outer_dipole: [f64; 3],
    /// The same.
    pub outer_second: f64,
    /// The least square of a field that counts.
    pub least_square: f64,
    /// Number of bodies, or of cells.
    pub n: u64,
}

impl Default for BoxView {
    /// Nothing of nothing.
    fn default() -> Self {
        let null = DevicePointer::null();
        BoxView {
            position: null,
            strength: null,
            wrapped: null,
            stretched: null,
            partial: null,
            center: null,
            field: null,
            potential: null,
            side: [1.0; 3],
            stretch: [1.0; 3],
            middle: [0.0; 3],
            charge: 0.0,
            dipole: [0.0; 3],
            second: 0.0,
            outer_dipole: [0.0; 3],
            outer_second: 0.0,
            least_square: 0.0,
            n: 0,
        }
    }
}

/// The images that lists do not know: from the root's multipole to its local expansion.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct LatticeView {
    /// `[n][n]`: source and target coefficient. With a ternary root `[offsets][n][n]`, offsets from −2 to 2, x fastest.
    pub matrix: ReadOnly<f64>,
    /// `[n]`; with a ternary root `[CELLS_IN_BOX][n]`.
    pub multipole: ReadOnly<F32OrF64>,
    /// Added to, the same.
    pub local: DevicePointer<F32OrF64>,
    /// Coefficients.
    pub n: u32,
    /// Place of each cell of a ternary root, 0 to 2 along each axis.
    pub place: [[i32; 3]; CELLS_IN_BOX],
}

/// Cells that a ternary root divides a box into, three along each axis.
pub const CELLS_IN_BOX: usize = 27;

/// Ewald's sum. Lengths are multiplied by `scale` as bodies are read.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct EwaldView {
    /// In the box. `[n]`
    pub sources: ReadOnly<Body>,
    /// In the box.
    pub targets: ReadOnly<Body>,
    /// The sources in any order, for their structure factors. `[n][3]`
    pub place: ReadOnly<f64>,
    /// `[n]`
    pub charge: ReadOnly<f64>,
    /// Places among the targets, or null. `[count]`
    pub picked: ReadOnly<u32>,
    /// The place of each target in the caller's order, or null: the same.
    pub order: ReadOnly<u32>,
    /// Numbers along x and y, first of [`DEEP`] along z, and nothing. `[columns]`
    pub columns: ReadOnly<Uint4>,
    /// `[parts][columns][DEEP][8]`
    pub structure: DevicePointer<f64>,
    /// `[columns][DEEP][8]`
    pub factors: DevicePointer<f64>,
    /// `[shares][count][5]`
    pub partial: DevicePointer<f64>,
    /// `[count][4]`
    pub waves: DevicePointer<f64>,
    /// What was found, or what is wanted, in the caller's order.
    pub potential: DevicePointer<f64>,
    /// The same.
    pub field: DevicePointer<f64>,
    /// Of the targets in the caller's order, as they are.
    pub position: ReadOnly<f64>,
    /// `[count]`
    pub weight: ReadOnly<f64>,
    /// The sums, the largest term, what was found, weight, position, `[count][BOX_ROW]`. Null: the sums are wanted.
    pub out: DevicePointer<f64>,
    /// Sides, scaled.
    pub side: [f64; 3],
    /// What lengths are multiplied by.
    pub scale: f64,
    /// α, scaled.
    pub alpha: f64,
    /// Square of the distance up to which images are summed.
    pub cutoff2: f64,
    /// Square of the highest wave number.
    pub highest2: f64,
    /// h of the spline, scaled.
    pub softening: f64,
    /// Of the scaled potential.
    pub background: f64,
    /// From scaled sums to the caller's.
    pub potential_scale: f64,
    /// The same.
    pub field_scale: f64,
    /// What strengths are multiplied by in the sources.
    pub strength_scale: f64,
    /// Number of sources.
    pub n: u32,
    /// Targets of this launch.
    pub count: u32,
    /// Number of columns.
    pub columns_len: u32,
    /// Shares of the bodies in the structure factors.
    pub parts: u32,
    /// Shares of the sources in real space.
    pub shares: u32,
    /// Waves along each axis.
    pub most: [u32; 3],
    /// Images beyond the nearest.
    pub reach: [u32; 3],
    /// 1: targets are the sources, and none sees itself.
    pub same: u32,
    /// First target of this launch, where none are picked.
    pub first: u32,
    /// Bodies of a batch of the structure factors.
    pub bodies: u32,
}
