//! Vortex particles in space: how they move, are stretched, and exchange strength by viscosity.
//!
//! A particle has a place x, a volume V and a strength α, its vorticity times its volume:
//!
//! | | |
//! |---|---|
//! | motion | dx/dt = u(x) = −1/(4π) Σ g(r) (x − x_j) × α_j, as [`biot_savart`](crate::biot_savart) has it |
//! | stretching | dα/dt = (∇u)ᵀ α, in components α_k ∂_i u_k. Of pairs it is antisymmetric, so that Σ α stays; where ω is a curl it is (α·∇)u (Winckelmans & Leonard 1993) |
//! | viscosity | dα_i/dt = 2ν/σ² Σ_j (V_i α_j − V_j α_i) η(x_i − x_j) with η = (2πσ²)^(−3/2) exp(−r²/(2σ²)): strength is exchanged, and Σ α stays (Degond & Mas-Gallic 1989). ν∇²ω to second order in σ |
//!
//! u and ∇u are sums of 1/r and their second derivatives, one of each component of α. Exchanges are two sums of Gaussians.

mod store;

use rayon::prelude::*;

use crate::cpu::velocity_of;
use crate::kernel::AXES;
use crate::math::CollectVec;
use crate::{Choice, Error, Settings, Softening, StageTimes, WithHessian, evaluate_hessian, gauss};

pub use store::VortexStore;

/// The largest tolerance of a sum.
const MOST: f64 = 0.1;

/// 1/(4π).
const PART: f64 = std::f64::consts::FRAC_1_PI / 4.0;

/// What sums for vortex particles: the cores, or a GPU.
pub trait Sums: Send {
    /// As [`evaluate_hessian`] at the sources themselves.
    ///
    /// # Errors
    /// Those of [`evaluate_hessian`].
    fn derivatives(
        &mut self,
        settings: &Settings,
        position: &[[f64; 3]],
        strengths: &[f64],
        times: &mut StageTimes,
    ) -> Result<WithHessian, Error>;

    /// The potentials of [`gauss::evaluate`] at the sources themselves, a column for each of strengths.
    ///
    /// # Errors
    /// Those of [`gauss::evaluate`].
    fn gaussians(
        &mut self,
        settings: &gauss::Settings,
        position: &[[f64; 3]],
        strengths: &[&[f64]],
        times: &mut StageTimes,
    ) -> Result<Vec<Vec<f64>>, Error>;
}

/// The cores of this machine.
#[derive(Debug, Clone, Copy)]
pub struct OnCores;

impl Sums for OnCores {
    fn derivatives(
        &mut self,
        settings: &Settings,
        position: &[[f64; 3]],
        strengths: &[f64],
        times: &mut StageTimes,
    ) -> Result<WithHessian, Error> {
        evaluate_hessian(settings, position, strengths, None, times)
    }

    fn gaussians(
        &mut self,
        settings: &gauss::Settings,
        position: &[[f64; 3]],
        strengths: &[&[f64]],
        times: &mut StageTimes,
    ) -> Result<Vec<Vec<f64>>, Error> {
        Ok(gauss::evaluate(settings, position, strengths, None, times)?.potential)
    }
}

/// How particles exchange strength.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// ν.
    pub viscosity: f64,
    /// σ, at least the distance of neighbors.
    pub width: f64,
}

/// What vortex particles do at one moment.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// u. `[n]`
    pub velocity: Vec<[f64; 3]>,
    /// dα/dt. `[n]`
    pub turning: Vec<[f64; 3]>,
    /// α·ψ with the vector potential ψ, that of the particle itself included: half the sum is the kinetic energy at density 1. `[n]`
    pub energy: Vec<f64>,
    /// What was chosen for the largest component.
    pub choice: Option<Choice>,
    /// Pairs of particles at bitwise the same place.
    pub coincident_pairs: u64,
}

