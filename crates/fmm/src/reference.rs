//! Direct sums in double precision, pair by pair, that errors are measured against.

use std::f64::consts::PI;

use fmm_core::cpu::direct_field;
use fmm_core::ewald::{self, At};
use fmm_core::math::{CollectVec, Compensated};
use fmm_core::planar::Blob;
use fmm_core::{PeriodicBox, Softening};
use rayon::prelude::*;

use crate::errors::{Compared, Errors, FLOOR, Population, Truth, errors, length, norm};
use crate::sample::{Draws, Sample};
use crate::{Evaluation, Family, Kernel, Points, Problem};

/// Direct sums at a sample of a set's targets, kept for more than one sum of them.
pub struct Reference {
    sample: Sample,
    truth: Vec<Truth>,
    /// The number of all targets.
    targets: usize,
}

impl Reference {
    /// The vector of `kernel` that a tolerance bounds, at `sample` of the particles, spread evenly.
    pub fn new(kernel: Kernel, position: &[[f64; 3]], strength: &[f64], sample: usize) -> Self {
        let columns = [strength];
        let points = Points::in_space(position, &columns);
        Reference::of(&Problem::new(kernel), &points, Sample::even(position.len(), sample))
    }

    /// The vector that a tolerance bounds, at the targets with the indices `chosen`, drawn evenly.
    pub fn at(problem: &Problem, points: &Points, chosen: Vec<usize>) -> Self {
        Reference::of(problem, points, Sample::of(chosen))
    }

    fn of(problem: &Problem, points: &Points, sample: Sample) -> Self {
        let at: Vec<[f64; 3]> = sample.targets.iter().map(|&i| points.at()[i]).collect();
        Reference { truth: truth(problem, points, &at), sample, targets: points.at().len() }
    }

    /// The errors of a field, in the order of the particles. `[n]`
    pub fn errors(&self, field: &[[f64; 3]]) -> Errors {
        self.errors_of(|i| field[i])
    }

    fn errors_of(&self, vector: impl Fn(usize) -> [f64; 3]) -> Errors {
        let sizes = || (0..self.targets).map(|i| length(vector(i))).collect::<Vec<f64>>();
        let rms = self.sample.is_predicted().then(|| norm(&sizes()) / (self.targets as f64).sqrt());
        let population = Population { targets: self.targets, draws: self.sample.size, rms };
        let compared = |(k, (&i, &truth)): (usize, (&usize, &Truth))| Compared {
            found: vector(i),
            truth,
            draws: self.sample.draws(k),
        };
        let compared: Vec<Compared> = self.sample.targets.iter().zip(&self.truth).enumerate().map(compared).collect();
        errors(&compared, population)
    }
}

/// The errors of `sum` at about [`Problem::sample`] targets, at all if there are no more. They are
/// drawn by the estimated errors of `sum`, evenly where it has none.
pub(crate) fn measure(problem: &Problem, points: &Points, sum: &Evaluation) -> Errors {
    let sample = if sum.error.is_empty() {
        Sample::even(points.at().len(), problem.sample)
    } else {
        Sample::predicted(&sum.field, &sum.error, problem.sample, problem.settings.tolerance)
    };
    let reference = Reference::of(problem, points, sample);
    let errors = match problem.kernel {
        // Sums of Gaussians are judged by their value.
        Kernel::Gauss(_) => reference.errors_of(|i| [sum.potential[i], 0.0, 0.0]),
        _ => reference.errors(&sum.field),
    };
    Errors { potential: potential_error(problem, points, sum, &reference.sample), ..errors }
}

/// The vector at some targets as it should be.
fn truth(problem: &Problem, points: &Points, at: &[[f64; 3]]) -> Vec<Truth> {
    match problem.kernel.family() {
        Family::Radial => in_space(problem, points, at),
        Family::Plane(_) => in_plane(problem, points, at),
        Family::Vortex => of_vortices(problem, points, at),
        Family::Gauss(sigma) => of_gaussians(points, sigma, at),
    }
}

/// Ewald's sum with all digits.
fn ewald_at(problem: &Problem, points: &Points, cell: &PeriodicBox, at: At) -> ewald::Sums {
    let softening = problem.in_space().simplified().softening;
    ewald::evaluate(cell, softening, ewald::EXACT, points.sources, points.strengths[0], at)
}

