//! What is due after a step: measured forces, diagnostics, snapshots and checkpoints.

use std::time::Instant;

use fmm::{Kernel, Problem};
use fmm_core::{Copied, Error, Particles, Pending, Stage};
use nbody_sim::files::rows::Rows;
use nbody_sim::ranks::Shared;
use serde_json::json;

use super::ParticleRun;
use crate::diagnostics::Diagnostics;
use crate::failure::Failure;
use crate::files::checkpoint::{self, State};
use crate::files::snapshot::{Field, Snapshot};
use crate::messages::number;
use crate::run::evolve::Evolve as _;
use crate::run::plan::Due;
use crate::run::resume::Resumable as _;
use crate::run::verify::{self, Measured, sampled_error};

/// The failure of a store that fails to copy.
fn device(error: Error) -> Failure {
    Failure::new(crate::failure::code(&error).max(70), error.to_string())
}

impl ParticleRun<'_> {
    /// Writes what is due. What the store sums where the particles are comes from there; particles are copied for all else.
    pub(super) fn write(&mut self, due: Due) -> Result<(), Failure> {
        self.refresh()?;
        let start = Instant::now();
        let diagnosed = due.diagnostics || due.snapshot;
        let totals = if diagnosed { self.motion.totals().map_err(device)? } else { None };
        let shared = self.motion.ranks().is_some();
        let host = !shared && (due.verify || due.checkpoint || diagnosed && totals.is_none());
        let copied = if host { Some(self.copy()?) } else { None };
        if let Some(Copied { particles, field, .. }) = copied.as_ref().filter(|_| due.verify) {
            let forces = self.scenario.forces();
            let own = (!forces.is_none()).then(|| forces.without(&particles.position, &particles.strength, field));
            self.verify(particles, own.as_deref().unwrap_or(field))?;
        }
        // A checkpoint in passing remembers nothing that an unbroken run would not know.
        if diagnosed {
            let now = match (totals, &copied) {
                (Some(totals), _) => totals,
                (None, Some(copied)) => self.motion.diagnostics(copied),
                (None, None) => unreachable!("copied where there are no totals"),
            };
            self.diagnose(now, due.diagnostics)?;
        }
        if shared && (due.snapshot || due.checkpoint) {
            return self.write_shared(due, start);
        }
        let mut last = copied.filter(|_| due.snapshot || due.checkpoint);
        if due.snapshot {
            let pending: Pending = match last.take_if(|_| !due.checkpoint).or_else(|| last.clone()) {
                Some(copied) => Box::new(move || Ok(copied)),
                None => self.motion.copy().map_err(device)?,
            };
            self.snapshot(pending)?;
        }
        // After the outputs of its step: a run that goes on from here need not write them.
        if let Some(copied) = last.filter(|_| due.checkpoint) {
            self.course.settle(true)?;
            return self.checkpoint(copied, start);
        }
        self.course.times.add(Stage::Output, start.elapsed());
        Ok(())
    }

    /// Writes snapshot and checkpoint of particles that ranks share: they come in pieces from their homes.
    fn write_shared(&mut self, due: Due, start: Instant) -> Result<(), Failure> {
        let layout = self.scenario.layout.clone();
        let fields = [&layout.fields[..], &[Field::Acceleration]].concat();
        let rows: &dyn Rows = &Shared::stage(&mut self.motion, &fields).map_err(device)?;
        if due.snapshot {
            let written = self.course.directory.snapshot_of(self.about(), rows, &layout)?;
            self.course.report(written)?;
        }
        if due.checkpoint {
            let (scenario, numbers) = (self.scenario.resolved(None, rows.count()), self.numbers());
            return self.course.save(rows, scenario, numbers, start);
        }
        self.course.times.add(Stage::Output, start.elapsed());
        Ok(())
    }

    /// What the next snapshot says in addition to its arrays.
    fn about(&self) -> Snapshot {
        let named = self.last.named(&self.first.unwrap_or_default());
        let force_error = self.verified.last.filter(|e| e.is_finite()).map(|e| ("force_error", e));
        let diagnostics = named.into_iter().chain(force_error).map(|(n, v)| (n.to_string(), v)).collect();
        let (step, time, units) = (self.course.step, self.time(), self.scenario.units.snapshot());
        Snapshot { time, step, units, diagnostics, ..Snapshot::default() }
    }

    /// Particles and forces on the host.
    fn copy(&mut self) -> Result<Copied, Failure> {
        self.motion.copy().and_then(|pending| pending()).map_err(device)
    }

    /// Measures the error of the forces.
    fn verify(&mut self, particles: &Particles, field: &[[f64; 3]]) -> Result<(), Failure> {
        let s = &self.scenario;
        let Some(verify) = s.verify else { return Ok(()) };
        let kernel = match s.plane {
            Some(_) => Kernel::Log,
            None if s.vortices() => Kernel::Vortex,
            None => Kernel::Laplace,
        };
        let (settings, blob) = (s.settings.clone(), s.blob(self.time()).unwrap_or_default());
        let problem = Problem { settings, blob, ..Problem::new(kernel) };
        let error = sampled_error(&problem, particles, field, verify.sample, self.course.step);
        self.verified.add(error);
        let measured = Measured {
            error,
            name: format!("{} force error of {} particles", verify::norm(&problem), verify.sample.min(particles.len())),
            tolerance: ("solver.tolerance", s.settings.tolerance),
            way_out: "Leave out solver.order and solver.theta, or choose precision = \"f64\"",
        };
        if let Some(text) = measured.judge(verify.action, (self.course.step, self.time()))? {
            self.course.progress.warn(&text);
        }
        Ok(())
    }

    /// Keeps the diagnostics, and adds their line if it is due.
    fn diagnose(&mut self, now: Diagnostics, line: bool) -> Result<(), Failure> {
        let first = *self.first.get_or_insert(now);
        if let Some((name, value)) = now.named(&first).into_iter().find(|(_, v)| !v.is_finite()) {
            return Err(self.broken(&format!("{name} = {value}")));
        }
        (self.last, self.measured, self.worst) = (now, true, self.worst.max(now.drift_from(&first).abs()));
        for text in self.sense.look(&self.scenario, self.course.step, &now) {
            let text = format!("step {}, time {}: {text}", self.course.step, number(self.time()));
            self.course.progress.warn(&text);
        }
        if !line {
            return Ok(());
        }
        let force_error = self.verified.last;
        let (step, time, named) = (self.course.step, self.time(), now.named(&first));
        let number = |v: f64| format!("{v:?}");
        let mut cells: Vec<String> = named.iter().map(|&(_, v)| number(v)).collect();
        cells.push(force_error.map_or(String::new(), number));
        self.course.directory.diagnostics(&self.scenario.columns(), (step, time), &cells)?;
        let mut facts = json!({ "step": step, "time": time, "force_error": force_error });
        for (name, value) in named {
            facts[name] = value.into();
        }
        self.course.events.send("diagnostics", facts)
    }

    /// Begins to take and write a snapshot, which goes on during the next steps.
    fn snapshot(&mut self, pending: Pending) -> Result<(), Failure> {
        // Memory holds one at a time.
        self.course.settle(true)?;
        let (s, about) = (&self.scenario, self.about());
        let (of, fields, lacking) = ((about.step, about.time), s.layout.fields.clone(), s.lacking_errors());
        let builder = self.motion.builder().clone();
        let taking = move || {
            let copied = pending().map_err(device)?;
            if fields.contains(&Field::ForceError) && copied.error.len() != copied.particles.len() {
                return Err(Failure::new(65, lacking));
            }
            let Snapshot { time, step, units, diagnostics, .. } = about;
            Ok(Snapshot { time, step, units, diagnostics, ..builder.snapshot(copied, &fields) })
        };
        self.course.directory.snapshot(of, Box::new(taking), &s.layout)
    }

    fn checkpoint(&mut self, Copied { mut particles, field, .. }: Copied, since: Instant) -> Result<(), Failure> {
        let acceleration = self.motion.builder().motion(&mut particles, &field);
        let state = State::Particles(checkpoint::Particles {
            id: (0..particles.len() as u64).collect(),
            position: particles.position,
            velocity: particles.velocity,
            acceleration,
            mass: self.motion.initial().mass.clone(),
            charge: self.scenario.charged().then(|| self.motion.initial().charge.clone()),
            vorticity: self.scenario.vortices_in_space().then_some(particles.vorticity),
        });
        let (scenario, numbers) = (self.scenario.resolved_of(&state), self.numbers());
        self.course.save(state, scenario, numbers, since)
    }
}
