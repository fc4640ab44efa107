//! Checks of a run: the forces on a sample of the particles, or the velocities in a sample of the
//! cells, are compared with direct sums in double precision. Forces are judged in the norm of the
//! tolerance (see [`fmm::Errors`]); in a periodic box their direct sum is Ewald's. Velocities on a
//! grid are judged by their relative L2 error.

use fmm::{Kernel, Points, Problem, Reference};
use fmm_core::Particles;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::messages::number;
use crate::scenario::Action;

/// A miss by this factor ends a run with `action = "stop"`: the error of a sample scatters about
/// that of all, so that a smaller miss may be chance and is only reported.
pub const GROSS: f64 = 10.0;

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

    /// What a checkpoint keeps of errors with this `name`.
    pub fn numbers(&self, name: &str) -> Vec<(String, f64)> {
        let Some(last) = self.last.filter(|last| (last + self.largest).is_finite()) else { return vec![] };
        let numbers = [("last", last), ("largest", self.largest), ("count", self.count as f64)];
        numbers.into_iter().map(|(what, value)| (format!("{name}_{what}"), value)).collect()
    }

    /// The reverse of [`numbers`](Self::numbers).
    pub fn recalled(name: &str, get: impl Fn(&str) -> Option<f64>) -> Self {
        let get = |what: &str| get(&format!("{name}_{what}"));
        let (largest, count) = (get("largest").unwrap_or(0.0), get("count").unwrap_or(0.0) as u64);
        Verified { last: get("last"), largest, count }
    }

    /// For `run.json`: errors in a `norm`, of samples of so many particles or cells, which are
    /// `what`. `None` if nothing was measured.
    pub fn json(&self, norm: &str, what: &str, sample: Option<usize>) -> Option<Value> {
        let mut value = json!({ "norm": norm, "last": self.last, "largest": self.largest, "samples": self.count });
        value[format!("{what}_per_sample")] = sample.into();
        (self.count > 0).then_some(value)
    }

    /// A line of the summary that begins with `label`; empty if nothing was measured.
    pub fn line(&self, label: &str, tolerance: Option<f64>) -> String {
        let asked = tolerance.map(|t| format!(", {t:e} asked")).unwrap_or_default();
        match self.count {
            0 => String::new(),
            count => format!("  {label:<13} {:.1e} at most of {count} samples{asked}\n", self.largest),
        }
    }
}

/// A measured error, and what it is compared with.
pub struct Measured {
    /// The error.
    pub error: f64,
    /// Its name in messages: `rms force error of 256 particles`.
    pub name: String,
    /// The key that bounds it, and its value.
    pub tolerance: (&'static str, f64),
    /// What makes it smaller.
    pub way_out: &'static str,
}

impl Measured {
    /// The warning of a miss at a step and its time, if it is one.
    ///
    /// # Errors
    /// 1 for a gross miss where `action` says so.
    pub fn judge(&self, action: Action, (step, time): (u64, f64)) -> Result<Option<String>, Failure> {
        let (error, (key, tolerance)) = (self.error, self.tolerance);
        if error <= tolerance {
            return Ok(None);
        }
        let (time, name) = (number(time), &self.name);
        let text = format!("step {step}, time {time}: the {name} is {error:.1e}, above {key} = {tolerance:e}");
        if action == Action::Stop && (error.is_nan() || error > GROSS * tolerance) {
            let files = if step == 0 {
                "nothing of the run was written"
            } else {
                "the files up to the step before are complete"
            };
            let line = format!(
                "stopped at {text} by more than {GROSS} times; {files}. {}; \
                 verify.action = \"warn\" goes on",
                self.way_out
            );
            return Err(Failure::new(1, line));
        }
        Ok(Some(text))
    }
}

/// The numbers of `sample` out of `n`, others at every step: evenly spaced from a start that the
/// step scatters.
pub fn chosen(n: usize, sample: usize, step: u64) -> impl Iterator<Item = usize> {
    let sample = sample.min(n);
    let start = (step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % n.max(1);
    (0..sample).map(move |k| (start + (k as u128 * n as u128 / sample as u128) as usize) % n)
}

/// √(Σ|δu|²/Σ|u|²) of vectors against exact ones; 0 where all are zero, infinite where the exact
/// ones alone are.
pub fn relative_l2(found: &[[f64; 3]], exact: &[[f64; 3]]) -> f64 {
    let largest = exact.as_flattened().iter().fold(0.0, |m: f64, u| m.max(u.abs()));
    let apart = || found.as_flattened().iter().zip(exact.as_flattened()).map(|(a, b)| a - b);
    if largest == 0.0 {
        return if apart().all(|d| d == 0.0) { 0.0 } else { f64::INFINITY };
    }
    // In units of the largest, so that squares are numbers.
    let size = |values: &mut dyn Iterator<Item = f64>| values.map(|v| (v / largest).powi(2)).sum::<f64>().sqrt();
    size(&mut apart()) / size(&mut exact.as_flattened().iter().copied())
}

/// The error of `field` over `sample` particles, other ones at every step: rms, or L2 in the plane.
pub fn sampled_error(problem: &Problem, particles: &Particles, field: &[[f64; 3]], sample: usize, step: u64) -> f64 {
    let chosen = chosen(particles.len(), sample, step).collect();
    let components = [0, 1, 2].map(|k| particles.vorticity.iter().map(|a| a[k]).collect::<Vec<_>>());
    let columns: Vec<&[f64]> = match problem.kernel {
        Kernel::Vortex => components.iter().map(|c| &c[..]).collect(),
        _ => vec![&particles.strength],
    };
    let errors = Reference::at(problem, &Points::in_space(&particles.position, &columns), chosen).errors(field);
    if problem.kernel == Kernel::Log { errors.l2 } else { errors.rms }
}

/// The name of the norm of [`sampled_error`].
pub fn norm(problem: &Problem) -> &'static str {
    if problem.kernel == Kernel::Log { "L2" } else { "rms" }
}

#[cfg(test)]
mod tests {
    use fmm_core::cpu::direct_field;
    use fmm_core::planar::Blob;
    use fmm_core::{Settings, Softening, StageTimes, evaluate};

