//! Estimated errors of targets in the plane against true ones, on sets and orders of all kinds, as a Markdown table.
//!
//! Usage: `cargo run --release -p fmm-core --example planar_errors -- 10000 [THETA]`. All errors
//! are known by direct sums over all targets. `scatter` is the relative standard deviation of L2
//! from 256 direct sums drawn by the estimates.

use fmm_core::planar::{Blob, Kernel, evaluate};
use fmm_core::{Method, Precision, Settings, StageTimes};
use testkit::planar::{complex, error_sets, gamma};
use testkit::ranks::correlation;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let n: usize = arguments.next().map_or(10_000, |a| a.parse().expect("a number of points"));
    let theta = arguments.next().map(|a| a.parse().expect("an opening angle"));
    println!(
        "| set | kernel, order | within a factor 4 | error/estimate 5 %, 50 %, 95 % | rank correlation | L2 | scatter |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, points, q) in error_sets(n) {
        let (places, strengths) = (complex(&points), gamma(&q, None));
        let run = |kernel, settings: Settings| {
            evaluate(&settings, kernel, Blob::Point, &places, &strengths, None, &mut StageTimes::default())
                .expect("a sum")
        };
        let double = Settings { precision: Precision::F64, ..Settings::default() };
        for kernel in [Kernel::Harmonic, Kernel::Log] {
            let exact = run(kernel, Settings { method: Method::Direct, ..double.clone() });
            for order in [2, 4, 8, 12, 17, 24] {
                let (order, leaf_size) = (Some(order), Some(40));
                let sum = run(
                    kernel,
                    Settings { method: Method::Fmm, order, theta, leaf_size, errors: true, ..double.clone() },
                );
                let off: Vec<f64> = sum.field.iter().zip(&exact.field).map(|(a, b)| (a - b).norm()).collect();
                let mut ratios: Vec<f64> = off.iter().zip(&sum.error).map(|(e, s)| e / s).collect();
                ratios.sort_by(f64::total_cmp);
                let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part) as usize];
                let within = ratios.iter().filter(|r| (0.25..4.0).contains(*r)).count() as f64 / off.len() as f64;
                let squares = |v: &[f64]| v.iter().map(|e| e * e).sum::<f64>();
                let (all, predicted, count) = (squares(&off), squares(&sum.error), off.len() as f64);
                // Of the mean of e²/probability: the variance over the square of the mean.
                let term = |(e, p): (&f64, &f64)| e.powi(4) / (0.8 * p * p / predicted + 0.2 / count);
                let variance = off.iter().zip(&sum.error).map(term).sum::<f64>() / (all * all) - 1.0;
                let size: f64 = exact.field.iter().map(|f| f.norm_sqr()).sum();
                println!(
                    "| {name} | {}, {} | {:.0} % | {:.2}, {:.2}, {:.2} | {:.2} | {:.1e} | {:.3} |",
                    kernel.name(),
                    sum.choice.order.unwrap_or(0),
                    100.0 * within,
                    at(0.05),
                    at(0.5),
                    at(0.95),
                    correlation(&off, &sum.error),
                    (all / size).sqrt(),
                    0.5 * (variance / 256.0).max(0.0).sqrt(),
                );
            }
        }
    }
}
