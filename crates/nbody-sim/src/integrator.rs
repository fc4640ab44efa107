//! Integrators of fixed step. Those of particles with inertia are symplectic, and data: a step is a list of kicks and drifts.
//! Those of point vortices are in [`flow`].
//!
//! Kick-drift-kick and drift-kick-drift leapfrog are of second order; Yoshida's (Phys. Lett. A
//! 150 (1990) 262) composes three leapfrogs of lengths w1, w0, w1 to fourth order. Forces are summed only where a
//! kick finds the positions changed, so kick-drift-kick costs one force sum a step and Yoshida three.

use fmm_core::{Error, Kept, ParticleStore, StageTimes};

use crate::choices::Choices;
use crate::flow::{self, Spreading};

/// `time.integrator` in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Integrator {
    /// Kick-drift-kick leapfrog.
    #[default]
    LeapfrogKdk,
    /// Drift-kick-drift leapfrog.
    LeapfrogDkd,
    /// Yoshida's fourth order from three kick-drift-kick leapfrogs.
    Yoshida4,
    /// The classical Runge-Kutta scheme of fourth order, for vortices.
    RungeKutta4,
    /// The implicit midpoint rule, for vortices.
    Midpoint,
}

/// A part of a step; the number is its length in steps.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Move {
    /// v += h a.
    Kick(f64),
    /// x += h v.
    Drift(f64),
}

/// w1 = 1/(2 − 2^(1/3)).
const W1: f64 = 1.351_207_191_959_657_8;
/// w0 = 1 − 2 w1.
const W0: f64 = 1.0 - 2.0 * W1;

impl Integrator {
    /// Names in scenarios.
    pub const NAMES: [(&'static str, Integrator); 5] = [
        ("leapfrog-kdk", Integrator::LeapfrogKdk),
        ("leapfrog-dkd", Integrator::LeapfrogDkd),
        ("yoshida4", Integrator::Yoshida4),
        ("rk4", Integrator::RungeKutta4),
        ("midpoint", Integrator::Midpoint),
    ];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        Integrator::NAMES[self as usize].0
    }

    /// Whether it moves vortices, which have no inertia, rather than particles that have.
    pub fn of_flows(self) -> bool {
        matches!(self, Integrator::RungeKutta4 | Integrator::Midpoint)
    }

    /// Sums of forces that a step takes; the midpoint rule takes as many as it needs, about this many.
    pub fn sums_per_step(self) -> u64 {
        match self {
            Integrator::LeapfrogKdk | Integrator::LeapfrogDkd => 1,
            Integrator::Yoshida4 => 3,
            Integrator::RungeKutta4 => 4,
            Integrator::Midpoint => 8,
        }
    }

    fn moves(self) -> &'static [Move] {
        use Move::{Drift, Kick};
        match self {
            Integrator::LeapfrogKdk => &[Kick(0.5), Drift(1.0), Kick(0.5)],
            Integrator::LeapfrogDkd => &[Drift(0.5), Kick(1.0), Drift(0.5)],
            Integrator::Yoshida4 => &[
                Kick(W1 / 2.0),
                Drift(W1),
                Kick((W1 + W0) / 2.0),
                Drift(W0),
                Kick((W0 + W1) / 2.0),
                Drift(W1),
                Kick(W1 / 2.0),
            ],
            Integrator::RungeKutta4 | Integrator::Midpoint => &[],
        }
    }
}

/// Advances the particles of a store.
#[derive(Debug, Clone)]
pub struct Stepper {
    integrator: Integrator,
    dt: f64,
    /// Whether the store's forces belong to its positions.
    fresh: bool,
    choices: Choices,
    spreading: Option<Spreading>,
    /// The time that the positions belong to.
    time: f64,
}

impl Stepper {
    /// For steps of length `dt`; nothing is assumed of the store's forces.
    pub fn new(integrator: Integrator, dt: f64) -> Self {
        Stepper { integrator, dt, fresh: false, choices: Choices::default(), spreading: None, time: 0.0 }
    }

