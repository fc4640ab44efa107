//! Evaluations of Hermite series in single precision, on the device: what `nbody bench gauss` times next to those of
//! [`Evaluations`](super::workload::Evaluations).

pub mod view;

use std::time::Duration;

use fmm_core::{Error, Precision};

use self::view::{MOST_TERMS, SERIES_POINTS, SERIES_THREADS, SeriesView};
use crate::buffer::Buffer;
use crate::microbenchmarks::timed;
use crate::occupancy::{Occupancy, occupancy};
use crate::{DeviceWork, Gpu};

/// Points of a block, which have one series.
const BLOCK: usize = SERIES_THREADS * SERIES_POINTS;

/// Series whose coefficients are used in turn.
const SERIES: usize = 256;

/// Center of the series: they serve points some boxes away.
const CENTER: [f32; 2] = [2.0, -1.0];

/// Evaluations in the plane.
pub struct SingleEvaluations {
    order: usize,
    points: Buffer<f32>,
    series: Buffer<f32>,
    out: Buffer<f32>,
}

impl SingleEvaluations {
    /// Of series with `order` terms an axis, 1 to 16, at `points` points, up to whole blocks of 512. The series are
    /// the polynomials, times a Gaussian, that they become before they are evaluated.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other orders, [`Error::Device`] where memory lacks or a copy fails.
    pub fn new(gpu: &Gpu, order: usize, points: usize) -> Result<Self, Error> {
        if !(1..=MOST_TERMS).contains(&order) {
            return Err(Error::Unsupported(format!("series of {order} terms: the device times 1 to 16")));
        }
        gpu.enter()?;
        let number = |i: usize| ((i as f64 * 0.754_877_666_246_692_8 + 0.3).fract() - 0.5) as f32;
        let points = points.next_multiple_of(BLOCK);
        let (mut at, mut series, mut out) = (Buffer::new(), Buffer::new(), Buffer::new());
        at.upload(&(0..2 * points).map(number).collect::<Vec<_>>())?;
        series.upload(&(0..SERIES * order * order).map(number).collect::<Vec<_>>())?;
        out.resize(points)?;
        gpu.settle()?;
        Ok(SingleEvaluations { order, points: at, series, out })
    }

    /// For each point the value of the last run, what it should be in double precision, and the sum of the sizes of
    /// the terms that it is made of.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn check(&self) -> Result<Vec<[f64; 3]>, Error> {
        let (points, series, out) = (self.points.download()?, self.series.download()?, self.out.download()?);
        let value = |(i, found): (usize, &f32)| {
            let c = &series[i / BLOCK % SERIES * self.order * self.order..][..self.order * self.order];
            let z: [f64; 2] = std::array::from_fn(|d| f64::from(points[2 * i + d] - CENTER[d]));
            let row = |row: &[f32]| row.iter().rev().fold(0.0, |sum, &c| sum * z[1] + f64::from(c));
            let size = |row: &[f32]| row.iter().rev().fold(0.0, |sum, &c| sum * z[1].abs() + f64::from(c.abs()));
            let sum = c.chunks_exact(self.order).rev().fold(0.0, |sum, c| sum * z[0] + row(c));
            let sizes = c.chunks_exact(self.order).rev().fold(0.0, |sum, c| sum * z[0].abs() + size(c));
            let gaussian = (-0.5 * (z[0] * z[0] + z[1] * z[1])).exp();
            [f64::from(*found), gaussian * sum, gaussian * sizes]
        };
        Ok(out.iter().enumerate().map(value).collect())
    }

    fn kernel(&self) -> String {
        let terms = if [5, 9, 12].contains(&self.order) { self.order } else { 0 };
        format!("gauss_single_{terms}")
    }
}

impl DeviceWork for SingleEvaluations {
    fn units(&self) -> usize {
        self.out.len()
    }

    /// Horner's rule along both axes, the place of a point, and the Gaussian, its exponential as one.
    fn operations(&self) -> f64 {
        let p = self.order as f64;
        2.0 * p * (p + 1.0) + 8.0
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn run(&self, gpu: &Gpu) -> Result<Duration, Error> {
        let view = SeriesView {
            points: self.points.pointer(),
            series: self.series.pointer(),
            out: self.out.pointer(),
            center: CENTER,
            order: self.order as u32,
            series_count: SERIES as u32,
        };
        let (name, blocks) = (self.kernel(), self.out.len() / BLOCK);
        // SAFETY: all arrays have the lengths that the view says, the points whole blocks.
        timed(gpu, || unsafe { gpu.kernels().launch(gpu.stream(), &name, blocks as u32, SERIES_THREADS as u32, &view) })
    }

    fn occupancy(&self, gpu: &Gpu) -> Result<Option<Occupancy>, Error> {
        occupancy(gpu, &self.kernel(), SERIES_THREADS, 0).map(Some)
    }
}
