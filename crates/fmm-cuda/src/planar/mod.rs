//! Sums in the plane on the device: [`fmm_core::planar`] with the whole sum, pyramids and lists included, where the points are.
//!
//! Everything is in double precision: an H200 has half the rate of single precision there, and no pair is too close for it.

mod far;
mod pairs;
mod policy;
mod pyramid;
mod rows;
pub mod view;

use cust::memory::DevicePointer;
use fmm_core::contract::{self, Attempt};
use fmm_core::planar::accuracy::{self, THETA, swap_min_points};
use fmm_core::planar::{Evaluation, Kernel, Lists, Problem, Pyramid, Rule, coincident_pairs, power};
use fmm_core::{Choice, Error, Method, Precision, Settings, Stage, StageTimes, accuracy::Problem as Size, plan};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::direct;
use crate::geometry::{Work, launch};
use far::{Far, Place};
use pairs::{AllPairs, Both};
use pyramid::{DevicePyramid, Given, Scratch};
use rows::DeviceLists;
use view::{ExchangeView, PlanePoint, THREADS};

/// The sum that `problem` asks for, as [`fmm_core::planar::evaluate`] defines it, done on the device.
///
/// # Errors
/// Those of the sum on the CPU, [`Error::Unsupported`] for single precision and 2³¹ points, [`Error::Device`] where memory lacks or the
/// device fails.
pub fn evaluate(gpu: &Gpu, problem: &Problem, times: &mut StageTimes) -> Result<Evaluation, Error> {
    let mut plane = Plane::default();
    times.time_more(Stage::Tree, || plane.upload(gpu, problem))?;
    let choice = plane.sum(gpu, problem, times)?;
    let (potential, field) = plane.download()?;
    let direct = choice.method == Method::Direct;
    // Where no coordinate is there twice along one of the axes no points coincide.
    let coincident_pairs = if direct || plane.may_coincide()? { coincident_pairs(problem.sources) } else { 0 };
    Ok(Evaluation { potential, field, choice, coincident_pairs })
}

/// Sums in the plane on the device, whose arrays are kept from one to the next.
#[derive(Default)]
pub struct Plane {
    inputs: Inputs,
    arrays: Arrays,
    potential: Buffer<f64>,
    field: Buffer<f64>,
}

/// Points and strengths as they were given.
#[derive(Default)]
struct Inputs {
    sources: Buffer<f64>,
    strengths: [Buffer<f64>; 2],
    targets: Buffer<f64>,
}

#[derive(Default)]
struct Arrays {
    work: Work,
    scratch: Scratch,
    targets: DevicePyramid,
    sources: DevicePyramid,
    lists: DeviceLists,
    far: Far,
    pairs: AllPairs,
    /// Of direct sums, in the caller's order.
    plain: [Buffer<PlanePoint>; 2],
    potential: Buffer<f64>,
    g: Buffer<f64>,
}

impl Plane {
    /// Copies points and strengths to the device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more points than the device's numbers hold, [`Error::Device`] where memory lacks or a copy fails.
    pub fn upload(&mut self, gpu: &Gpu, problem: &Problem) -> Result<(), Error> {
        gpu.enter()?;
        let (n, m) = (problem.sources.len(), problem.size.targets);
        if n.max(m) >= 1 << 31 {
            return Err(Error::Unsupported(format!("{} points do not fit a GPU's sum; use device cpu", n.max(m))));
        }
        direct::fits(gpu, 40 * n + 64 * m, &format!("{n} sources at {m} targets"))?;
        self.inputs.sources.upload(problem.sources.as_flattened())?;
        for (k, strengths) in self.inputs.strengths.iter_mut().enumerate() {
            strengths.upload(problem.strengths.get(k).copied().unwrap_or(&[]))?;
        }
        self.inputs.targets.upload(problem.targets.unwrap_or(&[]).as_flattened())?;
        gpu.settle()
    }

