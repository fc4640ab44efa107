//! The stages between expansions and bodies.

use cust::memory::DevicePointer;
use fmm_core::Error;

use super::{AtBodies, Far, WARPS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::cartesian;
use crate::kernels::SHARED;
use crate::mma_layout::DeviceReal;
use crate::place::Place;
use crate::view::FarView;

/// Reals of one harmonic of a warp's 32 bodies, padded.
const ROW: usize = 33;

/// Harmonics that a warp holds at a time, at least: one m has up to 2p.
const WINDOW: usize = 32;

/// Expansions of all cells, and what they are evaluated with.
pub struct Series<'a, T: DeviceReal> {
    /// Their order.
    pub order: usize,
    /// `[cells][n]`
    pub coefficients: DevicePointer<u8>,
    /// Of the harmonics that the operator needs.
    pub recurrences: &'a Buffer<T>,
    /// What Cartesian expansions have instead.
    pub cartesian: Option<&'a cartesian::Bodies>,
}

impl<T: DeviceReal> Far<T> {
    /// P2M, P2L, L2P or M2P, of the given cells.
    pub(super) fn bodies(
        &self,
        gpu: &Gpu,
        place: &Place,
        stage: AtBodies,
        work: (DevicePointer<u32>, usize),
    ) -> Result<(), Error> {
        let (factors, coefficients) = match stage {
            AtBodies::P2M => (0, &self.multipoles),
            AtBodies::P2L => (1, &self.locals),
            AtBodies::L2P => (0, &self.locals),
            AtBodies::M2P => (2, &self.multipoles),
        };
        let series = Series {
            order: self.operators.basis.order,
            coefficients: coefficients.pointer().cast(),
            recurrences: &self.operators.recurrences[factors],
            cartesian: self.operators.cartesian.as_ref(),
        };
        self.at_bodies(gpu, place, stage, work, series)
    }

    /// The same with other expansions than those of the sum.
    pub fn at_bodies(
        &self,
        gpu: &Gpu,
        place: &Place,
        stage: AtBodies,
        (work, count): (DevicePointer<u32>, usize),
        Series { order, coefficients, recurrences, cartesian }: Series<T>,
    ) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let (name, list) = match stage {
            AtBodies::P2M => ("p2m", place.p2l),
            AtBodies::P2L => ("p2l", place.p2l),
            AtBodies::L2P => ("l2p", place.m2p),
            AtBodies::M2P => ("m2p", place.m2p),
        };
        if let Some(cartesian) = cartesian {
            return cartesian.launch::<T>(gpu, place, stage, list, (work, count), coefficients);
        }
        let n = (order + 1) * (order + 1);
        let window = WINDOW.max(2 * order).min(n);
        // What a warp keeps in shared memory: harmonics of its bodies, or four weights of each harmonic.
        let reals = match stage {
            AtBodies::P2M | AtBodies::P2L => window * ROW,
            AtBodies::L2P => 4 * n,
            AtBodies::M2P => 4 * (order + 2) * (order + 2),
        };
        let each = reals * size_of::<T>();
        let warps = (SHARED / each).min(WARPS);
        assert!(warps > 0, "what a warp needs of any order fits");
        let view = FarView {
            targets: place.targets,
            sources: place.sources,
            list,
            target_bodies: place.target_bodies,
            source_bodies: place.source_bodies,
            work,
            factors: recurrences.pointer().cast(),
            coefficients,
            sums: place.sums,
            sides: place.sides,
            count: count as u32,
            order: order as u32,
            window: window as u32,
        };
        let blocks = count.div_ceil(warps) as u32;
        let name = format!("{name}_spherical_{}", T::NAME);
        // SAFETY: the arrays have the lengths that the trees and the view say.
        unsafe { gpu.kernels().launch_with(gpu.stream(), &name, blocks, (32 * warps as u32, warps * each), &view) }
    }
}
