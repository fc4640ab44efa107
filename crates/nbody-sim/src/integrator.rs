//! Integrators of fixed step. Those of particles with inertia are symplectic, and data: a step is a list of kicks and drifts.
//! Those of point vortices are in [`flow`].
//!
//! Kick-drift-kick and drift-kick-drift leapfrog are of second order; Yoshida's (Phys. Lett. A
//! 150 (1990) 262) composes three leapfrogs of lengths w1, w0, w1 to fourth order. Forces are summed only where a
//! kick finds the positions changed, so kick-drift-kick costs one force sum a step and Yoshida three.

use fmm_core::{Error, Executor, StageTimes};

use crate::flow;

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

/// Advances the particles of an executor.
#[derive(Debug, Clone)]
pub struct Stepper {
    integrator: Integrator,
    dt: f64,
    /// Whether the executor's forces belong to its positions.
    fresh: bool,
}

impl Stepper {
    /// For steps of length `dt`; nothing is assumed of the executor's forces.
    pub fn new(integrator: Integrator, dt: f64) -> Self {
        Stepper { integrator, dt, fresh: false }
    }

    /// One step.
    ///
    /// # Errors
    /// Those of [`Executor::forces`], and steps with which the midpoint rule does not converge.
    pub fn step(&mut self, executor: &mut dyn Executor, times: &mut StageTimes) -> Result<(), Error> {
        if self.integrator.of_flows() {
            self.refresh(executor, times)?;
            self.fresh = false;
            return match self.integrator {
                Integrator::Midpoint => flow::midpoint(executor, self.dt, times),
                _ => flow::runge_kutta(executor, self.dt, times),
            };
        }
        for m in self.integrator.moves() {
            match *m {
                Move::Kick(h) => {
                    self.refresh(executor, times)?;
                    executor.kick(h * self.dt, times)?;
                }
                Move::Drift(h) => {
                    executor.drift(h * self.dt, times)?;
                    self.fresh = false;
                }
            }
        }
        Ok(())
    }

    /// Takes the executor's forces for those of other positions.
    pub fn forget(&mut self) {
        self.fresh = false;
    }

    /// Sums the forces unless they belong to the present positions.
    ///
    /// # Errors
    /// Those of [`Executor::forces`].
    pub fn refresh(&mut self, executor: &mut dyn Executor, times: &mut StageTimes) -> Result<(), Error> {
        if !self.fresh {
            executor.forces(times)?;
            self.fresh = true;
        }
        Ok(())
    }
}