    /// Sums what was uploaded until the tolerance is kept.
    ///
    /// # Errors
    /// Those of [`contract::keep`], [`Error::Unsupported`] for single precision, [`Error::Device`] where memory lacks or the device fails.
    pub fn sum(&mut self, gpu: &Gpu, problem: &Problem, times: &mut StageTimes) -> Result<Choice, Error> {
        gpu.enter()?;
        let settings = policy::choose(problem)?;
        let mut attempt = DeviceAttempt { gpu, problem, plane: self, times, direct: false, failed: None };
        let choice = contract::keep(&settings, problem.size, &mut attempt)?;
        attempt.failed.take().map_or(Ok(choice), Err)
    }

    /// Potential (log alone) and field in the caller's order.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn download(&self) -> Result<(Vec<f64>, Vec<[f64; 2]>), Error> {
        let flat = self.field.download()?;
        Ok((self.potential.download()?, flat.as_chunks::<2>().0.to_vec()))
    }

    /// The pyramids of targets and sources of the last sum by FMM, and the lists between them.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn geometry(&self) -> Result<(Pyramid, Option<Pyramid>, Lists), Error> {
        let Arrays { targets, sources, lists, .. } = &self.arrays;
        let apart = !self.inputs.targets.is_empty();
        let sources = if apart { Some(sources.download()?) } else { None };
        Ok((targets.download()?, sources, lists.download()?))
    }

    /// Starts to note what parts of the geometry take.
    pub fn start_clock(&mut self) {
        self.arrays.work.start_clock();
    }

    /// Parts of the geometry and their milliseconds since [`Plane::start_clock`].
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn stop_clock(&mut self, gpu: &Gpu) -> Result<Vec<(&'static str, f64)>, Error> {
        self.arrays.work.stop_clock(gpu)
    }

    fn may_coincide(&self) -> Result<bool, Error> {
        let Arrays { targets, sources, .. } = &self.arrays;
        if self.inputs.targets.is_empty() { targets } else { sources }.may_coincide()
    }
}

/// A sum on the device, done with one choice after another.
struct DeviceAttempt<'a> {
    gpu: &'a Gpu,
    problem: &'a Problem<'a>,
    plane: &'a mut Plane,
    times: &'a mut StageTimes,
    /// Whether the present sum is direct.
    direct: bool,
    /// What went wrong in measuring.
    failed: Option<Error>,
}

