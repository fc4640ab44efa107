//! Asked and measured errors for every set of the contract, as a Markdown table: the body of `docs/accuracy.md`.
//!
//! Usage: `cargo run --release -p fmm-core --example accuracy_table -- 100000 2000` for 100,000 particles and 2,000 targets.

use fmm_core::{Method, Precision, Settings, Softening, StageTimes, evaluate};
use testkit::sets::*;
use testkit::space::*;

const F64: [f64; 9] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
const F32: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-5];
const MIXED: [f64; 2] = [2e-6, 1e-6];

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse().expect("a number of particles or targets"));
    let n = arguments.next().unwrap_or(100_000);
    let sample = arguments.next().unwrap_or(2000);
    println!("| set | arithmetic | asked | rms | L2 | 99 % | max | asked/got | order | θ | leaf | seconds |");
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, points, q) in contract_sets(n) {
        let reference = Reference::new(&points, &q, None, Softening::None, sample);
        let cases = F32.map(|t| (Precision::F32, t)).into_iter();
        let cases = cases.chain(MIXED.map(|t| (Precision::Mixed, t))).chain(F64.map(|t| (Precision::F64, t)));
        for (precision, tolerance) in cases {
            let settings = Settings { method: Method::Fmm, tolerance, precision, ..Settings::default() };
            let start = std::time::Instant::now();
            let sum = evaluate(&settings, &points, &q, None, &mut StageTimes::default()).expect("finite points");
            let seconds = start.elapsed().as_secs_f64();
            let e = reference.errors(&sum.potential, &sum.field);
            let c = sum.choice;
            println!(
                "| {name} | {} | {tolerance:.0e} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {:.1} | {} | {:.3} | {} | {seconds:.3} |",
                precision.name(),
                e.rms,
                e.l2,
                e.p99,
                e.max,
                tolerance / e.rms.max(e.l2),
                c.order.unwrap_or(0),
                c.theta.unwrap_or(0.0),
                c.leaf_size,
            );
        }
    }
}
