//! Cartesian expansions of softened and screened kernels: their tables, and their operators at bodies.

use cust::memory::DevicePointer;
use fmm_core::expansion::{Cartesian, Expansion};
use fmm_core::{Error, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::kernels::SHARED;
use crate::m2l::M2l;
use crate::m2l_schedule::{M2lSchedule, Offsets};
use crate::mma_layout::{Arithmetic, DeviceReal};
use crate::place::Place;
use crate::view::{CartesianMatrixView, CartesianView, CsrView, TILE};

/// A kernel and the cells that it is expanded in: the tables of M2L depend on the ratio of lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Softened {
    /// Of Plummer's kind, P1 or Yukawa's.
    pub softening: Softening,
    /// Side of the root cube.
    pub side: f64,
    /// Levels of the targets.
    pub levels: usize,
}

impl Softened {
    /// Its length, and its number in the kernels.
    fn kernel(&self) -> (f64, u32) {
        let number = match self.softening {
            // 1/r is Plummer's kernel without a length; the spline has no Cartesian expansions.
            Softening::None | Softening::Plummer(_) | Softening::Spline(_) => 0,
            Softening::P1(_) => 1,
            Softening::Yukawa(_) => 2,
        };
        (self.softening.parameter(), number)
    }

    /// The CPU's expansion of `order`.
    pub fn expansion(&self, order: usize, offsets: Offsets) -> Cartesian<f64> {
        Cartesian::new(order, self.softening, offsets.classes, self.side, self.levels)
    }
}

/// Bodies to expansions, and expansions to bodies.
#[derive(Clone, Copy, PartialEq)]
pub enum Stage {
    /// Bodies to multipoles.
    P2M,
    /// Bodies to local expansions.
    P2L,
    /// Local expansions to bodies.
    L2P,
    /// Multipoles to bodies.
    M2P,
}

/// Coefficients of expansions of this order: multi-indices of up to its degree.
pub fn count_of(order: usize) -> usize {
    (order + 1) * (order + 2) * (order + 3) / 6
}

/// What these operators need.
pub struct Bodies {
    softened: Softened,
    order: usize,
    exponents: Buffer<u32>,
}

impl Bodies {
    /// Copies the multi-indices of `expansion`.
    pub fn new(softened: Softened, order: usize, expansion: &Cartesian<f64>) -> Result<Self, Error> {
        let packed = |n: &[usize; 3]| (n[0] | n[1] << 8 | n[2] << 16) as u32;
        let mut exponents = Buffer::new();
        exponents.upload(&expansion.indices().iter().map(packed).collect::<Vec<_>>())?;
        Ok(Bodies { softened, order, exponents })
    }

    /// The multi-indices, to one order more than that of the expansions.
    pub fn exponents(&self) -> DevicePointer<u32> {
        self.exponents.pointer()
    }

    /// Queues one operator for the cells of `work`.
    pub fn launch<T: DeviceReal>(
        &self,
        gpu: &Gpu,
        place: &Place,
        stage: Stage,
        list: CsrView,
        (work, count): (DevicePointer<u32>, usize),
        coefficients: DevicePointer<u8>,
    ) -> Result<(), Error> {
        let (name, values) = match stage {
            Stage::P2M => ("p2m", count_of(self.order)),
            Stage::P2L => ("p2l", count_of(self.order)),
            Stage::L2P => ("l2p", count_of(self.order)),
            Stage::M2P => ("m2p", count_of(self.order + 1)),
        };
        let (epsilon, kernel) = self.softened.kernel();
        // Derivatives of P1 and of Yukawa's kernel need a second column of values. The number of
        // lanes is odd to avoid bank conflicts.
        let columns = if kernel > 0 && matches!(stage, Stage::P2L | Stage::M2P) { 2 } else { 1 };
        let row = columns * values * size_of::<T>();
        let most = SHARED / row;
        assert!(most > 0, "the largest order fits");
        let lanes = if most > 32 { 32 } else { most - usize::from(most.is_multiple_of(2)) };
        let view = CartesianView {
            targets: place.targets,
            sources: place.sources,
            list,
            target_bodies: place.target_bodies,
            source_bodies: place.source_bodies,
            work,
            exponents: self.exponents.pointer(),
            coefficients,
            sums: place.sums,
            epsilon,
            order: self.order as u32,
            lanes: lanes as u32,
            kernel,
        };
        let name = format!("{name}_cartesian_{}", T::NAME);
        // SAFETY: the arrays have the lengths that the trees and the view say.
        unsafe { gpu.kernels().launch_with(gpu.stream(), &name, count as u32, (32, (lanes | 1) * row), &view) }
    }
}

/// The axes whose mirrors change the sign of each coefficient.
pub fn signs(expansion: &Cartesian<f64>) -> Vec<u8> {
    let odd = |n: &[usize; 3]| (0..3).map(|d| ((n[d] % 2) as u8) << d).sum();
    expansion.indices()[..Expansion::<f64, 3>::len(expansion)].iter().map(odd).collect()
}

/// Makes the matrices of M2L on the device, `levels` times those of `plan`.
pub fn matrices<T: DeviceReal>(
    gpu: &Gpu,
    softened: Softened,
    expansion: &Cartesian<f64>,
    (order, offsets, arithmetic): (usize, Offsets, Arithmetic),
    plan: &M2lSchedule,
    bodies: &Bodies,
    m2l: &mut M2l,
) -> Result<(), Error> {
    let mut derivatives = vec![];
    for level in 0..softened.levels {
        for &base in &plan.bases {
            derivatives.extend_from_slice(expansion.class_derivatives(offsets.classes.class(base), level));
        }
    }
    let mut table = Buffer::new();
    table.upload(&derivatives)?;
    let cut = m2l.cut;
    let size = softened.levels * plan.bases.len() * cut.steps * cut.columns * 128;
    let words = size_of::<T>() / 4;
    m2l.matrices.resize(size * words)?;
    m2l.per_level = plan.bases.len();
    gpu.settle()?;
    let view = CartesianMatrixView {
        exponents: bodies.exponents.pointer(),
        coefficients: m2l.order.pointer(),
        derivatives: table.pointer(),
        matrices: m2l.matrices.pointer().cast(),
        size: size as u64,
        order: order as u32,
        steps: cut.steps as u32,
        columns: cut.columns as u32,
        words: words as u32,
        split: u32::from(arithmetic == Arithmetic::TwoBf16),
    };
    let blocks = size.div_ceil(TILE) as u32;
    // SAFETY: every matrix has its derivatives and its place.
    unsafe { gpu.kernels().launch(gpu.stream(), "m2l_cartesian_f64", blocks, TILE as u32, &view)? };
    // The derivatives live until then.
    gpu.finish()
}
