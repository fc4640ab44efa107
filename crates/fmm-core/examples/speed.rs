//! Times of whole sums, tree included, with their measured errors: `speed N uniform|plummer THREADS [METHOD] TOLERANCE...`;
//! a method (`fmm` until one is named) holds for the tolerances after it.
//!
//! The least of several repetitions, by stage; the error is that of 1000 targets against direct sums in double precision.

use fmm_core::{Evaluation, Method, Settings, Softening, Stage, StageTimes, evaluate};
use testkit::sets::*;
use testkit::space::*;

/// As in the program `nbody`.
#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const METHODS: [Method; 4] = [Method::Direct, Method::Treecode, Method::Fmm, Method::Auto];

fn main() {
    #[cfg(unix)]
    // SAFETY: whole numbers that mimalloc reads at every use: freed memory is kept, in huge pages.
    unsafe {
        libmimalloc_sys::mi_option_set(15, -1);
        libmimalloc_sys::mi_option_set(libmimalloc_sys::mi_option_large_os_pages, 1);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [n, set, threads, tolerances @ ..] = &arguments[..] else {
        eprintln!("usage: speed N uniform|plummer THREADS [METHOD] TOLERANCE...");
        std::process::exit(2);
    };
    let n = n.parse::<f64>().expect("a number of particles") as usize;
    let points = if set == "plummer" { plummer(n, 1) } else { uniform(n, 1) };
    let q = vec![1.0 / n as f64; n];
    let threads = threads.parse().expect("a number of threads");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let reference = Reference::new(&points, &q, None, Softening::None, 1000);
        let mut method = Method::Fmm;
        for word in tolerances {
            if let Some(named) = METHODS.into_iter().find(|m| m.name() == word) {
                method = named;
                continue;
            }
            let tolerance = word.parse().expect("a method or a tolerance");
            let settings = Settings { method, tolerance, ..Settings::default() };
            let mut best: Option<(StageTimes, Evaluation)> = None;
            let mut spent = 0.0;
            for repetition in 0..20 {
                let mut times = StageTimes::default();
                let sum = evaluate(&settings, &points, &q, None, &mut times).expect("finite points");
                spent += times.total();
                if best.as_ref().is_none_or(|b| times.total() < b.0.total()) {
                    best = Some((times, sum));
                }
                if repetition >= 2 && spent > 4.0 {
                    break;
                }
            }
            let (times, sum) = best.expect("at least three repetitions");
            let e = reference.errors(&sum.potential, &sum.field);
            print!("{set} {n} {threads}T {} {tolerance:.0e} rms {:.1e} L2 {:.1e} ", method.name(), e.rms, e.l2);
            let c = &sum.choice;
            print!("{} p {} leaf {} ", c.precision.name(), c.order.unwrap_or(0), c.leaf_size);
            print!("total {:.1} ms:", 1e3 * times.total());
            for stage in Stage::ALL.into_iter().filter(|s| times.seconds(*s) > 0.0) {
                print!(" {} {:.1}", stage.name(), 1e3 * times.seconds(stage));
            }
            println!();
        }
    });
}
