//! The stages of a plan in the plane on the device: those of fmm-core's `planar/execute.rs`.
//!
//! In single precision are direct sums, where they gain by it, which take most of the time; what else there is, and every sum of their sums, stays
//! in double.

use cust::memory::DevicePointer;
use fmm_core::planar::series::{Series, binomial};
use fmm_core::planar::{Blob, Kernel, Pyramid, Request};
use fmm_core::{Error, Stage};

use super::pyramid::DevicePyramid;
use super::rows::{DeviceLists, DeviceRows};
use super::view::{M2L_WARPS, PAIR_BOXES, PlaneView, THREADS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::kernels::SHARED;

/// Lanes of a box in P2M and P2L, and in M2M and L2L.
const POINT_LANES: usize = 8;
const SHIFT_LANES: usize = 16;

/// Threads of a block of P2P.
const PAIR_THREADS: usize = 128;

/// Terms that M2L on the tensor cores can have.
const PAIRS_TERMS: usize = 32;

/// The kernel that has M2L of so many terms on the tensor cores.
pub fn pairs_name(kernel: Kernel, terms: usize) -> String {
    debug_assert!(terms <= PAIRS_TERMS);
    format!("planar_pairs_{}_{}", kernel.name(), terms.next_multiple_of(4).max(8))
}

/// The coefficients of the shifts, and the expansions.
#[derive(Default)]
pub struct Far {
    basis: Option<(Kernel, usize)>,
    terms: usize,
    weights: Buffer<f64>,
    m2m: Buffer<f64>,
    m2l: Buffer<f64>,
    l2l: Buffer<f64>,
    multipoles: Buffer<f64>,
    locals: Buffer<f64>,
    /// Points of pairs in single precision.
    single: Buffer<f32>,
}

/// Pyramids and lists of a sum, and where its result goes.
pub struct Place<'a> {
    /// Of the targets.
    pub targets: &'a DevicePyramid,
    /// Of the sources; perhaps the same.
    pub sources: &'a DevicePyramid,
    /// Who meets whom.
    pub lists: &'a DeviceLists,
    /// Whether M2L and direct sums are in single precision.
    pub single: bool,
    /// `[targets]`, for the log kernel.
    pub potential: DevicePointer<f64>,
    /// `[targets][2]`
    pub g: DevicePointer<f64>,
}

/// The name of a blob in those of kernels.
pub fn blob_name(blob: Blob) -> &'static str {
    match blob {
        Blob::Point => "point",
        Blob::Algebraic(_) => "algebraic",
        Blob::Gaussian(_) => "gaussian",
    }
}

