//! Milliseconds of whole sums of charges in a periodic box on a GPU and of the same charges in open space, tree, lists and guard
//! included, with the errors at 4096 targets.
//!
//! `cargo run --release --example box_speed -- N...` prints one JSON object a line; `ms` is the fastest of seven by the host's clock.

#[path = "../tests/common.rs"]
mod common;

use std::time::Instant;

use fmm_core::{Boundary, Method, ParticleStore, Particles, PeriodicBox, Precision, Settings, Stage, StageTimes};
use fmm_cuda::{CudaStore, Gpu};

type Failure = Box<dyn std::error::Error>;

/// Asked errors and their precision.
const CASES: [(f64, Precision); 4] =
    [(1e-3, Precision::Auto), (1e-4, Precision::Auto), (1e-5, Precision::Auto), (1e-6, Precision::Auto)];

fn main() -> Result<(), Failure> {
    let mut sizes: Vec<usize> = std::env::args().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![100_000, 1_000_000];
    }
    for n in sizes {
        let mut particles = common::uniform(n, 0.0, 1);
        particles.strength = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        for boundary in [Boundary::Open, Boundary::Periodic(PeriodicBox::cube(1.0))] {
            let exact = Settings { method: Method::Direct, precision: Precision::F64, boundary, ..Settings::default() };
            let sample: Vec<usize> = (0..n).step_by(n.div_ceil(4096)).collect();
            let targets: Vec<[f64; 3]> = sample.iter().map(|&i| particles.position[i]).collect();
            let gpu = Gpu::open(0)?;
            let (x, q) = (&particles.position, &particles.strength);
            let start = Instant::now();
            let truth = fmm_cuda::evaluate(&gpu, &exact, x, q, Some(&targets), &mut StageTimes::default())?.field;
            eprintln!("{n}: direct at {} targets in {:.3} s", targets.len(), start.elapsed().as_secs_f64());
            for (tolerance, precision) in CASES {
                let settings = Settings { method: Method::Fmm, tolerance, precision, boundary, ..Settings::default() };
                run(&particles, &sample, &truth, settings)?;
            }
        }
    }
    Ok(())
}

fn run(particles: &Particles, sample: &[usize], truth: &[[f64; 3]], settings: Settings) -> Result<(), Failure> {
    let n = particles.len();
    let mut store = CudaStore::new(Gpu::open(0)?, settings.clone())?;
    // As in a box.
    store.want_potential(true);
    store.upload(particles)?;
    let mut best: Option<(f64, StageTimes)> = None;
    for _ in 0..7 {
        let mut times = StageTimes::default();
        let start = Instant::now();
        store.forces(&mut times)?;
        let wall = start.elapsed().as_secs_f64();
        if best.as_ref().is_none_or(|b| wall < b.0) {
            best = Some((wall, times));
        }
    }
    let (wall, times) = best.ok_or("no run")?;
    let field = store.field().unwrap().1;
    let choice = store.choice().ok_or("no sum")?;
    let norm = |v: &[f64]| v.iter().map(|c| c * c).sum::<f64>();
    let delta: Vec<f64> =
        sample.iter().zip(truth).flat_map(|(&i, b)| std::array::from_fn::<f64, 3, _>(|d| field[i][d] - b[d])).collect();
    let found: Vec<[f64; 3]> = sample.iter().map(|&i| field[i]).collect();
    let stages: Vec<String> = Stage::ALL
        .iter()
        .filter(|s| times.seconds(**s) > 0.0)
        .map(|&s| format!("\"{}\": {:.3}", s.name(), times.seconds(s) * 1e3))
        .collect();
    println!(
        "{{\"n\": {n}, \"boundary\": \"{}\", \"tolerance\": {:e}, \"precision\": \"{}\", \"order\": {}, \"leaf\": {}, \"ms\": {:.3}, {}, \
         \"sums\": {}, \"rms\": {:.2e}, \"l2\": {:.2e}}}",
        if settings.boundary == Boundary::Open { "open" } else { "periodic" },
        settings.tolerance,
        choice.precision.name(),
        choice.order.unwrap_or(0),
        choice.leaf_size,
        wall * 1e3,
        stages.join(", "),
        times.calls(Stage::P2P),
        common::errors(&found, truth).0,
        (norm(&delta) / norm(truth.as_flattened())).sqrt(),
    );
    Ok(())
}
