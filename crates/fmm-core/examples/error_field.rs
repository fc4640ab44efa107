//! Estimated errors of targets against true ones, on sets and orders of all kinds, as a Markdown table.
//!
//! Usage: `cargo run --release -p fmm-core --example error_field -- 10000 [SOFTENING]`. All errors
//! are known by direct sums over all targets. `scatter` is the relative standard deviation of the
//! rms that 256 direct sums drawn by the estimates would give.

use fmm_core::{Method, Settings, Softening, StageTimes, cpu::direct_field, evaluate};
use testkit::ranks::correlation;
use testkit::sets::*;

const CASES: [(Method, usize); 8] = [
    (Method::Fmm, 2),
    (Method::Fmm, 4),
    (Method::Fmm, 8),
    (Method::Fmm, 12),
    (Method::Fmm, 16),
    (Method::Treecode, 4),
    (Method::Treecode, 7),
    (Method::Treecode, 10),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let n: usize = arguments.next().map_or(10_000, |a| a.parse().expect("a number of bodies"));
    let softening = match arguments.next().map(|a| a.parse().expect("a length")) {
        Some(length) => Softening::Plummer(length),
        None => Softening::None,
    };
    let circle = |u: &[f64; 3]| [(std::f64::consts::TAU * u[0]).cos(), (std::f64::consts::TAU * u[0]).sin(), 0.0];
    let mut sets = contract_sets(n);
    let ones = vec![1.0; n];
    sets.push(("line", uniform(n, 4).iter().map(|x| [x[0], 0.0, 0.0]).collect(), ones.clone()));
    sets.push(("plane", uniform(n, 4).iter().map(|x| [x[0], x[1], 0.0]).collect(), ones.clone()));
    sets.push(("circle", uniform(n, 4).iter().map(circle).collect(), ones));
    let side = (n as f64).cbrt();
    for (name, (points, q)) in [
        ("crystal", crystal((0.5 * side).round() as usize)),
        ("layered crystal", layered_crystal(side.round() as usize, 1)),
    ] {
        sets.push((name, points, q));
    }
    println!(
        "| set | method, order | within a factor 4 | error/estimate 5 %, 50 %, 95 % | rank correlation | rms | scatter |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, points, q) in &sets {
        let exact = direct_field(softening, points, q, points);
        for (method, order) in CASES {
            let (leaf_size, order) = (Some(30), Some(order));
            let settings = Settings { method, order, softening, leaf_size, errors: true, ..Settings::default() };
            let Ok(sum) = evaluate(&settings, points, q, None, &mut StageTimes::default()) else { continue };
            let length = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>().sqrt();
            let (mut found, mut estimated, mut ratios) = (vec![], vec![], vec![]);
            for ((field, error), (truth, largest)) in sum.field.iter().zip(&sum.error).zip(&exact) {
                let (off, size) = (length([0, 1, 2].map(|d| field[d] - truth[d])), length(*truth).max(1e-3 * largest));
                found.push(off / size);
                estimated.push(error / size);
                ratios.push(off / error);
            }
            ratios.sort_by(f64::total_cmp);
            let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part) as usize];
            let within = ratios.iter().filter(|r| (0.25..4.0).contains(*r)).count() as f64 / ratios.len() as f64;
            let squares = |v: &[f64]| v.iter().map(|e| e * e).sum::<f64>();
            let (all, predicted, count) = (squares(&found), squares(&estimated), found.len() as f64);
            // Of the mean of e²/probability: the variance over the square of the mean.
            let term = |(e, p): (&f64, &f64)| e.powi(4) / (0.8 * p * p / predicted + 0.2 / count);
            let variance = found.iter().zip(&estimated).map(term).sum::<f64>() / (all * all) - 1.0;
            println!(
                "| {name} | {}, {} | {:.0} % | {:.2}, {:.2}, {:.2} | {:.2} | {:.1e} | {:.3} |",
                method.name(),
                order.unwrap_or(0),
                100.0 * within,
                at(0.05),
                at(0.5),
                at(0.95),
                correlation(&found, &estimated),
                (all / count).sqrt(),
                0.5 * (variance / 256.0).max(0.0).sqrt(),
            );
        }
    }
}
