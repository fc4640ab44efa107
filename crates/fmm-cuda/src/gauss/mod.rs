//! Sums of Gaussians on the device: the counterpart of [`fmm_core::gauss`], with the points and all
//! work on each of them on the device.
//!
//! fmm-core makes the plan. For it the device sorts the points into the boxes of every lattice that
//! is tried, and returns the number and the count of each box that holds points; the lists of boxes
//! go back to the device. Series are in double precision throughout. Pairs are in single precision
//! where the tolerance allows it for any distribution of points.

mod boxes;
mod near;
mod place;
mod policy;
mod polynomials;
mod series;
pub mod single;
pub mod view;
pub mod workload;

use fmm_core::gauss::boxes::{Lattice, Occupied};
use fmm_core::gauss::plan::PointStats;
use fmm_core::gauss::{self, Axes, Dimension, Evaluation, Plan, Routes, Settings};
use fmm_core::{Error, Precision, Stage, StageTimes};
use rayon::prelude::*;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::direct::fits;
use crate::geometry::{Work, launch};
use boxes::{DeviceBoxes, Given, Scratch};
use near::Near;
use place::Place;
use series::Series;
use view::{GaussReturnView, THREADS};

/// What is to be summed.
#[derive(Clone, Copy)]
pub struct Problem<'a, const D: usize> {
    /// How.
    pub settings: &'a Settings,
    /// Of pairs: single where the tolerance allows it, unless it is said.
    pub precision: Precision,
    /// Sources.
    pub sources: &'a [[f64; D]],
    /// Columns of their strengths.
    pub strengths: &'a [&'a [f64]],
    /// Targets; the sources if absent.
    pub targets: Option<&'a [[f64; D]]>,
}

/// The sum that `problem` asks for, as [`gauss::evaluate`] defines it, done on the device, and the precision of its pairs.
///
/// # Errors
/// Those of the sum on the CPU, [`Error::Unsupported`] where single precision does not keep the tolerance and for 2³¹ points,
/// [`Error::Device`] where memory lacks or the device fails.
pub fn evaluate<const D: usize>(
    gpu: &Gpu,
    problem: &Problem<D>,
    times: &mut StageTimes,
) -> Result<(Evaluation<D>, Precision), Error>
where
    Axes<D>: Dimension<D>,
{
    let mut transform = Transform::default();
    times.time_more(Stage::Tree, || transform.upload(gpu, problem))?;
    let (plan, precision) = transform.sum(gpu, problem, times)?;
    let (potential, field) = times.time_more(Stage::Output, || transform.download())?;
    let field = field.into_iter().map(|column| column.as_chunks::<D>().0.to_vec()).collect();
    Ok((Evaluation { potential, field, routes: Routes::of(&plan), choice: plan.choice }, precision))
}

/// A column of numbers for each column of strengths.
pub type Columns = Vec<Vec<f64>>;

/// Sums of Gaussians on the device, whose arrays are kept from one to the next.
#[derive(Default)]
pub struct Transform {
    positions: [Buffer<f64>; 2],
    strengths: Vec<Buffer<f64>>,
    /// See [`unit`].
    units: Vec<f64>,
    work: Work,
    scratch: Scratch,
    boxes: [DeviceBoxes; 2],
    series: Series,
    near: Near,
    out: Buffer<f64>,
    potential: Vec<Buffer<f64>>,
    field: Vec<Buffer<f64>>,
}

