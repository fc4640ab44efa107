//! One evaluation of as many bodies as a card holds, uniform in the unit cube, with the error measured at 256 of them.
//!
//! `cargo run --release --example largest -- 1000000000` prints one JSON object: seconds of the whole call, copies included, and of
//! its stages.

use std::time::Instant;

use fmm_core::{Method, Precision, Settings, Stage, StageTimes};
use fmm_cuda::{Gpu, evaluate};
use rayon::prelude::*;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let n: usize = std::env::args().nth(1).unwrap_or("1000000000".into()).parse()?;
    // A counter mixed (SplitMix64): quick, and the same for any number of threads.
    let number = |i: u64| {
        let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let position: Vec<[f64; 3]> = (0..n as u64).into_par_iter().map(|i| [1, 2, 3].map(|k| number(3 * i + k))).collect();
    let strength = vec![1.0 / n as f64; n];
    let gpu = Gpu::open(0)?;
    let settings = Settings { method: Method::Fmm, precision: Precision::F32, tolerance: 1e-3, ..Settings::default() };
    let (start, mut times) = (Instant::now(), StageTimes::default());
    let sum = evaluate(&gpu, &settings, &position, &strength, None, &mut times)?;
    let wall = start.elapsed().as_secs_f64();
    let sample: Vec<usize> = (0..n).step_by(n.div_ceil(256)).collect();
    let targets: Vec<[f64; 3]> = sample.iter().map(|&i| position[i]).collect();
    let exact = Settings { method: Method::Direct, precision: Precision::F64, ..Settings::default() };
    let truth = evaluate(&gpu, &exact, &position, &strength, Some(&targets), &mut StageTimes::default())?;
    let square = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>();
    let errors = sample.iter().zip(&truth.field).map(|(&i, b)| {
        let a = sum.field[i];
        square([a[0] - b[0], a[1] - b[1], a[2] - b[2]]) / square(*b)
    });
    let rms = (errors.sum::<f64>() / sample.len() as f64).sqrt();
    let stages: Vec<String> = Stage::ALL
        .iter()
        .filter(|&&s| times.calls(s) > 0)
        .map(|&s| format!("\"{}\": {:.4}", s.name(), times.seconds(s)))
        .collect();
    println!(
        "{{\"n\": {n}, \"order\": {}, \"leaf\": {}, \"seconds\": {wall:.2}, {}, \"rms\": {rms:.2e}}}",
        sum.choice.order.unwrap_or(0),
        sum.choice.leaf_size,
        stages.join(", ")
    );
    Ok(())
}
