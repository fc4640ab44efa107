//! What a run remembers across checkpoints in addition to the state of its particles.

use std::path::PathBuf;

use super::ParticleRun;
use crate::diagnostics::{Diagnostics, Ions, Vorticity};
use crate::failure::Failure;
use crate::files::checkpoint::{Particles, State};
use crate::run::kept;
use crate::run::plan::Plan;
use crate::run::ranks;
use crate::run::resume::Resumable;
use crate::run::verify::Verified;
use crate::scenario::{Override, Scenario};

impl ParticleRun<'_> {
    /// What a checkpoint keeps in addition to the state of the particles.
    pub(super) fn numbers(&self) -> Vec<(String, f64)> {
        let first = self.first.unwrap_or_default();
        let energies = |name: &str, d: &Diagnostics| {
            [(format!("{name}_kinetic"), d.kinetic), (format!("{name}_potential"), d.potential)]
        };
        let mut numbers = [energies("first", &first), energies("last", &self.last)].concat();
        numbers.push(("largest_energy_error".into(), self.worst));
        numbers.extend(self.sense.numbers());
        numbers.extend(self.motion.kept().iter().flat_map(kept::numbers));
        numbers.extend(self.verified.numbers("force_error"));
        numbers
    }

    /// The reverse of [`numbers`](Self::numbers).
    pub(super) fn recall(&mut self, numbers: &[(String, f64)]) {
        let get = |name: &str| numbers.iter().find(|(n, _)| n == name).map(|&(_, v)| v);
        let energies = |name: &str| {
            let kinetic = get(&format!("{name}_kinetic"))?;
            Some(Diagnostics { kinetic, potential: get(&format!("{name}_potential"))?, ..Diagnostics::default() })
        };
        self.first = energies("first");
        self.last = energies("last").unwrap_or_default();
        self.worst = get("largest_energy_error").unwrap_or(0.0);
        self.sense.recall(numbers);
        self.motion.recall(kept::recalled(&get));
        self.verified = Verified::recalled("force_error", get);
    }
}

impl Resumable for Scenario {
    fn parse_resumed(name: &str, text: String, sets: &[Override]) -> Result<Self, Failure> {
        Ok(Scenario::parse_resumed(name, text, sets)?)
    }

    fn plan(&self) -> Plan {
        Plan {
            title: self.title.clone(),
            clock: self.clock,
            steps: self.steps,
            snapshot_every: self.snapshot_every,
            diagnostics_every: self.diagnostics_every,
            verify_every: self.verify.map(|v| v.every),
            checkpoint_wall: self.checkpoint_wall,
        }
    }

    fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    fn directory(&mut self) -> &mut PathBuf {
        &mut self.directory
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn resolved_of(&self, state: &State) -> String {
        let particles = if let State::Particles(p) = state { p.id.len() } else { 0 };
        // Without what the solver chose: that is of a sum, not of the scenario.
        self.resolved(None, particles)
    }

    fn columns(&self) -> String {
        let ions = self.ions().then(Ions::default);
        let vorticity = self.vortices_in_space().then(Vorticity::default);
        let vortices = self.vortices() && vorticity.is_none();
        let none = Diagnostics { vortices, ions, vorticity, ..Diagnostics::default() };
        let names = none.named(&none).into_iter().map(|(name, _)| name);
        ["step", "time"].into_iter().chain(names).chain(["force_error"]).collect::<Vec<_>>().join(",")
    }

    fn check_for_ranks(&self, name: &str) -> Result<(), Failure> {
        ranks::check(name, self)
    }

    fn check(&self, _: &Self, state: &State) -> Result<(), String> {
        match state {
            State::Particles(Particles { charge: None, .. }) if self.charged() => {
                Err("holds no charges, which force.law = \"coulomb\" needs".into())
            }
            State::Particles(Particles { vorticity: None, .. }) if self.vortices_in_space() => {
                Err("holds no vorticity, which force.law = \"vortex\" in space needs".into())
            }
            _ => Ok(()),
        }
    }
}