/// Motion and stretching of particles with strengths `vorticity`. The tolerance is that of the largest component: smaller ones, which
/// may be no more than rounding, are summed with as much less accuracy, and those that are zero everywhere not at all.
///
/// # Errors
/// Those of [`evaluate_hessian`]; [`Error::Unsupported`] for other softenings than p1.
pub fn rates(
    sums: &mut dyn Sums,
    settings: &Settings,
    position: &[[f64; 3]],
    vorticity: &[[f64; 3]],
    times: &mut StageTimes,
) -> Result<Rates, Error> {
    let Softening::P1(core) = settings.softening else {
        return Err(Error::Unsupported("vortex particles that stretch have the softening p1".into()));
    };
    let n = position.len();
    let mut all =
        Rates { velocity: vec![[0.0; 3]; n], turning: vec![[0.0; 3]; n], energy: vec![0.0; n], ..Rates::default() };
    let sizes = [0, 1, 2].map(|k: usize| vorticity.par_iter().map(|a| a[k].abs()).reduce(|| 0.0, f64::max));
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    for k in (0..3).filter(|&k| sizes[k] > 0.0) {
        let strengths = vorticity.par_iter().map(|a| a[k]).collect_vec();
        let tolerance = (settings.tolerance * (largest / sizes[k])).min(MOST);
        let settings = Settings { tolerance, ..settings.clone() };
        let WithHessian { sum, hessian } = sums.derivatives(&settings, position, &strengths, times)?;
        let rows = (&mut all.velocity, &mut all.turning, &mut all.energy).into_par_iter();
        let found = (vorticity, &sum.potential, &sum.field, &hessian).into_par_iter();
        rows.zip(found).for_each(|((u, turning, energy), (a, potential, field, hessian))| {
            let (part, more) = (velocity_of(k, *field), turned(k, a, hessian));
            (0..3).for_each(|d| u[d] += part[d]);
            (0..3).for_each(|d| turning[d] += more[d]);
            // Sums leave out the particle itself, whose potential is 3/2 α/ε.
            *energy += PART * a[k] * (potential + 1.5 / core * a[k]);
        });
        if sizes[k] == largest {
            (all.choice, all.coincident_pairs) = (Some(sum.choice), sum.coincident_pairs);
        }
    }
    Ok(all)
}

/// α_i ∂_j u_i of the part of u that α_k makes: 1/(4π) ε_imk α_i H_mj, with the second derivatives H of its potential.
fn turned(k: usize, a: &[f64; 3], hessian: &[f64; 6]) -> [f64; 3] {
    // ε_imk with k given: the next axis but one, and the next, change roles with opposite signs.
    let (p, q) = ((k + 1) % 3, (k + 2) % 3);
    let mut out = [0.0; 3];
    for ([i, j], h) in AXES.into_iter().zip(hessian) {
        // ε_pqk = 1: i = p with m = q, and i = q with m = p.
        let weight = |m: usize| {
            if m == q {
                a[p]
            } else if m == p {
                -a[q]
            } else {
                0.0
            }
        };
        out[j] += PART * weight(i) * h;
        if i != j {
            out[i] += PART * weight(j) * h;
        }
    }
    out
}

