//! The kernels log and harmonic in the plane, with points or blobs.

use fmm_core::StageTimes;
use fmm_core::planar::{self, Blob, Strengths};
use rayon::prelude::*;

use super::Kernel;
use super::kernel::{Answer, Problem, Truth};
use super::laplace::fault;
use crate::device::{Asked, evaluate_plane};
use crate::fault::Fault;

/// Log: `potential` = Σ q log r and (`ex`, `ey`) = −∇ of it. Harmonic: `re`, `im` of Σ Γ/(z_j − z).
pub fn sum(problem: &Problem) -> Result<Answer, Fault> {
    let kernel = problem.kernel.plane().expect("a kernel of the plane");
    let flat = |points: &[[f64; 3]]| -> Vec<[f64; 2]> { points.iter().map(|x| [x[0], x[1]]).collect() };
    let (sources, targets) = (flat(problem.sources), problem.targets.map(flat));
    let strengths = Strengths { real: &problem.strengths[0], imaginary: problem.strengths.get(1).map(|q| &q[..]) };
    let mut times = StageTimes::default();
    let planar = planar::Problem::new(problem.settings, kernel, problem.blob, &sources, strengths, targets.as_deref());
    let asked = Asked { device: problem.device, quiet: problem.quiet, fault, times: &mut times };
    let (sum, device) = planar.map_err(fault).and_then(|planar| evaluate_plane(asked, &planar))?;
    let component = |d: usize| sum.field.iter().map(|e| e[d]).collect();
    let (columns, judged) = match kernel {
        planar::Kernel::Log => (vec![("potential", sum.potential), ("ex", component(0)), ("ey", component(1))], 1..3),
        planar::Kernel::Harmonic => (vec![("re", component(0)), ("im", component(1))], 0..2),
    };
    let coincident_pairs = sum.coincident_pairs;
    Ok(Answer { columns, judged, choice: sum.choice, device, coincident_pairs, times })
}

/// The field (log) or Φ (harmonic) at `at`, pair by pair in f64. Own pairs are at distance zero and add nothing.
pub fn truth(problem: &Problem, at: &[[f64; 3]]) -> Vec<Truth> {
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
    let imaginary = problem.strengths.get(1);
    let one = |x: &[f64; 3]| {
        let (mut sum, mut largest) = ([0.0; 2], 0.0f64);
        for (j, y) in problem.sources.iter().enumerate() {
            let (g, h) = (problem.strengths[0][j], imaginary.map_or(0.0, |q| q[j]));
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
    at.par_iter().map(one).collect()
}
