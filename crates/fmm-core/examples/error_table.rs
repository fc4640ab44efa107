//! Error and time of the FMM against order and opening angle, on one set. Usage: error_table N SET f32|f64 [THETA] [LEAF] [P...]
use fmm_core::{Method, Precision, Settings, Softening, Stage, StageTimes, evaluate};
use rand::{Rng, SeedableRng, rngs::StdRng};

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: usize = a[1].parse().unwrap();
    let mut rng = StdRng::seed_from_u64(7);
    let mut pos: Vec<[f64; 3]> = vec![];
    let mut q = vec![1.0 / n as f64; n];
    while pos.len() < n {
        match a[2].as_str() {
            "plummer" => {
                let x: f64 = rng.random::<f64>() * 0.999;
                let r = 1.0 / (x.powf(-2.0 / 3.0) - 1.0).sqrt();
                let c: f64 = 2.0 * rng.random::<f64>() - 1.0;
                let f = rng.random::<f64>() * std::f64::consts::TAU;
                let s = (1.0 - c * c).sqrt();
                pos.push([r * s * f.cos(), r * s * f.sin(), r * c]);
            }
            "two" => {
                let x: f64 = rng.random::<f64>() * 0.999;
                let r = 1.0 / (x.powf(-2.0 / 3.0) - 1.0).sqrt();
                let c: f64 = 2.0 * rng.random::<f64>() - 1.0;
                let f = rng.random::<f64>() * std::f64::consts::TAU;
                let s = (1.0 - c * c).sqrt();
                let k = if pos.len() % 2 == 0 { 1.0 } else { 0.1 };
                pos.push([k * r * s * f.cos() + if k < 1.0 { 30.0 } else { 0.0 }, k * r * s * f.sin(), k * r * c]);
            }
            "sphere" => {
                let c: f64 = 2.0 * rng.random::<f64>() - 1.0;
                let f = rng.random::<f64>() * std::f64::consts::TAU;
                let s = (1.0 - c * c).sqrt();
                pos.push([s * f.cos(), s * f.sin(), c]);
            }
            _ => pos.push(rng.random()),
        }
    }
    if a[2] == "charges" {
        for (i, q) in q.iter_mut().enumerate() {
            *q = if i % 2 == 0 { 1.0 } else { -1.0 };
        }
    }
    let precision = if a[3] == "f32" { Precision::F32 } else { Precision::F64 };
    let theta = a.get(4).map(|t| t.parse::<f64>().unwrap()).unwrap_or(0.75f64.sqrt());
    let leaf: Option<usize> = a.get(5).and_then(|t| t.parse().ok()).filter(|&l| l > 0);
    let orders: Vec<usize> = if a.len() > 6 {
        a[6..].iter().map(|p| p.parse().unwrap()).collect()
    } else {
        vec![1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20]
    };
    let sample: Vec<usize> = (0..n).step_by((n / 1000).max(1)).collect();
    let soft = match std::env::var("EPS") {
        Ok(e) => Softening::Plummer(e.parse().unwrap()),
        _ => Softening::None,
    };
    let e2 = if let Softening::Plummer(e) = soft { e * e } else { 0.0 };
    let reference: Vec<[f64; 3]> = sample
        .iter()
        .map(|&i| {
            let mut f = [0.0; 3];
            for j in 0..n {
                if j != i {
                    let d: [f64; 3] = std::array::from_fn(|k| pos[i][k] - pos[j][k]);
                    let r2: f64 = d.iter().map(|x| x * x).sum::<f64>() + e2;
                    let c = q[j] / (r2 * r2.sqrt());
                    for k in 0..3 {
                        f[k] += c * d[k];
                    }
                }
            }
            f
        })
        .collect();
    for p in orders {
        let method = if p == 0 {
            Method::Direct
        } else if std::env::var("TREE").is_ok() {
            Method::Treecode
        } else {
            Method::Fmm
        };
        let s = Settings {
            method,
            precision,
            order: (p > 0).then_some(p),
            theta: Some(theta),
            leaf_size: leaf,
            tolerance: 1e-6,
            softening: soft,
            ..Settings::default()
        };
        let mut times = StageTimes::default();
        let t = std::time::Instant::now();
        let e = evaluate(&s, &pos, &q, None, &mut times).unwrap();
        let wall = t.elapsed().as_secs_f64();
        let (mut rms, mut num, mut den, mut max) = (0.0, 0.0, 0.0, 0.0f64);
        for (&i, r) in sample.iter().zip(&reference) {
            let d2: f64 = (0..3).map(|k| (e.field[i][k] - r[k]).powi(2)).sum();
            let r2: f64 = r.iter().map(|x| x * x).sum();
            rms += d2 / r2;
            num += d2;
            den += r2;
            max = max.max((d2 / r2).sqrt());
        }
        print!(
            "p={p:2} leaf={} rms {:.1e} L2 {:.1e} max {:.1e} wall {:.3} |",
            e.choice.leaf_size,
            (rms / sample.len() as f64).sqrt(),
            (num / den).sqrt(),
            max,
            wall
        );
        for st in Stage::ALL {
            if times.seconds(st) > 0.0 {
                print!(" {} {:.3}", st.name(), times.seconds(st));
            }
        }
        println!();
    }
}
