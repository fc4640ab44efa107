//! The particles of a run on a GPU.

use std::ops::Range;
use std::sync::Arc;

use cust::memory::DevicePointer;
use fmm_core::accuracy::Strengths;
use fmm_core::bath::HeatExchange;
use fmm_core::bodies::coincident_pairs;
use fmm_core::forces::Forces;
use fmm_core::planar::{self, Blob, Kernel};
use fmm_core::solve::Quantity;
use fmm_core::{
    Choice, Copied, Error, ForceReport, Kept, Method, ParticleStore, Particles, Pending, Precision, Settings, Stage,
    StageTimes, Totals,
};

use crate::Gpu;
use crate::bath::Bath;
use crate::buffer::Buffer;
use crate::direct::{self, Output, Request};
use crate::forces::Acting;
use crate::order::Units;
use crate::planar::{Flat, Flow, Vortices};
use crate::shares::Divided;
use crate::staging::Staging;
use crate::state::State;
use crate::totals::{self, Totals as Summing};
use crate::trial::{self, Arrays, Bodies};
use crate::view::{StepView, TILE};

/// Particles that live on a GPU.
///
/// [`forces`](ParticleStore::forces) sums the field alone unless the potential [is wanted](ParticleStore::want_potential); otherwise the potential of
/// pairs is summed from the same positions when it is asked for. Coincident pairs are counted by trees, and for
/// direct sums when particles are uploaded. In the plane sums have both, and coincident pairs are counted when they are asked for.
pub struct CudaStore {
    // Dropped in this order: arrays before the GPU whose memory they are.
    state: State,
    arrays: Arrays,
    /// Of particles in the plane.
    flat: Option<Flat>,
    /// The step of vortices.
    flow: Flow,
    summing: Summing,
    bath: Bath,
    staging: Staging,
    settings: Settings,
    strength: Arc<Vec<f64>>,
    coupling: Arc<Vec<f64>>,
    choice: Option<Choice>,
    /// The norm of the error of the last sum over that of its vectors, if estimates of errors are asked for.
    of_vectors: f64,
    /// Of the last direct sum.
    units: Option<Units>,
    /// Whether there is a sum of the present particles.
    summed: bool,
    /// Whether sums are to have the potential.
    wanted: bool,
    /// Whether the potential of the last sum is there.
    whole: bool,
    /// Whether velocities and fields are right in this GPU's slice of a team's particles alone.
    sliced: bool,
    strengths: Strengths,
    coincident_pairs: u64,
    acting: Acting,
    gpu: Gpu,
}

impl CudaStore {
    /// A store without particles.
    ///
    /// # Errors
    /// [`Error::Range`] if a setting lies outside its range.
    pub fn new(gpu: Gpu, settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        Ok(Self::with(gpu, settings, None))
    }

    /// A store without particles that sums a kernel of the plane over x and y: as [`fmm_core::CpuStore::in_plane`]. Coincident pairs are
    /// counted by the host when it is asked for them.
    ///
    /// # Errors
    /// As [`fmm_core::planar::evaluate`] for settings and blobs.
    pub fn in_plane(mut gpu: Gpu, settings: Settings, kernel: Kernel, blob: Blob) -> Result<Self, Error> {
        planar::check(&settings)?;
        let flat = Flat::new(kernel, blob)?;
        gpu.work_alone(true);
        Ok(Self::with(gpu, settings, Some(flat)))
    }

    fn with(gpu: Gpu, settings: Settings, flat: Option<Flat>) -> Self {
        CudaStore {
            state: State::default(),
            arrays: Arrays::default(),
            flat,
            flow: Flow::default(),
            summing: Summing::default(),
            bath: Bath::default(),
            staging: Staging::default(),
            settings: settings.simplified(),
            strength: Arc::default(),
            coupling: Arc::default(),
            choice: None,
            of_vectors: 0.0,
            units: None,
            summed: false,
            wanted: false,
            whole: false,
            sliced: false,
            strengths: Strengths::of(&[]),
            coincident_pairs: 0,
            acting: Acting::default(),
            gpu,
        }
    }

    /// The same with forces in addition to the sum, which join the field. Short-range forces need a
    /// periodic box, whose shortest side is twice the cut-off at least.
    pub fn with_forces(mut self, forces: Forces) -> Self {
        self.acting = Acting::new(forces);
        self
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The GPU, to set whether it works alone.
    pub(crate) fn gpu_mut(&mut self) -> &mut Gpu {
        &mut self.gpu
    }

    /// What is asked of the sums.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn request(&self, potential: bool) -> Request {
        let precision = self.choice.as_ref().map_or(Precision::F64, |c| c.precision);
        Request { softening: self.settings.softening, precision, potential }
    }

