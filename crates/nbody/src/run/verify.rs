//! Checks of the forces during a run: a sample of the particles against direct sums, written as the formulas stand.
//!
//! In a periodic box the direct sum is Ewald's. The norm is that of the tolerance: e_i = |δa_i|/max(|a_i|, f_i) with f_i a thousandth of the largest single term of
//! particle i; told is the root of the mean of e_i² over the sample. In the plane it is L2 = ‖δ‖/‖a‖ over the sample, as the
//! tolerance is there.

use fmm_core::cpu::direct_field;
use fmm_core::ewald::{self, At};
use fmm_core::planar::Blob;
use fmm_core::{Particles, PeriodicBox, Softening};
use rayon::prelude::*;

/// A miss by this factor ends a run with `action = "stop"`: the rms of a sample scatters about that of all particles,
/// so that a smaller miss may be chance, and is told only.
pub const GROSS: f64 = 10.0;

/// What is summed.
#[derive(Debug, Clone, Copy)]
pub enum Kernel {
    /// e = −∇Σ q K with 1/r, or what softens it.
    Space(Softening),
    /// The same of all images of a box, by Ewald's sum.
    Periodic(PeriodicBox, Softening),
    /// e = −∇Σ q log r, or of its blob.
    Plane(Blob),
}

impl Kernel {
    /// The norm of an error.
    pub fn norm(self) -> &'static str {
        match self {
            Kernel::Space(_) | Kernel::Periodic(..) => "rms",
            Kernel::Plane(_) => "L2",
        }
    }
}

/// What the checks of a run have shown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Verified {
    /// The last measured error.
    pub last: Option<f64>,
    /// The largest.
    pub largest: f64,
    /// How many were measured.
    pub count: u64,
}

impl Verified {
    /// Adds a measured error.
    pub fn add(&mut self, error: f64) {
        *self = Verified { last: Some(error), largest: self.largest.max(error), count: self.count + 1 };
    }
}

