//! Seconds and fields of whole sums of given particles, for the comparison with rivals by `scripts/peers`:
//! `peer POINTS THREADS BUDGET OUT TOLERANCE...`.
//!
//! POINTS holds N × 3 numbers (f64, little-endian), all of mass 1/N. Each tolerance is summed at least three times and until
//! BUDGET seconds are gone (once if the budget is 0); the attraction at every particle is written to OUT-<index>.

use fmm_core::{Method, Settings, StageTimes, evaluate};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [points, threads, budget, out, tolerances @ ..] = &arguments[..] else {
        return Err("usage: peer POINTS THREADS BUDGET OUT TOLERANCE...".into());
    };
    let numbers: Vec<f64> = std::fs::read(points)?
        .chunks_exact(8)
        .map(|b| b.try_into().map(f64::from_le_bytes))
        .collect::<Result<_, _>>()?;
    let points = numbers.as_chunks::<3>().0;
    let masses = vec![1.0 / points.len() as f64; points.len()];
    let budget: f64 = budget.parse()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
    pool.install(|| {
        for (index, tolerance) in tolerances.iter().enumerate() {
            let settings = Settings { method: Method::Fmm, tolerance: tolerance.parse()?, ..Settings::default() };
            let (mut seconds, mut spent) = (vec![], 0.0);
            while seconds.is_empty() || (budget > 0.0 && seconds.len() < 20 && (seconds.len() < 3 || spent < budget)) {
                let start = std::time::Instant::now();
                let sum = evaluate(&settings, points, &masses, None, &mut StageTimes::default())?;
                seconds.push(start.elapsed().as_secs_f64());
                spent += seconds[seconds.len() - 1];
                if seconds.len() == 1 {
                    let bytes: Vec<u8> = sum.field.iter().flatten().flat_map(|e| (-e).to_le_bytes()).collect();
                    std::fs::write(format!("{out}-{index}"), bytes)?;
                    let c = sum.choice;
                    print!("{{\"tolerance\": {tolerance}, \"precision\": \"{}\", ", c.precision.name());
                    print!("\"order\": {}, \"leaf\": {}, ", c.order.unwrap_or(0), c.leaf_size);
                }
            }
            println!("\"seconds\": {seconds:?}}}");
        }
        Ok(())
    })
}
