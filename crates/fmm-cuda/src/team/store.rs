//! The particles of a run on several GPUs.

use std::sync::{Mutex, PoisonError};

use fmm_core::bath::HeatExchange;
use fmm_core::{Choice, Error, ForceReport, Kept, ParticleStore, Particles, Pending, StageTimes, Totals};

use super::{on_each, working};
use crate::CudaStore;
use crate::shares::left;

/// Particles that live on every GPU of a team, which share the sums and each do all the rest.
///
/// All positions are on every GPU. Where sums leave fields on the GPU of a slice alone, each kicks
/// and drifts its slice, and has its velocities alone. The bits are those of a [`CudaStore`].
pub struct TeamStore {
    stores: Vec<CudaStore>,
    /// How many of them work: all, or the first.
    working: usize,
    pays: f64,
    /// Why the GPUs may not have the same state any more.
    failed: Option<Error>,
}

impl TeamStore {
    /// The particles of these stores, one for each GPU of a team, all of the same settings and
    /// forces. The first works alone where it is expected to make a sum of the particles in less
    /// than `pays` nanoseconds, such as [`PAYS`](super::PAYS).
    pub fn new(stores: Vec<CudaStore>, pays: f64) -> Self {
        TeamStore { working: stores.len(), stores, pays, failed: None }
    }

    /// Has each GPU do its part; the answer of the first. After an error the state is lost, as some
    /// GPUs may have done theirs: every call has this error until particles are uploaded anew.
    fn all<R: Send>(&mut self, work: impl Fn(&mut CudaStore) -> Result<R, Error> + Sync) -> Result<R, Error> {
        self.on_all(|store, _| work(store))
    }

    fn on_all<R: Send>(&mut self, work: impl Fn(&mut CudaStore, usize) -> Result<R, Error> + Sync) -> Result<R, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let done = on_each(&mut self.stores[..self.working], CudaStore::gpu, work);
        let first = done.and_then(|all| all.into_iter().next().ok_or_else(left));
        self.failed = first.as_ref().err().cloned();
        first
    }

    /// Has potentials, velocities and fields of all particles on every GPU.
    fn complete(&mut self) -> Result<(), Error> {
        self.all(|store| {
            store.complete()?;
            store.gather()
        })
    }

    /// The same for work whose stages are timed.
    fn timed<R: Send>(
        &mut self,
        times: &mut StageTimes,
        work: impl Fn(&mut CudaStore, &mut StageTimes) -> Result<R, Error> + Sync,
    ) -> Result<R, Error> {
        let cancel = times.cancel().clone();
        let of_first = Mutex::new(times);
        self.on_all(|store, index| {
            let own = &mut StageTimes::with_cancel(cancel.clone());
            let done = work(store, own);
            if index == 0 {
                of_first.lock().unwrap_or_else(PoisonError::into_inner).merge(own);
            }
            done
        })
    }
}

impl ParticleStore for TeamStore {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        let Some(first) = self.stores.first() else { return Err(left()) };
        let settings = first.settings().clone();
        let sums = (&settings, particles.len(), self.pays);
        self.failed = None;
        self.working = working(&mut self.stores, CudaStore::gpu_mut, sums).len();
        self.all(|store| store.upload(particles))
    }

    fn forces_kept(&mut self, kept: Option<Kept>, times: &mut StageTimes) -> Result<Option<Kept>, Error> {
        self.timed(times, |store, times| store.forces_kept(kept, times))
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        self.timed(times, |store, times| store.kick(h, times))
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) -> Result<(), Error> {
        self.timed(times, |store, times| store.drift(h, times))
    }

    fn begin_flow(&mut self) -> Result<f64, Error> {
        self.all(CudaStore::begin_flow)
    }

    fn flow(&mut self, weight: f64) -> Result<f64, Error> {
        self.all(|store| store.flow(weight))
    }

    fn flow_to(&mut self, h: f64, summed: bool) -> Result<(), Error> {
        self.all(|store| store.flow_to(h, summed))
    }

    fn exchange_heat(&mut self, exchange: &HeatExchange<'_>) -> Result<(), Error> {
        self.all(CudaStore::gather)?;
        self.all(|store| store.exchange_heat(exchange))
    }

    fn check(&mut self) -> Result<(), Error> {
        let checked = self.all(CudaStore::check);
        if !matches!(checked, Err(Error::NotFinite { .. })) {
            return checked;
        }
        // Each has looked at its slice. The first counts all of them, as a single GPU does.
        self.failed = None;
        self.all(CudaStore::gather)?;
        self.stores[0].check()
    }

    fn particles(&mut self) -> Result<Particles, Error> {
        self.all(CudaStore::gather)?;
        self.stores[0].particles()
    }

    fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error> {
        self.complete()?;
        self.stores[0].field()
    }

    fn error(&mut self) -> Result<Vec<f64>, Error> {
        self.stores[0].error()
    }

    fn copy(&mut self) -> Result<Pending, Error> {
        self.complete()?;
        self.stores[0].copy()
    }

    fn want_potential(&mut self, wanted: bool) {
        self.stores.iter_mut().for_each(|store| store.want_potential(wanted));
    }

    fn totals(&mut self, mass: &[f64]) -> Result<Option<Totals>, Error> {
        self.complete()?;
        self.stores[0].totals(mass)
    }

    fn force_report(&self) -> ForceReport {
        self.stores[0].force_report()
    }

    fn choice(&self) -> Option<Choice> {
        self.stores[0].choice()
    }

    fn coincident_pairs(&self) -> u64 {
        self.stores[0].coincident_pairs()
    }
}