    /// x += h w y for `n` numbers; a weight has three of them.
    fn advance(
        &self,
        x: DevicePointer<f64>,
        y: DevicePointer<f64>,
        weight: DevicePointer<f64>,
        (h, n): (f64, usize),
    ) -> Result<(), Error> {
        self.gpu.enter()?;
        if n == 0 {
            return Ok(());
        }
        let view = StepView { x, y, weight, h, n: n as u64 };
        // SAFETY: the arrays hold `n` numbers, or a weight for three of them.
        unsafe {
            self.gpu.kernels().launch(self.gpu.stream(), "advance_f64", n.div_ceil(TILE) as u32, TILE as u32, &view)?;
        }
        self.gpu.finish()
    }

    /// The particles that this GPU kicks and drifts.
    fn slice(&self) -> Range<usize> {
        let n = self.strength.len();
        let member = self.gpu.member().filter(|_| self.sliced);
        member.map_or(0..n, |member| member.share(n, Divided::Evenly))
    }

    /// Brings velocities and fields of all slices to every GPU of a team, all of which must ask for
    /// it.
    ///
    /// # Errors
    /// [`Error::Device`] if a GPU fails.
    pub(crate) fn gather(&mut self) -> Result<(), Error> {
        if !self.sliced {
            return Ok(());
        }
        self.gpu.enter()?;
        let (n, State { velocity, field, potential, .. }) = (self.strength.len(), &self.state);
        let arrays = [(velocity, "velocities"), (field, "fields"), (potential, "potentials")];
        for (array, what) in arrays.into_iter().take(if self.whole { 3 } else { 2 }) {
            self.gpu.exchange_shares(array, n, (what, Divided::Evenly))?;
        }
        self.sliced = false;
        Ok(())
    }

    /// Checks that an array has only finite numbers.
    fn finite(&mut self, what: &'static str, x: DevicePointer<f64>, n: usize) -> Result<(), Error> {
        let found = self.state.numbers.of(&self.gpu, &[(x, n)])?[0];
        if found.bad == 0 {
            return Ok(());
        }
        // Rare enough to copy everything for one number.
        let all =
            if what == "position" { self.state.inputs.position.download()? } else { self.state.velocity.download()? };
        let (first, count) = (found.first as usize, found.bad as usize);
        Err(Error::NotFinite { what, index: first / 3, value: all[first], count })
    }

    /// The vortices of a flow.
    fn vortices(&self) -> Vortices {
        let State { inputs, field, coupling, .. } = &self.state;
        let (position, field, coupling) = (inputs.position.pointer(), field.pointer(), coupling.pointer());
        Vortices { position, field, coupling, n: self.strength.len() }
    }

    /// Sums the potential of the last forces if those were summed without it. It uses the bodies as
    /// arranged for the forces, so later drifts do not matter.
    pub(crate) fn complete(&mut self) -> Result<(), Error> {
        if self.whole || !self.summed {
            return Ok(());
        }
        self.gpu.enter()?;
        self.state.potential.resize(self.strength.len())?;
        let potential = self.state.potential.pointer();
        if let Some(units) = self.units {
            let output = Output { field: DevicePointer::null(), potential };
            self.arrays.direct.sum(&self.gpu, &self.request(true), units, true, output)?;
            self.gpu.finish()?;
        } else {
            self.arrays.fmm.potential(&self.gpu, potential)?;
            self.sliced |= self.arrays.fmm.is_sliced();
        }
        self.whole = true;
        self.exclude()
    }

    /// Takes from the potential what excluded pairs do not feel.
    fn exclude(&mut self) -> Result<(), Error> {
        let Some(less) = self.acting.less() else { return Ok(()) };
        self.advance(self.state.potential.pointer(), less, DevicePointer::null(), (-1.0, self.strength.len()))
    }
}

impl Drop for CudaStore {
    fn drop(&mut self) {
        // Freeing memory needs its GPU; a thread that cannot enter it has lost the memory with it.
        let _ = self.gpu.enter();
    }
}

