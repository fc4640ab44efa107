//! The GPU as an executor.

use cust::memory::DevicePointer;
use fmm_core::accuracy::Strengths;
use fmm_core::{Choice, Error, Executor, Method, Particles, Precision, Settings, Stage, StageTimes};

use crate::Gpu;
use crate::attempt::{self, Arrays, Bodies};
use crate::buffer::Buffer;
use crate::direct::{self, Output, Request};
use crate::fmm::Ends;
use crate::order::{Points, Units};
use crate::view::{CheckView, StepView, TILE};

/// Blocks that share the numbers that are checked.
const SHARES: usize = 512;

/// Executes on a GPU, where the particles live.
///
/// [`forces`](Executor::forces) sums the field alone; the potential of pairs is summed from the same positions when
/// [`field`](Executor::field) asks for it. Coincident pairs are counted by trees, and for
/// direct sums when particles are uploaded.
///
/// A failure of the device in a call that returns no error is told by the next call that does; copies are NaN until then.
pub struct CudaExecutor {
    // Dropped in this order: arrays before the GPU whose memory they are.
    state: State,
    arrays: Arrays,
    settings: Settings,
    strength: Vec<f64>,
    coupling: Vec<f64>,
    choice: Option<Choice>,
    /// Of the last direct sum.
    units: Option<Units>,
    /// Whether there is a sum of the present particles.
    summed: bool,
    strengths: Strengths,
    coincident_pairs: u64,
    failed: Option<Error>,
    gpu: Gpu,
}

/// The arrays of the particles, in the caller's order.
#[derive(Default)]
struct State {
    position: Buffer<f64>,
    velocity: Buffer<f64>,
    strength: Buffer<f64>,
    coupling: Buffer<f64>,
    field: Buffer<f64>,
    potential: Buffer<f64>,
    first: Buffer<u64>,
    count: Buffer<u64>,
}

impl CudaExecutor {
    /// An executor without particles.
    ///
    /// # Errors
    /// [`Error::Range`] if a setting lies outside its range.
    pub fn new(gpu: Gpu, settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        Ok(CudaExecutor {
            state: State::default(),
            arrays: Arrays::default(),
            settings: settings.simplified(),
            strength: vec![],
            coupling: vec![],
            choice: None,
            units: None,
            summed: false,
            strengths: Strengths::of(&[]),
            coincident_pairs: 0,
            failed: None,
            gpu,
        })
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn request(&self, potential: bool) -> Request {
        let precision = self.choice.as_ref().map_or(Precision::F64, |c| c.precision);
        Request { softening: self.settings.softening, precision, potential }
    }

    fn ends(&self) -> Ends {
        let State { position, strength, .. } = &self.state;
        let n = self.strength.len();
        let sources = Points { position: position.pointer(), strength: strength.pointer(), n };
        Ends { sources, targets: None, largest: self.strengths.largest }
    }

    /// What an earlier call could not tell.
    fn enter(&mut self) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)?;
        self.gpu.enter()
    }

    /// x += h w y for all particles.
    fn advance(
        &mut self,
        x: DevicePointer<f64>,
        y: DevicePointer<f64>,
        weight: DevicePointer<f64>,
        h: f64,
    ) -> Result<(), Error> {
        self.enter()?;
        let n = 3 * self.strength.len();
        if n == 0 {
            return Ok(());
        }
        let view = StepView { x, y, weight, h, n: n as u64 };
        // SAFETY: the arrays hold three numbers, or one weight, for each particle.
        unsafe {
            self.gpu.kernels().launch(self.gpu.stream(), "advance_f64", n.div_ceil(TILE) as u32, TILE as u32, &view)?;
        }
        self.gpu.finish()
    }

    /// Checks that an array has only finite numbers.
    fn finite(&mut self, what: &'static str, x: DevicePointer<f64>, n: usize) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let blocks = n.div_ceil(TILE).min(SHARES);
        self.state.first.resize(blocks)?;
        self.state.count.resize(blocks)?;
        let (first, count) = (self.state.first.pointer(), self.state.count.pointer());
        let view = CheckView { x, first, count, n: n as u64 };
        // SAFETY: a place for each block.
        unsafe {
            self.gpu.kernels().launch(self.gpu.stream(), "check_f64", blocks as u32, TILE as u32, &view)?;
        }
        self.gpu.finish()?;
        let count: u64 = self.state.count.download()?.iter().sum();
        let Some(first) = self.state.first.download()?.into_iter().min().filter(|_| count > 0) else { return Ok(()) };
        // Rare enough to copy everything for one number.
        let all = if what == "position" { self.state.position.download()? } else { self.state.velocity.download()? };
        let (first, count) = (first as usize, count as usize);
        Err(Error::NotFinite { what, index: first / 3, value: all[first], count })
    }

    /// The result, or `otherwise` and the error kept.
    fn keep<R>(&mut self, result: Result<R, Error>, otherwise: R) -> R {
        result.unwrap_or_else(|e| {
            self.failed = Some(e);
            otherwise
        })
    }
}

