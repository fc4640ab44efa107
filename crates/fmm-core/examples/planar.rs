//! Seconds and errors of sums in the plane by stage: what docs/performance.md and docs/accuracy.md tabulate.
//!
//!     cargo run --release -p fmm-core --example planar -- log 1e5 uniform 2 1e-6 1e-12
//!
//! With `p17` in place of a tolerance that order is taken, and with `p17/72` leaves of at most 72 points.

use std::time::Instant;

use fmm_core::planar::{Blob, Kernel, evaluate};
use fmm_core::{Method, Precision, Settings, Stage, StageTimes};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kernel, n, set, threads, asked @ ..] = &arguments[..] else {
        eprintln!("usage: planar log|harmonic N uniform|normal|layer THREADS TOLERANCE|pORDER[/LEAF] ...");
        std::process::exit(2);
    };
    let kernel = if kernel == "log" { Kernel::Log } else { Kernel::Harmonic };
    let n = n.parse::<f64>().expect("a number of points") as usize;
    let threads = threads.parse().expect("a number of threads");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let (points, q) = (testkit::planar::set(set, n, 1), testkit::planar::strengths(n, 2));
    for asked in asked {
        let mut settings = Settings { method: Method::Fmm, precision: Precision::F64, ..Settings::default() };
        match asked.strip_prefix('p') {
            None => settings.tolerance = asked.parse().expect("a tolerance"),
            Some(order) => {
                let (order, leaf) = order.split_once('/').unwrap_or((order, ""));
                settings.order = Some(order.parse().expect("an order"));
                settings.leaf_size = leaf.parse().ok();
            }
        }
        let (places, strengths) = (testkit::planar::complex(&points), testkit::planar::gamma(&q, None));
        let mut best: Option<(f64, StageTimes, _)> = None;
        for _ in 0..5 {
            let mut times = StageTimes::default();
            let start = Instant::now();
            let sum = pool.install(|| {
                evaluate(&settings, kernel, Blob::Point, &places, &strengths, None, &mut times).expect("a sum")
            });
            let seconds = start.elapsed().as_secs_f64();
            if best.as_ref().is_none_or(|b| seconds < b.0) {
                best = Some((seconds, times, sum));
            }
        }
        let (seconds, times, sum) = best.expect("a repetition");
        let e = testkit::planar::errors(kernel, &sum, &points, &q, None, None, if n <= 20_000 { n } else { 1000 });
        let stages: Vec<String> = Stage::ALL
            .iter()
            .filter(|&&s| times.calls(s) > 0)
            .map(|&s| format!("{} {:.1}", s.name(), 1e3 * times.seconds(s)))
            .collect();
        println!(
            "{} {n} {set} {asked}: {seconds:.3} s, order {:?}, leaf {}, L2 {:.1e}, p99 {:.1e}, max {:.1e}, potential {:.1e}; ms: {}",
            kernel.name(),
            sum.choice.order.unwrap_or(0),
            sum.choice.leaf_size,
            e.l2,
            e.p99,
            e.max,
            e.potential,
            stages.join(", ")
        );
    }
}