impl DeviceAttempt<'_> {
    /// Sources, and targets if they are others.
    fn given(&self) -> (Given, Option<Given>) {
        let Inputs { sources, strengths, targets } = &self.plane.inputs;
        let strengths = [strengths[0].pointer(), strengths[1].pointer()];
        let given = |x: &Buffer<f64>, strengths| Given { position: x.pointer(), strengths, n: x.len() / 2 };
        let apart = self.problem.targets.map(|_| given(targets, [DevicePointer::null(); 2]));
        (given(sources, strengths), apart)
    }

    /// The points of the present sum.
    fn both(&self) -> Both {
        let Arrays { targets, sources, plain, potential, g, .. } = &self.plane.arrays;
        let same = self.problem.targets.is_none();
        let (from, at) = match (self.direct, same) {
            (true, true) => (&plain[0], &plain[0]),
            (true, false) => (&plain[0], &plain[1]),
            (false, true) => (&targets.bodies, &targets.bodies),
            (false, false) => (&sources.bodies, &targets.bodies),
        };
        Both {
            bodies: (from.pointer(), from.len()),
            at: (at.pointer(), at.len()),
            potential: potential.pointer(),
            g: g.pointer(),
        }
    }

    fn all_pairs(&mut self) -> Result<(), Error> {
        let (gpu, problem, length) = (self.gpu, self.problem, power(-self.problem.global));
        let (sources, targets) = self.given();
        let mut clock = Clock::start(gpu)?;
        let plain = &mut self.plane.arrays.plain;
        pyramid::gather(gpu, &mut plain[0], sources, DevicePointer::null(), length, problem.scale)?;
        if let Some(targets) = targets {
            pyramid::gather(gpu, &mut plain[1], targets, DevicePointer::null(), length, 1.0)?;
        }
        clock.mark(Some(Stage::Tree))?;
        let both = self.both();
        self.plane.arrays.pairs.sum(gpu, problem, both)?;
        self.give(DevicePointer::null())?;
        clock.mark(Some(Stage::P2P))?;
        clock.read(self.times)
    }

    fn fmm(&mut self, settings: &Settings, choice: &Choice) -> Result<(), Error> {
        let (gpu, problem, length) = (self.gpu, self.problem, power(-self.problem.global));
        let (given, apart) = self.given();
        let levels = accuracy::levels(given.n, problem.size.targets, choice.leaf_size);
        let order = choice.order.unwrap_or(1);
        let mut clock = Clock::start(gpu)?;
        let Arrays { work, scratch, targets, sources, lists, far, potential, g, .. } = &mut self.plane.arrays;
        if let Some(at) = apart {
            targets.build(gpu, (work, scratch), at, length, levels)?;
            sources.build(gpu, (work, scratch), given, length, levels)?;
            targets.gather(gpu, at, length, 1.0)?;
            sources.gather(gpu, given, length, problem.scale)?;
        } else {
            targets.build(gpu, (work, scratch), given, length, levels)?;
            targets.gather(gpu, given, length, problem.scale)?;
        }
        clock.mark(Some(Stage::Tree))?;
        let sources = if apart.is_some() { &*sources } else { &*targets };
        let rule = Rule {
            theta: choice.theta.unwrap_or(THETA),
            min_distance: problem.blob.point_beyond(settings.tolerance),
            swap_min_points: swap_min_points(order),
        };
        lists.fmm(gpu, work, targets, sources, rule)?;
        clock.mark(Some(Stage::Lists))?;
        let place = Place { targets, sources, lists, potential: potential.pointer(), g: g.pointer() };
        far.ready(gpu, problem.kernel, order, &place)?;
        // The direct sums begin each result, which expansions then add to.
        for &stage in plan::schedule(choice.method) {
            if problem.size.targets > 0 {
                far.stage(gpu, stage, problem, &place)?;
            }
            clock.mark(Some(stage))?;
        }
        let order = targets.order.pointer();
        self.give(order)?;
        clock.mark(Some(Stage::L2P))?;
        clock.read(self.times)
    }

    /// Queues the result in the caller's order.
    fn give(&mut self, order: DevicePointer<u32>) -> Result<(), Error> {
        let n = self.problem.size.targets;
        if n == 0 {
            return Ok(());
        }
        let Plane { arrays, potential, field, .. } = &*self.plane;
        let view = ExchangeView {
            position: DevicePointer::null(),
            strengths: [DevicePointer::null(); 2],
            order,
            points: DevicePointer::null(),
            potential: arrays.potential.pointer(),
            g: arrays.g.pointer(),
            potential_out: potential.pointer(),
            field_out: field.pointer(),
            scale: 1.0,
            strength: 1.0 / self.problem.scale,
            sign: self.problem.signs(),
            n: n as u32,
            unused: 0,
        };
        // SAFETY: all arrays have n elements, the potentials for the log kernel.
        unsafe { launch(self.gpu, "planar_return", n.div_ceil(THREADS), THREADS, &view) }
    }
}

impl Attempt for DeviceAttempt<'_> {
    fn choose(&self, settings: &Settings, size: Size, aim: f64) -> Result<Choice, Error> {
        accuracy::choose(self.problem.kernel, settings, size, aim)
    }

    fn sum(&mut self, settings: &Settings, choice: Choice) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)?;
        debug_assert_eq!(choice.precision, Precision::F64);
        let n = self.problem.size.targets;
        let potentials = if self.problem.kernel == Kernel::Log { n } else { 0 };
        let Plane { arrays, potential, field, .. } = &mut *self.plane;
        potential.resize(potentials)?;
        field.resize(2 * n)?;
        arrays.potential.resize(potentials)?;
        arrays.g.resize(2 * n)?;
        self.direct = choice.method == Method::Direct;
        if self.direct { self.all_pairs() } else { self.fmm(settings, &choice) }
    }

    fn error(&mut self) -> f64 {
        let start = std::time::Instant::now();
        let both = self.both();
        let measured = self.plane.arrays.pairs.error(self.gpu, self.problem, both);
        self.times.add(Stage::Guard, start.elapsed());
        measured.unwrap_or_else(|e| {
            self.failed = Some(e);
            f64::INFINITY
        })
    }
}