/// Adds what viscosity does to `turning`, of particles with these volumes.
///
/// # Errors
/// Those of [`gauss::evaluate`].
pub fn exchange(
    sums: &mut dyn Sums,
    Exchange { viscosity, width }: Exchange,
    tolerance: f64,
    (position, vorticity, volume): (&[[f64; 3]], &[[f64; 3]], &[f64]),
    turning: &mut [[f64; 3]],
    times: &mut StageTimes,
) -> Result<(), Error> {
    let total: f64 = volume.iter().sum();
    if total == 0.0 || viscosity == 0.0 {
        return Ok(());
    }
    // Errors of sums of Gaussians are parts of all strengths together; a particle sees those within a few σ.
    let around = (2.0 * std::f64::consts::PI * width * width).powf(1.5);
    let tolerance = (tolerance * around / total).clamp(1e-14, 0.1);
    let settings = gauss::Settings { tolerance, ..gauss::Settings::new(width) };
    let columns = [0, 1, 2].map(|k| vorticity.par_iter().map(|a| a[k]).collect_vec());
    let found = sums.gaussians(&settings, position, &[volume, &columns[0][..], &columns[1], &columns[2]], times)?;
    let factor = 2.0 * viscosity / (width * width) / around;
    turning.par_iter_mut().enumerate().for_each(|(i, turning)| {
        for k in 0..3 {
            turning[k] += factor * (volume[i] * found[k + 1][i] - vorticity[i][k] * found[0][i]);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: f64 = 0.3;

    fn settings() -> Settings {
        Settings { tolerance: 1e-11, softening: Softening::P1(CORE), ..Settings::default() }
    }

    fn number(i: usize, k: usize) -> f64 {
        ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0 - 0.4
    }

    fn cloud(n: usize) -> [Vec<[f64; 3]>; 2] {
        [0, 3].map(|from| (0..n).map(|i| [0, 1, 2].map(|k| number(i, from + k + 1))).collect())
    }

    /// u at a place, pair by pair.
    fn velocity(at: [f64; 3], position: &[[f64; 3]], vorticity: &[[f64; 3]]) -> [f64; 3] {
        let mut u = [0.0; 3];
        for (x, a) in position.iter().zip(vorticity) {
            let d = [0, 1, 2].map(|k: usize| at[k] - x[k]);
            let (r2, c2) = (d.iter().map(|d| d * d).sum::<f64>(), CORE * CORE);
            let g = (r2 + 2.5 * c2) * (r2 + c2).powf(-2.5) * PART;
            (0..3).for_each(|k| {
                let (a1, a2) = ((k + 1) % 3, (k + 2) % 3);
                u[k] -= g * (d[a1] * a[a2] - d[a2] * a[a1]);
            });
        }
        u
    }

    #[test]
    fn rates_are_those_of_the_formulas() {
        let [position, vorticity] = cloud(60);
        let found = rates(&mut OnCores, &settings(), &position, &vorticity, &mut StageTimes::default()).unwrap();
        let step = 1e-5;
        for i in 0..position.len() {
            let at = |d: usize, by: f64| std::array::from_fn(|k| position[i][k] + if k == d { by } else { 0.0 });
            let u = velocity(position[i], &position, &vorticity);
            for d in 0..3 {
                assert!((found.velocity[i][d] - u[d]).abs() < 1e-9, "{i}: {:?} {u:?}", found.velocity[i]);
                let [after, before] = [step, -step].map(|by| velocity(at(d, by), &position, &vorticity));
                let turning: f64 = (0..3).map(|k| vorticity[i][k] * (after[k] - before[k]) / (2.0 * step)).sum();
                assert!((found.turning[i][d] - turning).abs() < 1e-7, "{i} {d}: {} {turning}", found.turning[i][d]);
            }
        }
        // Antisymmetric pairs: the sum of strengths stays.
        for d in 0..3 {
            let (sum, size) = found.turning.iter().fold((0.0, 0.0), |(s, a), t| (s + t[d], a + f64::abs(t[d])));
            assert!(f64::abs(sum) < 1e-9 * size, "{sum} of {size}");
        }
        // The energy of all pairs, those of a particle with itself included.
        let mut energy = 0.0;
        for (x, a) in position.iter().zip(&vorticity) {
            for (y, b) in position.iter().zip(&vorticity) {
                let r2: f64 = (0..3).map(|k| (x[k] - y[k]).powi(2)).sum();
                let dot: f64 = (0..3).map(|k| a[k] * b[k]).sum();
                energy += PART * dot * (r2 + 1.5 * CORE * CORE) * (r2 + CORE * CORE).powf(-1.5);
            }
        }
        let found: f64 = found.energy.iter().sum();
        assert!((found - energy).abs() < 1e-9 * energy.abs(), "{found} {energy}");
    }

    #[test]
    fn exchanges_are_those_of_the_formula() {
        let [position, vorticity] = cloud(80);
        let volume: Vec<f64> = (0..80).map(|i| 0.5 + number(i, 9)).collect();
        let how = Exchange { viscosity: 0.02, width: 0.25 };
        let mut turning = vec![[0.0; 3]; 80];
        let places = (&position[..], &vorticity[..], &volume[..]);
        exchange(&mut OnCores, how, 1e-9, places, &mut turning, &mut StageTimes::default()).unwrap();
        let s2 = how.width * how.width;
        let mut sums = [0.0; 3];
        for i in 0..80 {
            let mut exact = [0.0; 3];
            for j in 0..80 {
                let r2: f64 = (0..3).map(|k| (position[i][k] - position[j][k]).powi(2)).sum();
                let eta = (2.0 * std::f64::consts::PI * s2).powf(-1.5) * (-r2 / (2.0 * s2)).exp();
                for k in 0..3 {
                    let given = volume[i] * vorticity[j][k] - volume[j] * vorticity[i][k];
                    exact[k] += 2.0 * how.viscosity / s2 * given * eta;
                }
            }
            for k in 0..3 {
                assert!((turning[i][k] - exact[k]).abs() < 1e-7, "{i}: {:?} {exact:?}", turning[i]);
                sums[k] += turning[i][k];
            }
        }
        assert!(sums.iter().all(|s| s.abs() < 1e-7), "{sums:?}");
    }

    #[test]
    fn exchanges_are_diffusion_to_second_order() {
        // ω = (−y, x, 0) exp(−r²/s²), whose Laplacian is ω (4 r²/s² − 10)/s².
        let s2 = 1.0;
        let error = |width: f64| {
            let (h, across) = (width / 1.25, (3.6 / width * 1.25) as i64);
            let at = |i: i64| (i as f64 + 0.5) * h;
            let axis = || -across..across;
            let position: Vec<[f64; 3]> =
                axis().flat_map(|k| axis().flat_map(move |j| axis().map(move |i| [at(i), at(j), at(k)]))).collect();
            let r2 = |x: &[f64; 3]| x.iter().map(|c| c * c).sum::<f64>();
            let volume = h.powi(3);
            let of = |x: &[f64; 3]| {
                let size = volume * (-r2(x) / s2).exp();
                [-x[1] * size, x[0] * size, 0.0]
            };
            let vorticity: Vec<[f64; 3]> = position.iter().map(of).collect();
            let mut turning = vec![[0.0; 3]; position.len()];
            let how = Exchange { viscosity: 0.5, width };
            let bodies = (&position[..], &vorticity[..], &vec![volume; position.len()][..]);
            exchange(&mut OnCores, how, 1e-6, bodies, &mut turning, &mut StageTimes::default()).unwrap();
            let (mut wrong, mut right) = (0.0, 0.0);
            for ((x, a), found) in position.iter().zip(&vorticity).zip(&turning) {
                for k in 0..3 {
                    let exact = 0.5 * a[k] * (4.0 * r2(x) / s2 - 10.0) / s2;
                    (wrong, right) = (wrong + (found[k] - exact).powi(2), right + exact * exact);
                }
            }
            f64::sqrt(wrong / right)
        };
        let [coarse, fine] = [0.25, 0.125].map(error);
        let order = (coarse / fine).log2();
        assert!(fine < 0.05 && (order - 2.0).abs() < 0.2, "{coarse:e} {fine:e}: order {order}");
    }

    #[test]
    fn small_components_take_less_accuracy_and_none_takes_no_sum() {
        struct Counting(Vec<f64>);
        impl Sums for Counting {
            fn derivatives(
                &mut self,
                settings: &Settings,
                position: &[[f64; 3]],
                strengths: &[f64],
                times: &mut StageTimes,
            ) -> Result<WithHessian, Error> {
                self.0.push(settings.tolerance);
                OnCores.derivatives(settings, position, strengths, times)
            }

            fn gaussians(
                &mut self,
                _: &gauss::Settings,
                _: &[[f64; 3]],
                _: &[&[f64]],
                _: &mut StageTimes,
            ) -> Result<Vec<Vec<f64>>, Error> {
                unreachable!("nothing is exchanged")
            }
        }
        let [position, mut vorticity] = cloud(20);
        vorticity.iter_mut().for_each(|a| (a[1], a[2]) = (0.0, 1e-6 * a[2]));
        let mut counting = Counting(vec![]);
        let found = rates(&mut counting, &settings(), &position, &vorticity, &mut StageTimes::default()).unwrap();
        // The last component is some 1e-6 of the first.
        let [first, last] = counting.0[..] else { panic!("{:?}", counting.0) };
        assert!(first == 1e-11 && (1e-6..1e-4).contains(&last) && found.choice.is_some(), "{last:e}");
        let refused = rates(&mut counting, &Settings::default(), &position, &vorticity, &mut StageTimes::default());
        assert!(matches!(refused, Err(Error::Unsupported(_))));
    }
}