impl ParticleStore for CudaStore {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        particles.check()?;
        fmm_core::bodies::check_reach(&[&particles.position])?;
        let cell = self.settings.boundary.periodic();
        cell.map_or(Ok(()), |cell| cell.check_charge(&particles.strength))?;
        self.gpu.enter()?;
        let Particles { position, velocity, strength, coupling, .. } = particles;
        let n = particles.len();
        // Everything anew, so that the free memory is what there is for it.
        self.arrays = Arrays::default();
        self.state = State::default();
        self.summing = Summing::default();
        self.staging = Staging::default();
        self.flow = Flow::default();
        let bytes = 8 * (3 * n + velocity.len() * 3 + n + coupling.len() + 3 * n);
        direct::fits(&self.gpu, bytes, &format!("{n} particles"))?;
        self.state.inputs.upload(&self.gpu, (position, &[strength], None))?;
        self.state.velocity.upload(velocity.as_flattened())?;
        self.state.coupling.upload(coupling)?;
        self.state.field.resize(3 * n)?;
        self.state.field.fill(self.gpu.stream(), 0)?;
        self.gpu.settle()?;
        self.strength = Arc::new(strength.clone());
        self.coupling = Arc::new(coupling.clone());
        self.acting.ready(n)?;
        self.strengths = Strengths::of(&[strength]);
        (self.choice, self.units, self.summed, self.whole, self.sliced) = (None, None, false, false, false);
        // What is refused is refused before the first step.
        if let Some(flat) = &mut self.flat {
            return flat.take(&self.gpu, &self.settings, strength);
        }
        let ends = self.state.inputs.ends();
        let (.., resolved) = trial::resolve(&self.gpu, &mut self.arrays, &self.settings, ends, self.strengths)?;
        let direct = resolved.method == Method::Direct;
        self.coincident_pairs = match self.settings.boundary.periodic() {
            _ if !direct => 0,
            None => coincident_pairs(position),
            Some(cell) => coincident_pairs(&cell.wrap(position)),
        };
        Ok(())
    }

    fn forces_kept(&mut self, kept: Option<Kept>, times: &mut StageTimes) -> Result<Option<Kept>, Error> {
        self.gpu.enter()?;
        (self.summed, self.whole) = (false, false);
        if let Some(flat) = &mut self.flat {
            let State { inputs, field, potential, .. } = &mut self.state;
            let position = (inputs.position.pointer(), inputs.position.len());
            let summed = flat.sum(&self.gpu, &self.settings, position.0, (potential, field), kept, times)?;
            if summed.is_none() {
                self.finite("position", position.0, position.1)?;
            }
            let (choice, kept) = summed.unzip();
            // Potentials come with the field, which costs little more.
            (self.choice, self.summed, self.whole) = (choice, true, true);
            return Ok(kept.flatten());
        }
        let State { inputs, field, potential, .. } = &mut self.state;
        // The guard of a box measures the potential too, which its surroundings share in.
        let wanted = self.wanted || self.settings.boundary.periodic().is_some();
        let potential = wanted.then_some(potential);
        let quantity = Quantity::Potential;
        let bodies =
            Bodies { quantity, inputs, host: None, strengths: self.strengths, field, potential, hessian: None };
        let solved = trial::sum(&self.gpu, &mut self.arrays, &self.settings, bodies, kept, times)?;
        let (choice, summed) = (solved.choice, solved.sums);
        self.coincident_pairs = summed.coincident_pairs.unwrap_or(self.coincident_pairs);
        (self.choice, self.units, self.summed) = (Some(choice), summed.units, true);
        self.of_vectors = summed.of_vectors;
        self.whole = wanted;
        if self.sliced && !summed.sliced {
            self.gpu.exchange_shares(&self.state.velocity, self.strength.len(), ("velocities", Divided::Evenly))?;
        }
        self.sliced = summed.sliced;
        let State { inputs, field, .. } = &self.state;
        let Arrays { work, boxed, .. } = &mut self.arrays;
        self.acting.add(&self.gpu, (work, boxed), inputs.ends(), field, times)?;
        if wanted {
            self.exclude()?;
        }
        Ok(solved.kept)
    }

    fn force_report(&self) -> ForceReport {
        self.acting.force_report
    }

    fn exchange_heat(&mut self, exchange: &HeatExchange<'_>) -> Result<(), Error> {
        self.gpu.enter()?;
        let mass = self.state.mass(&self.gpu, exchange.mass, &self.strength)?;
        self.bath.exchange(&self.gpu, exchange, mass, &self.state.velocity)
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        let State { velocity, field, coupling, .. } = &self.state;
        let (slice, at) = (self.slice(), |numbers: &Buffer<f64>, each: usize| numbers.pointer().wrapping_add(each));
        let (v, e) = (at(velocity, 3 * slice.start), at(field, 3 * slice.start));
        let c = if coupling.is_empty() { DevicePointer::null() } else { at(coupling, slice.start) };
        times.time(Stage::Kick, || self.advance(v, e, c, (h, 3 * slice.len())))
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        let (slice, State { inputs, velocity, .. }) = (self.slice(), &self.state);
        let at = |numbers: &Buffer<f64>| numbers.pointer().wrapping_add(3 * slice.start);
        let (x, v) = (at(&inputs.position), at(velocity));
        times.time(Stage::Drift, || {
            self.advance(x, v, DevicePointer::null(), (h, 3 * slice.len()))?;
            if !self.sliced {
                return Ok(());
            }
            let n = self.strength.len();
            self.gpu.exchange_shares(&self.state.inputs.position, n, ("positions", Divided::Evenly))
        })
    }

    fn begin_flow(&mut self) -> Result<f64, Error> {
        self.gpu.enter()?;
        self.gather()?;
        let vortices = self.vortices();
        self.flow.begin(&self.gpu, vortices)
    }

    fn flow(&mut self, weight: f64) -> Result<f64, Error> {
        self.gpu.enter()?;
        self.gather()?;
        let vortices = self.vortices();
        self.flow.take(&self.gpu, vortices, weight)
    }

    fn flow_to(&mut self, h: f64, summed: bool) -> Result<(), Error> {
        self.gpu.enter()?;
        self.gather()?;
        self.flow.reach(&self.gpu, self.vortices(), h, summed)
    }

    fn set_core(&mut self, length: f64) {
        if let Some(flat) = &mut self.flat {
            flat.set_core(length);
        }
    }

    fn check(&mut self) -> Result<(), Error> {
        self.gpu.enter()?;
        let State { inputs, velocity, .. } = &self.state;
        let position = &inputs.position;
        let (x, v) = ((position.pointer(), position.len()), (velocity.pointer(), velocity.len()));
        self.finite("position", x.0, x.1)?;
        self.finite("velocity", v.0, v.1)
    }

    fn particles(&mut self) -> Result<Particles, Error> {
        self.gpu.enter()?;
        let (position, velocity) =
            (self.state.inputs.position.download_threes()?, self.state.velocity.download_threes()?);
        Ok(Particles {
            position,
            velocity,
            strength: self.strength.to_vec(),
            coupling: self.coupling.to_vec(),
            ..Particles::default()
        })
    }

    fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error> {
        if !self.summed {
            return Ok((vec![], vec![]));
        }
        self.gpu.enter()?;
        self.complete()?;
        Ok((self.state.potential.download()?, self.state.field.download_threes()?))
    }

    fn copy(&mut self) -> Result<Pending, Error> {
        if !self.summed {
            let copied = Copied { particles: self.particles()?, ..Copied::default() };
            return Ok(Box::new(move || Ok(copied)));
        }
        self.gpu.enter()?;
        self.complete()?;
        let error = self.error()?;
        let State { inputs, velocity, field, potential, .. } = &self.state;
        let arrays = [&inputs.position, velocity, field, potential];
        let pending = self.staging.copy(&self.gpu, arrays, (&self.strength, &self.coupling))?;
        Ok(Box::new(move || Ok(Copied { error, ..pending()? })))
    }

    fn error(&mut self) -> Result<Vec<f64>, Error> {
        let Some(choice) = self.choice.as_ref().filter(|_| self.summed && self.settings.errors) else {
            return Ok(vec![]);
        };
        self.gpu.enter()?;
        trial::errors(
            &self.gpu,
            &mut self.arrays,
            self.settings.tolerance,
            (choice, self.of_vectors),
            &self.state.field,
        )
    }

    fn want_potential(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    fn totals(&mut self, mass: &[f64]) -> Result<Option<Totals>, Error> {
        self.gpu.enter()?;
        let n = self.strength.len();
        let potential = self.flat.as_ref().is_none_or(Flat::has_potential);
        // The host knows the potential of an external field.
        if !self.summed || mass.len() != n || !potential || self.acting.forces.external.is_some() {
            return Ok(None);
        }
        let needed = self.summing.growth(&self.arrays.work, n) + self.state.mass_growth(mass, &self.strength);
        // Where there is no room the host has it.
        if needed > 0 && needed > self.gpu.free_memory()? {
            return Ok(None);
        }
        let mass = self.state.mass(&self.gpu, mass, &self.strength)?;
        self.complete()?;
        let State { inputs, velocity, coupling, field, potential, .. } = &self.state;
        let state = totals::State {
            position: inputs.position.pointer(),
            velocity: velocity.pointer(),
            field: field.pointer(),
            potential: potential.pointer(),
            mass,
            strength: inputs.ends().sources.strength,
            coupling: coupling.pointer(),
            n,
        };
        self.summing.of(&self.gpu, &mut self.arrays.work, state).map(Some)
    }

    fn choice(&self) -> Option<Choice> {
        self.choice.clone().filter(|_| self.summed)
    }

    fn coincident_pairs(&self) -> u64 {
        match &self.flat {
            Some(flat) if self.summed && self.gpu.enter().is_ok() => flat.coincident_pairs(),
            _ => self.coincident_pairs,
        }
    }
}