/// ‖δφ‖/‖φ‖ of the potential over a sample of targets, in a periodic box: there an accurate field
/// does not imply an accurate potential.
fn potential_error(problem: &Problem, points: &Points, sum: &Evaluation, sample: &Sample) -> Option<f64> {
    let cell = problem.settings.boundary.periodic().filter(|_| problem.kernel == Kernel::Laplace)?;
    let chosen = &sample.targets;
    let at: Option<Vec<[f64; 3]>> = points.targets.map(|t| chosen.iter().map(|&i| t[i]).collect());
    let exact = ewald_at(problem, points, cell, at.as_ref().map_or(At::Some(chosen), |p| At::Points(p)));
    let (mut wrong, mut right) = (0.0f64, 0.0f64);
    for (k, (&i, truth)) in chosen.iter().zip(exact.potential).enumerate() {
        let Draws { count, weight, .. } = sample.draws(k);
        let root = (count * weight).sqrt();
        wrong = wrong.hypot(root * (sum.potential[i] - truth));
        right = right.hypot(root * truth);
    }
    Some(if wrong == 0.0 { 0.0 } else { wrong / right })
}

/// A pair at distance zero adds nothing to a field, softened or not, so that own pairs need no exception.
fn in_space(problem: &Problem, points: &Points, at: &[[f64; 3]]) -> Vec<Truth> {
    let sums = match problem.settings.boundary.periodic() {
        Some(cell) => {
            let sums = ewald_at(problem, points, cell, At::Points(at));
            sums.field.into_iter().zip(sums.largest).collect()
        }
        None => direct_field(problem.in_space().softening, points.sources, points.strengths[0], at),
    };
    sums.into_iter().map(|(vector, largest)| Truth { vector, largest }).collect()
}

/// The velocity of vortices. A pair at distance zero adds nothing.
fn of_vortices(problem: &Problem, points: &Points, at: &[[f64; 3]]) -> Vec<Truth> {
    let core = match problem.settings.softening {
        Softening::P1(e) => e,
        _ => 0.0,
    };
    let one = |x: &[f64; 3]| {
        let (mut sum, mut largest) = ([0.0; 3], 0.0f64);
        for (j, y) in points.sources.iter().enumerate() {
            let w = [0, 1, 2].map(|k| points.strengths[k][j]);
            let d: [f64; 3] = std::array::from_fn(|k| x[k] - y[k]);
            let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            if r2 == 0.0 {
                continue;
            }
            let s = r2 + core * core;
            let g = (r2 + 2.5 * core * core) / (s * s * s.sqrt()) / (4.0 * PI);
            let term =
                [g * (w[1] * d[2] - w[2] * d[1]), g * (w[2] * d[0] - w[0] * d[2]), g * (w[0] * d[1] - w[1] * d[0])];
            for k in 0..3 {
                sum[k] += term[k];
            }
            largest = largest.max(term[0].hypot(term[1]).hypot(term[2]));
        }
        Truth { vector: sum, largest }
    };
    at.par_iter().map(one).collect_vec()
}

/// The field (log) or Φ (harmonic). Own pairs are at distance zero and add nothing.
fn in_plane(problem: &Problem, points: &Points, at: &[[f64; 3]]) -> Vec<Truth> {
    let blob = match problem.blob {
        Blob::Algebraic(0.0) | Blob::Gaussian(0.0) => Blob::Point,
        blob => blob,
    };
    // r·(1/r → its blob): 1 for points. By the ratio of distance and core, whose squares may be no numbers.
    let part = |r: f64| match blob {
        Blob::Point => 1.0,
        // 1 to the last digit.
        Blob::Algebraic(e) if r / e > 1e10 => 1.0,
        Blob::Algebraic(e) => {
            let s = (r / e).powi(2);
            s * (s + 2.0) / (s + 1.0).powi(2)
        }
        Blob::Gaussian(s) => -(-0.5 * (r / s).powi(2)).exp_m1(),
    };
    let imaginary = points.strengths.get(1);
    let one = |x: &[f64; 3]| {
        let (mut sum, mut largest) = ([0.0; 2], 0.0f64);
        for (j, y) in points.sources.iter().enumerate() {
            let (g, h) = (points.strengths[0][j], imaginary.map_or(0.0, |q| q[j]));
            let d = [y[0] - x[0], y[1] - x[1]];
            // By ratios: squares of tiny and of huge distances leave the range of numbers.
            let m = d[0].abs().max(d[1].abs());
            if m == 0.0 {
                continue;
            }
            let u = d.map(|c| c / m);
            let size = u[0] * u[0] + u[1] * u[1];
            let f = part(size.sqrt() * m) / (size * m);
            // Γ/(z_j − z) = (g + ih)(u_x − i u_y) f
            let term = [(g * u[0] + h * u[1]) * f, (h * u[0] - g * u[1]) * f];
            sum = [sum[0] + term[0], sum[1] + term[1]];
            largest = largest.max(term[0].hypot(term[1]));
        }
        // e = (−Re G, Im G) with G = −Φ.
        let vector = if problem.kernel == Kernel::Log { [sum[0], -sum[1], 0.0] } else { [sum[0], sum[1], 0.0] };
        Truth { vector, largest }
    };
    at.par_iter().map(one).collect_vec()
}

