//! Two patches of point vortices of one sign merge: what a step of an integrator costs in invariants.
//!
//!     cargo run --release -p fmm-core --example vortex_merger -- 1000 0.02 40
//!
//! Vortices of circulation Γ move with u − iv = Σ Γ_j/(2πi (z − z_j)), for which (u, v) = (e_y, −e_x)/(2π) with the field e of the
//! log kernel. The motion keeps the Hamiltonian −Σ Γ_i φ_i/(4π), the linear impulse Σ Γ z and the angular impulse Σ Γ |z|²; the table
//! shows how well the classical Runge-Kutta scheme and the implicit midpoint rule, which is symplectic, keep them. Time is in units of
//! the inverse vorticity of the patches.

use std::f64::consts::{PI, TAU};

use fmm_core::planar::{Blob, Kernel, Strengths, evaluate};
use fmm_core::{Settings, StageTimes};

type Points = Vec<[f64; 2]>;

/// Velocities and potentials of vortices.
fn motion(points: &Points, circulation: &[f64]) -> (Points, Vec<f64>) {
    let settings = Settings { tolerance: 1e-11, ..Settings::default() };
    let strengths = Strengths { real: circulation, imaginary: None };
    let sum = evaluate(&settings, Kernel::Log, Blob::Point, points, strengths, None, &mut StageTimes::default())
        .expect("finite points");
    (sum.field.iter().map(|e| [e[1] / TAU, -e[0] / TAU]).collect(), sum.potential)
}

/// x + h v.
fn moved(x: &Points, v: &Points, h: f64) -> Points {
    x.iter().zip(v).map(|(x, v)| [x[0] + h * v[0], x[1] + h * v[1]]).collect()
}

fn runge_kutta(x: &Points, circulation: &[f64], h: f64) -> Points {
    let velocity = |x: &Points| motion(x, circulation).0;
    let a = velocity(x);
    let b = velocity(&moved(x, &a, 0.5 * h));
    let c = velocity(&moved(x, &b, 0.5 * h));
    let d = velocity(&moved(x, &c, h));
    let mean = |i: usize| [0, 1].map(|k| (a[i][k] + 2.0 * b[i][k] + 2.0 * c[i][k] + d[i][k]) / 6.0);
    moved(x, &(0..x.len()).map(mean).collect(), h)
}

/// x' = x + h v((x + x')/2), by iteration.
fn midpoint(x: &Points, circulation: &[f64], h: f64) -> Points {
    let mut v = motion(x, circulation).0;
    for _ in 0..50 {
        let next = motion(&moved(x, &v, 0.5 * h), circulation).0;
        let change = v.iter().zip(&next).map(|(a, b)| (a[0] - b[0]).hypot(a[1] - b[1])).fold(0.0, f64::max);
        v = next;
        if change * h < 1e-14 {
            break;
        }
    }
    moved(x, &v, h)
}

/// Hamiltonian, linear impulse and angular impulse.
fn invariants(x: &Points, circulation: &[f64]) -> [f64; 4] {
    let potential = motion(x, circulation).1;
    let sum = |f: &dyn Fn(usize) -> f64| (0..x.len()).map(|i| circulation[i] * f(i)).sum::<f64>();
    [
        sum(&|i| -potential[i] / (4.0 * PI)),
        sum(&|i| x[i][0]),
        sum(&|i| x[i][1]),
        sum(&|i| x[i][0] * x[i][0] + x[i][1] * x[i][1]),
    ]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: f64| arguments.next().map_or(default, |a| a.parse().expect("a number"));
    let (each, step, end) = (next(1000.0) as usize, next(0.02), next(40.0));
    // Sunflowers of radius 1 and vorticity 1, 2.6 apart: nearer than 3.2, they merge.
    let golden = PI * (3.0 - 5f64.sqrt());
    let flower = |k: usize, x: f64| {
        let r = ((k as f64 + 0.5) / each as f64).sqrt();
        [x + r * (golden * k as f64).cos(), r * (golden * k as f64).sin()]
    };
    let start: Points = (0..each).map(|k| flower(k, -1.3)).chain((0..each).map(|k| flower(k, 1.3))).collect();
    let circulation = vec![PI / each as f64; 2 * each];
    let begun = invariants(&start, &circulation);
    let total: f64 = circulation.iter().sum();
    type Scheme = fn(&Points, &[f64], f64) -> Points;
    for (name, scheme) in [("Runge-Kutta 4", runge_kutta as Scheme), ("midpoint", midpoint as Scheme)] {
        let mut x = start.clone();
        let steps = (end / step).round() as usize;
        for k in 1..=steps {
            x = scheme(&x, &circulation, step);
            if k % (steps / 8).max(1) == 0 {
                let now = invariants(&x, &circulation);
                println!(
                    "{name}, t = {:.2}: Hamiltonian {:.1e}, linear impulse {:.1e}, angular impulse {:.1e}; mean distance {:.4}",
                    k as f64 * step,
                    (now[0] - begun[0]) / begun[0].abs(),
                    (now[1] - begun[1]).hypot(now[2] - begun[2]) / total,
                    (now[3] - begun[3]) / begun[3],
                    x.iter().map(|x| x[0].hypot(x[1])).sum::<f64>() / x.len() as f64
                );
            }
        }
    }
}
