//! Few bodies on known orbits.

use super::Initial;

/// Two bodies at the pericenter of an ellipse, on the x axis, moving counterclockwise in the xy plane; their period is
/// 2π √(a³/(G (m₁ + m₂))). Center of mass and momentum are zero.
pub fn kepler(masses: [f64; 2], semi_major_axis: f64, eccentricity: f64, gravity: f64) -> Initial {
    let total = masses[0] + masses[1];
    let distance = semi_major_axis * (1.0 - eccentricity);
    let speed = (gravity * total / semi_major_axis * (1.0 + eccentricity) / (1.0 - eccentricity)).sqrt();
    let shares = [masses[1] / total, -masses[0] / total];
    Initial {
        position: shares.map(|s| [s * distance, 0.0, 0.0]).to_vec(),
        velocity: shares.map(|s| [0.0, s * speed, 0.0]).to_vec(),
        mass: masses.to_vec(),
        charge: vec![0.0; 2],
        vorticity: vec![],
    }
}

/// Period of the figure of eight in units of √(size³/(G mass)).
#[cfg(test)]
const EIGHT_PERIOD: f64 = 6.325_913_985;

/// Three equal masses on a figure of eight (Chenciner & Montgomery 2000, with Simó's numbers).
pub fn figure_eight(mass: f64, size: f64, gravity: f64) -> Initial {
    const X: [f64; 2] = [0.970_004_356_697_34, -0.243_087_531_535_83];
    const V: [f64; 2] = [-0.932_407_371_441_04, -0.864_731_450_921_02];
    let speed = (gravity * mass / size).sqrt();
    let place = |s: f64| [s * size * X[0], s * size * X[1], 0.0];
    let motion = |s: f64| [s * speed * V[0], s * speed * V[1], 0.0];
    Initial {
        position: vec![place(1.0), place(-1.0), [0.0; 3]],
        velocity: vec![motion(-0.5), motion(-0.5), motion(1.0)],
        mass: vec![mass; 3],
        charge: vec![0.0; 3],
        vorticity: vec![],
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use fmm_core::{CpuStore, Method, ParticleStore, Precision, Settings, StageTimes};

    use super::*;
    use crate::integrator::{Integrator, Stepper};
    use crate::scenario::Law;

    /// The largest distance of a body from where it started, after `time` in `steps` steps.
    fn closure(start: &Initial, gravity: f64, time: f64, steps: u32) -> f64 {
        let settings = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
        let mut store = CpuStore::new(settings).unwrap();
        store.upload(&start.particles(Law::Gravity, gravity)).unwrap();
        let mut stepper = Stepper::new(Integrator::Yoshida4, time / f64::from(steps));
        // From within the pool of threads: handing each small sum to it from outside takes longer than the sum.
        let run = || (0..steps).try_for_each(|_| stepper.step(&mut store, &mut StageTimes::default()));
        rayon::join(run, || ()).0.unwrap();
        let end = store.particles().unwrap().position;
        let moved = |(a, b): (&[f64; 3], &[f64; 3])| (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
        start.position.iter().zip(&end).map(moved).fold(0.0, f64::max)
    }

    #[test]
    fn kepler_orbits_close_after_their_period() {
        let (gravity, a, e) = (3.0, 2.0, 0.6);
        let pair = kepler([1.0, 0.25], a, e, gravity);
        let period = 2.0 * PI * (a * a * a / (gravity * 1.25)).sqrt();
        assert!(closure(&pair, gravity, period, 4000) < 1e-6);
        // Half a period later they are at apocenter: they have moved by 2a from pericenter to
        // apocenter, shared by the masses.
        let half = closure(&pair, gravity, period / 2.0, 4000);
        assert!((half - 0.8 * 2.0 * a).abs() < 1e-6, "{half}");
    }

    #[test]
    fn the_figure_of_eight_closes_after_its_period() {
        let (gravity, mass, size) = (2.0, 0.5, 3.0);
        let eight = figure_eight(mass, size, gravity);
        let period = EIGHT_PERIOD * (size * size * size / (gravity * mass)).sqrt();
        let distance = closure(&eight, gravity, period, 3000);
        assert!(distance < 1e-5 * size, "{distance}");
        // A third of it brings each body to the place of another.
        assert!(closure(&eight, gravity, period / 3.0, 1000) > 0.5 * size);
    }
}