/// The value. The tolerance is a part of Σ|q|, and so is every error.
fn of_gaussians(points: &Points, sigma: f64, at: &[[f64; 3]]) -> Vec<Truth> {
    let strengths = points.strengths[0];
    let total: f64 = strengths.iter().map(|q| q.abs()).sum();
    let one = |x: &[f64; 3]| {
        let term = |(y, q): (&[f64; 3], &f64)| {
            let u: [f64; 3] = std::array::from_fn(|d| (x[d] - y[d]) / sigma);
            q * (-0.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2])).exp()
        };
        // Tolerances are as small as 45 spacings of numbers.
        let mut sum = Compensated::default();
        points.sources.iter().zip(strengths).map(term).for_each(|term| sum.add(term));
        Truth { vector: [sum.value(), 0.0, 0.0], largest: total / FLOOR }
    };
    at.par_iter().map(one).collect_vec()
}

#[cfg(test)]
mod tests {
    use fmm_core::{Boundary, Method, Settings, Uniform};

    use super::*;
    use crate::{Device, Solver};

    #[test]
    fn the_largest_term_of_any_size() {
        // Between two equal charges the field vanishes, and the largest term is all that an error is relative to.
        for (length, charge) in [(1.0, 1.0), (1e90, 1.0), (1e-90, 1.0), (1.0, 1e180), (1.0, 1e-180)] {
            let sources = &[[-length, 0.0, 0.0], [length, 0.0, 0.0]];
            let charges = [charge; 2];
            let columns: [&[f64]; 1] = [&charges];
            let points = Points::in_space(sources, &columns);
            let truth = truth(&Problem::new(Kernel::Laplace), &points, &[[0.0; 3]])[0];
            let exact = charge / length / length;
            assert_eq!(truth.vector, [0.0; 3]);
            assert!((truth.largest / exact - 1.0).abs() < 1e-12, "{} of {exact}", truth.largest);
        }
    }

    #[test]
    fn a_wrong_field_is_seen() {
        let position = [[0.0; 3], [1.0, 0.0, 0.0]];
        let reference = Reference::new(Kernel::Laplace, &position, &[1.0, 2.0], 10);
        assert_eq!(reference.errors(&[[-2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]).max, 0.0);
        let e = reference.errors(&[[-2.2, 0.0, 0.0], [1.0, 0.0, 0.0]]);
        assert!((e.max - 0.1).abs() < 1e-12 && e.sample == 2, "{e:?}");
    }

    /// Two clusters, each the mirror image of the other, and five light bodies next to the midpoint,
    /// where forces cancel.
    fn mirrored_clusters(n: usize) -> (Vec<[f64; 3]>, Vec<f64>) {
        let mut state = 5u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut position, mut strength) = (vec![], vec![1.0; n]);
        for _ in 0..n / 2 {
            let mut normal = || (-2.0 * (1.0 - random()).ln()).sqrt() * (2.0 * PI * random()).cos();
            let x = [0.6, 0.1, 0.05].map(|center| center + 0.08 * normal());
            position.extend([x, x.map(|c| -c)]);
        }
        position.extend((0..5).map(|_| [0; 3].map(|_| 1e-3 * (random() - 0.5))));
        strength.extend([1e-12; 5]);
        (position, strength)
    }