    /// The same for blobs that viscosity spreads.
    pub fn with_spreading(self, spreading: Option<Spreading>) -> Self {
        Stepper { spreading, ..self }
    }

    /// Notes the time of the positions, on which the blobs depend.
    pub fn set_time(&mut self, time: f64) {
        self.time = time;
    }

    /// Gives the blobs the length that they have `after` the time of the positions.
    fn spread(&self, store: &mut dyn ParticleStore, after: f64) {
        if let Some(spreading) = self.spreading {
            store.set_core(spreading.length(self.time + after));
        }
    }

    /// One step.
    ///
    /// # Errors
    /// Those of [`ParticleStore::forces`], and steps with which the midpoint rule does not converge.
    pub fn step(&mut self, store: &mut dyn ParticleStore, times: &mut StageTimes) -> Result<(), Error> {
        if self.integrator.of_flows() {
            self.forces(store, times)?;
            self.fresh = false;
            let mut choices = self.choices;
            let spread: flow::Spread = &|store, after| self.spread(store, after);
            match self.integrator {
                Integrator::Midpoint => flow::midpoint(store, &mut choices, self.dt, spread, times)?,
                _ => flow::runge_kutta(store, &mut choices, self.dt, spread, times)?,
            }
            self.choices = choices;
            return Ok(());
        }
        for m in self.integrator.moves() {
            match *m {
                Move::Kick(h) => {
                    self.forces(store, times)?;
                    store.kick(h * self.dt, times)?;
                }
                Move::Drift(h) => {
                    store.drift(h * self.dt, times)?;
                    self.move_on();
                }
            }
        }
        Ok(())
    }

    /// Takes the store's forces for those of other positions.
    pub fn forget(&mut self) {
        self.fresh = false;
    }

    /// Notes that the positions have changed.
    pub fn move_on(&mut self) {
        self.fresh = false;
        self.choices.move_on();
    }

    /// The kept choice that sums at the present positions begin with.
    pub fn kept(&self) -> Option<Kept> {
        self.choices.now()
    }

    /// The reverse of [`kept`](Self::kept).
    pub fn recall(&mut self, kept: Option<Kept>) {
        self.choices = Choices::recalled(kept);
    }

    /// Sums the forces for an observer unless they belong to the present positions.
    ///
    /// # Errors
    /// Those of [`ParticleStore::forces`].
    pub fn refresh(&mut self, store: &mut dyn ParticleStore, times: &mut StageTimes) -> Result<(), Error> {
        if !matches!(self.integrator.moves().first(), Some(Move::Drift(_))) {
            return self.forces(store, times);
        }
        // A step that begins with a drift has no sum here: what it keeps must not depend on whether others look.
        if !self.fresh {
            self.spread(store, 0.0);
            self.choices.look(store, times)?;
            self.fresh = true;
        }
        Ok(())
    }

