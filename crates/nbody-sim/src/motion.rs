//! Particles in motion: held where their forces are summed, and moved by steps.

use std::sync::Arc;

use fmm::Note;
use fmm_core::{Copied, Error, Executor, Kept, Particles, Pending, StageTimes};

use crate::diagnostics::Diagnostics;
use crate::failure::{self, Failure};
use crate::initial::Initial;
use crate::integrator::Stepper;
use crate::scenario::{Law, Scenario};
use crate::snapshot_builder::SnapshotBuilder;

/// The particles of a scenario, on the device that it asks for.
pub struct Motion {
    executor: Box<dyn Executor>,
    stepper: Stepper,
    /// Length of a step.
    dt: f64,
    builder: SnapshotBuilder,
}

impl Motion {
    /// Hands the particles to the device. `note` receives notes on its choice.
    ///
    /// # Errors
    /// 69 to 71 for a device that fails, 65 for particles that it cannot take.
    pub fn new(scenario: &Scenario, initial: Arc<Initial>, note: &mut dyn FnMut(Note)) -> Result<Self, Failure> {
        let mut executor = scenario.executor(initial.len(), &initial.mass, note)?;
        let particles = initial.particles(scenario.law, scenario.signed_constant());
        executor.upload(&particles).map_err(|e| Failure::new(failure::code(&e), format!("initial particles: {e}")))?;
        let stepper = Stepper::new(scenario.integrator, scenario.clock.dt);
        let builder = SnapshotBuilder::new(scenario, initial);
        Ok(Motion { executor, stepper, dt: scenario.clock.dt, builder })
    }

    /// The particles at the start.
    pub fn initial(&self) -> &Initial {
        &self.builder.initial
    }

    /// What makes snapshots of copies.
    pub fn builder(&self) -> &SnapshotBuilder {
        &self.builder
    }

    /// What holds the particles.
    pub fn executor(&self) -> &dyn Executor {
        &*self.executor
    }

    /// Sets whether the next sums of forces have potentials, which diagnostics need.
    pub fn want_potential(&mut self, wanted: bool) {
        self.executor.want_potential(wanted);
    }

    /// Makes the step with this number, counted from 1, bath included. `potential` is whether its
    /// forces have potentials.
    ///
    /// # Errors
    /// Those of [`Stepper::step`], of the bath, and [`Error::NotFinite`] for a state that is not finite.
    pub fn step(&mut self, number: u64, potential: bool, times: &mut StageTimes) -> Result<(), Error> {
        self.want_potential(potential);
        self.stepper.step(self.executor.as_mut(), times)?;
        self.executor.thermostat(number, self.dt)?;
        self.executor.check()
    }

    /// Sums the forces unless they belong to the present positions.
    ///
    /// # Errors
    /// Those of [`Executor::forces`].
    pub fn refresh(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        self.stepper.refresh(self.executor.as_mut(), times)
    }

    /// Has the next [`refresh`](Self::refresh) sum the forces in any case.
    pub fn forget_forces(&mut self) {
        self.stepper.forget();
    }

    /// The choice that sums at the present positions begin with, where that of the tables has missed
    /// the tolerance before.
    pub fn kept(&self) -> Option<Kept> {
        self.stepper.kept()
    }

    /// Goes on with what [`kept`](Self::kept) has returned at the present positions.
    pub fn recall(&mut self, kept: Option<Kept>) {
        self.stepper.recall(kept);
    }

    /// A copy of the particles with their last forces, to be brought to the host.
    ///
    /// # Errors
    /// Those of [`Executor::copy`].
    pub fn copy(&mut self) -> Result<Pending, Error> {
        self.executor.copy()
    }

    /// Diagnostics that are summed where the particles are; `None` where they are as well taken
    /// from a copy. The last forces belong to the positions, and have potentials.
    ///
    /// # Errors
    /// Those of [`Executor::totals`].
    pub fn totals(&mut self) -> Result<Option<Diagnostics>, Error> {
        let SnapshotBuilder { initial, law, factor, .. } = &self.builder;
        let totals = self.executor.totals(&initial.mass)?;
        Ok(totals.map(|totals| Diagnostics::from_totals(&totals, *factor, *law == Law::Vortex)))
    }

    /// Diagnostics from a copy of the present state.
    pub fn diagnostics(&self, copied: &Copied) -> Diagnostics {
        self.builder.diagnostics(copied, self.executor.force_report())
    }

    /// Positions for particles that are shown at `shown`: in a periodic box each stays in the image
    /// of the box that it has moved to, on which dipoles and momenta depend.
    ///
    /// # Errors
    /// Those of [`Executor::particles`].
    pub fn unwrapped(&mut self, shown: Vec<[f64; 3]>) -> Result<Vec<[f64; 3]>, Error> {
        let Some(cell) = self.builder.boundary.periodic() else { return Ok(shown) };
        let now = self.executor.particles()?.position;
        let place = |((new, now), wrapped): (([f64; 3], [f64; 3]), [f64; 3])| {
            std::array::from_fn(|k| {
                let images = ((now[k] - wrapped[k]) / cell.side[k]).round();
                if new[k] == wrapped[k] { now[k] } else { new[k] + images * cell.side[k] }
            })
        };
        let wrapped = cell.wrap(&now);
        Ok(shown.into_iter().zip(now).zip(wrapped).map(place).collect())
    }

    /// Lets `change` change positions and velocities.
    ///
    /// # Errors
    /// Those of [`Executor::upload`].
    pub fn change(&mut self, change: impl FnOnce(&mut Particles)) -> Result<(), Error> {
        let mut particles = self.executor.particles()?;
        change(&mut particles);
        self.stepper.move_on();
        self.executor.upload(&particles)
    }
}
