//! The kernel 1/r and its softened forms.

use fmm_core::cpu::direct_field;
use fmm_core::ewald::{self, At};
use fmm_core::{Error, PeriodicBox, StageTimes};

use super::Kernel;
use super::kernel::{Answer, Problem, Truth};
use crate::device::{self, Asked};
use crate::fault::Fault;
use crate::told;

/// `potential` = Σ q K(r) and (`ex`, `ey`, `ez`) = −∇ of it.
pub fn sum(problem: &Problem) -> Result<Answer, Fault> {
    let mut times = StageTimes::default();
    let Problem { settings, sources, targets, .. } = *problem;
    if let Some(cell) = settings.boundary.periodic() {
        cell.check_charge(&problem.strengths[0]).map_err(|e| Fault::new(65, e.to_string()))?;
    }
    let asked = Asked { device: problem.device, quiet: problem.quiet, fault, times: &mut times };
    let (sum, device) = device::evaluate(asked, settings, (sources, targets), &problem.strengths[0])?;
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

/// The field at `at`, pair by pair in f64. A pair at distance zero adds nothing to a field, softened or not, so that
/// own pairs need no exception.
pub fn truth(problem: &Problem, at: &[[f64; 3]]) -> Vec<Truth> {
    let settings = problem.settings;
    let sums = match settings.boundary.periodic() {
        Some(cell) => {
            let sums = ewald_at(problem, cell, At::Points(at));
            sums.field.into_iter().zip(sums.largest).collect()
        }
        None => direct_field(settings.softening, problem.sources, &problem.strengths[0], at),
    };
    sums.into_iter().map(|(vector, largest)| Truth { vector, largest }).collect()
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
