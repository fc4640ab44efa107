//! Translations in the plane alone, on the device: what `nbody bench m2l2d` times (Cruz, Layton & Barba, Tables 2 and 3).

use std::time::Duration;

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::planar::Kernel;
use fmm_core::planar::series::Series;
use fmm_core::planar::workload::{Geometry, coefficient};

use super::far::pairs_name;
use super::pyramid::DevicePyramid;
use super::rows::DeviceRows;
use super::view::{M2L_WARPS, PAIR_BOXES, PlaneView, THREAD_BOXES, THREADS};
use crate::buffer::Buffer;
use crate::kernels::SHARED;
use crate::microbenchmarks::timed;
use crate::occupancy::{Occupancy, occupancy};
use crate::{DeviceWork, Gpu};

/// Who does a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The tensor cores, as in the program.
    Tensor,
    /// A thread each.
    Thread,
    /// Threads that have a term of the result each.
    Row,
}

/// The rows of the last boxes of a pyramid with the harmonic kernel.
pub struct Translations {
    units: usize,
    order: usize,
    version: Version,
    first: usize,
    tree: DevicePyramid,
    rows: DeviceRows,
    matrix: Buffer<f64>,
    multipoles: Buffer<f64>,
    locals: Buffer<f64>,
}

impl Translations {
    /// At least so many translations of series with `order` terms, up to 16.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more terms, [`Error::Device`] where memory lacks or the device fails.
    pub fn new(gpu: &Gpu, version: Version, order: usize, translations: usize) -> Result<Self, Error> {
        if !(1..=16).contains(&order) {
            return Err(Error::Unsupported(format!("translations of {order} terms: the device times 1 to 16")));
        }
        gpu.enter()?;
        let geometry = Geometry::new(translations);
        let (mut tree, mut rows) = (DevicePyramid::default(), DeviceRows::default());
        tree.take(&geometry.tree)?;
        rows.start.upload(&geometry.rows.start)?;
        rows.source.upload(&geometry.rows.items)?;
        let series = Series::<f64>::new(Kernel::Harmonic, order);
        let mut matrix = Buffer::new();
        matrix.upload(&series.matrix)?;
        let numbers = 2 * order * geometry.tree.len();
        let mut multipoles = Buffer::new();
        multipoles.upload(&(0..numbers).map(coefficient).collect::<Vec<_>>())?;
        let mut locals = Buffer::new();
        locals.resize(numbers)?;
        locals.fill(gpu.stream(), 0)?;
        gpu.settle()?;
        let (units, first) = (geometry.units(), geometry.first);
        Ok(Translations { units, order, version, first, tree, rows, matrix, multipoles, locals })
    }

    /// The results, two numbers a term.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn locals(&self) -> Result<Vec<f64>, Error> {
        self.locals.download()
    }

    /// The kernel, its blocks, threads of a block, and bytes of shared memory.
    fn launch(&self) -> (String, usize, usize, usize) {
        let count = self.tree.boxes() - self.first;
        match (self.version, self.order) {
            (Version::Row, p) => ("planar_m2l_16".into(), count.div_ceil(THREADS / 16), THREADS, 8 * p * p),
            (Version::Thread, p) => {
                let terms = if p <= 8 { 8 } else { p.next_multiple_of(4) };
                (format!("planar_threads_{terms}"), count.div_ceil(M2L_WARPS * THREAD_BOXES), 32 * M2L_WARPS, 0)
            }
            (Version::Tensor, p) => {
                (pairs_name(Kernel::Harmonic, p), count.div_ceil(M2L_WARPS * PAIR_BOXES), 32 * M2L_WARPS, 0)
            }
        }
    }
}

impl DeviceWork for Translations {
    fn units(&self) -> usize {
        self.units
    }

    /// The product with a real matrix, 4 p²; p powers each of two ratios and products with them, 6 operations each; p sums of 2.
    fn operations(&self) -> f64 {
        let p = self.order as f64;
        4.0 * p * p + 26.0 * p
    }

    fn run(&self, gpu: &Gpu) -> Result<Duration, Error> {
        let boxes = self.tree.boxes();
        let count = boxes - self.first;
        let view = PlaneView {
            targets: self.tree.view(),
            sources: self.tree.view(),
            at: DevicePointer::null(),
            bodies: DevicePointer::null(),
            start: self.rows.start.pointer(),
            source: self.rows.source.pointer(),
            matrix: self.matrix.pointer(),
            weights: DevicePointer::null(),
            multipoles: self.multipoles.pointer(),
            locals: self.locals.pointer(),
            potential: DevicePointer::null(),
            g: DevicePointer::null(),
            single_points: DevicePointer::null(),
            core: 0.0,
            at_center: 0.0,
            global: 0,
            terms: self.order as u32,
            first: self.first as u32,
            count: count as u32,
            log: 0,
            same: 1,
        };
        let (name, blocks, threads, shared) = self.launch();
        debug_assert!(shared <= SHARED);
        timed(gpu, || {
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch_with(gpu.stream(), &name, blocks as u32, (threads as u32, shared), &view) }
        })
    }

    fn occupancy(&self, gpu: &Gpu) -> Result<Option<Occupancy>, Error> {
        let (name, _, threads, shared) = self.launch();
        occupancy(gpu, &name, threads, shared).map(Some)
    }
}
