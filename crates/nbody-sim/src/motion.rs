//! Particles in motion: held where their forces are summed, and moved by steps.

use std::sync::Arc;

use fmm::Note;
use fmm_core::comm::{Comm, Solo, before};
use fmm_core::{Copied, Error, Kept, ParticleStore, Particles, Pending, StageTimes};

use crate::diagnostics::Diagnostics;
use crate::failure::{self, Failure};
use crate::initial::Initial;
use crate::integrator::Stepper;
use crate::orders::Order;
use crate::scenario::Scenario;
use crate::scenario::clock::Clock;
use crate::snapshot_builder::SnapshotBuilder;
use crate::thermostat::Thermostat;

/// The particles of a scenario, on the device that it asks for, or those at home on one of several ranks.
///
/// Over ranks the first one calls, and each of its calls is an [order](Order) that the others [follow](crate::ranks::follow).
pub struct Motion<'a> {
    ranks: Option<&'a dyn Comm>,
    store: Box<dyn ParticleStore + 'a>,
    stepper: Stepper,
    /// What exchanges heat with the particles, and the seed of its random numbers.
    bath: Option<(Thermostat, u64)>,
    clock: Clock,
    builder: SnapshotBuilder,
    /// How many particles all ranks have.
    count: usize,
}

impl<'a> Motion<'a> {
    /// Has the other ranks do what follows here, if this is the first.
    fn give(&self, order: &Order) {
        if let Some(comm) = self.ranks.filter(|comm| comm.rank() == 0) {
            order.give(comm);
        }
    }

    /// Hands the particles to the device. Over `ranks` each of them calls it, with the particles whose home it is.
    /// `note` receives notes on the choice of the device.
    ///
    /// # Errors
    /// 69 to 71 for a device that fails, 65 for particles that it cannot take.
    pub fn new(
        scenario: &Scenario,
        ranks: Option<&'a dyn Comm>,
        initial: Initial,
        note: &mut dyn FnMut(Note),
    ) -> Result<Self, Failure> {
        let [_, count] = before(ranks.unwrap_or(&Solo), initial.len());
        let mut store = scenario.store(ranks, count, note)?;
        let particles = initial.particles(scenario.law, scenario.signed_constant());
        store.upload(&particles).map_err(|e| Failure::new(failure::code(&e), format!("initial particles: {e}")))?;
        let stepper = Stepper::new(scenario.integrator, scenario.clock.dt).with_spreading(scenario.spreading());
        let builder = SnapshotBuilder::new(scenario, Arc::new(initial));
        let bath = scenario.bath.map(|bath| (bath, scenario.seed));
        Ok(Motion { ranks, store, stepper, bath, clock: scenario.clock, builder, count })
    }

    /// Number of particles, of all ranks.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The ranks, where there are any.
    pub fn ranks(&self) -> Option<&'a dyn Comm> {
        self.ranks
    }

    /// The particles at the start; over ranks those at home.
    pub fn initial(&self) -> &Initial {
        &self.builder.initial
    }

    /// What makes snapshots of copies.
    pub fn builder(&self) -> &SnapshotBuilder {
        &self.builder
    }

    /// What holds the particles.
    pub fn store(&self) -> &dyn ParticleStore {
        &*self.store
    }

    /// Sets whether the next sums of forces have potentials, which diagnostics need.
    pub fn want_potential(&mut self, wanted: bool) {
        self.give(&Order::WantPotential(wanted));
        self.store.want_potential(wanted);
    }

    /// Makes the step with this number, counted from 1, bath included. `potential` is whether its
    /// forces have potentials.
    ///
    /// # Errors
    /// Those of [`Stepper::step`] and of the store, and [`Error::NotFinite`] for a state that is not finite.
    pub fn step(&mut self, number: u64, potential: bool, times: &mut StageTimes) -> Result<(), Error> {
        self.give(&Order::Step { number, potential });
        self.store.want_potential(potential);
        self.stepper.step(self.store.as_mut(), times)?;
        self.set_time(self.clock.time(number));
        if let Some((bath, seed)) = self.bath.filter(|(bath, _)| number <= bath.last) {
            let (dt, mass) = (self.clock.dt, &self.builder.initial.mass);
            self.store.exchange_heat(&bath.exchange(seed, number, dt, mass))?;
        }
        self.store.check()
    }

    /// Notes the time of the positions.
    pub fn set_time(&mut self, time: f64) {
        self.stepper.set_time(time);
    }

    /// Sums the forces unless they belong to the present positions.
    ///
    /// # Errors
    /// Those of [`ParticleStore::forces`].
    pub fn refresh(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        self.give(&Order::Refresh);
        self.stepper.refresh(self.store.as_mut(), times)
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
        self.give(&Order::Recall(kept));
        self.stepper.recall(kept);
    }

    /// A copy of the particles with their last forces, to be brought to the host. Over ranks it has those at home.
    ///
    /// # Errors
    /// Those of [`ParticleStore::copy`].
    pub fn copy(&mut self) -> Result<Pending, Error> {
        self.store.copy()
    }

    /// Diagnostics that are summed where the particles are, by all ranks where there are any; `None` where they are
    /// as well taken from a copy. The last forces belong to the positions, and have potentials.
    ///
    /// # Errors
    /// Those of [`ParticleStore::totals`].
    pub fn totals(&mut self) -> Result<Option<Diagnostics>, Error> {
        if let Some(comm) = self.ranks {
            self.give(&Order::Diagnose);
            let copied = self.copy()?()?;
            return Ok(Some(self.builder.diagnostics(comm, &copied, self.store.force_report())));
        }
        // The pressure of softened ions needs their places.
        if self.builder.softened.is_some() {
            return Ok(None);
        }
        let totals = self.store.totals(&self.builder.initial.mass)?;
        Ok(totals.map(|totals| self.builder.diagnostics_of(&totals, self.store.force_report())))
    }

    /// Diagnostics from a copy of the present state.
    pub fn diagnostics(&self, copied: &Copied) -> Diagnostics {
        self.builder.diagnostics(&Solo, copied, self.store.force_report())
    }

    /// Positions for particles that are shown at `shown`: in a periodic box each stays in the image
    /// of the box that it has moved to, on which dipoles and momenta depend.
    ///
    /// # Errors
    /// Those of [`ParticleStore::particles`].
    pub fn unwrapped(&mut self, shown: Vec<[f64; 3]>) -> Result<Vec<[f64; 3]>, Error> {
        let Some(cell) = self.builder.boundary.periodic() else { return Ok(shown) };
        let now = self.store.particles()?.position;
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
    /// Those of [`ParticleStore::upload`].
    pub fn change(&mut self, change: impl FnOnce(&mut Particles)) -> Result<(), Error> {
        let mut particles = self.store.particles()?;
        change(&mut particles);
        self.stepper.move_on();
        self.store.upload(&particles)
    }
}