impl Far {
    /// Makes ready for expansions of order `p`.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn ready(&mut self, gpu: &Gpu, kernel: Kernel, p: usize, place: &Place) -> Result<(), Error> {
        if self.basis != Some((kernel, p)) {
            let series = Series::<f64>::new(kernel, p);
            let n = series.terms;
            let log = kernel == Kernel::Log;
            // Coefficients of Σ_k matrix_lk δ^(l−k) a_k, and of Σ_k matrix_lk δ^(k−l) b_k.
            let mut m2m = vec![0.0; n * n];
            let mut l2l = vec![0.0; n * n];
            for l in 0..n {
                for k in 0..=l {
                    m2m[l * n + k] = match k {
                        _ if !log => binomial(l, k),
                        // The logarithm's own terms.
                        0 => series.weights[l],
                        _ => binomial(l - 1, k - 1),
                    };
                    l2l[k * n + l] = binomial(l, k);
                }
            }
            self.weights.upload(&series.weights)?;
            self.m2l.upload(&series.matrix)?;
            self.m2m.upload(&m2m)?;
            self.l2l.upload(&l2l)?;
            gpu.settle()?;
            (self.basis, self.terms) = (Some((kernel, p)), n);
        }
        self.single.resize(if place.single { 4 * place.sources.bodies.len() } else { 0 })?;
        self.multipoles.resize(2 * self.terms * place.sources.boxes())?;
        self.locals.resize(2 * self.terms * place.targets.boxes())
    }

    /// Queues one stage of a plan that is made and whose points are gathered.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses.
    pub fn stage(&self, gpu: &Gpu, stage: Stage, request: &Request, place: &Place) -> Result<(), Error> {
        let Place { targets, sources, lists, .. } = place;
        let log = request.kernel == Kernel::Log;
        let none = DeviceRows::default();
        let [m2p, p2l, p2p] = &lists.leaves;
        let (rows, matrix) = match stage {
            Stage::M2M => (&none, self.m2m.pointer()),
            Stage::M2L => (&lists.m2l, self.m2l.pointer()),
            Stage::L2L => (&none, self.l2l.pointer()),
            Stage::P2L => (p2l, DevicePointer::null()),
            Stage::M2P => (m2p, DevicePointer::null()),
            Stage::P2P => (p2p, DevicePointer::null()),
            _ => (&none, DevicePointer::null()),
        };
        let leaves = Pyramid::first(targets.levels())..Pyramid::first(targets.levels() + 1);
        let view = PlaneView {
            targets: targets.view(),
            sources: sources.view(),
            at: targets.bodies.pointer(),
            bodies: sources.bodies.pointer(),
            start: rows.start.pointer(),
            source: rows.source.pointer(),
            matrix,
            weights: self.weights.pointer(),
            multipoles: self.multipoles.pointer(),
            locals: self.locals.pointer(),
            potential: place.potential,
            g: place.g,
            single_points: self.single.pointer(),
            core: request.blob.length(),
            at_center: request.blob.at_center_in(request.global),
            global: request.global,
            terms: self.terms as u32,
            first: leaves.start as u32,
            count: leaves.len() as u32,
            log: u32::from(log),
            same: u32::from(!request.apart),
        };
        let points = targets.bodies.len();
        // SAFETY: all arrays have the lengths that the view says.
        let launch = |name: &str, blocks: usize, (threads, shared): (usize, usize), view: &PlaneView| unsafe {
            gpu.kernels().launch_with(gpu.stream(), name, blocks as u32, (threads as u32, shared), view)
        };
        let plain = (THREADS, 0);
        match stage {
            Stage::P2M => launch("planar_p2m", leaves.len().div_ceil(THREADS / POINT_LANES), plain, &view),
            // Nothing to do costs no launch.
            Stage::P2L if p2l.source.is_empty() => Ok(()),
            Stage::M2P if m2p.source.is_empty() => Ok(()),
            Stage::P2L => launch("planar_p2l", leaves.len().div_ceil(THREADS / POINT_LANES), plain, &view),
            Stage::M2M => (0..sources.levels()).rev().try_for_each(|level| {
                let (first, count) = level_of(level);
                let view = PlaneView { first, count, ..view };
                launch("planar_m2m", (count as usize).div_ceil(THREADS / SHIFT_LANES), plain, &view)
            }),
            Stage::L2L => (1..=targets.levels()).try_for_each(|level| {
                let (first, count) = level_of(level);
                let view = PlaneView { first, count, ..view };
                launch("planar_l2l", (count as usize).div_ceil(THREADS / SHIFT_LANES), plain, &view)
            }),
            Stage::M2L => {
                let view = PlaneView { first: 0, count: targets.boxes() as u32, ..view };
                if self.terms <= PAIRS_TERMS {
                    let (name, boxes) = (pairs_name(request.kernel, self.terms), M2L_WARPS * PAIR_BOXES);
                    return launch(&name, targets.boxes().div_ceil(boxes), (32 * M2L_WARPS, 0), &view);
                }
                let shared = 8 * self.terms * self.terms;
                debug_assert!(shared <= SHARED);
                launch("planar_m2l_64", targets.boxes().div_ceil(THREADS / 32), (THREADS, shared), &view)
            }
            Stage::L2P => launch("planar_l2p", points.div_ceil(THREADS), plain, &view),
            Stage::M2P => launch("planar_m2p", points.div_ceil(THREADS), plain, &view),
            Stage::P2P => {
                let pairs = match (log, request.complex) {
                    (true, _) => "log",
                    (false, false) => "real",
                    _ => "complex",
                };
                // Gaussian cores take functions that there are in double precision alone; for the reciprocal of a pair of points it is as fast.
                let single =
                    place.single && matches!((log, request.blob), (true, Blob::Point) | (_, Blob::Algebraic(_)));
                if single && !sources.bodies.is_empty() {
                    launch("planar_points_single", sources.bodies.len().div_ceil(THREADS), plain, &view)?;
                }
                let precision = if single { "single_" } else { "" };
                let name = format!("planar_p2p_{precision}{pairs}_{}", blob_name(request.blob));
                launch(&name, points.div_ceil(PAIR_THREADS), (PAIR_THREADS, 0), &view)
            }
            other => unreachable!("{} is no stage of a sum", other.name()),
        }
    }
}

/// First box and number of boxes of a level.
fn level_of(level: usize) -> (u32, u32) {
    (Pyramid::first(level) as u32, 1 << (2 * level))
}
