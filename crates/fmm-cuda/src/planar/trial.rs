//! A sum in the plane on the device for the driver: executed with one choice after another, and measured.

use cust::memory::DevicePointer;
use fmm_core::guard::Look;
use fmm_core::planar::accuracy::{self, THETA, swap_min_points};
use fmm_core::planar::{Kernel, Lists, Pyramid, Request, Rule, power};
use fmm_core::solve::{Trial, solve};
use fmm_core::{
    Cancel, Choice, Error, Kept, Method, Precision, Settings, Stage, StageTimes, accuracy::Problem as Size, plan,
};

use super::far::{Far, Place};
use super::pairs::{AllPairs, Both};
use super::pyramid::{self, DevicePyramid, Given, Scratch};
use super::rows::DeviceLists;
use super::view::{ExchangeView, PlanePoint, THREADS};
use super::{Inputs, policy};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::geometry::{Work, launch};

/// The arrays of sums, kept from one to the next.
#[derive(Default)]
pub struct Arrays {
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

/// Where sums go, in the caller's order.
#[derive(Clone, Copy)]
pub struct Output {
    /// `[targets]` for the log kernel.
    pub potential: DevicePointer<f64>,
    /// `[targets][width]`
    pub field: DevicePointer<f64>,
    /// Numbers of a field, those after the second zero.
    pub width: u32,
}

impl Arrays {
    /// The pyramids of targets and sources of the last sum by FMM, and the lists between them.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn geometry(&self, apart: bool) -> Result<(Pyramid, Option<Pyramid>, Lists), Error> {
        let sources = if apart { Some(self.sources.download()?) } else { None };
        Ok((self.targets.download()?, sources, self.lists.download()?))
    }

    /// Whether sources of the last sum by FMM may be at the same place.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn may_coincide(&self, apart: bool) -> Result<bool, Error> {
        if apart { &self.sources } else { &self.targets }.may_coincide()
    }

    /// Starts to note what parts of the geometry take.
    pub fn start_clock(&mut self) {
        self.work.start_clock();
    }

    /// Parts of the geometry and their milliseconds since the start.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn stop_clock(&mut self, gpu: &Gpu) -> Result<Vec<(&'static str, f64)>, Error> {
        self.work.stop_clock(gpu)
    }
}

/// Sums until the tolerance is kept, beginning with what an earlier sum of a run has `kept`. Returns
/// the choice, and what the next sum begins with; nothing but counters and the guard's sample is
/// copied to the host.
///
/// # Errors
/// Those of [`policy::choose`] and [`solve`], [`Error::Device`] where memory lacks or the device fails.
pub fn keep(
    gpu: &Gpu,
    request: &Request,
    inputs: &Inputs,
    arrays: &mut Arrays,
    output: Output,
    kept: Option<Kept>,
    times: &mut StageTimes,
) -> Result<(Choice, Option<Kept>), Error> {
    let settings = policy::choose(request)?;
    let mut trial = PlanarTrial { gpu, request, inputs, arrays, output, times, direct: false };
    let solved = solve(&settings, kept, &mut trial)?;
    Ok((solved.choice, solved.kept))
}

/// A sum on the device, done with one choice after another.
struct PlanarTrial<'a> {
    gpu: &'a Gpu,
    request: &'a Request,
    inputs: &'a Inputs,
    arrays: &'a mut Arrays,
    output: Output,
    times: &'a mut StageTimes,
    /// Whether the present sum is direct.
    direct: bool,
}