impl Transform {
    /// Copies points and strengths to the device.
    ///
    /// # Errors
    /// Those of [`gauss::check`], [`Error::Unsupported`] for more points than the device's numbers hold, [`Error::Device`] where memory lacks or
    /// a copy fails.
    pub fn upload<const D: usize>(&mut self, gpu: &Gpu, problem: &Problem<D>) -> Result<(), Error> {
        let Problem { settings, sources, strengths, targets, .. } = *problem;
        gauss::check(settings, sources, strengths, targets)?;
        let (n, m) = (sources.len(), targets.map_or(0, <[_]>::len));
        if n.max(m) >= 1 << 31 {
            return Err(Error::Unsupported(format!("{} points do not fit a GPU's sum; use device cpu", n.max(m))));
        }
        gpu.enter()?;
        let (columns, each) = (strengths.len(), if settings.gradient { 1 + D } else { 1 });
        let at = if targets.is_some() { m } else { n };
        let given = 8 * (D * (n + m) + columns * n);
        let result = 8 * each * at * (columns + 1);
        let bytes = given + DeviceBoxes::bytes(n) + DeviceBoxes::bytes(m) + result;
        let here = self.positions[0].capacity() + self.positions[1].capacity();
        fits(gpu, if here >= D * (n + m) { 0 } else { bytes }, &format!("{n} sources at {at} targets"))?;
        self.positions[0].upload(sources.as_flattened())?;
        self.positions[1].upload(targets.unwrap_or(&[]).as_flattened())?;
        self.strengths.resize_with(columns, Buffer::new);
        for (to, q) in self.strengths.iter_mut().zip(strengths) {
            to.upload(q)?;
        }
        self.units = strengths.iter().map(|q| unit(q)).collect();
        gpu.settle()
    }

    /// Sums what was uploaded; returns the plan, and the precision of pairs.
    ///
    /// # Errors
    /// Those of [`Plan::new`], [`Error::Unsupported`] where single precision does not keep the tolerance, [`Error::Device`] where memory lacks or
    /// the device fails.
    pub fn sum<const D: usize>(
        &mut self,
        gpu: &Gpu,
        problem: &Problem<D>,
        times: &mut StageTimes,
    ) -> Result<(Plan<D>, Precision), Error>
    where
        Axes<D>: Dimension<D>,
    {
        gpu.enter()?;
        let settings = problem.settings;
        let (mut plan, mut precision) = (None, Precision::F64);
        for &tried in policy::tried(settings, problem.precision)? {
            let mut stats = OnDevice { gpu, problem, transform: self, sorted: None };
            let found = Plan::new(settings, 1, &mut stats, &policy::cost_model(tried), times)?;
            if policy::keeps(settings, &found, tried) {
                let again = times.time_more(Stage::Tree, || stats.settle(&found.geometry.lattice));
                again?;
                (plan, precision) = (Some(found), tried);
                break;
            }
        }
        let plan = plan.ok_or_else(|| policy::refused(settings))?;
        self.execute(gpu, problem, &plan, precision, times)?;
        Ok((plan, precision))
    }

    /// Executes a plan, column by column.
    fn execute<const D: usize>(
        &mut self,
        gpu: &Gpu,
        problem: &Problem<D>,
        plan: &Plan<D>,
        precision: Precision,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let settings = problem.settings;
        let values = if settings.gradient { 1 + D } else { 1 };
        let apart = problem.targets.is_some();
        let targets = problem.targets.unwrap_or(problem.sources).len();
        times.time_more(Stage::Lists, || {
            let bytes = Series::bytes(plan) + Near::bytes(plan);
            fits(gpu, bytes, &format!("the series and lists of {} boxes", plan.source_tree().len()))?;
            self.series.take(plan, settings.sigma)?;
            self.near.take(plan)?;
            self.series.ready(plan)?;
            gpu.settle()
        })?;
        self.out.resize(values * targets)?;
        self.potential.resize_with(problem.strengths.len(), Buffer::new);
        self.field.resize_with(if settings.gradient { problem.strengths.len() } else { 0 }, Buffer::new);
        for c in 0..problem.strengths.len() {
            self.potential[c].resize(targets)?;
            if settings.gradient {
                self.field[c].resize(D * targets)?;
            }
            let mut clock = Clock::start(gpu)?;
            let [own, other] = &mut self.boxes;
            let given = Given { points: problem.sources, position: self.positions[0].pointer() };
            own.gather(gpu, given, &plan.geometry.lattice, self.strengths[c].pointer())?;
            if let Some(points) = problem.targets.filter(|_| c == 0) {
                let given = Given { points, position: self.positions[1].pointer() };
                other.gather(gpu, given, &plan.geometry.lattice, cust::memory::DevicePointer::null())?;
            }
            if !Series::writes_all(plan) {
                self.out.fill(gpu.stream(), 0)?;
            }
            clock.mark(Some(Stage::Tree))?;
            let [own, other] = &self.boxes;
            let at = if apart { other } else { own };
            let place = Place {
                sources: own.points.pointer(),
                source_centers: own.center.pointer(),
                targets: at.points.pointer(),
                target_centers: at.center.pointer(),
                out: self.out.pointer(),
                values,
                axes: D,
                scale: 1.0 / settings.sigma,
                strength: self.units[c],
            };
            if targets > 0 {
                self.series.sum(gpu, plan, &place, &mut clock)?;
                self.near.sum(gpu, &place, precision, plan.choice.terms)?;
                clock.mark(Some(Stage::P2P))?;
                let view = GaussReturnView {
                    out: self.out.pointer(),
                    order: at.order(),
                    potential: self.potential[c].pointer(),
                    field: self.field.get(c).map_or(cust::memory::DevicePointer::null(), Buffer::pointer),
                    scale: 1.0 / settings.sigma,
                    n: targets as u32,
                    axes: D as u32,
                };
                // SAFETY: all arrays have as many elements as there are targets.
                unsafe { launch(gpu, "gauss_return", targets.div_ceil(THREADS), THREADS, &view)? };
                clock.mark(Some(Stage::Output))?;
            }
            clock.read(times)?;
        }
        Ok(())
    }

