//! Draws the density that points come from: a kernel density estimate, which is a sum of Gaussians.
//!
//!     cargo run --release -p nbody --example density -- docs/images/density.png
//!
//! 200,000 points of three clouds and a ring, at 480,000 places: 9.6e10 pairs, done by the fast Gauss transform in a fraction of a second.

use std::f64::consts::TAU;

use fmm_core::StageTimes;
use fmm_core::gauss::{Settings, evaluate};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tiny_skia::{Pixmap, PremultipliedColorU8};

const POINTS: usize = 200_000;
const PICTURE: [u32; 2] = [800, 600];
/// The plane that is drawn, and the width of a Gaussian in it.
const EXTENT: [f64; 2] = [4.0, 3.0];
const SIGMA: f64 = 0.03;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "density.png".into());
    let points = sample();
    let [width, height] = PICTURE;
    let place = |i: u32, n: u32, extent: f64| (f64::from(i) + 0.5) / f64::from(n) * extent;
    let places: Vec<[f64; 2]> = (0..height)
        .flat_map(|y| (0..width).map(move |x| [place(x, width, EXTENT[0]), place(height - 1 - y, height, EXTENT[1])]))
        .collect();
    let weights = vec![1.0 / (POINTS as f64 * TAU * SIGMA * SIGMA); POINTS];
    let settings = Settings { tolerance: 1e-5, ..Settings::new(SIGMA) };
    let start = std::time::Instant::now();
    let sum = evaluate(&settings, &points, &[&weights], Some(&places), &mut StageTimes::default())?;
    println!("{:.3} s, {:?}", start.elapsed().as_secs_f64(), sum.choice);
    let density = &sum.potential[0];
    let most = density.iter().copied().fold(0.0, f64::max);
    let mut picture = Pixmap::new(width, height).ok_or("no memory for the picture")?;
    for (pixel, value) in picture.pixels_mut().iter_mut().zip(density) {
        *pixel = colour((value.max(0.0) / most).sqrt()).ok_or("a colour out of range")?;
    }
    picture.save_png(&path)?;
    println!("{path}");
    Ok(())
}

/// Points of the mixture.
fn sample() -> Vec<[f64; 2]> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut normal = {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        move || (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt() * (TAU * random.random::<f64>()).cos()
    };
    (0..POINTS)
        .map(|i| {
            let (a, b) = (normal(), normal());
            match i % 8 {
                0..=1 => [1.0 + 0.25 * a, 1.1 + 0.12 * b + 0.15 * a],
                2 => [3.1 + 0.10 * a, 2.3 + 0.10 * b],
                3..=4 => [2.9 + 0.30 * a, 0.8 + 0.12 * b - 0.10 * a],
                _ => {
                    let angle = TAU * random.random::<f64>();
                    let r = 0.85 + 0.05 * a;
                    [1.9 + r * angle.cos(), 1.6 + r * angle.sin()]
                }
            }
        })
        .collect()
}

/// From dark blue over red to pale yellow, lighter throughout.
fn colour(x: f64) -> Option<PremultipliedColorU8> {
    const STOPS: [[f64; 3]; 5] =
        [[5.0, 5.0, 30.0], [70.0, 15.0, 110.0], [185.0, 50.0, 95.0], [250.0, 145.0, 40.0], [255.0, 250.0, 190.0]];
    let at = x.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let (i, part) = ((at as usize).min(STOPS.len() - 2), at - (at as usize).min(STOPS.len() - 2) as f64);
    let [r, g, b] = [0, 1, 2].map(|c| (STOPS[i][c] + part * (STOPS[i + 1][c] - STOPS[i][c])).round() as u8);
    PremultipliedColorU8::from_rgba(r, g, b, 255)
}
