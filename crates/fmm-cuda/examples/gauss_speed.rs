//! Times sums of Gaussians on the device, from points that are there to sums there, and measures their error as a part of Σ|q|.
//!
//! `cargo run --release -p fmm-cuda --example gauss_speed -- [N ..] [sigma=S] [tolerance=T] [axes=D] [gradient] [precision=f32|f64]` sums N
//! uniform points in the unit interval, square or cube at themselves, and prints a line of JSON for each.

use std::time::Instant;

use fmm_core::gauss::{Axes, Dimension, Route, Settings};
use fmm_core::{Precision, Stage, StageTimes};
use fmm_cuda::Gpu;
use fmm_cuda::gauss::{Problem, Transform, evaluate};
use testkit::random::Random;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let (mut sizes, mut axes, mut precision) = (vec![], 3, Precision::Auto);
    let mut settings = Settings::new(0.1 / f64::sqrt(2.0));
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("sigma", s)) => settings.sigma = s.parse()?,
            Some(("tolerance", t)) => settings.tolerance = t.parse()?,
            Some(("axes", d)) => axes = d.parse()?,
            Some(("precision", "f32")) => precision = Precision::F32,
            Some(("precision", "f64")) => precision = Precision::F64,
            Some(("side", s)) => settings.side = Some(s.parse::<f64>()? * settings.sigma),
            Some(("route", "all")) => settings.route = Some(Route::All),
            Some(("route", "direct")) => settings.route = Some(Route::Direct),
            None if argument == "gradient" => settings.gradient = true,
            None => sizes.push(argument.parse::<f64>()? as usize),
            Some(_) => return Err(argument.into()),
        }
    }
    let gpu = Gpu::open(0)?;
    eprintln!("{:?}", gpu.description());
    for n in sizes {
        match axes {
            1 => case::<1>(&gpu, n, &settings, precision)?,
            2 => case::<2>(&gpu, n, &settings, precision)?,
            _ => case::<3>(&gpu, n, &settings, precision)?,
        }
    }
    Ok(())
}

fn case<const D: usize>(gpu: &Gpu, n: usize, settings: &Settings, precision: Precision) -> Result<()>
where
    Axes<D>: Dimension<D>,
{
    let mut random = Random(7);
    let sources: Vec<[f64; D]> = (0..n).map(|_| std::array::from_fn(|_| random.number())).collect();
    let q: Vec<f64> = (0..n).map(|_| random.number()).collect();
    let problem = Problem { settings, precision, sources: &sources, strengths: &[&q], targets: None };
    let mut transform = Transform::default();
    transform.upload(gpu, &problem)?;
    let (mut wall, mut stages, mut last) = (vec![], vec![], None);
    for _ in 0..if n > 1_000_000 { 5 } else { 11 } {
        let mut times = StageTimes::default();
        let start = Instant::now();
        last = Some(transform.sum(gpu, &problem, &mut times)?);
        wall.push(start.elapsed().as_secs_f64() * 1e3);
        stages.push(times);
    }
    let Some((plan, used)) = last else { return Ok(()) };
    let (potential, field) = transform.download()?;
    let step = n.div_ceil(1000);
    let at: Vec<[f64; D]> = sources.iter().copied().step_by(step).collect();
    let plain = Settings { gradient: settings.gradient, ..Settings::plain(settings.sigma) };
    let all = Problem { settings: &plain, precision: Precision::F64, targets: Some(&at), ..problem };
    let (truth, _) = evaluate(gpu, &all, &mut StageTimes::default())?;
    let total: f64 = q.iter().sum();
    let mut errors: Vec<f64> = vec![];
    for (k, i) in (0..n).step_by(step).enumerate() {
        let mut worst = (truth.potential[0][k] - potential[0][i]).abs();
        if settings.gradient {
            let off: f64 = (0..D).map(|d| (truth.field[0][k][d] - field[0][D * i + d]).powi(2)).sum();
            worst = worst.max(off.sqrt() * settings.sigma);
        }
        errors.push(worst / total);
    }
    errors.sort_by(f64::total_cmp);
    let rms = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
    let used_stages: Vec<String> = Stage::ALL
        .into_iter()
        .filter(|&s| stages[0].calls(s) > 0)
        .map(|s| format!("\"{}\": {:.3}", s.name(), median(stages.iter().map(|t| t.seconds(s) * 1e3).collect())))
        .collect();
    println!(
        "{{\"n\": {n}, \"axes\": {D}, \"sigma\": {:.4}, \"tolerance\": {:e}, \"gradient\": {}, \"precision\": \"{}\", \
         \"wall_ms\": {:.3}, \"ms\": {{{}}}, \"side\": {:.3}, \"order\": {}, \"boxes\": {}, \"thresholds\": {:?}, \
         \"lists\": {:?}, \"expected_ms\": {:.3}, \"rms\": {rms:.2e}, \"p99\": {:.2e}, \"max\": {:.2e}}}",
        settings.sigma,
        settings.tolerance,
        settings.gradient,
        used.name(),
        median(wall),
        used_stages.join(", "),
        plan.choice.side / settings.sigma,
        plan.choice.order.unwrap_or(0),
        plan.source_tree().len(),
        plan.choice.thresholds,
        [plan.lists.p2p.len(), plan.lists.m2p.len(), plan.lists.p2l.len()],
        plan.choice.cost * 1e-6,
        errors[errors.len() * 99 / 100],
        errors[errors.len() - 1]
    );
    Ok(())
}
