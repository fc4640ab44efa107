//! The same bits for any number of threads.

mod common;

use common::*;
use fmm_core::{Method, Precision, Settings, StageTimes, evaluate};

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let points = plummer(20_000, 1);
    let masses = vec![1.0; points.len()];
    for method in [Method::Direct, Method::Treecode, Method::Fmm] {
        for precision in [Precision::F32, Precision::F64] {
            let settings = Settings { method, precision, tolerance: 1e-3, ..Settings::default() };
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let e =
                    pool.install(|| evaluate(&settings, &points, &masses, None, &mut StageTimes::default()).unwrap());
                let bits: Vec<[u64; 3]> = e.field.iter().map(|f| f.map(f64::to_bits)).collect();
                (bits, e.potential.iter().map(|p| p.to_bits()).collect::<Vec<_>>())
            };
            let one = run(1);
            for threads in [2, 3, 7] {
                assert!(run(threads) == one, "{method:?} {precision:?}: {threads} threads differ from one");
            }
        }
    }
}
