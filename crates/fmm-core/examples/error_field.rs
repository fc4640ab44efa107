//! Temporary.
use fmm_core::{Family, Method, Precision, Settings, Softening, StageTimes, cpu::direct_field, evaluate};
use testkit::sets::*;

fn mirror(n: usize, seed: u64) -> (Points, Vec<f64>) {
    let mut x: Points =
        plummer(n / 2, seed).iter().map(|x| [0.6 + 0.05 * x[0], 0.1 + 0.05 * x[1], 0.05 + 0.05 * x[2]]).collect();
    let other: Points = x.iter().map(|x| x.map(|c| -c)).collect();
    x.extend(other);
    let mut q = vec![1.0; x.len()];
    for u in uniform(5, seed + 7) {
        x.push(u.map(|c| 1e-3 * (c - 0.5)));
        q.push(1e-12);
    }
    (x, q)
}

fn main() {
    let n: usize = std::env::args().nth(1).map_or(20_000, |a| a.parse().unwrap());
    let soft: f64 = std::env::args().nth(2).map_or(0.0, |a| a.parse().unwrap());
    let softening = if soft > 0.0 { Softening::Plummer(soft) } else { Softening::None };
    let mut sets = contract_sets(n);
    let (x, q) = mirror(n, 5);
    sets.push(("mirror+5", x, q));
    let mut shell: Points = sphere_surface(n, 9);
    shell.extend(uniform(20, 3).iter().map(|x| x.map(|c| 0.6 * (c - 0.5))));
    let l = shell.len();
    sets.push(("shell+20", shell, vec![1.0; l]));
    sets.push(("line", uniform(n, 4).iter().map(|x| [x[0], 0.0, 0.0]).collect(), vec![1.0; n]));
    sets.push(("plane", uniform(n, 4).iter().map(|x| [x[0], x[1], 0.0]).collect(), vec![1.0; n]));
    sets.push((
        "circle",
        uniform(n, 4).iter().map(|x| [(6.2831853 * x[0]).cos(), (6.2831853 * x[0]).sin(), 0.0]).collect(),
        vec![1.0; n],
    ));
    println!(
        "set | method p theta | median ratio true/pred, 5..95 %, within 4 | rank | true rms, l2 | worst share of e2 with prediction < 1/100"
    );
    for (name, x, q) in &sets {
        let exact = direct_field(softening, x, q, x);
        for (method, order, precision) in [
            (Method::Fmm, 2, Precision::F64),
            (Method::Fmm, 4, Precision::F64),
            (Method::Fmm, 8, Precision::F64),
            (Method::Fmm, 12, Precision::F64),
            (Method::Fmm, 18, Precision::F64),
            (Method::Treecode, 4, Precision::F64),
            (Method::Treecode, 10, Precision::F64),
            (Method::Fmm, 5, Precision::F32),
        ] {
            let tolerance = match order {
                2 => 3e-2,
                4 => 1e-3,
                5 => 1e-3,
                8 => 1e-5,
                10 => 1e-6,
                12 => 1e-7,
                _ => 1e-8,
            };
            let settings = Settings {
                method,
                tolerance,
                order: Some(order),
                precision,
                softening,
                leaf_size: Some(30),
                errors: true,
                ..Settings::default()
            };
            let sum = match evaluate(&settings, x, q, None, &mut StageTimes::default()) {
                Ok(s) => s,
                Err(e) => {
                    println!("{name} {order}: {e}");
                    continue;
                }
            };
            if sum.error.is_empty() {
                println!("{name}: none, {:?}", sum.choice.method);
                continue;
            }
            let truth: Vec<f64> = sum
                .field
                .iter()
                .zip(&exact)
                .map(|(f, (e, _))| (0..3).map(|d| (f[d] - e[d]).powi(2)).sum::<f64>().sqrt())
                .collect();
            let size: Vec<f64> =
                exact.iter().map(|(e, l)| e.iter().map(|c| c * c).sum::<f64>().sqrt().max(1e-3 * l)).collect();
            let mut ratio: Vec<f64> = truth.iter().zip(&sum.error).map(|(t, p)| t / p).collect();
            ratio.sort_by(f64::total_cmp);
            let q_ = |f: f64| ratio[((ratio.len() - 1) as f64 * f) as usize];
            let median = q_(0.5);
            let within =
                ratio.iter().filter(|r| **r > 0.25 * median && **r < 4.0 * median).count() as f64 / ratio.len() as f64;
            let within_raw = ratio.iter().filter(|r| **r > 0.25 && **r < 4.0).count() as f64 / ratio.len() as f64;
            let e_true: Vec<f64> = truth.iter().zip(&size).map(|(t, s)| t / s).collect();
            let e_pred: Vec<f64> = sum.error.iter().zip(&size).map(|(t, s)| t / s).collect();
            let rank = |v: &[f64]| {
                let mut i: Vec<usize> = (0..v.len()).collect();
                i.sort_by(|&a, &b| v[a].total_cmp(&v[b]));
                let mut r = vec![0.0; v.len()];
                i.iter().enumerate().for_each(|(k, &i)| r[i] = k as f64);
                r
            };
            let (a, b) = (rank(&e_true), rank(&e_pred));
            let m = (a.len() as f64 - 1.0) / 2.0;
            let corr = a.iter().zip(&b).map(|(a, b)| (a - m) * (b - m)).sum::<f64>()
                / a.iter().map(|a| (a - m).powi(2)).sum::<f64>();
            let total: f64 = e_true.iter().map(|e| e * e).sum();
            let rms_pred = (e_pred.iter().map(|e| e * e).sum::<f64>() / e_pred.len() as f64).sqrt();
            let rms = (total / e_true.len() as f64).sqrt();
            let worst = e_true
                .iter()
                .zip(&e_pred)
                .filter(|(t, p)| **p < 0.01 * **t * rms_pred / rms)
                .map(|(t, _)| t * t / total)
                .fold(0.0, f64::max);
            // The variance of importance sampling: mean of e^4/p over (mean e^2)^2, p a mixture.
            let sum_p: f64 = e_pred.iter().map(|e| e * e).sum();
            let nn = e_true.len() as f64;
            let second: f64 = e_true
                .iter()
                .zip(&e_pred)
                .map(|(t, p)| {
                    let prob = 0.9 * p * p / sum_p + 0.1 / nn;
                    t.powi(4) / prob
                })
                .sum::<f64>();
            let scatter = ((second / (total * total) - 1.0) / 256.0).max(0.0).sqrt() / 2.0;
            println!(
                "{name:>15} {} {:>2} {} {:4} | {median:.3} {:.3} {:.3} within {within:.3} raw {within_raw:.3} | {corr:.2} | rms {rms:.1e} pred {:.2} | worst {worst:.1e} scatter {scatter:.3}",
                sum.choice.expansion.map_or("", Family::name).chars().next().unwrap(),
                order,
                method.name().chars().next().unwrap(),
                precision.name(),
                q_(0.05),
                q_(0.95),
                rms_pred / rms
            );
        }
    }
}