    use super::*;

    fn space(softening: Softening) -> Problem {
        Problem { settings: Settings { softening, ..Settings::default() }, ..Problem::new(Kernel::Laplace) }
    }

    fn plane(blob: Blob) -> Problem {
        Problem { blob, ..Problem::new(Kernel::Log) }
    }

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
            let error = sampled_error(&space(softening), &cloud, &sum.field, 100, 3);
            assert!(error < 1e-11, "{softening:?}: {error:e}");
            // Half a force too much everywhere is an error of one half.
            let wrong: Vec<_> = sum.field.iter().map(|e| e.map(|c| 1.5 * c)).collect();
            let error = sampled_error(&space(softening), &cloud, &wrong, 100, 3);
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
                assert_eq!(sampled_error(&space(softening), &cloud, &exact, 100, 3), 0.0, "{length:e} {charge:e}");
                let wrong: Vec<_> = exact.iter().map(|e| e.map(|c| 1.5 * c)).collect();
                let error = sampled_error(&space(softening), &cloud, &wrong, 100, 3);
                assert!((error - 0.5).abs() < 1e-9, "{length:e} {charge:e} {softening:?}: {error}");
            }
        }
    }

    #[test]
    fn small_samples_and_lone_particles() {
        let one = Particles { position: vec![[1.0; 3]], strength: vec![2.0], ..Particles::default() };
        assert_eq!(sampled_error(&space(Softening::None), &one, &[[0.0; 3]], 256, 9), 0.0);
        assert_eq!(sampled_error(&space(Softening::None), &Particles::default(), &[], 256, 9), 0.0);
        assert_eq!(sampled_error(&space(Softening::None), &one, &[[1.0, 0.0, 0.0]], 256, 9), f64::INFINITY);
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
        let error = sampled_error(&space(Softening::None), &row, &field, 3, 0);
        assert!((error - 3e-3 / 3f64.sqrt()).abs() < 1e-12, "{error:e}");
    }

    #[test]
    fn the_largest_error_is_kept() {
        let mut all = Verified::default();
        [0.1, 0.5, 0.2].into_iter().for_each(|error| all.add(error));
        assert_eq!(all, Verified { last: Some(0.2), largest: 0.5, count: 3 });
    }

    #[test]
    fn velocities_of_any_size_are_judged_by_their_l2_error() {
        for size in [1.0, 1e-200, 1e200] {
            let exact = [[3.0 * size, 0.0, 0.0], [0.0, 4.0 * size, 0.0]];
            let mut found = exact;
            found[0][2] = 0.5 * size;
            assert!((relative_l2(&found, &exact) - 0.1).abs() < 1e-15);
            assert_eq!([relative_l2(&exact, &exact), relative_l2(&[], &[])], [0.0; 2]);
            assert_eq!(relative_l2(&found, &[[0.0; 3]; 2]), f64::INFINITY);
            found[1][1] = f64::NAN;
            assert!(relative_l2(&found, &exact).is_nan());
        }
    }

    #[test]
    fn misses_warn_and_gross_ones_end_a_run_that_is_to_stop() {
        let judge = |error: f64, action| {
            let (name, tolerance) = ("L2 error".to_string(), ("verify.tolerance", 1e-3));
            Measured { error, name, tolerance, way_out: "Sum better" }.judge(action, (3, 0.3))
        };
        for action in [Action::Warn, Action::Stop] {
            assert!(judge(1e-3, action).unwrap().is_none());
            let text = judge(9e-3, action).unwrap().unwrap();
            assert_eq!(text, "step 3, time 0.3: the L2 error is 9.0e-3, above verify.tolerance = 1e-3");
        }
        for error in [1.1e-2, f64::NAN, f64::INFINITY] {
            assert!(judge(error, Action::Warn).unwrap().is_some());
            let failure = judge(error, Action::Stop).unwrap_err();
            assert_eq!(failure.code, 1);
            assert!(failure.render(false).contains("Sum better; verify.action"), "{}", failure.render(false));
        }
    }

    #[test]
    fn numbers_of_checkpoints_are_recalled() {
        let all = Verified { last: Some(0.2), largest: 0.5, count: 3 };
        let numbers = all.numbers("force_error");
        let get = |name: &str| numbers.iter().find(|n| n.0 == name).map(|n| n.1);
        assert_eq!(Verified::recalled("force_error", get), all);
        assert_eq!(Verified::recalled("velocity_error", get), Verified::default());
        // A checkpoint has no number that is not finite.
        for last in [f64::INFINITY, f64::NAN] {
            let mut all = all;
            all.add(last);
            assert!(all.numbers("force_error").is_empty(), "{last}");
        }
    }

    #[test]
    fn every_particle_has_its_turn() {
        // One wrong force in 500 is found at some step by samples of 10.
        let cloud = cloud();
        let settings = Settings { tolerance: 1e-12, ..Settings::default() };
        let mut field =
            evaluate(&settings, &cloud.position, &cloud.strength, None, &mut StageTimes::default()).unwrap().field;
        field[123] = [0.0; 3];
        let found = (0..500).filter(|&s| sampled_error(&space(Softening::None), &cloud, &field, 10, s) > 0.1).count();
        assert!((2..50).contains(&found), "{found} of 500");
    }

    #[test]
    fn flat_sums_are_judged_by_their_l2_error() {
        use fmm_core::{Complex64, planar};
        let mut cloud = cloud();
        cloud.position.iter_mut().for_each(|x| x[2] = 0.0);
        let points: Vec<_> = cloud.position.iter().map(|x| Complex64::new(x[0], x[1])).collect();
        for blob in [Blob::Point, Blob::Algebraic(0.05), Blob::Gaussian(0.05)] {
            let settings = Settings { tolerance: 1e-12, ..Settings::default() };
            let strengths: Vec<Complex64> = cloud.strength.iter().map(|&q| q.into()).collect();
            let (log, times) = (planar::Kernel::Log, &mut StageTimes::default());
            let sum = planar::evaluate(&settings, log, blob, &points, &strengths, None, times).unwrap();
            let field: Vec<[f64; 3]> = sum.field.iter().map(|e| [e.re, e.im, 0.0]).collect();
            let error = sampled_error(&plane(blob), &cloud, &field, 100, 3);
            assert!(error < 1e-11, "{blob:?}: {error:e}");
            // Also where the squares of the forces are no numbers any more.
            for size in [1.0, 1e-200, 1e200] {
                let wrong: Vec<_> = field.iter().map(|e| e.map(|c| 1.5 * size * c)).collect();
                let strength = cloud.strength.iter().map(|q| q * size).collect();
                let sized = Particles { strength, ..cloud.clone() };
                let error = sampled_error(&plane(blob), &sized, &wrong, 100, 3);
                assert!((error - 0.5).abs() < 1e-9, "{blob:?} {size:e}: {error}");
            }
        }
    }
}