    /// The same for a step.
    fn forces(&mut self, store: &mut dyn ParticleStore, times: &mut StageTimes) -> Result<(), Error> {
        if !self.fresh {
            self.spread(store, 0.0);
            self.choices.forces(store, times)?;
            self.fresh = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::bath::HeatExchange;
    use fmm_core::{Choice, ForceReport, Particles, Precision};

    use super::*;

    /// A particle on a line whose force is what its sums have kept: a number that depends on all earlier ones.
    #[derive(Clone, Default, PartialEq, Debug)]
    struct Remembering {
        x: f64,
        v: f64,
        force: f64,
        start: f64,
        velocity: f64,
        iterations: u32,
    }

    impl ParticleStore for Remembering {
        fn upload(&mut self, _: &Particles) -> Result<(), Error> {
            Ok(())
        }

        fn forces_kept(&mut self, kept: Option<Kept>, _: &mut StageTimes) -> Result<Option<Kept>, Error> {
            let before = kept.map_or(1, |k| k.sums);
            self.force = f64::from(before);
            let sums = (before * 3 + (self.x.to_bits() >> 40) as u32 % 89) % 97;
            let precision = Precision::F64;
            Ok(Some(Kept {
                direct: false,
                target_error: 1e-4,
                precision,
                leaf_size: None,
                sums,
                patience: 99,
                mesh: None,
            }))
        }

        fn kick(&mut self, h: f64, _: &mut StageTimes) -> Result<(), Error> {
            self.v += h * self.force;
            Ok(())
        }

        fn drift(&mut self, h: f64, _: &mut StageTimes) -> Result<(), Error> {
            self.x += h * self.v;
            Ok(())
        }

        fn begin_flow(&mut self) -> Result<f64, Error> {
            (self.start, self.velocity, self.iterations) = (self.x, 0.0, 0);
            Ok(1.0)
        }

        fn flow(&mut self, weight: f64) -> Result<f64, Error> {
            self.velocity += weight * self.force;
            self.iterations += 1;
            Ok(if self.iterations == 5 { 0.0 } else { 1.0 })
        }

        fn flow_to(&mut self, h: f64, summed: bool) -> Result<(), Error> {
            self.x = self.start + h * if summed { self.velocity } else { self.force };
            Ok(())
        }

        fn check(&mut self) -> Result<(), Error> {
            Ok(())
        }

        fn particles(&mut self) -> Result<Particles, Error> {
            Ok(Particles::default())
        }

        fn field(&mut self) -> Result<(Vec<f64>, Vec<[f64; 3]>), Error> {
            Ok((vec![], vec![]))
        }

        fn force_report(&self) -> ForceReport {
            ForceReport::default()
        }

        fn exchange_heat(&mut self, _: &HeatExchange<'_>) -> Result<(), Error> {
            Ok(())
        }

        fn choice(&self) -> Option<Choice> {
            None
        }

        fn coincident_pairs(&self) -> u64 {
            0
        }
    }

    /// The positions after each of 9 steps, with `between` at their ends.
    fn positions(integrator: Integrator, between: impl Fn(usize, &mut Stepper, &mut Remembering)) -> Vec<f64> {
        let (mut stepper, mut particle) = (Stepper::new(integrator, 0.1), Remembering::default());
        let steps = 0..9;
        let step = |k| {
            stepper.step(&mut particle, &mut StageTimes::default()).unwrap();
            between(k, &mut stepper, &mut particle);
            particle.x
        };
        steps.map(step).collect()
    }

    #[test]
    fn kept_choices_depend_on_the_motion_alone() {
        let times = || StageTimes::default();
        for (name, integrator) in Integrator::NAMES {
            let plain = positions(integrator, |_, _, _| ());
            // Forces differ from sum to sum: with one force, third differences vanish.
            let third = |x: &[f64]| x[3] - 3.0 * x[2] + 3.0 * x[1] - x[0];
            assert!(plain.windows(4).all(|x| third(x).abs() > 1e-9), "{name}: {plain:?}");
            // Observers sum at the end of a step, once or twice.
            let watched = positions(integrator, |k, stepper, particle| {
                for _ in 0..k % 3 {
                    stepper.forget();
                    stepper.refresh(particle, &mut times()).unwrap();
                }
            });
            assert_eq!(plain, watched, "{name}");
            // A run goes on from what a checkpoint holds, and begins with a look.
            let resumed = positions(integrator, |k, stepper, particle| {
                if k % 2 == 0 {
                    let kept = stepper.kept();
                    *stepper = Stepper::new(integrator, 0.1);
                    stepper.recall(kept);
                    *particle = Remembering { x: particle.x, v: particle.v, ..Remembering::default() };
                    stepper.refresh(particle, &mut times()).unwrap();
                }
            });
            assert_eq!(plain, resumed, "{name}");
        }
    }
}
