//! M2L in the plane in the versions that Cruz, Layton & Barba go through, in single and double precision: what `nbody
//! bench m2l2d` compares with that of the program.
//!
//! Each translation is written by itself, and a kernel of its own adds up those of each target, the paper's
//! reduction. All boxes have the same unit of length, so that an entry of the matrix is the paper's: (−1)^n C(n + k,
//! k) t^(−n−k−1), with t from the source to the target.

pub mod view;

use std::time::Duration;

use fmm_core::planar::workload::{Geometry, coefficient};
use fmm_core::{Error, Precision};

use self::view::{DIAGONAL_THREADS, ROW_ROUNDS, ROW_THREADS, VersionsView};
use crate::buffer::Buffer;
use crate::kernels::SHARED;
use crate::microbenchmarks::timed;
use crate::mma_layout::DeviceReal;
use crate::occupancy::{Occupancy, occupancy};
use crate::{DeviceWork, Gpu};

/// A version of the kernel, in the order of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaperVersion {
    /// A thread a translation, along the diagonals of the matrix, whose entries share a power of 1/t; results in
    /// shared memory.
    Diagonals,
    /// A thread a row of a translation, with loops of any length; coefficients from memory (Listing 6).
    Rows,
    /// The same with the coefficients in shared memory.
    Shared,
    /// The same with all loops unrolled (Listing 7).
    Unrolled,
    /// The same, with the next coefficients on their way from memory meanwhile.
    Overlapped,
}

impl PaperVersion {
    /// All.
    pub const ALL: [PaperVersion; 5] = [
        PaperVersion::Diagonals,
        PaperVersion::Rows,
        PaperVersion::Shared,
        PaperVersion::Unrolled,
        PaperVersion::Overlapped,
    ];

    fn kernel(self) -> &'static str {
        match self {
            PaperVersion::Diagonals => "diagonals",
            PaperVersion::Rows => "rows",
            PaperVersion::Shared => "shared",
            PaperVersion::Unrolled => "unrolled",
            PaperVersion::Overlapped => "overlapped",
        }
    }

    /// Whether the kernel is compiled for a number of terms.
    fn has_terms(self) -> bool {
        matches!(self, PaperVersion::Unrolled | PaperVersion::Overlapped)
    }
}

/// The rows of the last boxes of a pyramid with the harmonic kernel.
pub struct PaperTranslations<T: DeviceReal> {
    version: PaperVersion,
    order: usize,
    units: usize,
    targets: usize,
    multipoles: Buffer<T>,
    way: Buffer<T>,
    source: Buffer<u32>,
    start: Buffer<u32>,
    products: Buffer<T>,
    locals: Buffer<T>,
}

impl<T: DeviceReal> PaperTranslations<T> {
    /// At least so many translations of series with `order` terms, up to 16: those of
    /// [`Translations`](super::workload::Translations), of the same multipoles.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more terms, [`Error::Device`] where memory lacks or the device fails.
    pub fn new(gpu: &Gpu, version: PaperVersion, order: usize, translations: usize) -> Result<Self, Error> {
        if !(1..=16).contains(&order) {
            return Err(Error::Unsupported(format!("translations of {order} terms: the device times 1 to 16")));
        }
        gpu.enter()?;
        let Geometry { tree, rows, first } = Geometry::new(translations);
        let (begin, end) = (rows.start[first], rows.start[tree.len()]);
        let units = (end - begin) as usize;
        // That of all boxes.
        let unit = tree.exponent[0];
        let multipoles: Vec<T> = (0..2 * order * tree.len()).map(|i| T::from_f64(coefficient(i))).collect();
        let mut way = Vec::with_capacity(2 * units);
        for target in first..tree.len() {
            for &source in rows.row(target) {
                let between = |d: usize| (tree.center[d][target] - tree.center[d][source as usize]) * 2f64.powi(-unit);
                way.extend([0, 1].map(|d| T::from_f64(between(d))));
            }
        }
        let start: Vec<u32> = rows.start[first..=tree.len()].iter().map(|&s| (s - begin) as u32).collect();
        let mut all = PaperTranslations {
            version,
            order,
            units,
            targets: tree.len() - first,
            multipoles: Buffer::new(),
            way: Buffer::new(),
            source: Buffer::new(),
            start: Buffer::new(),
            products: Buffer::new(),
            locals: Buffer::new(),
        };
        all.multipoles.upload(&multipoles)?;
        all.way.upload(&way)?;
        all.source.upload(&rows.items[begin as usize..end as usize])?;
        all.start.upload(&start)?;
        all.products.resize(2 * order * units)?;
        all.locals.resize(2 * order * (tree.len() - first))?;
        gpu.settle()?;
        Ok(all)
    }

