//! The kernel 1/r and its softened forms.

use fmm_core::ewald::{self, At};
use fmm_core::{Error, PeriodicBox, Softening, StageTimes};
use rayon::prelude::*;

use super::Kernel;
use super::kernel::{Answer, Problem, Truth};
use crate::device;
use crate::fault::Fault;
use crate::spline;
use crate::told;

/// `potential` = Σ q K(r) and (`ex`, `ey`, `ez`) = −∇ of it.
pub fn sum(problem: &Problem) -> Result<Answer, Fault> {
    let mut times = StageTimes::default();
    let Problem { settings, sources, targets, .. } = *problem;
    if let Some(cell) = settings.boundary.periodic() {
        cell.check_charge(&problem.strengths[0]).map_err(|e| Fault::new(65, e.to_string()))?;
    }
    let bodies = (sources, &problem.strengths[0][..], targets);
    let (sum, device) = device::evaluate(problem.device, settings, bodies, &mut times, problem.quiet, fault)?;
    let component = |d: usize| sum.field.iter().map(|e| e[d]).collect();
    let columns = vec![("ex", component(0)), ("ey", component(1)), ("ez", component(2))];
    Ok(Answer {
        columns: std::iter::once(("potential", sum.potential)).chain(columns).collect(),
        judged: 1..4,
        choice: sum.choice,
        device,
        coincident_pairs: sum.coincident_pairs,
        times,
    })
}

pub fn fault(e: Error) -> Fault {
    let code = match e {
        // What the options ask together.
        Error::Range { .. } | Error::Unsupported(_) => 2,
        Error::NotFinite { .. } | Error::TooMany(_) | Error::TooClose { .. } | Error::Magnitude { .. } => 65,
        _ => 70,
    };
    Fault::new(code, told::error(&e))
}

/// Ewald's sum with all digits.
fn ewald_at(problem: &Problem, cell: &PeriodicBox, at: At) -> ewald::Sums {
    let softening = problem.settings.clone().simplified().softening;
    ewald::evaluate(cell, softening, ewald::EXACT, problem.sources, &problem.strengths[0], at)
}

/// ‖δφ‖/‖φ‖ of the potential over the targets `chosen`, in a periodic box: there a field that is right does not vouch for it.
pub fn potential_error(problem: &Problem, answer: &Answer, chosen: &[usize]) -> Option<f64> {
    let cell = problem.settings.boundary.periodic().filter(|_| problem.kernel == Kernel::Laplace)?;
    let points: Option<Vec<[f64; 3]>> = problem.targets.map(|t| chosen.iter().map(|&i| t[i]).collect());
    let exact = ewald_at(problem, cell, points.as_ref().map_or(At::Some(chosen), |p| At::Points(p)));
    let (mut wrong, mut right) = (0.0f64, 0.0f64);
    for (&i, truth) in chosen.iter().zip(exact.potential) {
        wrong = wrong.hypot(answer.columns[0].1[i] - truth);
        right = right.hypot(truth);
    }
    Some(if wrong == 0.0 { 0.0 } else { wrong / right })
}

/// Sources that are summed side by side, so that the compiler finds its vectors.
const LANES: usize = 8;

/// The field at `at`, pair by pair in f64. A pair at distance zero adds nothing to a field, softened or not, so that
/// own pairs need no exception.
pub fn truth(problem: &Problem, at: &[[f64; 3]]) -> Vec<Truth> {
    if let Some(cell) = problem.settings.boundary.periodic() {
        let sums = ewald_at(problem, cell, At::Points(at));
        let each = sums.field.into_iter().zip(sums.largest);
        return each.map(|(vector, largest)| Truth { vector, largest }).collect();
    }
    match problem.settings.clone().simplified().softening {
        Softening::None => field(problem, at, |r2| if r2 > 0.0 { 1.0 / (r2 * r2.sqrt()) } else { 0.0 }),
        Softening::Plummer(e) => field(problem, at, |r2| {
            let u = r2 + e * e;
            1.0 / (u * u.sqrt())
        }),
        Softening::P1(e) => field(problem, at, |r2| {
            let u = r2 + e * e;
            (r2 + 2.5 * e * e) / u / (u * u.sqrt())
        }),
        Softening::Spline(e) => field(problem, at, |r2| spline::slope(r2.sqrt() / (2.8 * e)) / (2.8 * e).powi(3)),
    }
}

/// Σ q d g(r²) with g = −K'/r, and the largest |q d g|.
fn field(problem: &Problem, at: &[[f64; 3]], g: impl Fn(f64) -> f64 + Copy + Sync) -> Vec<Truth> {
    let n = problem.sources.len().next_multiple_of(LANES);
    // Strength 0 fills the last row of lanes.
    let padded = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..n).map(|i| if i < problem.sources.len() { value(i) } else { 0.0 }).collect()
    };
    let [x, y, z] = [0, 1, 2].map(|d| padded(&|i| problem.sources[i][d]));
    let q = padded(&|i| problem.strengths[0][i]);
    at.par_iter()
        .map(|target| {
            let mut total = [[0.0; LANES]; 3];
            let mut largest = [0.0f64; LANES];
            for i in (0..n).step_by(LANES) {
                let part = |v: &[f64]| -> [f64; LANES] { std::array::from_fn(|l| v[i + l]) };
                let (x, y, z, q) = (part(&x), part(&y), part(&z), part(&q));
                for l in 0..LANES {
                    let d = [target[0] - x[l], target[1] - y[l], target[2] - z[l]];
                    let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                    let f = q[l] * g(r2);
                    for c in 0..3 {
                        total[c][l] += f * d[c];
                    }
                    // Not by squares: those of tiny and of huge forces leave the range of numbers.
                    let term = f.abs() * r2.sqrt();
                    largest[l] = if term > largest[l] { term } else { largest[l] };
                }
            }
            Truth { vector: total.map(|t| t.iter().sum()), largest: largest.iter().copied().fold(0.0, f64::max) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use fmm_core::Settings;
    use fmm_core::planar::Blob;

    use super::super::Kernel;
    use super::*;
    use crate::device::Device;

    #[test]
    fn the_largest_term_of_any_size() {
        // Between two equal charges the field vanishes, and the largest term is all that an error is relative to.
        for (length, charge) in [(1.0, 1.0), (1e90, 1.0), (1e-90, 1.0), (1.0, 1e180), (1.0, 1e-180)] {
            let settings = &Settings::default();
            let sources = &[[-length, 0.0, 0.0], [length, 0.0, 0.0]];
            let strengths = &[vec![charge; 2]][..];
            let (kernel, device) = (Kernel::Laplace, Device::Cpu);
            let blob = Blob::Point;
            let problem = Problem {
                kernel,
                settings,
                blob,
                device,
                quiet: true,
                dimension: 3,
                sources,
                strengths,
                targets: None,
            };
            let truth = truth(&problem, &[[0.0; 3]])[0];
            let exact = charge / length / length;
            assert_eq!(truth.vector, [0.0; 3]);
            assert!((truth.largest / exact - 1.0).abs() < 1e-12, "{} of {exact}", truth.largest);
        }
    }
}