/// The error of `field` over `sample` particles, other ones at every step.
pub fn sampled_error(particles: &Particles, field: &[[f64; 3]], kernel: Kernel, sample: usize, step: u64) -> f64 {
    let n = particles.len();
    let sample = sample.min(n);
    if sample == 0 {
        return 0.0;
    }
    // Evenly spaced numbers from a start that the step scatters.
    let start = (step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % n;
    let chosen: Vec<usize> =
        (0..sample).map(|k| (start + (k as u128 * n as u128 / sample as u128) as usize) % n).collect();
    let Particles { position, strength, .. } = particles;
    let exact: Vec<([f64; 3], f64)> = match kernel {
        Kernel::Space(softening) => {
            let places: Vec<[f64; 3]> = chosen.iter().map(|&i| position[i]).collect();
            direct_field(softening, position, strength, &places)
        }
        Kernel::Periodic(cell, softening) => {
            let at = At::Some(&chosen);
            let sums = ewald::evaluate(&cell, softening.simplified(), ewald::EXACT, position, strength, at);
            sums.field.into_iter().zip(sums.largest).collect()
        }
        Kernel::Plane(blob) => chosen.par_iter().map(|&i| in_plane(particles, blob, i)).collect(),
    };
    let miss = |k: usize| {
        let (i, (exact, largest)) = (chosen[k], exact[k]);
        let wrong = norm(std::array::from_fn(|c| field[i][c] - exact[c]));
        (wrong, norm(exact).max(1e-3 * largest))
    };
    // Where nothing is wrong there may be nothing to be relative to.
    let misses: Vec<(f64, f64)> = (0..sample).map(miss).collect();
    let ratio = |wrong: f64, right: f64| if wrong == 0.0 { 0.0 } else { wrong / right };
    match kernel {
        Kernel::Space(_) | Kernel::Periodic(..) => {
            (misses.iter().map(|m| ratio(m.0, m.1).powi(2)).sum::<f64>() / sample as f64).sqrt()
        }
        Kernel::Plane(_) => {
            let length = |part: fn(&(f64, f64)) -> f64| {
                let largest = misses.iter().map(part).fold(0.0, f64::max);
                let square = |m: &(f64, f64)| (part(m) / largest).powi(2);
                if largest > 0.0 { largest * misses.iter().map(square).sum::<f64>().sqrt() } else { 0.0 }
            };
            ratio(length(|m| m.0), length(|m| m.1))
        }
    }
}

/// |v|, also where the squares would leave the range of numbers.
fn norm(v: [f64; 3]) -> f64 {
    v[0].hypot(v[1]).hypot(v[2])
}

/// The field of a blob at particle `i` in the plane, and its largest single term.
fn in_plane(particles: &Particles, blob: Blob, i: usize) -> ([f64; 3], f64) {
    let x = particles.position[i];
    let (mut field, mut largest) = ([0.0; 3], 0.0f64);
    for (y, q) in particles.position.iter().zip(&particles.strength) {
        let d = [x[0] - y[0], x[1] - y[1], 0.0];
        let r = norm(d);
        // The particle itself, and others at its place, pull in no direction.
        if r == 0.0 {
            continue;
        }
        let f = q * slope(blob, r);
        (0..3).for_each(|c| field[c] += f * d[c]);
        largest = largest.max(f.abs() * r);
    }
    (field, largest)
}

/// −K'(r)/r of a blob, r > 0.
fn slope(blob: Blob, r: f64) -> f64 {
    match blob {
        // Two divisions: squares may leave the range of numbers.
        Blob::Point => -1.0 / r / r,
        Blob::Algebraic(e) => {
            let u = r * r + e * e;
            -(r * r + 2.0 * e * e) / u / u
        }
        Blob::Gaussian(s) => (-r * r / (2.0 * s * s)).exp_m1() / r / r,
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::{Settings, StageTimes, evaluate};

    use super::*;

    fn cloud() -> Particles {
        let x = |i: usize, k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0;
        Particles {
            position: (0..500).map(|i| std::array::from_fn(|k| x(i, k + 1))).collect(),
            strength: (0..500).map(|i| 1.0 + x(i, 0)).collect(),
            ..Particles::default()
        }
    }

    /// The direct sums at all particles.
    fn fields(particles: &Particles, softening: Softening) -> Vec<[f64; 3]> {
        let Particles { position, strength, .. } = particles;
        direct_field(softening, position, strength, position).into_iter().map(|(e, _)| e).collect()
    }

    #[test]
    fn right_forces_pass_for_every_softening() {
        let cloud = cloud();
        for softening in [Softening::None, Softening::Plummer(0.05), Softening::Spline(0.05), Softening::P1(0.05)] {
            let settings = Settings { softening, tolerance: 1e-12, ..Settings::default() };
            let times = &mut StageTimes::default();
            let sum = evaluate(&settings, &cloud.position, &cloud.strength, None, times).unwrap();
            let error = sampled_error(&cloud, &sum.field, Kernel::Space(softening), 100, 3);
            assert!(error < 1e-11, "{softening:?}: {error:e}");
            // Half a force too much everywhere is an error of one half.
            let wrong: Vec<_> = sum.field.iter().map(|e| e.map(|c| 1.5 * c)).collect();
            let error = sampled_error(&cloud, &wrong, Kernel::Space(softening), 100, 3);
            assert!((error - 0.5).abs() < 1e-9, "{softening:?}: {error}");
        }
    }

    #[test]
    fn sets_of_any_size_are_judged_alike() {
        for (length, charge) in [(1e90, 1.0), (1e-90, 1.0), (1.0, 1e150), (1.0, 1e-150)] {
            for softening in [Softening::None, Softening::P1(0.05 * length)] {
                let mut cloud = cloud();
                cloud.position.as_flattened_mut().iter_mut().for_each(|x| *x *= length);
                cloud.strength.iter_mut().for_each(|q| *q *= charge);
                let exact = fields(&cloud, softening);
                assert_eq!(
                    sampled_error(&cloud, &exact, Kernel::Space(softening), 100, 3),
                    0.0,
                    "{length:e} {charge:e}"
                );
                let wrong: Vec<_> = exact.iter().map(|e| e.map(|c| 1.5 * c)).collect();
                let error = sampled_error(&cloud, &wrong, Kernel::Space(softening), 100, 3);
                assert!((error - 0.5).abs() < 1e-9, "{length:e} {charge:e} {softening:?}: {error}");
            }
        }
    }

    #[test]
    fn small_samples_and_lone_particles() {
        let one = Particles { position: vec![[1.0; 3]], strength: vec![2.0], ..Particles::default() };
        assert_eq!(sampled_error(&one, &[[0.0; 3]], Kernel::Space(Softening::None), 256, 9), 0.0);
        assert_eq!(sampled_error(&Particles::default(), &[], Kernel::Space(Softening::None), 256, 9), 0.0);
        assert_eq!(sampled_error(&one, &[[1.0, 0.0, 0.0]], Kernel::Space(Softening::None), 256, 9), f64::INFINITY);
    }

    #[test]
    fn where_forces_cancel_the_largest_term_counts() {
        // The middle one of three feels nothing: what is wrong there is measured by a thousandth of the pull of either neighbour.
        let row = Particles {
            position: vec![[-1.0, 0.0, 0.0], [0.0; 3], [1.0, 0.0, 0.0]],
            strength: vec![1.0; 3],
            ..Particles::default()
        };
        let mut field = fields(&row, Softening::None);
        assert_eq!(field[1], [0.0; 3]);
        field[1][2] = 3e-6;
        let error = sampled_error(&row, &field, Kernel::Space(Softening::None), 3, 0);
        assert!((error - 3e-3 / 3f64.sqrt()).abs() < 1e-12, "{error:e}");
    }

    #[test]
    fn the_largest_error_is_kept() {
        let mut all = Verified::default();
        [0.1, 0.5, 0.2].into_iter().for_each(|error| all.add(error));
        assert_eq!(all, Verified { last: Some(0.2), largest: 0.5, count: 3 });
    }

    #[test]
    fn every_particle_has_its_turn() {
        // One wrong force in 500 is found at some step by samples of 10.
        let cloud = cloud();
        let settings = Settings { tolerance: 1e-12, ..Settings::default() };
        let mut field =
            evaluate(&settings, &cloud.position, &cloud.strength, None, &mut StageTimes::default()).unwrap().field;
        field[123] = [0.0; 3];
        let found =
            (0..500).filter(|&s| sampled_error(&cloud, &field, Kernel::Space(Softening::None), 10, s) > 0.1).count();
        assert!((2..50).contains(&found), "{found} of 500");
    }

    #[test]
    fn flat_sums_are_judged_by_their_l2_error() {
        use fmm_core::planar::{self, Strengths};
        let mut cloud = cloud();
        cloud.position.iter_mut().for_each(|x| x[2] = 0.0);
        let points: Vec<[f64; 2]> = cloud.position.iter().map(|x| [x[0], x[1]]).collect();
        for blob in [Blob::Point, Blob::Algebraic(0.05), Blob::Gaussian(0.05)] {
            let settings = Settings { tolerance: 1e-12, ..Settings::default() };
            let strengths = Strengths { real: &cloud.strength, imaginary: None };
            let (log, times) = (planar::Kernel::Log, &mut StageTimes::default());
            let sum = planar::evaluate(&settings, log, blob, &points, strengths, None, times).unwrap();
            let field: Vec<[f64; 3]> = sum.field.iter().map(|e| [e[0], e[1], 0.0]).collect();
            let error = sampled_error(&cloud, &field, Kernel::Plane(blob), 100, 3);
            assert!(error < 1e-11, "{blob:?}: {error:e}");
            // Also where the squares of the forces are no numbers any more.
            for size in [1.0, 1e-200, 1e200] {
                let wrong: Vec<_> = field.iter().map(|e| e.map(|c| 1.5 * size * c)).collect();
                let strength = cloud.strength.iter().map(|q| q * size).collect();
                let sized = Particles { strength, ..cloud.clone() };
                let error = sampled_error(&sized, &wrong, Kernel::Plane(blob), 100, 3);
                assert!((error - 0.5).abs() < 1e-9, "{blob:?} {size:e}: {error}");
            }
        }
    }
}
