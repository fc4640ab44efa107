//! Times of whole sums in a periodic box with their errors:
//! `periodic_speed N ions|random THREADS [METHOD] TOLERANCE...`; a method (`auto` until one is named) holds
//! for the tolerances after it.
//!
//! Ions are up to a quarter of a spacing from the places of rock salt. The least of four repetitions,
//! by stage; L2 is that of 300 targets against Ewald's sum.

use std::time::Instant;

use fmm_core::ewald::{self, At, EXACT};
use fmm_core::{Boundary, Method, PeriodicBox, Settings, Softening, Stage, StageTimes, evaluate};
use testkit::sets::{Points, crystal, random_in, uniform};

const METHODS: [Method; 4] = [Method::Auto, Method::Direct, Method::Fmm, Method::Mesh];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [n, set, threads, words @ ..] = &arguments[..] else {
        eprintln!("usage: periodic_speed N ions|random THREADS [METHOD] TOLERANCE...");
        std::process::exit(2);
    };
    let cells = (n.parse::<f64>().expect("a number of ions") / 8.0).cbrt().round() as usize;
    let ((lattice, q), cell) = (crystal(cells), PeriodicBox::cube(2.0 * cells as f64));
    let shaken = |(x, u): (&[f64; 3], [f64; 3])| std::array::from_fn(|d| x[d].round() + 0.5 * (u[d] - 0.5));
    let ions: Points = lattice.iter().zip(uniform(lattice.len(), 3)).map(shaken).collect();
    let x = if set == "ions" { ions } else { random_in(cell.side, q.len(), 1) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse().expect("a number of threads"));
    pool.build().expect("threads").install(|| {
        let some: Vec<usize> = (0..x.len()).step_by((x.len() / 300).max(1)).collect();
        let exact = ewald::evaluate(&cell, Softening::None, EXACT, &x, &q, At::Some(&some)).field;
        let mut method = Method::Auto;
        for word in words {
            if let Some(named) = METHODS.into_iter().find(|m| m.name() == word) {
                method = named;
                continue;
            }
            let tolerance = word.parse().expect("a method or a tolerance");
            let settings = Settings { method, tolerance, boundary: Boundary::Periodic(cell), ..Settings::default() };
            let mut best = None;
            for _ in 0..4 {
                let (mut times, begun) = (StageTimes::default(), Instant::now());
                let sum = evaluate(&settings, &x, &q, None, &mut times).expect("finite points");
                let seconds = begun.elapsed().as_secs_f64();
                if best.as_ref().is_none_or(|b: &(f64, _, _)| seconds < b.0) {
                    best = Some((seconds, times, sum));
                }
            }
            let (seconds, times, sum) = best.expect("four repetitions");
            let norm = |difference: bool| {
                let of = |(k, &i): (usize, &usize)| {
                    let e = |d: usize| exact[k][d] - if difference { sum.field[i][d] } else { 0.0 };
                    (0..3).map(|d| e(d).powi(2)).sum::<f64>()
                };
                some.iter().enumerate().map(of).sum::<f64>().sqrt()
            };
            let c = &sum.choice;
            print!(
                "{set} {} {threads}T {tolerance:.0e} L2 {:.1e} {} ",
                x.len(),
                norm(true) / norm(false),
                c.method.name()
            );
            print!(
                "{} p {} leaf {} total {:.1} ms:",
                c.precision.name(),
                c.order.unwrap_or(0),
                c.leaf_size,
                1e3 * seconds
            );
            for stage in Stage::ALL.into_iter().filter(|s| times.seconds(*s) > 0.0) {
                print!(" {} {:.1}", stage.name(), 1e3 * times.seconds(stage));
            }
            println!();
        }
    });
}