impl Drop for CudaExecutor {
    fn drop(&mut self) {
        // Freeing memory needs its GPU; a thread that cannot enter it has lost the memory with it.
        let _ = self.gpu.enter();
    }
}

impl Executor for CudaExecutor {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        particles.check()?;
        self.enter()?;
        let Particles { position, velocity, strength, coupling } = particles;
        let n = particles.len();
        // Everything anew, so that the free memory is what there is for it.
        self.arrays = Arrays::default();
        self.state = State::default();
        let bytes = 8 * (3 * n + velocity.len() * 3 + n + coupling.len() + 3 * n);
        direct::fits(&self.gpu, bytes, &format!("{n} particles"))?;
        self.state.position.upload(position.as_flattened())?;
        self.state.velocity.upload(velocity.as_flattened())?;
        self.state.strength.upload(strength)?;
        self.state.coupling.upload(coupling)?;
        self.state.field.resize(3 * n)?;
        self.state.field.fill(self.gpu.stream(), 0)?;
        self.gpu.settle()?;
        self.strength.clone_from(strength);
        self.coupling.clone_from(coupling);
        self.strengths = Strengths::of(strength);
        (self.choice, self.units, self.summed) = (None, None, false);
        // What is refused is refused before the first step.
        let ends = self.ends();
        let (.., resolved) = attempt::resolve(&self.gpu, &mut self.arrays, &self.settings, ends, self.strengths)?;
        let direct = resolved.method == Method::Direct;
        self.coincident_pairs = if direct { direct::coincident_pairs(position) } else { 0 };
        Ok(())
    }

    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        self.enter()?;
        let ends = self.ends();
        let State { position, field, .. } = &mut self.state;
        let bodies = Bodies { position: (position, None), ends, strengths: self.strengths, field, potential: None };
        let summed = attempt::sum(&self.gpu, &mut self.arrays, &self.settings, bodies, times)?;
        self.coincident_pairs = summed.coincident_pairs.unwrap_or(self.coincident_pairs);
        (self.choice, self.units, self.summed) = (Some(summed.choice), summed.units, true);
        Ok(())
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) {
        let State { velocity, field, coupling, .. } = &self.state;
        let (v, e, c) = (velocity.pointer(), field.pointer(), coupling.pointer());
        let done = times.time(Stage::Kick, || self.advance(v, e, c, h));
        self.keep(done, ());
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) {
        let (x, v) = (self.state.position.pointer(), self.state.velocity.pointer());
        let done = times.time(Stage::Drift, || self.advance(x, v, DevicePointer::null(), h));
        self.keep(done, ());
    }

    fn check(&mut self) -> Result<(), Error> {
        self.enter()?;
        let State { position, velocity, .. } = &self.state;
        let (x, v) = ((position.pointer(), position.len()), (velocity.pointer(), velocity.len()));
        self.finite("position", x.0, x.1)?;
        self.finite("velocity", v.0, v.1)
    }

    fn particles(&mut self) -> Particles {
        let copied = self
            .enter()
            .and_then(|()| Ok((self.state.position.download_threes()?, self.state.velocity.download_threes()?)));
        let n = self.strength.len();
        let (position, velocity) = self.keep(copied, (vec![[f64::NAN; 3]; n], vec![[f64::NAN; 3]; n]));
        Particles { position, velocity, strength: self.strength.clone(), coupling: self.coupling.clone() }
    }

    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>) {
        let n = self.strength.len();
        if !self.summed {
            return (vec![], vec![]);
        }
        let Some(units) = self.units else {
            let copied = self.enter().and_then(|()| {
                self.state.potential.resize(n)?;
                self.arrays.fmm.potential(&self.gpu, self.state.potential.pointer())?;
                Ok((self.state.potential.download()?, self.state.field.download_threes()?))
            });
            return self.keep(copied, (vec![f64::NAN; n], vec![[f64::NAN; 3]; n]));
        };
        let request = self.request(true);
        let copied = self.enter().and_then(|()| {
            self.state.potential.resize(n)?;
            let output = Output { field: DevicePointer::null(), potential: self.state.potential.pointer() };
            // The bodies as the last forces have arranged them, wherever they have drifted since.
            self.arrays.direct.sum(&self.gpu, &request, units, true, output)?;
            self.gpu.finish()?;
            Ok((self.state.potential.download()?, self.state.field.download_threes()?))
        });
        self.keep(copied, (vec![f64::NAN; n], vec![[f64::NAN; 3]; n]))
    }

    fn choice(&self) -> Option<Choice> {
        self.choice.clone().filter(|_| self.summed)
    }

    fn coincident_pairs(&self) -> u64 {
        self.coincident_pairs
    }
}
