//! The same bits for any number of threads.

use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings, StageTimes, evaluate};
use testkit::sets::*;

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let points = plummer(10_000, 1);
    let masses = vec![1.0; points.len()];
    let cell = Boundary::Periodic(PeriodicBox::cube(20.0));
    let methods = [Method::Direct, Method::Treecode, Method::Fmm];
    let open =
        methods.into_iter().flat_map(|m| [(m, Precision::F32), (m, Precision::F64)]).map(|c| (c, Boundary::Open));
    let boxed = methods.into_iter().map(|m| ((m, Precision::F64), cell));
    for ((method, precision), boundary) in open.chain(boxed) {
        // Ewald's sum of all would take its time.
        let n = if (method, boundary) == (Method::Direct, cell) { 2000 } else { points.len() };
        let (points, masses) = (&points[..n], &masses[..n]);
        {
            let settings = Settings { method, precision, boundary, tolerance: 1e-3, ..Settings::default() };
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let e = pool.install(|| evaluate(&settings, points, masses, None, &mut StageTimes::default()).unwrap());
                let bits: Vec<[u64; 3]> = e.field.iter().map(|f| f.map(f64::to_bits)).collect();
                (bits, e.potential.iter().map(|p| p.to_bits()).collect::<Vec<_>>())
            };
            let one = run(1);
            for threads in [2, 3, 7] {
                assert!(
                    run(threads) == one,
                    "{method:?} {precision:?} {boundary:?}: {threads} threads differ from one"
                );
            }
        }
    }
}
