//! Times the fast Gauss transform, and measures its error as a part of Σ|q|, in the unit interval, square and cube.
//!
//! `cargo run --release -p fmm-core --example gauss [N] [SIGMA] [TOLERANCE]` sums N uniform points at themselves on one thread;
//! with a fourth word, `routes`, it compares the choice with each route forced, on four mixed sets of N points in the cube.

use std::time::Instant;

use fmm_core::StageTimes;
use fmm_core::gauss::{Axes, Dimension, Evaluation, Route, Settings, evaluate};
use testkit::random::Random;

/// Seconds that this thread had a processor, where the system tells: other work on the machine does not count.
fn clock(begun: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|t| t.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or(begun.elapsed().as_secs_f64(), |n| 1e-9 * n)
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: f64| words.get(i).map_or(Ok(default), |w| w.parse());
    let (n, sigma, tolerance) = (number(0, 1e5)? as usize, number(1, 0.1 / f64::sqrt(2.0))?, number(2, 1e-6)?);
    let settings = Settings { tolerance, ..Settings::new(sigma) };
    // On one thread, so that its clock sees all of the work.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let work = || match words.get(3).is_some_and(|w| w == "routes") {
        true => routes(&settings, n).map_err(|e| e.to_string()),
        false => uniform::<1>(&settings, n)
            .and_then(|()| uniform::<2>(&settings, n))
            .and_then(|()| uniform::<3>(&settings, n))
            .map_err(|e| e.to_string()),
    };
    Ok(pool.install(work)?)
}

/// The best of some sums, its seconds and stages.
fn best<const D: usize>(
    settings: &Settings,
    sources: &[[f64; D]],
    q: &[f64],
    targets: Option<&[[f64; D]]>,
    times: usize,
) -> Result<(Evaluation<D>, f64, StageTimes)>
where
    Axes<D>: Dimension<D>,
{
    let mut best = None;
    for _ in 0..times.max(1) {
        let (mut stages, begun) = (StageTimes::default(), Instant::now());
        let start = clock(begun);
        let sum = evaluate(settings, sources, &[q], targets, &mut stages)?;
        let seconds = clock(begun) - start;
        if best.as_ref().is_none_or(|b: &(_, f64, _)| seconds < b.1) {
            best = Some((sum, seconds, stages));
        }
    }
    best.ok_or_else(|| "no sum".into())
}

fn uniform<const D: usize>(settings: &Settings, n: usize) -> Result<()>
where
    Axes<D>: Dimension<D>,
{
    let mut random = Random(7);
    let points = random.points::<D>(n);
    let q: Vec<f64> = (0..n).map(|_| random.number()).collect();
    let (sum, seconds, stages) = best(settings, &points, &q, None, 5)?;
    let step = n.div_ceil(500);
    let at: Vec<[f64; D]> = points.iter().copied().step_by(step).collect();
    let (truth, direct, _) = best(&Settings::plain(settings.sigma), &points, &q, Some(&at), 1)?;
    let total: f64 = q.iter().sum();
    let errors = truth.potential[0].iter().zip(sum.potential[0].iter().step_by(step));
    let error = errors.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / total;
    let all = direct * n as f64 / at.len() as f64;
    println!("{D} axes: {seconds:.4} s, all pairs {all:.2} s, error {error:.2e}; {:?} {:?}", sum.choice, sum.routes);
    for stage in fmm_core::Stage::ALL.into_iter().filter(|&s| stages.calls(s) > 0) {
        print!("  {} {:.2} ms", stage.name(), 1e3 * stages.seconds(stage));
    }
    println!();
    Ok(())
}

fn routes(settings: &Settings, n: usize) -> Result<()> {
    let mut random = Random(7);
    let even = random.points::<3>(n);
    let q: Vec<f64> = (0..n).map(|_| random.number()).collect();
    let small = |x: &[f64; 3]| x.map(|c| 0.4 + 0.1 * c);
    let mixed: Vec<[f64; 3]> =
        even.iter().enumerate().map(|(i, x)| if i.is_multiple_of(4) { *x } else { small(x) }).collect();
    let layer: Vec<[f64; 3]> = even.iter().map(|x| [x[0], x[1], 0.5 + 0.02 * x[2] * x[0]]).collect();
    let few: Vec<[f64; 3]> = random.points(n / 100);
    let sets = [
        ("even", &even, None),
        ("a cluster in an even set", &mixed, None),
        ("a layer", &layer, None),
        ("many sources in a cluster, few targets", &mixed, Some(&few[..])),
    ];
    for (name, sources, targets) in sets {
        println!("{name}");
        let all = [None, Some(Route::Direct), Some(Route::Hermite), Some(Route::Taylor), Some(Route::HermiteTaylor)];
        for route in all {
            let (sum, seconds, _) = best(&Settings { route, ..settings.clone() }, sources, &q, targets, 3)?;
            let (choice, routes) = (sum.choice, sum.routes);
            let told = format!("side {:.4}, order {:?}, {routes:?}", choice.side, choice.order);
            println!("  {seconds:8.4} s, expected {:8.4}  {route:?}: {told}", 1e-9 * choice.cost);
        }
    }
    Ok(())
}
