//! Evaluations of series at many points, on the device: what `nbody bench gauss` times (Cruz, Layton & Barba, Tables 4 and 5).

use std::time::Duration;

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::gauss::series::Basis;

use super::place::{Place, launch_tasks};
use super::series::spread_shared;
use super::view::{GaussPoint, GaussView, SPREAD_POINTS, SPREAD_THREADS};
use crate::buffer::Buffer;
use crate::microbenchmarks::timed;
use crate::{DeviceWork, Gpu};

/// Points of a box.
const BOX: usize = 2 * SPREAD_THREADS * SPREAD_POINTS;

/// Series whose coefficients are used in turn.
const SERIES: usize = 256;

/// Evaluations in the plane.
pub struct Evaluations {
    basis: Basis,
    order: usize,
    points: Buffer<GaussPoint>,
    center: Buffer<GaussPoint>,
    tasks: Buffer<[u32; 4]>,
    start: Buffer<u64>,
    list: Buffer<[u32; 2]>,
    series: Buffer<f64>,
    out: Buffer<f64>,
}

impl Evaluations {
    /// Of series with `order` terms an axis, at `points` points, up to whole boxes. Series of Hermite functions are the polynomials that they
    /// become before they are evaluated, up to 16 terms.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more terms, [`Error::Device`] where memory lacks or a copy fails.
    pub fn new(gpu: &Gpu, basis: Basis, order: usize, points: usize) -> Result<Self, Error> {
        if !(1..=16).contains(&order) {
            return Err(Error::Unsupported(format!("series of {order} terms: the device times 1 to 16")));
        }
        gpu.enter()?;
        let number = |i: usize| (i as f64 * 0.754_877_666_246_692_8 + 0.3).fract() - 0.5;
        let boxes = points.div_ceil(BOX);
        // Hermite series serve points some boxes away.
        let center = if basis == Basis::Hermite { [2.0, -1.0, 0.0] } else { [0.0; 3] };
        let mut all = Evaluations {
            basis,
            order,
            points: Buffer::new(),
            center: Buffer::new(),
            tasks: Buffer::new(),
            start: Buffer::new(),
            list: Buffer::new(),
            series: Buffer::new(),
            out: Buffer::new(),
        };
        let place = |i: usize| GaussPoint { x: [number(2 * i), number(2 * i + 1), 0.0], q: 0.0 };
        all.points.upload(&(0..boxes * BOX).map(place).collect::<Vec<_>>())?;
        all.center.upload(&vec![GaussPoint { x: center, q: 0.0 }; boxes])?;
        // Blocks have twice as many points for Taylor series.
        let block = if basis == Basis::Hermite { BOX / 2 } else { BOX };
        let task = |i: usize| [i * block / BOX % SERIES, i * block / BOX, i * block, (i + 1) * block].map(|n| n as u32);
        all.tasks.upload(&(0..boxes * BOX / block).map(task).collect::<Vec<_>>())?;
        all.start.upload(&(0..=boxes as u64).collect::<Vec<_>>())?;
        all.list.upload(&(0..boxes).map(|i| [i % SERIES, i].map(|n| n as u32)).collect::<Vec<_>>())?;
        all.series.upload(&(0..SERIES * order * order).map(number).collect::<Vec<_>>())?;
        all.out.resize(boxes * BOX)?;
        all.out.fill(gpu.stream(), 0)?;
        gpu.settle()?;
        gpu.finish()?;
        Ok(all)
    }

    /// The sums of the last run, and what each should be.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn check(&self) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let (points, series, center) = (self.points.download()?, self.series.download()?, self.center.download()?);
        let value = |(i, point): (usize, &GaussPoint)| {
            let c = &series[i / BOX % SERIES * self.order * self.order..][..self.order * self.order];
            let z: [f64; 2] = std::array::from_fn(|d| point.x[d] - center[0].x[d]);
            let row = |row: &[f64]| row.iter().rev().fold(0.0, |sum, c| sum * z[1] + c);
            let sum = c.chunks_exact(self.order).rev().fold(0.0, |sum, c| sum * z[0] + row(c));
            if self.basis == Basis::Hermite { sum * (-0.5 * (z[0] * z[0] + z[1] * z[1])).exp() } else { sum }
        };
        Ok((self.out.download()?, points.iter().enumerate().map(value).collect()))
    }
}

impl DeviceWork for Evaluations {
    fn units(&self) -> usize {
        self.out.len()
    }

    /// Horner's rule along both axes, the place of a point and its sum; for Hermite functions the Gaussian too, its exponential as one.
    fn operations(&self) -> f64 {
        let p = self.order as f64;
        2.0 * p * (p + 1.0) + 5.0 + if self.basis == Basis::Hermite { 6.0 } else { 0.0 }
    }

    fn run(&self, gpu: &Gpu) -> Result<Duration, Error> {
        let place = Place {
            sources: DevicePointer::null(),
            source_centers: DevicePointer::null(),
            targets: self.points.pointer(),
            target_centers: self.center.pointer(),
            out: self.out.pointer(),
            values: 1,
            axes: 2,
            scale: 1.0,
            strength: 1.0,
        };
        let view = GaussView {
            points: place.targets,
            center: place.target_centers,
            other: place.target_centers,
            tasks: self.tasks.pointer(),
            start: self.start.pointer(),
            list: self.list.pointer(),
            series: self.series.pointer(),
            order: self.order as u32,
            terms: (self.order * self.order) as u32,
            fresh: 1,
            ..place.view()
        };
        let name = if self.basis == Basis::Hermite { "gauss_m2p_full" } else { "gauss_l2p_vast" };
        timed(gpu, || launch_tasks(gpu, name, self.tasks.len(), SPREAD_THREADS, spread_shared(self.order, 2), &view))
    }
}