    /// The sums over each target's list, two numbers a term: `[targets][order][2]`.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn locals(&self, gpu: &Gpu) -> Result<Vec<f64>, Error> {
        self.reduce(gpu)?;
        Ok(self.locals.download()?.into_iter().map(T::to_f64).collect())
    }

    fn view(&self) -> VersionsView {
        VersionsView {
            multipoles: self.multipoles.pointer().cast(),
            way: self.way.pointer().cast(),
            source: self.source.pointer(),
            start: self.start.pointer(),
            products: self.products.pointer().cast(),
            locals: self.locals.pointer().cast(),
            terms: self.order as u32,
            count: self.units as u32,
            targets: self.targets as u32,
        }
    }

    /// Terms that the kernel is compiled for.
    fn compiled(&self) -> usize {
        match self.order {
            _ if !self.version.has_terms() => self.order,
            ..=8 => 8,
            9..=12 => 12,
            _ => 16,
        }
    }

    /// The kernel, its blocks, threads of a block, and bytes of shared memory.
    fn launch(&self) -> (String, usize, usize, usize) {
        let (terms, kernel) = (self.compiled(), self.version.kernel());
        let end = if self.version.has_terms() { format!("{terms}_{}", T::NAME) } else { T::NAME.to_string() };
        let name = format!("planar_version_{kernel}_{end}");
        let together = ROW_THREADS / terms;
        match self.version {
            PaperVersion::Diagonals => {
                let shared = 2 * size_of::<T>() * self.order * (DIAGONAL_THREADS + 1);
                (name, self.units.div_ceil(DIAGONAL_THREADS), DIAGONAL_THREADS, shared)
            }
            PaperVersion::Overlapped => (name, self.units.div_ceil(together * ROW_ROUNDS), ROW_THREADS, 0),
            _ => (name, self.units.div_ceil(together), ROW_THREADS, 0),
        }
    }

    fn reduce(&self, gpu: &Gpu) -> Result<Duration, Error> {
        let name = format!("planar_version_reduced_{}", T::NAME);
        let (view, blocks) = (self.view(), (self.targets * self.order).div_ceil(ROW_THREADS));
        // SAFETY: all arrays have the lengths that the view says.
        timed(gpu, || unsafe { gpu.kernels().launch(gpu.stream(), &name, blocks as u32, ROW_THREADS as u32, &view) })
    }
}

impl<T: DeviceReal> DeviceWork for PaperTranslations<T> {
    fn units(&self) -> usize {
        self.units
    }

    /// As the text of each version has them: products of complex numbers 6, sums 2, quotients 1. The unrolled
    /// versions are those of as many terms as they are compiled for.
    fn operations(&self) -> f64 {
        let p = self.compiled() as f64;
        let inverse = 6.0;
        match self.version {
            // An entry: product with the power, sum times binomial, next binomial.
            PaperVersion::Diagonals => 12.0 * p * p + 6.0 * (2.0 * p - 1.0) + 2.0 * (p - 1.0) + inverse,
            // An entry in addition: the next power; row n begins with n products.
            PaperVersion::Rows | PaperVersion::Shared => 18.0 * p * p + 3.0 * p * (p - 1.0) + inverse * p,
            PaperVersion::Unrolled | PaperVersion::Overlapped => 18.0 * p * p + 6.0 * p * (p - 1.0) + inverse * p,
        }
    }

    fn precision(&self) -> Precision {
        if size_of::<T>() == 4 { Precision::F32 } else { Precision::F64 }
    }

    fn run(&self, gpu: &Gpu) -> Result<Duration, Error> {
        let ((name, blocks, threads, shared), view) = (self.launch(), self.view());
        debug_assert!(shared <= SHARED);
        timed(gpu, || {
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch_with(gpu.stream(), &name, blocks as u32, (threads as u32, shared), &view) }
        })
    }

    /// The sum over the list of each target.
    fn parts(&self, gpu: &Gpu) -> Result<Vec<(&'static str, Duration)>, Error> {
        Ok(vec![("reduction", self.reduce(gpu)?)])
    }

    fn occupancy(&self, gpu: &Gpu) -> Result<Option<Occupancy>, Error> {
        let (name, _, threads, shared) = self.launch();
        occupancy(gpu, &name, threads, shared).map(Some)
    }
}
