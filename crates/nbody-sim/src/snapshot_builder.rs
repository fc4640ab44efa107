//! Snapshots and diagnostics from copies of the particles, on any thread.

use std::sync::Arc;

use fmm_core::boundary::Moments;
use fmm_core::comm::Comm;
use fmm_core::forces::{External, Forces};
use fmm_core::math::CollectVec;
use fmm_core::planar::velocities;
use fmm_core::{Boundary, Copied, ForceReport, Particles, PeriodicBox, Totals};
use rayon::prelude::*;

use crate::diagnostics::{Diagnostics, State};
use crate::files::snapshot::{Field, Snapshot};
use crate::initial::Initial;
use crate::scenario::{Law, Scenario};

/// What snapshots and diagnostics need in addition to the copies.
#[derive(Clone)]
pub struct SnapshotBuilder {
    /// Masses and charges.
    pub initial: Arc<Initial>,
    /// A field in addition to that of the particles.
    pub external: Option<External>,
    /// What particles are to each other.
    pub law: Law,
    /// Whether they are vortices in space.
    pub in_space: bool,
    /// Where space ends.
    pub boundary: Boundary,
    /// The forces of ions in a box whose pressure is not known from their energy: they are softened.
    pub softened: Option<Arc<Forces>>,
    /// k_B.
    pub boltzmann: f64,
    /// −G or k_e.
    pub external_constant: f64,
    /// What the store's potentials are multiplied by: [`Scenario::potential_factor`](crate::scenario::Scenario::potential_factor).
    pub factor: f64,
}

impl SnapshotBuilder {
    /// That of a scenario with these particles at its start.
    pub fn new(scenario: &Scenario, initial: Arc<Initial>) -> Self {
        SnapshotBuilder {
            initial,
            external: scenario.external,
            law: scenario.law,
            in_space: scenario.vortices_in_space(),
            boundary: scenario.settings.boundary,
            softened: scenario.softened_ions().then(|| Arc::new(scenario.forces())),
            boltzmann: scenario.units.boltzmann(),
            external_constant: scenario.external_constant(),
            factor: scenario.potential_factor(),
        }
    }

    /// A snapshot of what a copy holds, with these fields; the time and what else a run knows is left out.
    pub fn snapshot(&self, Copied { mut particles, potential, field, error }: Copied, fields: &[Field]) -> Snapshot {
        let acceleration = self.motion(&mut particles, &field);
        Snapshot {
            id: (0..particles.len() as u64).collect(),
            mass: self.initial.mass.clone(),
            charge: self.charged().then(|| self.initial.charge.clone()),
            potential: fields.contains(&Field::Potential).then(|| self.whole_potential(&particles, potential)),
            acceleration: fields.contains(&Field::Acceleration).then_some(acceleration),
            // There are none where the device estimates none.
            force_error: (fields.contains(&Field::ForceError) && error.len() == particles.len())
                .then(|| particles.coupling.iter().zip(&error).map(|(c, e)| c.abs() * e).collect()),
            // Particles are shown in their box; the run goes on with where they have come.
            box_size: self.boundary.periodic().map_or(0.0, PeriodicBox::longest),
            position: match self.boundary.periodic() {
                Some(cell) => cell.wrap(&particles.position),
                None => particles.position,
            },
            velocity: particles.velocity,
            vorticity: self.in_space.then_some(particles.vorticity),
            ..Snapshot::default()
        }
    }

    /// Accelerations, coupling · field. Vortices, which have no inertia, have none: their velocities come from the field.
    pub fn motion(&self, particles: &mut Particles, field: &[[f64; 3]]) -> Vec<[f64; 3]> {
        if self.law == Law::Vortex {
            particles.velocity = if self.in_space { field.to_vec() } else { velocities(&particles.coupling, field) };
            return vec![[0.0; 3]; particles.len()];
        }
        SnapshotBuilder::acceleration(particles, field)
    }

    fn charged(&self) -> bool {
        self.law != Law::Gravity && !self.in_space
    }

    fn acceleration(particles: &Particles, field: &[[f64; 3]]) -> Vec<[f64; 3]> {
        particles.coupling.par_iter().zip(field).map(|(c, e)| e.map(|e| c * e)).collect_vec()
    }

    /// φ of the particles and of the external field, as snapshots show it, from what the store sums.
    fn whole_potential(&self, particles: &Particles, mut potential: Vec<f64>) -> Vec<f64> {
        let external = self.external_potential(&particles.position);
        potential.par_iter_mut().for_each(|p| *p *= self.factor);
        potential.iter_mut().zip(&external).for_each(|(p, e)| *p += e);
        potential
    }

    /// The sums over the particles of all ranks, with the store's report of other forces.
    pub fn diagnostics(
        &self,
        comm: &dyn Comm,
        Copied { particles, potential, field, .. }: &Copied,
        report: ForceReport,
    ) -> Diagnostics {
        if self.in_space {
            let state = State {
                position: &particles.position,
                velocity: field,
                mass: &self.initial.mass,
                strength: &particles.strength,
                potential,
                external: &[],
                acceleration: &[],
            };
            return Diagnostics::of_vorticity(comm, state, &particles.vorticity);
        }
        let potential: Vec<f64> = potential.par_iter().map(|p| self.factor * p).collect_vec();
        let vortices = self.law == Law::Vortex;
        let state = State {
            position: &particles.position,
            velocity: &particles.velocity,
            mass: &self.initial.mass,
            strength: &particles.strength,
            potential: &potential,
            external: &self.external_potential(&particles.position),
            acceleration: &if vortices { vec![] } else { SnapshotBuilder::acceleration(particles, field) },
        };
        let all = if vortices { Diagnostics::of_vortices(comm, state) } else { Diagnostics::of(comm, state) };
        let excess =
            |forces: &Arc<Forces>| self.factor * forces.excess_virial(&particles.position, &particles.strength);
        let report = ForceReport { virial: report.virial + self.softened.as_ref().map_or(0.0, excess), ..report };
        self.in_box(all, particles.len(), report, || {
            Moments::of(&particles.position, &particles.strength, [0.0; 3]).dipole
        })
    }

    /// The same from what a store has summed, without an external field.
    pub fn diagnostics_of(&self, totals: &Totals, report: ForceReport) -> Diagnostics {
        let all = Diagnostics::from_totals(totals, self.factor, self.law == Law::Vortex);
        self.in_box(all, self.initial.len(), report, || totals.first_moment)
    }

    /// `all` of `n` particles, if they are in a box with what is particular to it; `dipole` is Σ q x.
    fn in_box(
        &self,
        all: Diagnostics,
        n: usize,
        report: ForceReport,
        dipole: impl FnOnce() -> [f64; 3],
    ) -> Diagnostics {
        let Some(cell) = self.boundary.periodic() else { return all };
        let ions = (self.law == Law::Coulomb).then(|| (self.boltzmann, self.initial.mass.iter().sum(), dipole()));
        all.in_box(cell.volume(), n, report, ions)
    }

    /// Of each position; empty where there is no external field.
    fn external_potential(&self, position: &[[f64; 3]]) -> Vec<f64> {
        let at = |e: External| position.par_iter().map(|&x| e.at(x, self.external_constant).0).collect_vec();
        self.external.map(at).unwrap_or_default()
    }
}