    #[test]
    fn a_check_sees_the_few_targets_that_make_the_error() {
        let (position, strength) = mirrored_clusters(6_000);
        let n = position.len();
        let columns = [&strength[..]];
        let points = Points::in_space(&position, &columns);
        let settings = Settings {
            method: Method::Fmm,
            order: Some(4),
            leaf_size: Some(40),
            tolerance: 1e-2,
            ..Settings::default()
        };
        let problem = Problem { settings, sample: 300, ..Problem::new(Kernel::Laplace) };
        let sum = Solver::new(Device::Cpu).evaluate(&problem, &points).unwrap();
        assert!(sum.error.is_empty(), "nobody asked for the estimates");
        let errors = |sample| Reference::new(Kernel::Laplace, &position, &strength, sample).errors(&sum.field);
        let (whole, even, found) = (errors(n), errors(300), sum.errors.unwrap());
        assert_eq!(whole.rms_interval, [whole.rms; 2]);
        let tolerance = 0.5 * whole.rms;
        assert!(even.rms_interval[1] < tolerance && !problem.kernel.may_miss(&even, tolerance), "{even:?} {whole:?}");
        let [low, high] = found.rms_interval;
        assert!(low <= whole.rms && whole.rms <= high && high < 2.0 * whole.rms, "{found:?} {whole:?}");
        assert!(!found.keep(tolerance) && (found.l2 / whole.l2 - 1.0).abs() < 0.3, "{found:?} {whole:?}");
    }

    #[test]
    fn checks_of_every_kernel_measure_what_all_targets_have() {
        let (position, strength) = mirrored_clusters(1_500);
        let flat: Vec<[f64; 3]> = position.iter().map(|x| [x[0], x[1], 0.0]).collect();
        let halves: Vec<[f64; 3]> = position.iter().map(|x| x.map(|c| c - c.floor())).collect();
        let boxed = Settings { boundary: Boundary::Periodic(PeriodicBox::cube(1.0)), ..Settings::default() };
        let depth = Settings { uniform: Some(Uniform { depth: 3, separation: 1 }), ..Settings::default() };
        let open = Settings { method: Method::Fmm, ..Settings::default() };
        for (kernel, settings, places, predicted) in [
            (Kernel::Laplace, open.clone(), &position, true),
            (Kernel::Laplace, depth, &position, true),
            (Kernel::Laplace, Settings { method: Method::Direct, ..open.clone() }, &position, true),
            (Kernel::Laplace, Settings { method: Method::Treecode, ..open.clone() }, &position, true),
            (Kernel::Laplace, boxed, &halves, true),
            (Kernel::Yukawa(1.0), open.clone(), &position, true),
            (Kernel::Vortex, open.clone(), &position, true),
            (Kernel::Log, open.clone(), &flat, false),
            (Kernel::Gauss(0.1), open, &position, false),
        ] {
            let columns: Vec<&[f64]> = vec![&strength; kernel.strengths().len()];
            let dimension = if kernel == Kernel::Log { 2 } else { 3 };
            let points = Points { dimension, ..Points::in_space(places, &columns) };
            let settings = Settings { errors: predicted, ..settings };
            let hessian = matches!(kernel, Kernel::Yukawa(_));
            let problem = Problem { settings, hessian, sample: 300, ..Problem::new(kernel) };
            let sum = Solver::new(Device::Cpu).evaluate(&problem, &points).unwrap();
            assert_eq!(sum.error.len(), if predicted { places.len() } else { 0 }, "{kernel:?}");
            let found = sum.errors.unwrap();
            let whole = measure(&Problem { sample: places.len(), ..problem.clone() }, &points, &sum);
            let near = |a: f64, b: f64| a == b || (a / b).ln().abs() < 0.5;
            assert!(near(found.rms, whole.rms) && near(found.l2, whole.l2), "{kernel:?} {found:?} {whole:?}");
            let potentials = found.potential.zip(whole.potential);
            assert!(potentials.is_none_or(|(a, b)| near(a, b)), "{kernel:?} {found:?} {whole:?}");
            assert!(found.rms_interval[0] <= found.rms && found.rms <= found.rms_interval[1], "{found:?}");
        }
    }
}
