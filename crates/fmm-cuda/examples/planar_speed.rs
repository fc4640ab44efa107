//! Milliseconds that a GPU takes for sums in the plane, by stage, and their errors.
//!
//! `cargo run --release --example planar_speed -- [leaf=SIZE] [tolerance=T] [precision=f32|f64] [kernel=log] [set=uniform] [sample=TARGETS] [N]...` prints one JSON object a line: medians of repeats of the sum by
//! the host's clock, guard included, of points that are on the device, and by stage. Small sets are summed directly as well.

use std::time::Instant;

use fmm_core::Evaluation;
use fmm_core::planar::{Blob, Kernel, Problem};
use fmm_core::{Method, Precision, Settings, Stage, StageTimes};
use fmm_cuda::Gpu;
use fmm_cuda::planar::Plane;

/// Pairs of direct sums that are worth waiting for.
const FEW: f64 = 1e11;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut sizes, mut leaf_size, mut tolerance, mut kernels) = (vec![], None, 1e-6, vec![Kernel::Harmonic]);
    let mut precision = Precision::Auto;
    let mut sample = 500;
    let mut sets = vec!["uniform", "normal", "layer"];
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("leaf", size)) => leaf_size = Some(size.parse()?),
            Some(("tolerance", t)) => tolerance = t.parse()?,
            Some(("sample", targets)) => sample = targets.parse()?,
            Some(("precision", "f32")) => precision = Precision::F32,
            Some(("precision", "f64")) => precision = Precision::F64,
            Some(("kernel", "log")) => kernels = vec![Kernel::Log],
            Some(("set", "uniform")) => sets.truncate(1),
            Some(_) => return Err(argument.into()),
            None => sizes.push(argument.parse::<f64>()? as usize),
        }
    }
    let gpu = Gpu::open(0)?;
    eprintln!("{:?}", gpu.description());
    for n in sizes {
        for set in &sets {
            let points = testkit::planar::set(set, n, 1);
            let q = testkit::planar::strengths(n, 2);
            for &kernel in &kernels {
                for method in [Method::Fmm, Method::Direct] {
                    if method == Method::Fmm
                        || precision != Precision::F32 && (n as f64).powi(2) <= FEW && *set == "uniform"
                    {
                        let settings = Settings { method, tolerance, precision, leaf_size, ..Settings::default() };
                        case(&gpu, set, kernel, &settings, (&points, &q), sample)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn case(
    gpu: &Gpu,
    set: &str,
    kernel: Kernel,
    settings: &Settings,
    (points, q): (&[[f64; 2]], &[f64]),
    sample: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let n = points.len();
    let (places, given) = (testkit::planar::complex(points), testkit::planar::gamma(q, None));
    let problem = Problem::new(settings, kernel, Blob::Point, &places, &given, None)?;
    let mut plane = Plane::default();
    plane.upload(gpu, &problem)?;
    let (mut wall, mut stages) = (vec![], vec![]);
    for _ in 0..if n > 1_000_000 { 9 } else { 25 } {
        let mut times = StageTimes::default();
        let start = Instant::now();
        plane.sum(gpu, &problem, &mut times)?;
        wall.push(start.elapsed().as_secs_f64() * 1e3);
        stages.push(times);
    }
    plane.start_clock();
    let choice = plane.sum(gpu, &problem, &mut StageTimes::default())?;
    let parts = plane.stop_clock(gpu)?;
    let (potential, field) = plane.download()?;
    let sum = Evaluation { potential, field, error: vec![], choice: choice.clone(), coincident_pairs: 0 };
    let errors =
        testkit::planar::errors(kernel, &sum, points, q, None, None, (500_000_000 / n).clamp(50.min(sample), sample));
    let of = |s: Stage| median(stages.iter().map(|t| t.seconds(s) * 1e3).collect());
    let used: Vec<String> = Stage::ALL
        .iter()
        .filter(|s| stages[0].calls(**s) > 0)
        .map(|&s| format!("\"{}\": {:.3}", s.name(), of(s)))
        .collect();
    let parts: Vec<String> = parts.iter().map(|(name, ms)| format!("\"{name}\": {ms:.3}")).collect();
    let levels = fmm_core::planar::accuracy::levels(n, n, choice.leaf_size);
    println!(
        "{{\"n\": {n}, \"set\": \"{set}\", \"kernel\": \"{}\", \"method\": \"{}\", \"tolerance\": {:e}, \
         \"precision\": \"{}\", \"order\": {}, \
         \"leaf\": {:.1}, \"wall_ms\": {:.3}, \"least_ms\": {:.3}, \"ms\": {{{}}}, \"geometry\": {{{}}}, \
         \"l2\": {:.2e}, \"p99\": {:.2e}, \"max\": {:.2e}}}",
        kernel.name(),
        choice.method.name(),
        settings.tolerance,
        choice.precision.name(),
        choice.order.unwrap_or(0),
        n as f64 / (1u64 << (2 * levels)) as f64,
        median(wall.clone()),
        wall.iter().copied().fold(f64::INFINITY, f64::min),
        used.join(", "),
        parts.join(", "),
        errors.l2,
        errors.p99,
        errors.max
    );
    Ok(())
}
