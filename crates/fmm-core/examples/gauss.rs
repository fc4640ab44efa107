//! Times the fast Gauss transform, and measures its error as a part of Σ|q|: N points in the unit square or cube, each source and target.
//!
//! `cargo run --release -p fmm-core --example gauss [N] [SIGMA] [TOLERANCE] [SIDE] [ROUTE] [THREADS]`

use std::time::Instant;

use fmm_core::StageTimes;
use fmm_core::gauss::{Route, Settings, evaluate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: f64| words.get(i).map_or(Ok(default), |w| w.parse());
    let (n, sigma, tolerance) = (number(0, 1e5)? as usize, number(1, 0.1 / f64::sqrt(2.0))?, number(2, 1e-6)?);
    let side = Some(number(3, 0.0)?).filter(|&s| s > 0.0).map(|s| s * sigma);
    let route = match words.get(4).map_or("auto", |w| w) {
        "all" => Some(Route::All),
        "direct" => Some(Route::Direct),
        "hermite" => Some(Route::Hermite),
        "taylor" => Some(Route::Taylor),
        "both" => Some(Route::HermiteTaylor),
        _ => None,
    };
    let threads = number(5, 1.0)? as usize;
    let settings = Settings { tolerance, side, route, ..Settings::new(sigma) };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    run::<1>(&settings, n)?;
    run::<2>(&settings, n)?;
    run::<3>(&settings, n)
}

fn run<const D: usize>(settings: &Settings, n: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let points: Vec<[f64; D]> = (0..n).map(|_| std::array::from_fn(|_| next())).collect();
    let q: Vec<f64> = (0..n).map(|_| next()).collect();
    let (mut best, mut last) = (f64::INFINITY, None);
    for _ in 0..3 {
        let (mut times, start) = (StageTimes::default(), Instant::now());
        let sum = evaluate(settings, &points, &[&q], None, &mut times)?;
        best = best.min(start.elapsed().as_secs_f64());
        last = Some((sum, times));
    }
    let Some((sum, times)) = last else { return Ok(()) };
    let step = n.div_ceil(500);
    let at: Vec<[f64; D]> = points.iter().copied().step_by(step).collect();
    let start = Instant::now();
    let truth = evaluate(&Settings::plain(settings.sigma), &points, &[&q], Some(&at), &mut StageTimes::default())?;
    let direct = start.elapsed().as_secs_f64() * n as f64 / at.len() as f64;
    let total: f64 = q.iter().sum();
    let errors = truth.potential[0].iter().zip(sum.potential[0].iter().step_by(step));
    let error = errors.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / total;
    println!("{D} axes: {best:.4} s, all pairs {direct:.2} s, error {error:.2e}; {:?} {:?}", sum.choice, sum.routes);
    for stage in fmm_core::Stage::ALL.into_iter().filter(|&s| times.calls(s) > 0) {
        print!("  {} {:.2} ms", stage.name(), 1e3 * times.seconds(stage));
    }
    println!();
    Ok(())
}
