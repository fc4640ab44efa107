//! Pairs of the direct sum that a GPU does in a second, with the error against a sample summed in double precision on the CPU.
//!
//! `cargo run --release --example direct_speed -- [N]...` prints one JSON object a line: particles, precision, milliseconds of the
//! force (median of repeats), pairs per second, rms relative error.

#[path = "../tests/common.rs"]
mod common;

use fmm_core::{Method, ParticleStore, Precision, Settings, Softening, Stage, StageTimes};
use fmm_cuda::{CudaStore, Gpu};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes: Vec<usize> = std::env::args().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 100_000, 1 << 20];
    }
    let gpu = Gpu::open(0)?;
    eprintln!("{:?}", gpu.description());
    drop(gpu);
    for n in sizes {
        for (set, particles) in [("uniform", common::uniform(n, 0.0, 1)), ("plummer", common::plummer(n, 1))] {
            for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::F64, 1e-10)] {
                for softening in
                    [Softening::None, Softening::Plummer(1e-3), Softening::Spline(1e-3), Softening::P1(1e-3)]
                {
                    if n > 200_000 && set == "plummer" && softening != Softening::None {
                        continue;
                    }
                    case(n, set, &particles, precision, tolerance, softening)?;
                }
            }
        }
    }
    Ok(())
}

fn case(
    n: usize,
    set: &str,
    particles: &fmm_core::Particles,
    precision: Precision,
    tolerance: f64,
    softening: Softening,
) -> Result<(), Box<dyn std::error::Error>> {
    let settings = Settings { method: Method::Direct, precision, tolerance, softening, ..Settings::default() };
    let mut store = CudaStore::new(Gpu::open(0)?, settings.clone())?;
    store.upload(particles)?;
    store.forces(&mut StageTimes::default())?;
    // Half a second and more is long enough to be timed once.
    let repeats = if n > 200_000 { 1 } else { 21 };
    let (mut order, mut sums) = (vec![], vec![]);
    for _ in 0..repeats {
        let mut times = StageTimes::default();
        store.forces(&mut times)?;
        order.push(times.seconds(Stage::Tree));
        sums.push(times.seconds(Stage::P2P));
    }
    order.sort_unstable_by(f64::total_cmp);
    sums.sort_unstable_by(f64::total_cmp);
    let (order, sum) = (order[repeats / 2], sums[repeats / 2]);
    let (_, field) = store.field().unwrap();
    let step = n.div_ceil(200);
    let sample: Vec<usize> = (0..n).step_by(step).collect();
    let targets: Vec<[f64; 3]> = sample.iter().map(|&i| particles.position[i]).collect();
    let exact = Settings { precision: Precision::F64, tolerance: 1e-10, ..settings };
    let times = &mut StageTimes::default();
    let truth = fmm_core::evaluate(&exact, &particles.position, &particles.strength, Some(&targets), times)?;
    let found: Vec<[f64; 3]> = sample.iter().map(|&i| field[i]).collect();
    let (rms, worst) = common::errors(&found, &truth.field);
    let pairs = (n as f64).powi(2) / sum;
    println!(
        "{{\"n\": {n}, \"set\": \"{set}\", \"precision\": \"{}\", \"softening\": \"{softening:?}\", \"order_ms\": {:.4}, \
         \"sum_ms\": {:.4}, \"pairs_per_s\": {pairs:.4e}, \"rms\": {rms:.2e}, \"worst\": {worst:.2e}}}",
        precision.name(),
        order * 1e3,
        sum * 1e3
    );
    Ok(())
}
