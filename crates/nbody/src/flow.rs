//! Steps of point vortices: positions follow a velocity that depends on nothing but positions, x' = u(x).
//!
//! Vortices have no inertia, so there is nothing to kick. The classical Runge-Kutta scheme is of fourth order and takes
//! four sums a step; the implicit midpoint rule, x' = x + h u((x + x')/2), is of second order and symplectic, and is solved by
//! iteration. Both move the particles of any executor by taking them out and handing them back.

use fmm_core::{Error, Executor, StageTimes};
use rayon::prelude::*;

/// Velocities from the field e = −∇Σ Γ log r: u = coupling · (e_y, −e_x), with 1/(2π) as coupling.
pub fn velocities(coupling: &[f64], field: &[[f64; 3]]) -> Vec<[f64; 3]> {
    coupling.par_iter().zip(field).map(|(c, e)| [c * e[1], -(c * e[0]), 0.0]).collect()
}

/// How the classical Runge-Kutta scheme adds up its four velocities, and how far along the last of them the next is taken.
const RUNGE_KUTTA: [(f64, f64); 4] = [(1.0 / 6.0, 0.5), (1.0 / 3.0, 0.5), (1.0 / 3.0, 1.0), (1.0 / 6.0, 0.0)];

/// Iterations of the midpoint rule before it is given up.
const ITERATIONS: usize = 50;

/// Changes of positions, relative to the largest coordinate, below which the midpoint rule has converged.
const CONVERGED: f64 = 1e-15;

/// Where rounding, or the tolerance of the sums, keeps changes from becoming smaller, they may be this large.
const STALLED: f64 = 1e-6;

/// A vector of each particle.
type Vectors = Vec<[f64; 3]>;

/// The velocities at the present positions of the executor, whose forces are up to date with them.
fn present(executor: &mut dyn Executor, coupling: &[f64]) -> Vectors {
    velocities(coupling, &executor.field().1)
}

/// x + h u.
fn moved(x: &[[f64; 3]], u: &[[f64; 3]], h: f64) -> Vectors {
    x.par_iter().zip(u).map(|(x, u)| std::array::from_fn(|k| x[k] + h * u[k])).collect()
}

/// One step of length `h` by Runge and Kutta; the forces must belong to the positions, and will not afterwards.
///
/// # Errors
/// Those of [`Executor::forces`].
pub fn runge_kutta(executor: &mut dyn Executor, h: f64, times: &mut StageTimes) -> Result<(), Error> {
    let mut particles = executor.particles();
    let start = particles.position.clone();
    let mut sum = vec![[0.0; 3]; start.len()];
    for (k, (weight, next)) in RUNGE_KUTTA.into_iter().enumerate() {
        if k > 0 {
            executor.forces(times)?;
        }
        let u = present(executor, &particles.coupling);
        sum = moved(&sum, &u, weight);
        particles.position = if next > 0.0 { moved(&start, &u, next * h) } else { moved(&start, &sum, h) };
        executor.upload(&particles)?;
    }
    Ok(())
}

