//! Sums of Gaussians along one, two or three axes.

use fmm_core::gauss::{self, Evaluation, Route};
use fmm_core::{Choice, Method, StageTimes};
use rayon::prelude::*;

use super::kernel::{Answer, Problem, Truth};
use super::laplace::fault;
use crate::device::{Asked, evaluate_gauss};
use crate::fault::Fault;

/// `potential` = Σ q exp(−r²/(2σ²)) and `ex`, `ey`, `ez` = −∇ of it, for the axes that there are.
pub fn sum(problem: &Problem, sigma: f64) -> Result<Answer, Fault> {
    let s = problem.settings;
    let refuse = |what: &str| Err(Fault::new(2, format!("{what} with --kernel gauss")));
    if s.method == Method::Treecode {
        return refuse("--method: allowed: auto, direct, fmm");
    }
    let given = [("order", s.order.is_some()), ("theta", s.theta.is_some()), ("leaf-size", s.leaf_size.is_some())];
    if let Some((name, _)) = given.into_iter().find(|g| g.1) {
        return refuse(&format!("--{name} has no meaning"));
    }
    let route = if s.method == Method::Direct { Some(Route::All) } else { None };
    let settings = gauss::Settings { tolerance: s.tolerance, gradient: true, route, ..gauss::Settings::new(sigma) };
    match problem.dimension {
        1 => along::<1>(problem, &settings),
        2 => along::<2>(problem, &settings),
        _ => along::<3>(problem, &settings),
    }
}

fn along<const D: usize>(problem: &Problem, settings: &gauss::Settings) -> Result<Answer, Fault> {
    let flat =
        |points: &[[f64; 3]]| -> Vec<[f64; D]> { points.iter().map(|x| std::array::from_fn(|d| x[d])).collect() };
    let (sources, targets) = (flat(problem.sources), problem.targets.map(flat));
    let mut times = StageTimes::default();
    let strengths = [&problem.strengths[0][..]];
    let (precision, targets) = (problem.settings.precision, targets.as_deref());
    let sum = fmm_cuda::gauss::Problem { settings, precision, sources: &sources, strengths: &strengths, targets };
    let asked = Asked { device: problem.device, quiet: problem.quiet, fault, times: &mut times };
    let ((Evaluation { potential, field, choice, .. }, precision), device) = evaluate_gauss(asked, &sum)?;
    let mut columns: Vec<_> = potential.into_iter().map(|p| ("potential", p)).collect();
    for (d, name) in ["ex", "ey", "ez"].into_iter().enumerate().take(D) {
        columns.push((name, field[0].iter().map(|e| e[d]).collect()));
    }
    let choice = Choice {
        method: if settings.route.is_some() { Method::Direct } else { Method::Fmm },
        precision,
        expansion: None,
        order: choice.order,
        theta: None,
        leaf_size: choice.fullest,
    };
    Ok(Answer { columns, judged: 0..1, choice, device, coincident_pairs: 0, times })
}

/// The sum at `at`, pair by pair in f64. The tolerance is a part of Σ|q|, and so is every error.
pub fn truth(problem: &Problem, sigma: f64, at: &[[f64; 3]]) -> Vec<Truth> {
    let total: f64 = problem.strengths[0].iter().map(|q| q.abs()).sum();
    let one = |x: &[f64; 3]| {
        let term = |(y, q): (&[f64; 3], &f64)| {
            let u: [f64; 3] = std::array::from_fn(|d| (x[d] - y[d]) / sigma);
            q * (-0.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2])).exp()
        };
        let sum = problem.sources.iter().zip(&problem.strengths[0]).map(term).sum();
        Truth { vector: [sum, 0.0, 0.0], largest: total / super::check::FLOOR }
    };
    at.par_iter().map(one).collect()
}
