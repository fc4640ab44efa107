//! Steps of point vortices: positions follow a velocity that depends on nothing but positions, x' = u(x).
//!
//! Vortices have no inertia, so there is nothing to kick. The classical Runge-Kutta scheme is of fourth order and takes
//! four sums a step; the implicit midpoint rule, x' = x + h u((x + x')/2), is of second order and symplectic, and is solved by
//! iteration. Both move the particles where these are.

use fmm_core::{Error, ParticleStore, StageTimes};

use crate::choices::Choices;

/// How the classical Runge-Kutta scheme adds up its four velocities, and how far along the last of them the next is taken.
const RUNGE_KUTTA: [(f64, f64); 4] = [(1.0 / 6.0, 0.5), (1.0 / 3.0, 0.5), (1.0 / 3.0, 1.0), (1.0 / 6.0, 0.0)];

/// Iterations of the midpoint rule before it is given up.
const ITERATIONS: usize = 50;

/// Changes of positions, relative to the largest coordinate, below which the midpoint rule has converged.
const CONVERGED: f64 = 1e-15;

/// Where rounding, or the tolerance of the sums, keeps changes from becoming smaller, they may be this large.
const STALLED: f64 = 1e-6;

/// Gaussian blobs in the plane that viscosity spreads: their variance σ² grows by 2νt (Leonard 1980).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spreading {
    /// σ at the time 0.
    pub core: f64,
    /// ν.
    pub viscosity: f64,
}

impl Spreading {
    /// σ at a time.
    pub fn length(self, time: f64) -> f64 {
        (self.core * self.core + 2.0 * self.viscosity * time).sqrt()
    }
}

/// Sets what a store has at a part of the way through a step.
pub type Spread<'a> = &'a dyn Fn(&mut dyn ParticleStore, f64);

/// One step of length `h` by Runge and Kutta; the forces must belong to the positions, and will not afterwards.
///
/// # Errors
/// Those of [`ParticleStore::forces`] and [`ParticleStore::flow`].
pub fn runge_kutta(
    store: &mut dyn ParticleStore,
    choices: &mut Choices,
    h: f64,
    spread: Spread,
    times: &mut StageTimes,
) -> Result<(), Error> {
    store.begin_flow()?;
    for (k, (weight, next)) in RUNGE_KUTTA.into_iter().enumerate() {
        if k > 0 {
            choices.forces(store, times)?;
        }
        store.flow(weight)?;
        let last = next == 0.0;
        store.flow_to(if last { h } else { next * h }, last)?;
        spread(store, next * h);
        choices.move_on();
    }
    Ok(())
}

/// One step of length `h` by the implicit midpoint rule, under the same conditions.
///
/// # Errors
/// Those of [`ParticleStore::forces`] and [`ParticleStore::flow`]; [`Error::NoConvergence`] where the iteration does not converge.
pub fn midpoint(
    store: &mut dyn ParticleStore,
    choices: &mut Choices,
    h: f64,
    spread: Spread,
    times: &mut StageTimes,
) -> Result<(), Error> {
    let size = store.begin_flow()?;
    store.flow(0.0)?;
    let mut before = f64::INFINITY;
    for _ in 0..ITERATIONS {
        store.flow_to(0.5 * h, false)?;
        spread(store, 0.5 * h);
        choices.move_on();
        choices.forces(store, times)?;
        let change = h * store.flow(0.0)?;
        let stalled = change >= before && change <= STALLED * size;
        if change <= CONVERGED * size || stalled {
            store.flow_to(h, false)?;
            choices.move_on();
            return Ok(());
        }
        before = before.min(change);
    }
    Err(Error::NoConvergence(h))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, TAU};

    use fmm_core::planar::{Blob, Kernel};
    use fmm_core::{CpuStore, Particles, Settings};

    use super::*;

    /// A vector of each particle.
    type Vectors = Vec<[f64; 3]>;

    /// A step.
    type Scheme = fn(&mut dyn ParticleStore, &mut Choices, f64, Spread, &mut StageTimes) -> Result<(), Error>;

    /// Three vortices of unequal circulation, after `steps` steps to the time 1.
    fn after(step: Scheme, steps: u32) -> Vectors {
        let mut store =
            CpuStore::in_plane(Settings { tolerance: 1e-13, ..Settings::default() }, Kernel::Log, Blob::Point).unwrap();
        let particles = Particles {
            position: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.3, 0.8, 0.0]],
            velocity: vec![[0.0; 3]; 3],
            strength: vec![TAU, PI, -0.5],
            coupling: vec![1.0 / TAU; 3],
            ..Particles::default()
        };
        store.upload(&particles).unwrap();
        let mut times = StageTimes::default();
        for _ in 0..steps {
            store.forces(&mut times).unwrap();
            step(&mut store, &mut Choices::default(), 1.0 / f64::from(steps), &|_, _| (), &mut times).unwrap();
        }
        store.particles().unwrap().position
    }

    fn distance(a: &Vectors, b: &Vectors) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a[0] - b[0]).hypot(a[1] - b[1])).fold(0.0, f64::max)
    }

    #[test]
    fn schemes_have_their_orders() {
        let exact = after(runge_kutta, 400);
        for (scheme, order) in [(runge_kutta as Scheme, 4), (midpoint, 2)] {
            let [coarse, fine] = [20, 40].map(|steps| distance(&after(scheme, steps), &exact));
            let found = (coarse / fine).log2();
            assert!((found - f64::from(order)).abs() < 0.3, "order {order}: {coarse:e} {fine:e}");
        }
    }

    #[test]
    fn a_pair_turns_counterclockwise() {
        // Circulations of 2π each at the distance 1: both turn at Γ_total/(2π) = 2 radians a time about the middle.
        let mut store =
            CpuStore::in_plane(Settings { tolerance: 1e-13, ..Settings::default() }, Kernel::Log, Blob::Point).unwrap();
        let particles = Particles {
            position: vec![[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]],
            velocity: vec![[0.0; 3]; 2],
            strength: vec![TAU; 2],
            coupling: vec![1.0 / TAU; 2],
            ..Particles::default()
        };
        store.upload(&particles).unwrap();
        let mut times = StageTimes::default();
        for _ in 0..100 {
            store.forces(&mut times).unwrap();
            runge_kutta(&mut store, &mut Choices::default(), 0.01 * PI / 4.0, &|_, _| (), &mut times).unwrap();
        }
        let [x, y, _] = store.particles().unwrap().position[0];
        assert!((x).abs() < 1e-6 && (y - 0.5).abs() < 1e-6, "{x} {y}");
    }

    #[test]
    fn a_step_too_long_is_refused() {
        let mut store = CpuStore::in_plane(Settings::default(), Kernel::Log, Blob::Point).unwrap();
        let particles = Particles {
            position: vec![[0.0; 3], [1.0, 0.0, 0.0]],
            velocity: vec![[0.0; 3]; 2],
            strength: vec![TAU, PI],
            coupling: vec![1.0 / TAU; 2],
            ..Particles::default()
        };
        store.upload(&particles).unwrap();
        store.forces(&mut StageTimes::default()).unwrap();
        let refused = midpoint(&mut store, &mut Choices::default(), 7.0, &|_, _| (), &mut StageTimes::default());
        assert!(matches!(refused, Err(Error::NoConvergence(_))), "{refused:?}");
    }
}