impl PlanarTrial<'_> {
    /// Sources, and targets if they are others.
    fn given(&self) -> (Given, Option<Given>) {
        let Inputs { sources, strengths, targets } = self.inputs;
        let strengths = [strengths[0].pointer(), strengths[1].pointer()];
        let given = |x: &Buffer<f64>, strengths| Given { position: x.pointer(), strengths, n: x.len() / 2 };
        let apart = self.request.apart.then(|| given(targets, [DevicePointer::null(); 2]));
        (given(sources, strengths), apart)
    }

    /// The points of the present sum.
    fn both(&self) -> Both {
        let Arrays { targets, sources, plain, potential, g, .. } = &*self.arrays;
        let same = !self.request.apart;
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
        let (gpu, request, length) = (self.gpu, self.request, power(-self.request.global));
        let (sources, targets) = self.given();
        let mut clock = Clock::start(gpu)?;
        let plain = &mut self.arrays.plain;
        pyramid::gather(gpu, &mut plain[0], sources, DevicePointer::null(), length, request.scale)?;
        if let Some(targets) = targets {
            pyramid::gather(gpu, &mut plain[1], targets, DevicePointer::null(), length, 1.0)?;
        }
        clock.mark(Some(Stage::Tree))?;
        let both = self.both();
        self.arrays.pairs.sum(gpu, request, both)?;
        self.give(DevicePointer::null())?;
        clock.mark(Some(Stage::P2P))?;
        clock.read(self.times)
    }

    fn fmm(&mut self, settings: &Settings, choice: &Choice) -> Result<(), Error> {
        let (gpu, request, length) = (self.gpu, self.request, power(-self.request.global));
        let (given, apart) = self.given();
        let levels = accuracy::levels(given.n, request.size.targets, choice.leaf_size);
        let order = choice.order.unwrap_or(1);
        let mut clock = Clock::start(gpu)?;
        let Arrays { work, scratch, targets, sources, lists, far, potential, g, .. } = &mut *self.arrays;
        if let Some(at) = apart {
            targets.build(gpu, (work, scratch), at, length, levels)?;
            sources.build(gpu, (work, scratch), given, length, levels)?;
            targets.gather(gpu, at, length, 1.0)?;
            sources.gather(gpu, given, length, request.scale)?;
        } else {
            targets.build(gpu, (work, scratch), given, length, levels)?;
            targets.gather(gpu, given, length, request.scale)?;
        }
        clock.mark(Some(Stage::Tree))?;
        let sources = if apart.is_some() { &*sources } else { &*targets };
        let rule = Rule {
            theta: choice.theta.unwrap_or(THETA),
            min_distance: request.blob.point_beyond(settings.tolerance),
            swap_min_points: swap_min_points(order),
        };
        lists.fmm(gpu, work, targets, sources, rule)?;
        clock.mark(Some(Stage::Lists))?;
        let single = choice.precision == Precision::F32;
        let place = Place { targets, sources, lists, single, potential: potential.pointer(), g: g.pointer() };
        far.ready(gpu, request.kernel, order, &place)?;
        // The direct sums begin each result, which expansions then add to.
        for &stage in plan::schedule(choice.method) {
            if request.size.targets > 0 {
                far.stage(gpu, stage, request, &place)?;
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
        let n = self.request.size.targets;
        if n == 0 {
            return Ok(());
        }
        let (arrays, Output { potential, field, width }) = (&*self.arrays, self.output);
        let view = ExchangeView {
            position: DevicePointer::null(),
            strengths: [DevicePointer::null(); 2],
            order,
            points: DevicePointer::null(),
            potential: arrays.potential.pointer(),
            g: arrays.g.pointer(),
            potential_out: potential,
            field_out: field,
            scale: 1.0,
            strength: 1.0 / self.request.scale,
            sign: self.request.signs(),
            n: n as u32,
            width,
        };
        // SAFETY: all arrays have n elements, the potentials for the log kernel.
        unsafe { launch(self.gpu, "planar_return", n.div_ceil(THREADS), THREADS, &view) }
    }
}

impl Trial for PlanarTrial<'_> {
    type Sums = ();

    fn problem(&self) -> Size {
        self.request.size
    }

    fn cancel(&self) -> &Cancel {
        self.times.cancel()
    }

    fn choose(&self, settings: &Settings, target_error: f64) -> Result<Choice, Error> {
        let Request { kernel, size, apart, .. } = *self.request;
        accuracy::choose(kernel, settings, size, accuracy::table_error(apart, target_error))
    }

    fn execute(&mut self, settings: &Settings, choice: &Choice) -> Result<(), Error> {
        let n = self.request.size.targets;
        let potentials = if self.request.kernel == Kernel::Log { n } else { 0 };
        self.arrays.potential.resize(potentials)?;
        self.arrays.g.resize(2 * n)?;
        self.direct = choice.method == Method::Direct;
        if self.direct { self.all_pairs() } else { self.fmm(settings, choice) }
    }

    fn error(&mut self, (): &(), _: Look) -> Result<f64, Error> {
        let both = self.both();
        self.times.time(Stage::Guard, || self.arrays.pairs.error(self.gpu, self.request, both))
    }
}