    /// G and, if it was asked for, −∇G `[targets][axes]`, column by column in the caller's order.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn download(&self) -> Result<(Columns, Columns), Error> {
        let all = |columns: &[Buffer<f64>]| columns.iter().map(Buffer::download).collect::<Result<Vec<_>, Error>>();
        Ok((all(&self.potential)?, all(&self.field)?))
    }

    /// The indices of the sources in the order of the boxes of the last sum.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn order(&self) -> Result<Vec<u32>, Error> {
        self.boxes[0].download_order()
    }
}

/// A power of two that brings the largest strength near 1.
fn unit(strengths: &[f64]) -> f64 {
    let largest = strengths.par_iter().map(|q| q.abs()).reduce(|| 0.0, f64::max);
    let exponent = ((largest.to_bits() >> 52) as i32 - 1023).clamp(-1000, 1000);
    if largest > 0.0 { f64::from_bits(((1023 - exponent) as u64) << 52) } else { 1.0 }
}

/// Points on the device, counted there.
struct OnDevice<'a, const D: usize> {
    gpu: &'a Gpu,
    problem: &'a Problem<'a, D>,
    transform: &'a mut Transform,
    /// The lattice in whose boxes they are sorted.
    sorted: Option<Lattice<D>>,
}

impl<'a, const D: usize> OnDevice<'a, D> {
    fn given(&self, set: usize) -> Option<Given<'a, D>> {
        let problem = self.problem;
        let points = if set == 0 { Some(problem.sources) } else { problem.targets };
        points.map(|points| Given { points, position: self.transform.positions[set].pointer() })
    }

    /// Sorts the points by the boxes of a lattice, if they are not.
    fn settle(&mut self, lattice: &Lattice<D>) -> Result<(), Error> {
        if self.sorted.as_ref() != Some(lattice) {
            self.count(lattice)?;
        }
        Ok(())
    }
}

impl<const D: usize> PointStats<D> for OnDevice<'_, D> {
    fn points(&self) -> [usize; 2] {
        [self.problem.sources.len(), self.problem.targets.map_or(0, <[_]>::len)]
    }

    fn bounds(&mut self) -> Result<[[f64; D]; 2], Error> {
        let mut all = [[f64::INFINITY; D], [f64::NEG_INFINITY; D]];
        for set in 0..2 {
            let Some(given) = self.given(set) else { continue };
            let [low, high] = boxes::bounds(self.gpu, &mut self.transform.scratch, given)?;
            for d in 0..D {
                (all[0][d], all[1][d]) = (all[0][d].min(low[d]), all[1][d].max(high[d]));
            }
        }
        Ok(if all[0][0] <= all[1][0] { all } else { [[0.0; D]; 2] })
    }

    fn count(&mut self, lattice: &Lattice<D>) -> Result<[Option<Occupied<D>>; 2], Error> {
        let mut all = [None, None];
        for (set, to) in all.iter_mut().enumerate() {
            let Some(given) = self.given(set) else { continue };
            let Transform { work, scratch, boxes, .. } = &mut *self.transform;
            *to = Some(boxes[set].sort(self.gpu, (work, scratch), given, lattice)?);
        }
        self.sorted = Some(lattice.clone());
        Ok(all)
    }
}