/// One step of length `h` by the implicit midpoint rule, under the same conditions.
///
/// # Errors
/// Those of [`Executor::forces`]; [`Error::Unsupported`] where the iteration does not converge.
pub fn midpoint(executor: &mut dyn Executor, h: f64, times: &mut StageTimes) -> Result<(), Error> {
    let mut particles = executor.particles();
    let start = particles.position.clone();
    let size = start.par_iter().map(|x| x[0].abs().max(x[1].abs())).reduce(|| 0.0, f64::max);
    let mut u = present(executor, &particles.coupling);
    let mut before = f64::INFINITY;
    for _ in 0..ITERATIONS {
        particles.position = moved(&start, &u, 0.5 * h);
        executor.upload(&particles)?;
        executor.forces(times)?;
        let next = present(executor, &particles.coupling);
        let apart = |(a, b): (&[f64; 3], &[f64; 3])| (a[0] - b[0]).abs().max((a[1] - b[1]).abs());
        let change = h * u.par_iter().zip(&next).map(apart).reduce(|| 0.0, f64::max);
        u = next;
        let stalled = change >= before && change <= STALLED * size;
        if change <= CONVERGED * size || stalled {
            particles.position = moved(&start, &u, h);
            return executor.upload(&particles);
        }
        before = before.min(change);
    }
    Err(Error::Unsupported(format!("the midpoint rule does not converge with steps of {h}")))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{PI, TAU};

    use fmm_core::planar::{Blob, Kernel};
    use fmm_core::{CpuExecutor, Particles, Settings};

    use super::*;

    /// Three vortices of unequal circulation, after `steps` steps to the time 1.
    fn after(step: fn(&mut dyn Executor, f64, &mut StageTimes) -> Result<(), Error>, steps: u32) -> Vectors {
        let mut executor =
            CpuExecutor::in_plane(Settings { tolerance: 1e-13, ..Settings::default() }, Kernel::Log, Blob::Point)
                .unwrap();
        let particles = Particles {
            position: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.3, 0.8, 0.0]],
            velocity: vec![[0.0; 3]; 3],
            strength: vec![TAU, PI, -0.5],
            coupling: vec![1.0 / TAU; 3],
        };
        executor.upload(&particles).unwrap();
        let mut times = StageTimes::default();
        for _ in 0..steps {
            executor.forces(&mut times).unwrap();
            step(&mut executor, 1.0 / f64::from(steps), &mut times).unwrap();
        }
        executor.particles().position
    }

    fn distance(a: &Vectors, b: &Vectors) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a[0] - b[0]).hypot(a[1] - b[1])).fold(0.0, f64::max)
    }

    #[test]
    fn schemes_have_their_orders() {
        let exact = after(runge_kutta, 400);
        for (scheme, order) in [(runge_kutta as fn(&mut dyn Executor, f64, &mut StageTimes) -> _, 4), (midpoint, 2)] {
            let [coarse, fine] = [20, 40].map(|steps| distance(&after(scheme, steps), &exact));
            let found = (coarse / fine).log2();
            assert!((found - f64::from(order)).abs() < 0.3, "order {order}: {coarse:e} {fine:e}");
        }
    }

    #[test]
    fn a_pair_turns_counterclockwise() {
        // Circulations of 2π each at the distance 1: both turn at Γ_total/(2π) = 2 radians a time about the middle.
        let mut executor =
            CpuExecutor::in_plane(Settings { tolerance: 1e-13, ..Settings::default() }, Kernel::Log, Blob::Point)
                .unwrap();
        let particles = Particles {
            position: vec![[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]],
            velocity: vec![[0.0; 3]; 2],
            strength: vec![TAU; 2],
            coupling: vec![1.0 / TAU; 2],
        };
        executor.upload(&particles).unwrap();
        let mut times = StageTimes::default();
        for _ in 0..100 {
            executor.forces(&mut times).unwrap();
            runge_kutta(&mut executor, 0.01 * PI / 4.0, &mut times).unwrap();
        }
        let [x, y, _] = executor.particles().position[0];
        assert!((x).abs() < 1e-6 && (y - 0.5).abs() < 1e-6, "{x} {y}");
    }

    #[test]
    fn a_step_too_long_is_refused() {
        let mut executor = CpuExecutor::in_plane(Settings::default(), Kernel::Log, Blob::Point).unwrap();
        let particles = Particles {
            position: vec![[0.0; 3], [1.0, 0.0, 0.0]],
            velocity: vec![[0.0; 3]; 2],
            strength: vec![TAU, PI],
            coupling: vec![1.0 / TAU; 2],
        };
        executor.upload(&particles).unwrap();
        executor.forces(&mut StageTimes::default()).unwrap();
        let refused = midpoint(&mut executor, 7.0, &mut StageTimes::default());
        assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
    }
}
